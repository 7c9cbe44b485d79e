//! Functions of the host as kernels of the CPU.

use std::fmt;
use std::sync::Arc;

use super::{Language, NativeInterface, NativeSpec, validate};
use crate::api::device::Device;
use crate::api::element::{self, Element};
use crate::api::error::{InFunction, Result};
use crate::api::kernel::Kernel;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::driver::HostJob;

/// A function of the host.
pub(crate) type HostFunction = Arc<dyn Fn(&mut HostArguments<'_>) + Send + Sync>;

/// The arguments of one launch of a host function: the bytes of its buffers, its immediates and
/// its grid. See [`Device::host_kernel`].
pub struct HostArguments<'a> {
    kernel: &'a str,
    buffers: Vec<HostBuffer<'a>>,
    immediates: &'a [u8],
    workgroups: [u32; 3],
}

/// The bytes of a bound buffer.
pub(crate) enum HostBuffer<'a> {
    /// A buffer that is only read.
    Read(&'a [u8]),
    /// A buffer that is declared as written.
    Write(&'a mut [u8]),
    /// A written buffer that the function has taken.
    Taken,
}

impl<'a> HostArguments<'a> {
    #[cfg_attr(
        not(feature = "cpu"),
        expect(dead_code, reason = "only the CPU runs functions of the host")
    )]
    pub(crate) fn new(
        kernel: &'a str,
        buffers: Vec<HostBuffer<'a>>,
        immediates: &'a [u8],
        workgroups: [u32; 3],
    ) -> Self {
        Self { kernel, buffers, immediates, workgroups }
    }

    /// Returns the elements of a buffer that is declared as read. Bytes after the last whole
    /// element are left out.
    ///
    /// # Panics
    /// If there is no such buffer, or if it is declared as written.
    #[must_use]
    pub fn read<T: Element>(&self, binding: usize) -> &'a [T] {
        match self.buffers.get(binding) {
            Some(HostBuffer::Read(bytes)) => element::elements_of(bytes),
            _ => self.wrong_binding(binding, "read"),
        }
    }

    /// Returns the elements of a buffer that is declared as written, as they were before the
    /// launch. The slice is taken out, so that several can be held at the same time. Bytes after
    /// the last whole element are left out.
    ///
    /// # Panics
    /// If there is no such buffer, if it is declared as read, or if it was taken before.
    pub fn write<T: Element>(&mut self, binding: usize) -> &'a mut [T] {
        let buffer = self.buffers.get_mut(binding);
        match buffer.map(|buffer| std::mem::replace(buffer, HostBuffer::Taken)) {
            Some(HostBuffer::Write(bytes)) => element::elements_of_mut(bytes),
            _ => self.wrong_binding(binding, "written, or it was taken before"),
        }
    }

    /// Returns the immediates as one value.
    ///
    /// # Panics
    /// If `T` has another size than the immediates that the interface declares.
    #[must_use]
    pub fn immediates<T: Element>(&self) -> T {
        let mut value = element::zeroed::<T>(1);
        let (declared, given) = (self.immediates.len(), size_of::<T>());
        assert!(declared == given, "`{}` has {declared} bytes of immediates", self.kernel);
        element::bytes_of_mut(&mut value).copy_from_slice(self.immediates);
        value[0]
    }

    /// Returns the workgroups of the launch along x, y and z. The function is called once for all
    /// of them.
    #[must_use]
    pub fn workgroups(&self) -> [u32; 3] {
        self.workgroups
    }

    fn wrong_binding(&self, binding: usize, access: &str) -> ! {
        panic!("binding {binding} of `{}` is not declared as {access}", self.kernel)
    }
}

impl fmt::Debug for HostArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostArguments")
            .field("kernel", &self.kernel)
            .field("buffers", &self.buffers.len())
            .field("workgroups", &self.workgroups)
            .finish_non_exhaustive()
    }
}

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
