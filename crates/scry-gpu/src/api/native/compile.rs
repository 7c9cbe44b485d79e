//! The calls that compile kernels other than WGSL.

use super::{Language, NativeBindings, NativeInterface, NativeSpec};
use crate::api::device::Device;
use crate::api::error::{InFunction, Result};
use crate::api::kernel::Kernel;

/// Kernels that are not WGSL.
impl Device {
    /// Compiles a kernel written in PTX, with a declared interface, on CUDA devices. The driver's
    /// assembler compiles it: no toolkit is needed.
    ///
    /// The result runs like a WGSL kernel: the declaration is used to check arguments and to order
    /// commands. Grids are not linearised: one above
    /// [`Limits::max_native_workgroups`](crate::Limits) is rejected. Such kernels cannot be
    /// cancelled: if one is still running half a second after the time limit, the device is lost.
    ///
    /// ```no_run
    /// use scry_gpu::{BackendKind, Device, NativeBinding, NativeInterface, Scalar};
    ///
    /// # fn main() -> Result<(), scry_gpu::GpuError> {
    /// let ptx = "
    ///     .version 7.0
    ///     .target sm_70
    ///     .address_size 64
    ///     .visible .entry twice(.param .u64 x, .param .u64 n)
    ///     {
    ///         .reg .pred %out;
    ///         .reg .b32 %i, %b, %w;
    ///         .reg .f32 %v;
    ///         .reg .b64 %x, %n, %at, %to;
    ///         ld.param.u64 %x, [x];
    ///         ld.param.u64 %n, [n];
    ///         mov.u32 %i, %tid.x;
    ///         mov.u32 %b, %ctaid.x;
    ///         mov.u32 %w, %ntid.x;
    ///         mad.lo.u32 %i, %b, %w, %i;
    ///         cvt.u64.u32 %at, %i;
    ///         setp.ge.u64 %out, %at, %n;
    ///         @%out bra END;
    ///         cvta.to.global.u64 %x, %x;
    ///         shl.b64 %at, %at, 2;
    ///         add.u64 %to, %x, %at;
    ///         ld.global.f32 %v, [%to];
    ///         add.f32 %v, %v, %v;
    ///         st.global.f32 [%to], %v;
    ///     END:
    ///         ret;
    ///     }";
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// let binding = NativeBinding::read_write("x", Scalar::F32).with_length();
    /// let interface = NativeInterface::new([binding], [64, 1, 1]);
    /// // SAFETY: each thread accesses one element, below the length parameter.
    /// let twice = unsafe { gpu.compile_ptx(ptx, "twice", &interface)? };
    /// gpu.run(&twice, &[&x], 3)?;
    /// assert_eq!(x.download()?, [2.0, 4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Language`](crate::GpuError::Language) on devices of other backends;
    /// [`GpuError::Source`](crate::GpuError::Source) with the assembler's messages;
    /// [`GpuError::Argument`](crate::GpuError::Argument) for an invalid name or interface;
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge) if the kernel exceeds a limit of the
    /// device.
    ///
    /// # Safety
    /// The kernel has the parameters that `interface` declares. In every launch, it accesses only
    /// the bound buffers, within their sizes, writes only those declared as written, and
    /// terminates. With PDL, it obeys the rules of [`NativeInterface::pdl`].
    pub unsafe fn compile_ptx(
        &self,
        source: &str,
        entry: &str,
        interface: &NativeInterface,
    ) -> Result<Kernel> {
        let compiled = self.compile_native(Language::Ptx, source, entry, interface.clone());
        compiled.in_function("Device::compile_ptx")
    }

    /// Compiles a kernel written in CUDA C, declared `extern "C" __global__`: on CUDA devices, with
    /// NVIDIA's compiler library NVRTC, which is loaded on first use.
    ///
    /// `bindings` are the kernel's buffers, or only their number; `block` is the number of threads
    /// of a block. [`NativeInterface`] describes the order of the parameters; for kernels with
    /// immediates or dynamic shared memory there is [`Device::compile_cuda_with`].
    ///
    /// ```no_run
    /// use scry_gpu::{BackendKind, Device, NativeBinding, Scalar};
    ///
    /// # fn main() -> Result<(), scry_gpu::GpuError> {
    /// let source = r#"
    ///     extern "C" __global__ void square(const float *x, float *y, unsigned long long n) {
    ///         unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    ///         if (i < n) y[i] = x[i] * x[i];
    ///     }"#;
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// let y = gpu.alloc::<f32>(3)?;
    /// let bindings = [
    ///     NativeBinding::read("x", Scalar::F32),
    ///     NativeBinding::read_write("y", Scalar::F32).with_length(),
    /// ];
    /// // SAFETY: each thread accesses one element of both, below the length parameter.
    /// let square = unsafe { gpu.compile_cuda(source, "square", bindings, [64, 1, 1])? };
    /// gpu.run(&square, &[&x, &y], 3)?;
    /// assert_eq!(y.download()?, [1.0, 4.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile_ptx`], with the compiler's messages;
    /// [`GpuError::Library`](crate::GpuError::Library) without NVRTC, with help to install it.
    ///
    /// # Safety
    /// As [`Device::compile_ptx`].
    pub unsafe fn compile_cuda(
        &self,
        source: &str,
        entry: &str,
        bindings: impl Into<NativeBindings>,
        block: [u32; 3],
    ) -> Result<Kernel> {
        let interface = NativeInterface::new(bindings, block);
        let compiled = self.compile_native(Language::CudaC, source, entry, interface);
        compiled.in_function("Device::compile_cuda")
    }

    /// Compiles a kernel as [`Device::compile_cuda`] does, with immediates or dynamic shared
    /// memory.
    ///
    /// ```no_run
    /// use scry_gpu::{Buffer, Device, NativeBinding, NativeInterface, Scalar};
    ///
    /// fn twice(gpu: &Device, x: &Buffer<f32>) -> scry_gpu::Result<()> {
    ///     let source = r#"extern "C" __global__ void twice(float *x) {
    ///         x[threadIdx.x] *= 2.0f;
    ///     }"#;
    ///     let bindings = [NativeBinding::read_write("x", Scalar::F32)];
    ///     let interface = NativeInterface::new(bindings, [64, 1, 1]);
    ///     assert!(x.len() >= 64);
    ///     // SAFETY: each of the 64 threads accesses one element, and the buffer has as many.
    ///     let kernel = unsafe { gpu.compile_cuda_with(source, "twice", &interface)? };
    ///     gpu.run(&kernel, &[x], 64)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile_cuda`].
    ///
    /// # Safety
    /// As [`Device::compile_ptx`].
    pub unsafe fn compile_cuda_with(
        &self,
        source: &str,
        entry: &str,
        interface: &NativeInterface,
    ) -> Result<Kernel> {
        let compiled = self.compile_native(Language::CudaC, source, entry, interface.clone());
        compiled.in_function("Device::compile_cuda_with")
    }

    fn compile_native(
        &self,
        language: Language,
        source: &str,
        entry: &str,
        interface: NativeInterface,
    ) -> Result<Kernel> {
        Kernel::compile_native(&self.context, source, entry, &NativeSpec { language, interface })
    }
}
