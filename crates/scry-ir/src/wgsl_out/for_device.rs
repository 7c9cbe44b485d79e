//! Programs as WGSL for a device, with hidden bindings after those of the interface.

use super::hidden_bindings::{self, Hidden};
use super::{Emitter, rejections};
use crate::spirv::Lowered;
use crate::wgsl::naga::guard;
use crate::{ControlFlow, Interface, Program, ShaderError};

/// Options of [`Program::to_wgsl_for`].
///
/// Every buffer of the interface is declared in group 0, at its index in
/// [`Interface::bindings`](crate::Interface::bindings), regardless of its group in the source.
/// Hidden bindings follow: the grid, the report, and the launch block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WgslOptions {
    /// Rewrites the kernel to run on a linearised grid, which it reads from an additional uniform
    /// buffer, a [`LinearisedGrid`](crate::LinearisedGrid).
    pub linearised: bool,
    /// Makes the kernel report loops that a driver aborted, in an additional storage buffer, as
    /// [`SpirvOptions::reports_aborted_loops`](crate::SpirvOptions::reports_aborted_loops) does.
    pub reports_aborted_loops: bool,
    /// Reads the immediates from [`WgslKernel::launch_block`], for devices without immediates.
    pub immediates_in_uniform: bool,
    /// Omits `enable subgroups;`, which naga rejects and browsers require.
    pub omits_subgroup_directive: bool,
    /// Hides the bounds of loops, as
    /// [`SpirvWorkarounds::HIDE_LOOP_BOUNDS`](crate::SpirvWorkarounds::HIDE_LOOP_BOUNDS) does.
    pub hides_loop_bounds: bool,
    /// Clamps the operand of `tanh`, which some devices compute as a quotient that is NaN for large
    /// operands. WGSL permits that; Scry does not.
    pub clamps_tanh: bool,
}

/// A kernel as WGSL for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WgslKernel {
    /// The source. It has a single entry point.
    pub source: String,
    /// The content of an additional uniform buffer, bound after all others; `None` if the kernel
    /// does not need one.
    pub launch_block: Option<LaunchBlock>,
    /// Whether every loop is proven to end. Otherwise the consumer must bound loops.
    pub is_finite: bool,
}

/// The content of a hidden uniform buffer: the lengths of arrays, each a `u32`, padded to a
/// multiple of 16 bytes, and then the immediates, if they are not declared as such.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchBlock {
    /// The lengths of arrays whose elements are not whole words. WebGPU rounds the sizes of
    /// bindings, so that the device does not know these lengths.
    pub lengths: Vec<HiddenLength>,
    /// Offset of the immediates in bytes; a multiple of 16.
    pub immediates_offset: u32,
    /// Bytes of the immediates in the block; 0 if they are declared as immediates.
    pub immediates: u32,
}

/// An array length that the host computes: `(size - offset) / stride` for a binding of `size`
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HiddenLength {
    /// Position in [`Interface::bindings`](crate::Interface::bindings).
    pub binding: u32,
    /// Bytes before the first element.
    pub offset: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
}

impl LaunchBlock {
    /// Returns the size in bytes, a multiple of 16.
    #[must_use]
    pub fn size(&self) -> u32 {
        (self.immediates_offset + self.immediates).next_multiple_of(16)
    }
}

impl Program {
    /// Writes the program as WGSL for a device, with options that depend on its control flow.
    /// `checked` is as in [`KirOptions`](crate::kir::KirOptions).
    ///
    /// Unlike [`Kir::to_wgsl`](crate::kir::Kir::to_wgsl), whose result has the interface of the
    /// source, this one is for drivers: it renumbers bindings and adds hidden ones.
    ///
    /// ```
    /// use scry_ir::{Program, ShaderError, WgslOptions};
    ///
    /// let program = Program::parse(
    ///     "@group(2) @binding(7) var<storage, read_write> data: array<f32>;
    ///      @compute @workgroup_size(64)
    ///      fn double(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2.0; }",
    /// )?;
    /// let options = WgslOptions { linearised: true, ..WgslOptions::default() };
    /// let kernel = program.to_wgsl_for(true, |_| Ok::<_, ShaderError>(options))?;
    /// assert!(kernel.source.contains("@group(0) @binding(0) var<storage, read_write> data"));
    /// assert!(kernel.source.contains("@group(0) @binding(1) var<uniform>"));
    /// assert!(kernel.is_finite && kernel.launch_block.is_none());
    /// # Ok::<(), ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Program::to_kir`] and [`Kir::to_wgsl`](crate::kir::Kir::to_wgsl), and those of
    /// `choose`.
    pub fn to_wgsl_for<E: From<ShaderError> + Send>(
        &self,
        checked: bool,
        choose: impl FnOnce(ControlFlow) -> Result<WgslOptions, E> + Send,
    ) -> Result<WgslKernel, E> {
        let (content, interface) = (self.content(), self.interface());
        guard::run(|| {
            let lowered = Lowered::new(content, checked)?;
            Ok(match choose(lowered.flow) {
                Ok(options) => emit(lowered, interface, &options).map_err(E::from),
                Err(error) => Err(error),
            })
        })?
    }
}

fn emit(
    lowered: Lowered,
    interface: &Interface,
    options: &WgslOptions,
) -> Result<WgslKernel, ShaderError> {
    rejections::check(&lowered.kir, interface)?;
    let is_finite = lowered.kir.is_finite();
    let Hidden { kir, interface, launch_block } =
        hidden_bindings::add(lowered.kir, interface, options);
    let mut emitter = Emitter::new(&kir, &interface)?;
    emitter.enables_subgroups = !options.omits_subgroup_directive;
    emitter.hides_loop_bounds = options.hides_loop_bounds;
    emitter.clamps_tanh = options.clamps_tanh;
    let source = emitter.kernel()?;
    Ok(WgslKernel { source, launch_block, is_finite })
}
