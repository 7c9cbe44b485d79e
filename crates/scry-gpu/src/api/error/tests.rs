//! Tests of what errors are to Rust: their text, `Debug`, source and kind.

use std::error::Error;

use super::*;

fn range() -> GpuError {
    GpuError::Range(RangeError {
        operation: "Buffer::slice",
        problem: "elements 2..9 of buffer `x`, which has 4".into(),
        help: "stay within 0..4".into(),
    })
}

fn shader() -> GpuError {
    scry_ir::Program::parse("fn f( {}").err().expect("this is no WGSL").into()
}

fn no_device() -> GpuError {
    GpuError::NoDevice(NoDevice {
        selector: Some("vulkan:7".into()),
        variable: None,
        attempts: vec![Attempt {
            backend: crate::BackendKind::Vulkan,
            reason: "no libvulkan.so.1".into(),
            help: "install it".into(),
        }],
        present: vec!["cpu:0 a CPU".into()],
    })
}

#[test]
fn debug_is_the_text() {
    for error in [range(), shader(), no_device()] {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(format!("{error:#?}"), error.to_string());
        assert!(!error.to_string().contains("Error {"), "{error}");
    }
}

/// A text that is shown must not be the source too: reporters would print it twice.
#[test]
fn structs_are_errors_with_the_same_text() {
    fn text(error: &(dyn Error + 'static)) -> String {
        assert!(error.source().is_none(), "{error}");
        error.to_string()
    }
    let error = no_device();
    let GpuError::NoDevice(inner) = &error else { panic!("{error}") };
    assert_eq!(text(inner), text(&error));
    assert_eq!(text(&inner.attempts()[0]).lines().next(), Some("vulkan: no libvulkan.so.1"));
    let error = range();
    let GpuError::Range(inner) = &error else { panic!("{error}") };
    assert_eq!(text(inner), text(&error));
    let error = shader();
    let GpuError::Shader(inner) = &error else { panic!("{error}") };
    assert_eq!(text(&**inner), text(&error));
}

#[test]
fn accessors_return_the_parts() {
    let GpuError::Range(error) = range() else { unreachable!() };
    assert_eq!(error.operation(), "Buffer::slice");
    assert_eq!(error.problem(), "elements 2..9 of buffer `x`, which has 4");
    assert_eq!(error.help(), "stay within 0..4");
    let GpuError::NoDevice(error) = no_device() else { unreachable!() };
    assert_eq!((error.selector(), error.present().len()), (Some("vulkan:7"), 1));
    assert_eq!(error.attempts()[0].help(), "install it");
}

#[test]
fn a_wrong_variable_is_named() {
    let lines = "\n  vulkan: no libvulkan.so.1\n    help: install it\n  present: cpu:0 a CPU";
    assert_eq!(no_device().to_string(), format!("no device matches `vulkan:7`{lines}"));
    assert_eq!(
        crate::api::device_selection::from_variable(no_device()).to_string(),
        format!(
            "SCRY_DEVICE=vulkan:7 matches no device{lines}\n  \
             help: set SCRY_DEVICE to a device that is present, or unset it"
        )
    );
}

#[test]
fn kinds_say_what_is_at_fault() {
    assert_eq!(range().kind(), ErrorKind::Usage);
    assert_eq!(shader().kind(), ErrorKind::Shader);
    assert_eq!(no_device().kind(), ErrorKind::Device);
}
