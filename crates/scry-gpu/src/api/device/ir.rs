//! Kernels of a device that were built in the kernel IR.

use scry_ir::kir::Kir;

use super::Device;
use crate::api::error::{InFunction, Result};
use crate::api::kernel::{CompileOptions, Kernel, ir_program};

/// Kernels built in Rust.
impl Device {
    /// Compiles a kernel that was built in the kernel IR, usually by a
    /// [`Builder`](crate::kir::Builder).
    ///
    /// Launches are as safe as those of WGSL kernels, whatever the kernel contains: the IR's rules
    /// are verified, every index is clamped to the last element in bounds, loops that are not
    /// proven to end can be stopped, and barriers must be reached by all invocations of a workgroup
    /// ([`kir`](crate::kir) has the rules). Kernels are cached by content, but checked by each
    /// call: keep the [`Kernel`] to launch it often.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_gpu::kir::{Access, BinaryOp, Builder, Type};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// // data[i] = data[i] * 2 + 1
    /// let mut b = Builder::new("scale", [64, 1, 1]);
    /// let data = b.named_buffer("data", Type::F32, Access::ReadWrite);
    /// let i = b.global_id(0);
    /// let length = b.array_length(data, 0, 4);
    /// let inside = b.binary(BinaryOp::Lt, i, length);
    /// b.if_then(inside, |b| {
    ///     let (two, one) = (b.f32(2.0), b.f32(1.0));
    ///     let place = b.element(data, i);
    ///     let x = b.load(Type::F32, place, 1)[0];
    ///     let y = b.fma(x, two, one);
    ///     b.store(place, vec![y]);
    /// });
    ///
    /// let gpu = Device::open("cpu")?;
    /// let scale = gpu.compile_ir(&b.finish())?;
    /// let data = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// gpu.run(&scale, &[&data], 3)?;
    /// assert_eq!(data.download()?, [3.0, 5.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Shader`](crate::GpuError::Shader) if the kernel breaks a rule or is too large;
    /// otherwise as [`Device::compile`].
    pub fn compile_ir(&self, kir: &Kir) -> Result<Kernel> {
        self.compile_ir_labelled(kir, &CompileOptions::default()).in_function("Device::compile_ir")
    }

    /// Compiles a kernel as [`Device::compile_ir`] does, with a label. A kernel in the IR has no
    /// overrides and one entry point.
    ///
    /// ```
    /// use scry_gpu::kir::{Builder, Label};
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// let mut b = Builder::new("nothing", [64, 1, 1]);
    /// b.break_to(Label(7));
    /// let gpu = Device::open("cpu")?;
    /// let options = CompileOptions::new().label("generated");
    /// let error = gpu.compile_ir_with(&b.finish(), &options).unwrap_err();
    /// assert!(error.to_string().contains("generated: "), "{error}");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile_ir`].
    pub fn compile_ir_with(&self, kir: &Kir, options: &CompileOptions) -> Result<Kernel> {
        self.compile_ir_labelled(kir, options).in_function("Device::compile_ir_with")
    }

    fn compile_ir_labelled(&self, kir: &Kir, options: &CompileOptions) -> Result<Kernel> {
        Kernel::compile_ir(&self.context, ir_program(kir, options)?, options.label.as_deref())
    }
}
