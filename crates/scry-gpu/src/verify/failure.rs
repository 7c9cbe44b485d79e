//! Whether two kernels fail for the same reason, for whoever makes a failing kernel smaller.

use scry_ir::ShaderErrorKind;

use crate::api::error::{DriverError, GpuError, UnsupportedError};

/// True if two errors come from the same place for the same reason, as far as they tell: the same
/// call of the driver, the same features that a device lacks, or the same kind of error.
///
/// A source that is refused is like no other: what is left of a kernel is mostly refused for
/// reasons of its own. But where the compiler failed, both are its defects.
///
/// ```
/// use scry_gpu::{CompileOptions, Device, verify::is_same_failure};
/// # if !Device::is_available() { return Ok::<(), scry_gpu::GpuError>(()); }
/// let gpu = Device::auto()?;
/// let refused = |source| gpu.compile(source).expect_err("this is no WGSL");
/// assert!(!is_same_failure(&refused("fn f( {}"), &refused("fn g() -> {}")));
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[must_use]
pub fn is_same_failure(one: &GpuError, other: &GpuError) -> bool {
    match (one, other) {
        (GpuError::Shader(one), GpuError::Shader(other)) => {
            [one, other].iter().all(|error| error.kind == ShaderErrorKind::Compiler)
        }
        (
            GpuError::Driver(DriverError { call: one, code, .. }),
            GpuError::Driver(DriverError { call, code: found, .. }),
        ) => (one, code) == (call, found),
        (
            GpuError::Unsupported(UnsupportedError { features: one, .. }),
            GpuError::Unsupported(UnsupportedError { features: other, .. }),
        ) => one == other,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(call: &'static str, code: &str) -> GpuError {
        GpuError::Driver(DriverError::new("a GPU", call, code.into(), "update the driver"))
    }

    fn lacking(features: scry_ir::Features) -> GpuError {
        GpuError::Unsupported(UnsupportedError {
            function: None,
            label: None,
            kernel: "main".into(),
            features,
            device: "a GPU".into(),
            help: "use another".into(),
        })
    }

    fn shader(source: &str) -> GpuError {
        scry_ir::Program::parse(source).err().expect("this is no WGSL").into()
    }

    #[test]
    fn failures_of_the_driver_are_told_apart_by_call_and_code() {
        let unknown = driver("vkCreateComputePipelines", "ERROR_UNKNOWN");
        assert!(is_same_failure(&unknown, &unknown.clone()));
        assert!(!is_same_failure(&unknown, &driver("vkCreateComputePipelines", "ERROR_OTHER")));
        assert!(!is_same_failure(&unknown, &driver("vkQueueSubmit", "ERROR_UNKNOWN")));
        assert!(!is_same_failure(&unknown, &shader("fn f( {}")));
    }

    #[test]
    fn what_devices_lack_has_to_be_the_same() {
        use scry_ir::Features;
        let (half, double) = (lacking(Features::F16), lacking(Features::F64));
        assert!(is_same_failure(&half, &half.clone()));
        assert!(!is_same_failure(&half, &double));
    }

    #[test]
    fn refused_sources_are_unlike_but_for_defects_of_the_compiler() {
        assert!(!is_same_failure(&shader("fn f( {}"), &shader("fn f( {}")));
        let GpuError::Shader(mut error) = shader("fn f( {}") else { panic!("it is one") };
        error.kind = ShaderErrorKind::Compiler;
        let defect = GpuError::Shader(error);
        assert!(is_same_failure(&defect, &defect.clone()));
    }
}
