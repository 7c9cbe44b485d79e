//! Waiting for a device, and what it reports of itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Device;
use crate::api::error::{InFunction, Result};
use crate::core::memory::MemoryUsage;

impl Device {
    /// Waits until everything submitted so far is done.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(2)?;
    /// let ticket = gpu.batch().fill(&x, 1)?.submit_async()?;
    /// gpu.wait()?;
    /// assert!(ticket.is_ready()?);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost),
    /// [`GpuError::Timeout`](crate::GpuError::Timeout),
    /// [`GpuError::Kernel`](crate::GpuError::Kernel) for a launch that did not run to its end,
    /// unless an earlier call has said so,
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted).
    pub fn wait(&self) -> Result<()> {
        let outcome = self.context.check_alive().and_then(|()| self.context.wait_idle());
        outcome.in_function("Device::wait")
    }

    /// The longest time that a wait may take; `None`, the default, means no limit.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        self.context.time_limit()
    }

    /// Sets the longest time that a wait may take, counted from its start. When it passes the wait
    /// fails with [`GpuError::Timeout`](crate::GpuError::Timeout).
    ///
    /// On the CPU everything that was waited for is ended: kernels stop where they are, so that
    /// what they write is incomplete, and those that follow are not begun. All waits in progress
    /// for it, or for what comes after it, fail alike, and the device goes on. So it is on CUDA
    /// with kernels that run long in loops which are not proven to end: these notice; others run
    /// to their end, for which half a second is waited. Vulkan cannot stop a running kernel; there,
    /// and where CUDA's does not end, the device is given up, and later calls fail at once.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use scry_gpu::{Device, GpuError};
    ///
    /// let gpu = Device::open("cpu")?;
    /// gpu.set_time_limit(Some(Duration::from_millis(20)));
    /// let flag = gpu.alloc::<u32>(1)?;
    /// let spin = "@group(0) @binding(0) var<storage, read_write> flag: array<u32>;
    ///     @compute @workgroup_size(1) fn spin() { loop { if flag[0] == 1u { break; } } }";
    /// gpu.dispatch(spin, &[&flag], 1)?;
    /// assert!(matches!(gpu.wait(), Err(GpuError::Timeout(_))));
    /// gpu.set_time_limit(None); // the CPU device goes on
    /// assert_eq!(flag.download()?, [0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        self.context.set_time_limit(limit);
    }

    /// Makes every wait in progress, on any thread, fail soon with
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted). The work goes on.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// use scry_gpu::{Device, GpuError};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let flag = gpu.alloc::<u32>(1)?;
    /// let spin = "@group(0) @binding(0) var<storage, read_write> flag: array<u32>;
    ///     @compute @workgroup_size(1) fn spin() { loop { if flag[0] == 1u { break; } } }";
    /// gpu.dispatch(spin, &[&flag], 1)?;
    /// let waiting = thread::spawn({
    ///     let gpu = gpu.clone();
    ///     move || gpu.wait()
    /// });
    /// while !waiting.is_finished() {
    ///     gpu.interrupt(); // only waits in progress are interrupted
    ///     thread::sleep(Duration::from_millis(1));
    /// }
    /// let result = waiting.join().expect("the thread has not panicked");
    /// assert!(matches!(result, Err(GpuError::Interrupted(_))));
    /// # gpu.set_time_limit(Some(Duration::from_millis(10)));
    /// # let _ = gpu.wait(); // ends the kernel
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    pub fn interrupt(&self) {
        self.context.interrupt();
    }

    /// How much memory the device's buffers hold, staging included.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let before = gpu.memory_usage();
    /// let x = gpu.alloc::<u8>(1 << 20)?;
    /// assert!(format!("{:?}", gpu.memory_usage()) != format!("{before:?}"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> MemoryUsage {
        self.context.account.usage()
    }

    /// Returns the free device memory in bytes, over all processes, of
    /// [`DeviceInfo::memory`](crate::DeviceInfo::memory) in all. `None` where the backend does not
    /// report it (all but CUDA).
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// match gpu.free_memory()? {
    ///     Some(bytes) => println!("{bytes} of {} bytes are free", gpu.info().memory),
    ///     None => println!("only CUDA reports this"),
    /// }
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost).
    pub fn free_memory(&self) -> Result<Option<u64>> {
        let free = || self.context.note_loss(self.context.driver.free_memory());
        self.context.check_alive().and_then(|()| free()).in_function("Device::free_memory")
    }

    /// How many launches the device was handed since it was opened, each replay's included.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let add = gpu.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///      }",
    /// )?;
    /// let x = gpu.alloc::<u32>(3)?;
    /// let before = gpu.launch_count();
    /// gpu.run(&add, &[&x], 3)?;
    /// assert_eq!(gpu.launch_count() - before, 1);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn launch_count(&self) -> u64 {
        self.context.launches.load(Ordering::Relaxed)
    }
}
