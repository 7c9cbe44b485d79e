//! Writes programs as SPIR-V, with naga's writer.

use std::borrow::Cow;

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::ModuleInfo;
use naga::{Module, ResourceBinding};

use crate::kir::{Block, Kir, Stmt, any_stmt};
use crate::program::Content;
use crate::spirv::naga::{
    bools, bounding, cooperative, cut_loops, fold, initial, integers, loops, mixes, nesting,
    pointers, shifts, widen,
};
use crate::wgsl::naga::guard;
use crate::wgsl::validate;
use crate::{Features, Interface, Program, ShaderError, SpirvWorkarounds};

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
    /// [`LinearisedGrid`], is bound after the last one of the interface.
    pub linearised: bool,
    /// Rewrites for defects of the driver; a conforming driver needs none.
    pub workarounds: SpirvWorkarounds,
    /// Makes the kernel report loops that a driver ended early: an additional storage buffer of
    /// [`SpirvOptions::CUT_LOOPS_SIZE`] zeroed bytes is bound after all others, and its first word
    /// is 1 after a launch in which an invocation could not have entered two more iterations.
    pub reports_cut_loops: bool,
}

impl SpirvOptions {
    /// Size in bytes of the buffer of [`SpirvOptions::reports_cut_loops`].
    pub const CUT_LOOPS_SIZE: u32 = cut_loops::REPORT_SIZE;
}

/// Measures of a kernel's control flow, for drivers that limit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlFlow {
    /// Upper bound of the iterations of all loops of an invocation together, including those that
    /// only evaluate the exit condition; `None` if no bound is known. It also holds for a group of
    /// invocations in lockstep.
    pub most_iterations: Option<u64>,
    /// Nesting depth of conditions, or of loops if that is larger, with calls inlined, early
    /// returns replaced by conditions, and the cases of a `switch` nested in each other.
    pub depth: u32,
}

/// The grid of a linearised launch, in the layout of the kernel's uniform buffer.
///
/// A launch with more workgroups on an axis than the device supports is laid out as rows of `width`
/// physical workgroups along x, stacked along y and z. The kernel linearises its physical workgroup
/// id, exits at once if it is in excess, and computes its logical ids. The linear index has 32
/// bits: a launch has at most 2^32 - 1 workgroups in total, including the excess ones in its rows.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearisedGrid {
    /// Logical workgroups of the launch along x, y and z.
    pub groups: [u32; 3],
    /// Physical workgroups in a row, along x.
    pub width: u32,
    /// Physical rows along y.
    pub height: u32,
    /// Rows that contain workgroups of the launch.
    pub rows: u32,
    /// Workgroups of the launch in the last of those rows.
    pub last_row: u32,
    /// Unused; keeps the size a multiple of 16 bytes.
    pub padding: u32,
}

impl LinearisedGrid {
    /// Returns the content of the kernel's uniform buffer.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let [x, y, z] = self.groups;
        let words = [x, y, z, self.width, self.height, self.rows, self.last_row, self.padding];
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// The source of the grid for a variant of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridSource {
    /// Built-in ids of the device: the physical grid is that of the launch.
    Native,
    /// A buffer with a [`LinearisedGrid`].
    Linearised,
    /// The workgroup counts of an indirect launch, in memory: the physical workgroups, whose number
    /// does not depend on the counts, loop over [`runnable_workgroups`].
    Counts,
}

/// Returns the workgroups along x, y and z that an indirect launch runs for the `counts` in memory,
/// of a kernel with workgroups of `size` invocations.
///
/// These are the counts themselves, unless the invocations of an axis, or all workgroups together,
/// exceed 2^32 - 1: then, as for a count of 0, no workgroup runs. The host does not know the
/// counts, so there is no error. The rule is the same on every backend.
#[must_use]
pub fn runnable_workgroups(size: [u32; 3], counts: [u32; 3]) -> [u32; 3] {
    let [x, y, z] = counts;
    let total = x.checked_mul(y).and_then(|xy| xy.checked_mul(z));
    let on_axes = counts.iter().zip(size).all(|(n, width)| n.checked_mul(width).is_some());
    // A product with a zero factor may overflow before it becomes zero.
    if counts.contains(&0) || total.is_none() || !on_axes { [0; 3] } else { counts }
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
    /// [`Compiler`](crate::ShaderErrorKind::Compiler) if the analysis fails.
    pub fn control_flow(&self) -> Result<ControlFlow, ShaderError> {
        let module = match self.content() {
            Content::Wgsl(inner) => &inner.module,
            Content::Kir(kir, _) => return guard::run(|| Ok(of_kir(kir))),
        };
        guard::run(|| {
            let most_iterations = loops::most_iterations(module);
            Ok(ControlFlow { most_iterations, depth: nesting::depth(module) })
        })
    }

    /// Writes the program as SPIR-V words; the entry point has its name in the source.
    ///
    /// ```
    /// use scry_ir::{Program, SpirvOptions, SpirvWorkarounds};
    ///
    /// let options = SpirvOptions {
    ///     version: (1, 3),
    ///     checked: true,
    ///     native_workgroup_zeroing: false,
    ///     linearised: false,
    ///     workarounds: SpirvWorkarounds::default(),
    ///     reports_cut_loops: false,
    /// };
    /// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
    /// let words = program.to_spirv(&options)?;
    /// assert_eq!(words[0], 0x0723_0203); // SPIR-V's magic number
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](crate::ShaderErrorKind::Unsupported) for cooperative matrices in a checked
    /// kernel: their accesses cannot be clamped. [`TooComplex`](crate::ShaderErrorKind::TooComplex)
    /// for huge arrays of bools in workgroup memory that are loaded or stored as a whole.
    /// [`Compiler`](crate::ShaderErrorKind::Compiler) if naga's writer fails.
    pub fn to_spirv(&self, options: &SpirvOptions) -> Result<Vec<u32>, ShaderError> {
        let Content::Wgsl(inner) = self.content() else {
            return Ok(self.to_spirv_from_kir(options)?);
        };
        guard::run(|| write(&inner.module, &inner.info, &inner.interface, options))
    }
}

/// Measures the control flow of a kernel that was built in the kernel IR.
fn of_kir(kir: &Kir) -> ControlFlow {
    let loops = any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { .. }));
    ControlFlow { most_iterations: (!loops).then_some(0), depth: depth(&kir.body) }
}

/// Returns the nesting depth of a block.
fn depth(block: &Block) -> u32 {
    block.iter().flat_map(Stmt::blocks).map(|inner| 1 + depth(inner)).max().unwrap_or(0)
}

fn write(
    module: &Module,
    info: &ModuleInfo,
    interface: &Interface,
    options: &SpirvOptions,
) -> Result<Vec<u32>, ShaderError> {
    let buffers = interface.bindings.iter();
    let mut bindings: Vec<_> = buffers
        .map(|buffer| ResourceBinding { group: buffer.group, binding: buffer.binding })
        .collect();
    let mut module = Cow::Borrowed(module);
    rewrite(&mut module, info, options)?;
    if options.linearised {
        let params = fold::fold(module.to_mut()).map_err(|what| {
            ShaderError::compiler(format!("a linearised grid cannot give the kernel {what}"))
        })?;
        bindings.push(params);
    }
    if options.reports_cut_loops {
        bindings.push(cut_loops::report(module.to_mut()));
    }
    let changed = match &module {
        Cow::Owned(changed) => Some(revalidate(changed)?),
        Cow::Borrowed(_) => None,
    };
    let info = changed.as_ref().unwrap_or(info);
    number(&mut module, &bindings);
    let settings = settings(options);
    let entry = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: interface.entry_point.clone(),
    };
    spv::write_vec(&module, info, &settings, Some(&entry)).map_err(|error| {
        ShaderError::compiler(format!("the SPIR-V writer failed on this kernel: {error}"))
    })
}

/// Applies the rewrites that the kernel needs: most kernels are not copied. `info` is the
/// validator's result for the original module.
fn rewrite(
    module: &mut Cow<'_, Module>,
    info: &ModuleInfo,
    options: &SpirvOptions,
) -> Result<(), ShaderError> {
    let mut info = Cow::Borrowed(info);
    if widen::needed(module, &info) {
        widen::apply(module.to_mut(), &info);
        info = Cow::Owned(revalidate(module)?);
    }
    let workarounds = options.workarounds;
    if workarounds.contains(SpirvWorkarounds::EXPAND_MIX) && mixes::needed(module) {
        mixes::apply(module.to_mut(), &info);
        info = Cow::Owned(revalidate(module)?);
    }
    if workarounds.contains(SpirvWorkarounds::WORKGROUP_BOOL_AS_U32) && bools::needed(module) {
        bools::apply(module.to_mut(), &info)?;
        info = Cow::Owned(revalidate(module)?);
    }
    if workarounds.contains(SpirvWorkarounds::STORE_INITIAL_VECTORS) && initial::needed(module) {
        initial::apply(module.to_mut(), &info);
        info = Cow::Owned(revalidate(module)?);
    }
    if integers::needed(module, &info, workarounds) {
        integers::apply(module.to_mut(), &info, workarounds);
        info = Cow::Owned(revalidate(module)?);
    }
    if shifts::needed(module, &info) {
        shifts::apply(module.to_mut(), &info);
    }
    if options.checked && cooperative::used(module) {
        return Err(cooperative::unchecked_only());
    }
    if pointers::needed(module) {
        pointers::apply(module.to_mut());
    }
    if options.checked {
        let verdicts = loops::verdicts(module);
        if verdicts.iter().flatten().any(|proven| !proven) {
            bounding::apply(module.to_mut(), &verdicts);
        }
    }
    Ok(())
}

/// Validates a rewritten module with all capabilities: features were checked when it was read.
fn revalidate(module: &Module) -> Result<ModuleInfo, ShaderError> {
    validate::kernel(module, Features::all()).map_err(|report| {
        let error = report.render("");
        ShaderError::compiler(format!("the kernel was rewritten wrongly: {}", error.message))
    })
}

/// Numbers the bindings in set 0, in order. Passing naga's writer a map instead would need more
/// code.
fn number(module: &mut Cow<'_, Module>, bindings: &[ResourceBinding]) {
    let at = |binding| ResourceBinding { group: 0, binding };
    if bindings.iter().zip(0..).all(|(old, number)| *old == at(number)) {
        return;
    }
    for (_, variable) in module.to_mut().global_variables.iter_mut() {
        let place = bindings.iter().zip(0..).find(|(old, _)| variable.binding == Some(**old));
        if let Some((_, number)) = place {
            variable.binding = Some(at(number));
        }
    }
}

fn settings(options: &SpirvOptions) -> spv::Options<'static> {
    let policy =
        if options.checked { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked };
    let zeroing = if options.native_workgroup_zeroing {
        spv::ZeroInitializeWorkgroupMemoryMode::Native
    } else {
        spv::ZeroInitializeWorkgroupMemoryMode::Polyfill
    };
    spv::Options {
        lang_version: options.version,
        flags: spv::WriterFlags::DEBUG,
        // All bindings are numbered.
        fake_missing_bindings: true,
        bounds_check_policies: BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            image_load: policy,
            binding_array: policy,
        },
        zero_initialize_workgroup_memory: zeroing,
        // Our own pass has bounded the loops that need it.
        force_loop_bounding: false,
        // Our own pass has guarded divisors.
        emit_int_div_checks: false,
        // Only 16-bit shader inputs and outputs would need it, which kernels do not have.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    }
}
