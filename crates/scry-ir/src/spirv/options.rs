//! Options of SPIR-V, and measures of control flow.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::kir::{
    Kir, KirOptions, Label, Stmt, for_each_stmt, optimised, termination, unoptimised,
};
use crate::program::Content;
use crate::wgsl::naga::guard;
use crate::{MatrixProducts, Program, ShaderError, SpirvWorkarounds};

bitflags::bitflags! {
    /// A set of float types.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FloatTypes: u8 {
        /// `f16`.
        const F16 = 1 << 0;
        /// `f32`.
        const F32 = 1 << 1;
        /// `f64`.
        const F64 = 1 << 2;
    }
}

impl FloatTypes {
    /// Returns the widths of the types in bits.
    pub(super) fn widths(self) -> impl Iterator<Item = u32> {
        let all = [(Self::F16, 16), (Self::F32, 32), (Self::F64, 64)];
        all.into_iter().filter(move |(ty, _)| self.contains(*ty)).map(|(_, width)| width)
    }
}

/// Options of the SPIR-V writer.
///
/// Every buffer of the interface is bound in descriptor set 0, at its index in
/// [`Interface::bindings`](crate::Interface::bindings), regardless of its WGSL group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpirvOptions {
    /// SPIR-V version, (1, 3) or newer.
    pub version: (u8, u8),
    /// Clamps every index and bounds every loop that is not proven finite. `false` is for trusted
    /// kernels only. In both cases no buffer may be smaller than
    /// [`TypeLayout::min_binding_size`](crate::TypeLayout::min_binding_size).
    pub checked: bool,
    /// The device zeroes workgroup memory (`VK_KHR_zero_initialize_workgroup_memory`); otherwise
    /// the kernel does.
    pub native_workgroup_zeroing: bool,
    /// Rewrites the kernel to run on a linearised grid: an additional uniform buffer, a
    /// [`LinearisedGrid`](crate::LinearisedGrid), is bound after the last one of the interface.
    pub linearised: bool,
    /// Workarounds for defects of the driver.
    pub workarounds: SpirvWorkarounds,
    /// Makes the kernel report loops that a driver aborted: an additional storage buffer of
    /// [`SpirvOptions::ABORTED_LOOPS_SIZE`] zeroed bytes is bound after those of the interface and
    /// of [`SpirvOptions::linearised`]. Its first word is 1 after a launch in which the driver
    /// aborted even the loop of two iterations that this option adds to the end of the kernel.
    pub reports_aborted_loops: bool,
    /// Makes loops that are not proven to end soon poll a stop word, and end once it is not 0: an
    /// additional storage buffer of [`SpirvOptions::STOP_SIZE`] bytes is bound after all others.
    /// Kernels with barriers in such loops need as many bytes of workgroup memory more. Without it,
    /// loops that are not proven to end are left after 2^64 iterations at most. No effect unless
    /// [`SpirvOptions::checked`] is set. Useful for kernels with [`ControlFlow::may_not_end`].
    pub polls: bool,
    /// The products of cooperative matrices that the device computes. Kernels with others are
    /// rejected.
    pub matrices: MatrixProducts,
    /// The float types for which the device implements `SignedZeroInfNanPreserve`: modules request
    /// it for those that they use, since drivers may otherwise assume that no number is a NaN.
    pub nan_preserving: FloatTypes,
    /// Bytes of workgroup memory of the device. Kernels with cooperative matrices are rejected if
    /// their own arrays and the tiles that the writer adds exceed it; others are not checked.
    pub max_workgroup_memory: u32,
}

impl SpirvOptions {
    /// Size in bytes of the buffer of [`SpirvOptions::reports_aborted_loops`].
    pub const ABORTED_LOOPS_SIZE: u32 = 16;

    /// Size in bytes of the buffer of [`SpirvOptions::polls`].
    pub const STOP_SIZE: u32 = 4;

    /// Returns options for a device of which nothing is known, such as that of a compiler explorer:
    /// SPIR-V 1.3 without optional features and workarounds, and with all products of cooperative
    /// matrices.
    ///
    /// ```
    /// use scry_ir::{Program, SpirvOptions};
    ///
    /// let program = Program::parse("@compute @workgroup_size(64) fn main() {}")?;
    /// let words = program.to_spirv(&SpirvOptions::portable(true))?;
    /// assert_eq!(words[1], 0x0001_0300);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    #[must_use]
    pub const fn portable(checked: bool) -> Self {
        Self {
            version: (1, 3),
            checked,
            native_workgroup_zeroing: false,
            linearised: false,
            workarounds: SpirvWorkarounds::empty(),
            reports_aborted_loops: false,
            polls: false,
            matrices: MatrixProducts::all(),
            nan_preserving: FloatTypes::empty(),
            max_workgroup_memory: u32::MAX,
        }
    }

    /// Returns whether long loops are split, so that they poll.
    pub(super) fn strip_mines(&self) -> bool {
        self.polls && self.checked
    }
}

/// Measures of a kernel's control flow, for drivers that limit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlFlow {
    /// Upper bound of the iterations of all loops of an invocation together, including those that
    /// only evaluate the exit condition; `None` if no bound is known. It also holds for a group of
    /// invocations in lockstep.
    pub most_iterations: Option<u64>,
    /// Nesting depth of conditions and loops, with calls inlined, early returns replaced by
    /// conditions, and the cases of a `switch` nested in each other.
    pub depth: u32,
    /// Whether the kernel has loops that are not proven to end soon: [`Kir::strip_mined`] has loops
    /// that are not finite.
    pub may_not_end: bool,
}

impl Program {
    /// Measures the kernel's control flow.
    ///
    /// ```
    /// use scry_ir::Program;
    ///
    /// let flat = Program::parse("@compute @workgroup_size(1) fn main() {}")?.control_flow()?;
    /// let nested = Program::parse(
    ///     "@group(0) @binding(0) var<storage, read_write> x: u32;
    ///      @compute @workgroup_size(1) fn main() { if x > 1u { if x > 2u { x = 3u; } } }",
    /// )?;
    /// assert!(nested.control_flow()?.depth > flat.depth);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Program::to_kir`].
    pub fn control_flow(&self) -> Result<ControlFlow, ShaderError> {
        let content = self.content();
        guard::run(|| Lowered::new(content, true).map(|lowered| lowered.flow))
    }
}

/// A program's optimised kernel in both forms that the emitter may write.
pub(crate) struct Lowered {
    pub kir: Kir,
    /// [`Kir::strip_mined`], for [`SpirvOptions::polls`]; `None` if it is the same.
    strip_mined: Option<Kir>,
    pub flow: ControlFlow,
}

impl Lowered {
    pub fn new(content: &Content, checked: bool) -> Result<Self, ShaderError> {
        let kir = unoptimised(content, &KirOptions { checked })?;
        let (most_iterations, depth) = (termination::most_iterations(&kir), depth(&kir.body, None));
        let kir = match content {
            Content::Wgsl(_) => optimised(kir)?,
            Content::Kir(built) => built.kir.clone(),
        };
        let strip_mined = match kir.strip_mined() {
            Cow::Owned(mined) => Some(mined),
            Cow::Borrowed(_) => None,
        };
        let may_not_end = !strip_mined.as_ref().unwrap_or(&kir).is_finite();
        let flow = ControlFlow { most_iterations, depth, may_not_end };
        Ok(Self { kir, strip_mined, flow })
    }

    /// Returns the kernel to write with these options.
    pub fn kernel(&self, options: &SpirvOptions) -> &Kir {
        let strip_mined = self.strip_mined.as_ref().filter(|_| options.strip_mines());
        strip_mined.unwrap_or(&self.kir)
    }
}

/// Returns the nesting depth of a block, after a driver has replaced early exits by conditions
/// around the following statements. `repeats` is the loop directly around the block: exits from it
/// need no conditions.
fn depth(block: &[Stmt], repeats: Option<Label>) -> u32 {
    let (mut most, mut conditions) = (0, 0);
    for stmt in block {
        let (own, inside) = match stmt {
            Stmt::Loop { label, .. } => (1, Some(*label)),
            Stmt::Scope { .. } => (0, repeats),
            _ => (1, repeats),
        };
        let inner = stmt.blocks().map(|inner| own + depth(inner, inside)).max();
        most = most.max(conditions + inner.unwrap_or(0));
        conditions += u32::from(exits_early(stmt, repeats));
    }
    most
}

/// Returns whether a statement may leave anything around it but the loop directly around it.
fn exits_early(stmt: &Stmt, repeats: Option<Label>) -> bool {
    let mut inside: HashSet<Label> = repeats.into_iter().collect();
    let mut left = Vec::new();
    for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| match stmt {
        Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => drop(inside.insert(*label)),
        Stmt::Break(label) => left.push(*label),
        _ => {}
    });
    left.iter().any(|label| !inside.contains(label))
}
