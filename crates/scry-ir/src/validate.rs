//! Validation: the whole module by WGSL's rules, then the kernel by the features asked for.

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

use crate::report::Report;
use crate::{Features, naga_error};

/// The naga capabilities that stand for a set of features. Immediates, and the conversions between
/// `f32` and packed 16-bit floats, are always there.
fn capabilities(features: Features) -> Capabilities {
    const MAP: [(Features, Capabilities); 8] = [
        (Features::F16, Capabilities::SHADER_FLOAT16),
        (Features::F64, Capabilities::FLOAT64),
        (Features::I64, Capabilities::SHADER_INT64),
        (Features::I16, Capabilities::SHADER_INT16),
        (
            Features::SUBGROUPS,
            Capabilities::SUBGROUP.union(Capabilities::SUBGROUP_BARRIER),
        ),
        (Features::F32_ATOMICS, Capabilities::SHADER_FLOAT32_ATOMIC),
        (
            Features::I64_ATOMICS,
            Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
                .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX),
        ),
        (
            Features::COOPERATIVE_MATRIX,
            Capabilities::COOPERATIVE_MATRIX,
        ),
    ];
    MAP.into_iter()
        .filter(|(feature, _)| features.contains(*feature))
        .fold(
            Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16_IN_FLOAT32,
            |all, (_, capability)| all | capability,
        )
}

/// Checks everything in a module, whatever capability it needs, so that an error of the source is
/// told as such and code that the kernel does not reach is checked too.
pub(crate) fn whole(module: &naga::Module) -> Result<(), Box<Report>> {
    run(module, Capabilities::all()).map(drop)
}

/// Checks the pruned module of a kernel with exactly the features asked for.
pub(crate) fn kernel(module: &naga::Module, features: Features) -> Result<ModuleInfo, Box<Report>> {
    run(module, capabilities(features))
}

fn run(module: &naga::Module, capabilities: Capabilities) -> Result<ModuleInfo, Box<Report>> {
    Validator::new(ValidationFlags::all(), capabilities)
        .validate(module)
        .map_err(|error| Box::new(naga_error::validation(&error)))
}
