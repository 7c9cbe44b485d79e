//! Writes programs as SPIR-V, with naga's writer.

use std::borrow::Cow;

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::ModuleInfo;
use naga::{Module, ResourceBinding};

use crate::program::Content;
use crate::spirv::naga::loops;
use crate::spirv::naga::{
    aborted_loops, bools, bounding, fold, initial, integers, mixes, pointers, shifts, widen,
};
use crate::wgsl::naga::{cooperative, guard};
use crate::wgsl::validate;
use crate::{
    Features, Interface, Program, ShaderError, ShaderErrorKind, SpirvOptions, SpirvWorkarounds,
};

impl Program {
    /// Writes the program as SPIR-V words with naga's writer, as [`Program::to_spirv`] did before
    /// there was an emitter of the kernel IR.
    ///
    /// ```
    /// use scry_ir::{FloatTypes, MatrixProducts, Program, SpirvOptions, SpirvWorkarounds};
    ///
    /// let options = SpirvOptions {
    ///     version: (1, 3),
    ///     checked: true,
    ///     native_workgroup_zeroing: false,
    ///     linearised: false,
    ///     workarounds: SpirvWorkarounds::all(),
    ///     reports_aborted_loops: false,
    ///     polls: false,
    ///     matrices: MatrixProducts::empty(),
    ///     nan_preserving: FloatTypes::empty(),
    ///     max_workgroup_memory: 32 << 10,
    /// };
    /// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
    /// let words = program.to_spirv_with_naga(&options)?;
    /// assert_eq!(words[0], 0x0723_0203); // SPIR-V's magic number
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`UnsupportedFeatures`](crate::ShaderErrorKind::UnsupportedFeatures) for cooperative
    /// matrices in a checked kernel: their accesses cannot be clamped.
    /// [`TooComplex`](crate::ShaderErrorKind::TooComplex) for huge arrays of bools in workgroup
    /// memory that are loaded or stored as a whole. [`Compiler`](crate::ShaderErrorKind::Compiler)
    /// if naga's writer fails.
    #[doc(hidden)]
    pub fn to_spirv_with_naga(&self, options: &SpirvOptions) -> Result<Vec<u32>, ShaderError> {
        let Content::Wgsl(inner) = self.content() else { return self.to_spirv(options) };
        guard::run(|| write(&inner.module, &inner.info, &inner.interface, options))
    }
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
    // Its own loop bounds end loops: the buffer of `polls` stays unused.
    if options.reports_aborted_loops {
        bindings.push(aborted_loops::report(module.to_mut()));
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
        return Err(unchecked_only());
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

/// Why a checked kernel has no cooperative matrices: a load or store of one touches many elements
/// from one index, and clamping that index leaves the others unchecked.
fn unchecked_only() -> ShaderError {
    ShaderError::new(
        ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX),
        "loads and stores of cooperative matrices cannot be checked against the end of \
                  their buffer: compile this kernel unchecked, and vouch for its indices",
    )
}
