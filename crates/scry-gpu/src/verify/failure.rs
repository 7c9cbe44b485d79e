//! Compares the failures of two kernels, for test case reduction.

use scry_ir::ShaderErrorKind;

use crate::api::error::{DriverError, GpuError, UnsupportedError};

/// Returns whether two errors have the same cause, as far as it is known: the same driver call and
/// code, the same missing features, or the same kind of error.
///
/// Two rejected sources never match, because most reductions of a kernel are rejected for new
/// reasons; two internal compiler errors always match.
///
/// ```
/// use scry_gpu::{CompileOptions, Device, verify::is_same_failure};
/// # if !Device::is_available() { return Ok::<(), scry_gpu::GpuError>(()); }
/// let gpu = Device::auto()?;
/// let reject = |source| gpu.compile(source).expect_err("not valid WGSL");
/// assert!(!is_same_failure(&reject("fn f( {}"), &reject("fn g() -> {}")));
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[must_use]
pub fn is_same_failure(one: &GpuError, other: &GpuError) -> bool {
    match (one, other) {
        (GpuError::Shader(one), GpuError::Shader(other)) => {
            [one, other].iter().all(|error| error.kind == ShaderErrorKind::Compiler)
        }
        (
            GpuError::Driver(DriverError { call: one_call, code: one_code, .. }),
            GpuError::Driver(DriverError { call: other_call, code: other_code, .. }),
        ) => (one_call, one_code) == (other_call, other_code),
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
        scry_ir::Program::parse(source).err().expect("not valid WGSL").into()
    }

    #[test]
    fn driver_failures_differ_by_call() {
        let unknown = driver("vkCreateComputePipelines", "ERROR_UNKNOWN");
        assert!(is_same_failure(&unknown, &unknown.clone()));
        assert!(!is_same_failure(&unknown, &driver("vkCreateComputePipelines", "ERROR_OTHER")));
        assert!(!is_same_failure(&unknown, &driver("vkQueueSubmit", "ERROR_UNKNOWN")));
        assert!(!is_same_failure(&unknown, &shader("fn f( {}")));
    }

    #[test]
    fn missing_features_must_be_equal() {
        use scry_ir::Features;
        let (f16, f64) = (lacking(Features::F16), lacking(Features::F64));
        assert!(is_same_failure(&f16, &f16.clone()));
        assert!(!is_same_failure(&f16, &f64));
    }

    #[test]
    fn rejected_sources_never_match() {
        assert!(!is_same_failure(&shader("fn f( {}"), &shader("fn f( {}")));
        let GpuError::Shader(mut error) = shader("fn f( {}") else { panic!("not a shader error") };
        error.kind = ShaderErrorKind::Compiler;
        let internal = GpuError::Shader(error);
        assert!(is_same_failure(&internal, &internal.clone()));
    }
}
