//! Validation: of all code by WGSL's rules, then of one kernel by the features of the device.

use naga::valid::{
    Capabilities, EntryPointError, ModuleInfo, ValidationError, ValidationFlags, Validator,
};
use naga::{AddressSpace, ArraySize, GlobalVariable, Handle, TypeInner};

use crate::wgsl::declarations::Declarations;
use crate::wgsl::naga::diagnostics;
use crate::wgsl::report::Report;
use crate::{Features, ShaderErrorKind};

/// Returns the naga capabilities of a set of features. Immediates, and the conversions between
/// `f32` and packed 16-bit floats, are always enabled.
fn capabilities(features: Features) -> Capabilities {
    const MAP: [(Features, Capabilities); 8] = [
        (Features::F16, Capabilities::SHADER_FLOAT16),
        (Features::F64, Capabilities::FLOAT64),
        (Features::I64, Capabilities::SHADER_INT64),
        (Features::I16, Capabilities::SHADER_INT16),
        (Features::SUBGROUPS, Capabilities::SUBGROUP.union(Capabilities::SUBGROUP_BARRIER)),
        (Features::F32_ATOMICS, Capabilities::SHADER_FLOAT32_ATOMIC),
        (
            Features::I64_ATOMICS,
            Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
                .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX),
        ),
        (Features::COOPERATIVE_MATRIX, Capabilities::COOPERATIVE_MATRIX),
    ];
    MAP.into_iter().filter(|(feature, _)| features.contains(*feature)).fold(
        Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16_IN_FLOAT32,
        |all, (_, capability)| all | capability,
    )
}

/// Validates a module, unreachable code included, with all capabilities: an error is then an error
/// in the source, not a missing feature.
pub(crate) fn source(module: &naga::Module) -> Result<ModuleInfo, Box<Report>> {
    check_immediates(module)?;
    run(module, Capabilities::all())
}

/// Maximum bytes of immediates: naga's validator tracks their words in a mask of 64 bits.
const MAX_IMMEDIATES: u64 = 256;

/// Rejects immediates on which the validator would overflow.
fn check_immediates(module: &naga::Module) -> Result<(), Box<Report>> {
    let globals = module.global_variables.iter();
    for (handle, global) in globals.filter(|(_, global)| global.space == AddressSpace::Immediate) {
        let size = match module.types[global.ty].inner {
            TypeInner::Struct { span, .. } => u64::from(span),
            TypeInner::Array { size: ArraySize::Constant(len), stride, .. } => {
                u64::from(len.get()) * u64::from(stride)
            }
            // Scalars, vectors and matrices are smaller; the validator rejects other types.
            _ => 0,
        };
        if size > MAX_IMMEDIATES {
            let name = global.name.as_deref().unwrap_or("");
            let message = format!(
                "`{name}` is a var<immediate> of {size} bytes, but the compiler supports at most \
                 {MAX_IMMEDIATES}, and devices may support less (max_immediates)"
            );
            let report = Report::new(ShaderErrorKind::Validation, message);
            let report = report.at(module.global_variables.get_span(handle), "too large");
            return Err(Box::new(report.note("help: put parameters into a var<uniform> buffer")));
        }
    }
    Ok(())
}

/// Validates the pruned module of a kernel, allowing exactly these features.
pub(crate) fn kernel(module: &naga::Module, features: Features) -> Result<ModuleInfo, Box<Report>> {
    run(module, capabilities(features))
}

/// Runs naga's validator, except its analysis of uniformity, in place of which
/// [`uniformity`](crate::wgsl::uniformity) runs: naga has no rule for barriers, and treats local
/// variables and `subgroup_id` as non-uniform where matrices are used.
fn run(module: &naga::Module, capabilities: Capabilities) -> Result<ModuleInfo, Box<Report>> {
    let flags = ValidationFlags::all().difference(ValidationFlags::CONTROL_FLOW_UNIFORMITY);
    Validator::new(flags, capabilities).validate(module).map_err(|error| match error.as_inner() {
        ValidationError::EntryPoint {
            source: EntryPointError::BindingCollision(variable), ..
        } => binding_collision(module, *variable),
        _ => Box::new(diagnostics::validation(&error)),
    })
}

/// The error for two variables with the same binding.
fn binding_collision(module: &naga::Module, variable: Handle<GlobalVariable>) -> Box<Report> {
    let globals = &module.global_variables;
    let name = globals[variable].name.as_deref().unwrap_or("");
    let binding_point = globals[variable].binding;
    let (group, binding) = binding_point.map_or((0, 0), |point| (point.group, point.binding));
    let message =
        format!("`{name}` shares @group({group}) @binding({binding}) with another variable");
    let mut report = Report::new(ShaderErrorKind::Validation, message);
    report = report.at(globals.get_span(variable), "used by the kernel");
    for (handle, global) in globals.iter() {
        if handle != variable && global.binding == binding_point {
            report = report.at(globals.get_span(handle), "in the same place");
        }
    }
    Box::new(report.note("help: give each variable that one entry point uses its own @binding"))
}

/// Maximum workgroup size on an axis: no device supports more, and naga rejects it.
pub(crate) const MAX_WORKGROUP: u32 = 1 << 14;

/// Rejects workgroups without invocations, and those larger than any device could run.
pub(crate) fn workgroup_sizes(
    module: &naga::Module,
    declarations: &Declarations<'_>,
) -> Result<(), Box<Report>> {
    for entry in &module.entry_points {
        let [x, y, z] = entry.workgroup_size;
        let fixed = entry.workgroup_size_overrides.is_none();
        let compute = entry.stage == naga::ShaderStage::Compute;
        if compute && fixed && ![x, y, z].iter().all(|size| (1..=MAX_WORKGROUP).contains(size)) {
            let name = &entry.name;
            let message = format!(
                "`{name}` has workgroups of {x} × {y} × {z} invocations: each must be from 1 to \
                 {MAX_WORKGROUP}"
            );
            let report = Report::new(ShaderErrorKind::Validation, message);
            let span = declarations.function(name).unwrap_or_default();
            return Err(Box::new(report.at(span, "this entry point")));
        }
    }
    Ok(())
}
