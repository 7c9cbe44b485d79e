//! Async methods of devices: opening, compiling, and waiting for all work.

use std::future::poll_fn;

use scry_ir::kir::Kir;

use crate::api::device::Device;
#[cfg(target_arch = "wasm32")]
use crate::api::device_selection::{self, SearchMode};
use crate::api::error::{InFunction, Result};
use crate::api::info::DeviceInfo;
use crate::api::kernel::{CompileOptions, Kernel, ir_program};
use crate::core::async_transfer::wait_for_room_in_flight;
use crate::core::completion::Completion;
use crate::core::offload::offload;

impl Device {
    /// Async form of [`Device::auto`]. Drivers are opened on another thread; in WebAssembly, the
    /// browser is asked for a GPU through WebGPU, and without one this is the CPU device.
    /// [`Device::info`] returns which it is.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = pollster::block_on(Device::auto_async())?;
    /// println!("computing on {}", gpu.info());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::auto`].
    pub async fn auto_async() -> Result<Self> {
        #[cfg(target_arch = "wasm32")]
        return Self::from_search(device_selection::open_auto(SearchMode::Awaiting)).await;
        #[cfg(not(target_arch = "wasm32"))]
        offload(Self::auto).await
    }

    /// Async form of [`Device::open`]. The driver is opened on another thread.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = pollster::block_on(Device::open_async("cpu"))?;
    /// assert_eq!(gpu.backend_kind().name(), "cpu");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::open`].
    pub async fn open_async(selector: &str) -> Result<Self> {
        #[cfg(target_arch = "wasm32")]
        return Self::from_search(device_selection::open(selector, SearchMode::Awaiting)).await;
        #[cfg(not(target_arch = "wasm32"))]
        let selector = selector.to_owned();
        #[cfg(not(target_arch = "wasm32"))]
        offload(move || Self::open(&selector)).await
    }

    /// Async form of [`Device::list`]. Drivers are loaded on another thread.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() {
    /// for info in pollster::block_on(Device::list_async()) {
    ///     println!("{info}");
    /// }
    /// # }
    /// ```
    pub async fn list_async() -> Vec<DeviceInfo> {
        #[cfg(target_arch = "wasm32")]
        return device_selection::list(SearchMode::Awaiting).await;
        #[cfg(not(target_arch = "wasm32"))]
        offload(Self::list).await
    }

    /// Async form of [`Device::compile`]: compiles the only entry point of a WGSL source on another
    /// thread. If the future is dropped the kernel is still compiled and cached.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open_async("cpu").await?;
    ///     let kernel = gpu.compile_async("@compute @workgroup_size(8) fn nothing() {}").await?;
    ///     assert_eq!(kernel.entry_point(), "nothing");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub async fn compile_async(&self, wgsl: &str) -> Result<Kernel> {
        let options = CompileOptions::default();
        self.compile_with_async(wgsl, &options).await.in_function("Device::compile_async")
    }

    /// Async form of [`Device::compile_with`]: compiles a WGSL source with options on another
    /// thread.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open_async("cpu").await?;
    ///     let source = "override SIZE: u32; @compute @workgroup_size(SIZE) fn main() {}";
    ///     let options = CompileOptions::new().set("SIZE", 128);
    ///     let kernel = gpu.compile_with_async(source, &options).await?;
    ///     assert_eq!(kernel.workgroup_size(), [128, 1, 1]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub async fn compile_with_async(&self, wgsl: &str, options: &CompileOptions) -> Result<Kernel> {
        let (context, wgsl, options) = (self.context.clone(), wgsl.to_owned(), options.clone());
        let compile = move || Kernel::compile(&context, &wgsl, &options, true);
        confirmed(offload(compile).await).await.in_function("Device::compile_with_async")
    }

    /// Async form of [`Device::compile_ir`]: checks a kernel built in the kernel IR at once, and
    /// compiles it on another thread.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_gpu::kir::Builder;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open_async("cpu").await?;
    ///     let kernel = gpu.compile_ir_async(&Builder::new("nothing", [8, 1, 1]).finish()).await?;
    ///     assert_eq!(kernel.entry_point(), "nothing");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile_ir`].
    pub async fn compile_ir_async(&self, kir: &Kir) -> Result<Kernel> {
        let options = CompileOptions::default();
        self.compile_ir_with_async(kir, &options).await.in_function("Device::compile_ir_async")
    }

    /// Async form of [`Device::compile_ir_with`]: checks a kernel built in the kernel IR at once,
    /// and compiles it on another thread.
    ///
    /// ```
    /// use scry_gpu::kir::Builder;
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open_async("cpu").await?;
    ///     let (kir, options) = (Builder::new("a", [8, 1, 1]).finish(), CompileOptions::new());
    ///     let kernel = gpu.compile_ir_with_async(&kir, &options.label("generated")).await?;
    ///     assert_eq!(kernel.workgroup_size(), [8, 1, 1]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile_ir`].
    pub async fn compile_ir_with_async(
        &self,
        kir: &Kir,
        options: &CompileOptions,
    ) -> Result<Kernel> {
        const FUNCTION: &str = "Device::compile_ir_with_async";
        let program = ir_program(kir, options).in_function(FUNCTION)?;
        let (context, label) = (self.context.clone(), options.label.clone());
        let compile = move || Kernel::compile_ir(&context, program, label.as_deref());
        confirmed(offload(compile).await).await.in_function(FUNCTION)
    }

    /// Runs work of the host that blocks, such as compiling many kernels, on the threads of the
    /// async methods. Where there are no threads, as in a browser, it runs in the first poll: there
    /// it must not wait for the device. Work that has begun continues after the future is dropped.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let sizes = [64u32, 128];
    ///     let source = |size| format!("@compute @workgroup_size({size}) fn main() {{}}");
    ///     let compiled = gpu.offload_async(move |gpu| sizes.map(|it| gpu.compile(&source(it))));
    ///     for (kernel, size) in compiled.await.into_iter().zip(sizes) {
    ///         assert_eq!(kernel?.workgroup_size(), [size, 1, 1]);
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the work does.
    pub async fn offload_async<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let device = self.clone();
        offload(move || work(&device)).await
    }

    /// Completes when the device accepts another submission without waiting.
    ///
    /// At most 256 submissions are unfinished at once; a call that submits one more waits for the
    /// oldest. A task that submits without awaiting the results should await this first. If other
    /// threads submit in between, the call may still wait.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(2)?;
    ///     for step in 0..1000 {
    ///         gpu.ready_async().await?;
    ///         let _ = gpu.batch().fill(&x, step)?.submit_async()?;
    ///     }
    ///     assert_eq!(x.download_async().await?, [999, 999]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::wait`], except for failed launches.
    pub async fn ready_async(&self) -> Result<()> {
        wait_for_room_in_flight(&self.context).await.in_function("Device::ready_async")
    }

    /// Async form of [`Device::wait`]: completes when everything submitted so far is done.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(2)?;
    ///     x.fill(7)?;
    ///     gpu.wait_async().await
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::wait`].
    pub async fn wait_async(&self) -> Result<()> {
        const NAME: &str = "Device::wait_async";
        self.context.check_alive().in_function(NAME)?;
        match Completion::for_all_submitted(&self.context) {
            Some(completion) => completion.await.in_function(NAME),
            None => Ok(()),
        }
    }
}

/// Waits for the driver's verdict on a compiled kernel.
async fn confirmed(compiled: Result<Kernel>) -> Result<Kernel> {
    let kernel = compiled?;
    let variant = kernel.compiled();
    let id = variant.native_grid().id();
    let verdict = poll_fn(|cx| variant.driver().poll_compiled(id, cx.waker())).await;
    verdict.map_err(|error| error.with_label(kernel.label().map(|label| &**label)))?;
    Ok(kernel)
}
