//! Tests of errors: their text, `Debug`, source and kind.

use std::error::Error;

use super::*;

fn buffer_access() -> GpuError {
    GpuError::BufferAccess(BufferAccessError {
        operation: "Buffer::slice",
        problem: "elements 2..9 of buffer `x`, which has 4".into(),
        help: "stay within 0..4".into(),
    })
}

fn shader() -> GpuError {
    scry_ir::Program::parse("fn f( {}").err().expect("not valid WGSL").into()
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
    for error in [buffer_access(), shader(), no_device()] {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(format!("{error:#?}"), error.to_string());
        assert!(!error.to_string().contains("Error {"), "{error}");
    }
}

/// The struct must not be the `source` of its variant: reporters would print the text twice.
#[test]
fn structs_display_like_variants() {
    fn text(error: &(dyn Error + 'static)) -> String {
        assert!(error.source().is_none(), "{error}");
        error.to_string()
    }
    let error = no_device();
    let GpuError::NoDevice(inner) = &error else { panic!("{error}") };
    assert_eq!(text(inner), text(&error));
    assert_eq!(text(&inner.attempts()[0]).lines().next(), Some("vulkan: no libvulkan.so.1"));
    let error = buffer_access();
    let GpuError::BufferAccess(inner) = &error else { panic!("{error}") };
    assert_eq!(text(inner), text(&error));
    let error = shader();
    let GpuError::Shader(inner) = &error else { panic!("{error}") };
    assert_eq!(text(&**inner), text(&error));
}

#[test]
fn accessors_return_the_parts() {
    let GpuError::BufferAccess(error) = buffer_access() else { unreachable!() };
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
        crate::api::device_selection::with_variable(no_device()).to_string(),
        format!(
            "SCRY_DEVICE=vulkan:7 matches no device{lines}\n  \
             help: set SCRY_DEVICE to a device that is present, or unset it"
        )
    );
}

#[test]
fn driver_errors_have_help() {
    let error = |code: &str| DriverError::new("GPU", "cuCall", code.to_owned(), "update it");
    assert_eq!(error("NAME (1)").to_string(), "cuCall failed on GPU: NAME (1); help: update it");
    // Messages of the driver's compiler have several lines.
    let log = GpuError::Driver(error("NAME (1); it says:\nptxas fatal"));
    assert_eq!(
        log.in_function("Device::compile").with_label(Some("blur.wgsl")).to_string(),
        "blur.wgsl: Device::compile: cuCall failed on GPU: NAME (1); it says:\nptxas fatal\n\
         help: update it"
    );
}

#[test]
fn the_outermost_function_is_named() {
    let lost = DeviceLostError { function: None, device: "GPU".into(), reason: "reset".into() };
    let error = GpuError::DeviceLost(lost).in_function("Slice::fill").in_function("Buffer::fill");
    let GpuError::DeviceLost(lost) = &error else { unreachable!() };
    assert_eq!(lost.function(), Some("Buffer::fill"));
    assert_eq!(
        error.to_string(),
        "Buffer::fill: GPU is lost: reset; help: drop it and open a new Device"
    );
    assert_eq!(buffer_access().in_function("Buffer::fill"), buffer_access(), "the operation stays");
}

#[test]
fn source_and_library_errors_name_functions() {
    let library = GpuError::Library(LibraryError {
        function: None,
        library: "NVRTC",
        problem: "no libnvrtc.so".into(),
        help: "install it".into(),
    });
    assert_eq!(
        library.in_function("Device::compile_cuda").to_string(),
        "Device::compile_cuda: NVRTC is not available: no libnvrtc.so; help: install it"
    );
    let source = GpuError::Source(SourceError {
        function: None,
        kernel: "square".into(),
        language: crate::api::native::Language::CudaC,
        device: "GPU".into(),
        log: "1: error".into(),
        help: "correct the source; NVRTC 13.0 says".into(),
    });
    assert_eq!(
        source.in_function("Device::compile_cuda").to_string(),
        "Device::compile_cuda: kernel `square`: its CUDA C was rejected by GPU; help: correct the \
         source; NVRTC 13.0 says\n1: error"
    );
}

#[test]
fn errors_name_kernel_or_function() {
    let argument = |function: Option<&'static str>, kernel: Option<&str>| {
        let error = ArgumentError {
            label: None,
            function: function.map(Into::into),
            kernel: kernel.map(str::to_owned),
            argument: "`n`".into(),
            problem: "is 0".into(),
            help: "pass more".into(),
        };
        assert_eq!((error.function(), error.kernel()), (function, kernel));
        error.to_string()
    };
    assert_eq!(argument(Some("f"), None), "f: `n` is 0; help: pass more");
    assert_eq!(argument(None, Some("a::b")), "kernel `a::b`, `n`: is 0; help: pass more");
    let language = crate::api::native::language_error;
    let ptx = crate::api::native::Language::Ptx;
    let text = language(None, ptx, "CPU").in_function("Kernels::new").to_string();
    assert!(text.starts_with("Kernels::new: its kernels are written in PTX, which this"), "{text}");
    let text = language(Some("k"), ptx, "CPU").in_function("Device::compile_ptx").to_string();
    assert!(
        text.starts_with("Device::compile_ptx: kernel `k` is written in PTX, which this"),
        "{text}"
    );
}

#[test]
fn limit_of_the_driver_is_optional() {
    let text = |limit: Option<&str>| {
        let error = KernelError {
            label: None,
            kernel: "k".into(),
            device: "GPU".into(),
            driver: "Mesa 25".into(),
            problem: "nests 90 levels deep".into(),
            limit: limit.map(str::to_owned),
            help: "nest less".into(),
        };
        assert_eq!(error.limit(), limit);
        error.to_string()
    };
    assert_eq!(
        text(Some("30 levels")),
        "kernel `k` on GPU: nests 90 levels deep; the limit of the driver, Mesa 25, is 30 levels; \
         help: nest less"
    );
    assert_eq!(
        text(None),
        "kernel `k` on GPU: nests 90 levels deep; the driver is Mesa 25; help: nest less"
    );
}

#[test]
fn kinds_say_what_is_at_fault() {
    assert_eq!(buffer_access().kind(), ErrorKind::Usage);
    assert_eq!(shader().kind(), ErrorKind::Kernel);
    assert_eq!(no_device().kind(), ErrorKind::Device);
}

#[test]
fn blocking_transfers_name_their_future() {
    for (function, future) in [
        ("Buffer::write_at", "Slice::write_async"),
        ("Buffer::from_fn", "Device::upload_async"),
        ("Device::upload_bytes", "UntypedBuffer::write_bytes_async"),
    ] {
        let error = WouldBlockError { function: None, device: "GPU".into() };
        let text = GpuError::WouldBlock(error).in_function(function).to_string();
        assert!(text.ends_with(&format!("; help: await {future}")), "{text}");
    }
}
