//! Functions of the host as kernels of the CPU.

use std::sync::Arc;

use super::{HostArguments, HostFunction, Language, NativeInterface, NativeSpec, validate};
use crate::api::device::Device;
use crate::api::error::{InFunction, Result};
use crate::api::kernel::Kernel;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::driver::HostJob;

/// Functions of the host.
impl Device {
    /// Makes a kernel of a Rust function, on the CPU device: each launch calls it once, on a thread
    /// of the device, with the bytes of the bound buffers.
    ///
    /// The result runs like any kernel: the declaration is used to check arguments and to order
    /// commands, in batches and recordings too. The block size of `interface` is of no importance,
    /// since the function decides what it computes from
    /// [`HostArguments::workgroups`]; launch it with
    /// [`Launch::workgroups`](crate::Launch::workgroups). A launch of a host function cannot be
    /// cancelled; one that is still running after the time limit loses the device. It must not wait
    /// for work of its own device, which is waiting for it. If it panics, the device is lost, and
    /// the error has the text of the panic.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch, NativeBinding, NativeInterface, Scalar};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let interface = NativeInterface::new(
    ///     [NativeBinding::read("x", Scalar::F32), NativeBinding::read_write("y", Scalar::F32)],
    ///     [1; 3],
    /// );
    /// let sort = gpu.host_kernel("sort", &interface, |arguments| {
    ///     let (x, y) = (arguments.read::<f32>(0), arguments.write::<f32>(1));
    ///     y.copy_from_slice(x);
    ///     y.sort_by(f32::total_cmp);
    /// })?;
    /// let (x, y) = (gpu.upload(&[3.0f32, 1.0, 2.0])?, gpu.alloc::<f32>(3)?);
    /// gpu.run(&sort, &[&x, &y], Launch::workgroups([1; 3]))?;
    /// assert_eq!(y.download()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Language`](crate::GpuError::Language) on devices of other backends;
    /// [`GpuError::Argument`](crate::GpuError::Argument) for an invalid name or interface.
    pub fn host_kernel(
        &self,
        name: &str,
        interface: &NativeInterface,
        function: impl Fn(&mut HostArguments<'_>) + Send + Sync + 'static,
    ) -> Result<Kernel> {
        self.load_host_function(name, interface, &(Arc::new(function) as HostFunction))
            .in_function("Device::host_kernel")
    }

    fn load_host_function(
        &self,
        name: &str,
        interface: &NativeInterface,
        function: &HostFunction,
    ) -> Result<Kernel> {
        self.context.check_alive()?;
        let spec = NativeSpec { language: Language::Host, interface: interface.clone() };
        validate("", name, &spec)?;
        let job = HostJob { name, interface, function };
        let compiled = Arc::new(CompiledKernel::load_host_function(&self.context, &job)?);
        Ok(Kernel::from_compiled(&compiled, &self.context))
    }
}
