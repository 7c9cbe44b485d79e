//! Waiting for a device; its memory use and launch count.

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
    /// [`GpuError::Kernel`](crate::GpuError::Kernel) for a launch that did not complete,
    /// unless an earlier call has reported it,
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted).
    #[doc(alias("synchronize", "cudaDeviceSynchronize", "device_wait_idle"))]
    pub fn wait(&self) -> Result<()> {
        let outcome = self.context.check_alive().and_then(|()| self.context.wait_idle());
        outcome.in_function("Device::wait")
    }

    /// Releases the memory that only finished work kept, without waiting. Waits and, from time to
    /// time, submissions do so too.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc_untyped(None, 4)?;
    /// x.fill_zero()?;
    /// while x.is_shared() {
    ///     gpu.release_finished()?; // until the fill is done
    /// }
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost).
    pub fn release_finished(&self) -> Result<()> {
        self.context.release_finished().in_function("Device::release_finished")
    }

    /// Returns the time limit of a wait; `None`, the default, means no limit.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        self.context.time_limit()
    }

    /// Sets the time limit of a wait, counted from its start. A wait that exceeds it fails with
    /// [`GpuError::Timeout`](crate::GpuError::Timeout).
    ///
    /// The CPU device cancels the work that was waited for: running kernels stop with
    /// incomplete output, and later ones do not start. All waits in progress for this work, or
    /// for later work, fail with the same error, and the device stays usable. CUDA and Vulkan
    /// cancel kernels by loops that poll for it: those that are not proven to end soon. Vulkan also
    /// cancels work submitted later. Kernels that do not poll have at most half a second to finish;
    /// otherwise the device is lost, and later calls fail at once. On Vulkan devices without device
    /// memory that the host can write, no kernel polls.
    ///
    /// In WebAssembly the call has no effect, and logs a warning.
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
    /// gpu.set_time_limit(None); // the CPU device remains usable
    /// assert_eq!(flag.download()?, [0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        self.context.set_time_limit(limit);
    }

    /// Interrupts every wait in progress, on any thread, which fails with
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted). The work continues.
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

    /// Returns the memory used by the device's buffers, including staging memory.
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

    /// Returns the free device memory in bytes, over all processes, out of
    /// [`DeviceInfo::memory`](crate::DeviceInfo::memory). `None` where the backend does not
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
    #[doc(alias = "cudaMemGetInfo")]
    pub fn free_memory(&self) -> Result<Option<u64>> {
        let free = || self.context.note_loss(self.context.driver.free_memory());
        self.context.check_alive().and_then(|()| free()).in_function("Device::free_memory")
    }

    /// Returns the number of launches submitted to the device since it was opened, including those
    /// of replays.
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
