//! Tests that errors from the core or a driver name the public function that was called.

use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, null_info, observed, open_with_faults};
use scry_gpu::{Buffer, CompileOptions, DType, Device, Features, GpuError, Launch, Result};
use scry_test_support::STEP;

/// The name of a public function, and a call of it.
type Call<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

/// Lists calls with the name of the function; their results, but not their errors, are dropped.
macro_rules! calls {
    ($($name:literal => $call:expr),* $(,)?) => {{
        let calls: Vec<Call<'_>> = vec![$(($name, Box::new(|| ($call).map(drop)))),*];
        calls
    }};
}

#[test]
fn device_loss_names_the_function() {
    let plan = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    let (a, b) = (gpu.upload(&[1u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let (part, untyped) = (a.slice(..4).unwrap(), a.untyped());
    let step = gpu.compile(STEP).unwrap();
    let bound = step.bind().set("input", &a).set("output", &b);
    let recording = gpu.batch().copy(&a, &b).unwrap().record().unwrap();
    let ticket = gpu.batch().fill(&a, 3).unwrap().submit_async().unwrap();
    let mut batch = gpu.batch();
    let download = batch.download(&a).unwrap();
    drop(batch.submit_async().unwrap());
    plan.fail_after(0);
    assert!(gpu.upload(&[0u8]).is_err());
    let calls = calls! {
        "Device::upload" => gpu.upload(&[0u32]),
        "Device::alloc" => gpu.alloc::<u32>(1),
        "Device::alloc_untyped" => gpu.alloc_untyped(DType::F32, 1),
        "Device::upload_bytes" => gpu.upload_bytes(None, &[1]),
        "Device::run" => gpu.run(&step, &[&a, &b], 8),
        "Device::run" => gpu.run(&step, &[&a, &b], Launch::workgroups([1; 3])),
        "Device::dispatch" => gpu.dispatch(STEP, &[&a, &b], 8),
        "Device::copy_buffer" => gpu.copy_buffer(&a, &b),
        "Device::wait" => gpu.wait(),
        "Device::release_finished" => gpu.release_finished(),
        "Device::free_memory" => gpu.free_memory(),
        "Buffer::upload" => Buffer::upload(&gpu, &[1u8]),
        "Buffer::from_fn" => Buffer::from_fn(&gpu, 2, |i| i as u32),
        "Buffer::write" => a.write(&[0; 8]),
        "Buffer::write_at" => a.write_at(1, &[0; 2]),
        "Buffer::download" => a.download(),
        "Buffer::download_into" => a.download_into(&mut [0; 8]),
        "Buffer::get" => a.get(0),
        "Buffer::fill" => a.fill(1),
        "Buffer::copy_to" => a.copy_to(&b),
        "Buffer::duplicate" => a.duplicate(),
        "Slice::write" => part.write(&[0; 4]),
        "Slice::download" => part.download(),
        "Slice::download_into" => part.download_into(&mut [0; 4]),
        "Slice::fill" => part.fill(1),
        "Slice::copy_to" => part.copy_to(b.slice(..4)?),
        "UntypedBuffer::write_bytes" => untyped.write_bytes(&[0; 32]),
        "UntypedBuffer::download_bytes" => untyped.download_bytes(),
        "UntypedBuffer::download_bytes_into" => untyped.download_bytes_into(&mut [0; 32]),
        "UntypedBuffer::fill_zero" => untyped.fill_zero(),
        "UntypedBuffer::duplicate" => untyped.duplicate(),
        "BoundKernel::run" => bound.run(8),
        "Batch::download" => gpu.batch().download(&a),
        "Batch::submit" => gpu.batch().fill(&a, 1)?.submit(),
        "Batch::submit_async" => gpu.batch().fill(&a, 1)?.submit_async(),
        "Batch::submit_timed" => gpu.batch().fill(&a, 1)?.submit_timed(),
        "Batch::record" => gpu.batch().fill(&a, 1)?.record(),
        "Recording::replay" => recording.replay(),
        "ReplayInputs::submit" => recording.replay_with().write(&a, &[1; 8])?.submit(),
        "Ticket::wait" => ticket.wait(),
        "Ticket::wait_timeout" => ticket.wait_timeout(Duration::from_secs(1)),
        "Ticket::is_ready" => ticket.is_ready(),
        "Download::get" => download.get(),
    };
    for (function, call) in calls {
        let error = call().expect_err(function);
        let GpuError::DeviceLost(lost) = &error else { panic!("{function}: {error}") };
        assert_eq!(lost.function(), Some(function), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "{function}: null device is lost: injected at allocate; help: drop it and open a \
                 new Device"
            )
        );
    }
}

/// Returns the error text of `call` on a device whose first driver call fails.
fn driver_error(call: impl Fn(&Device) -> Result<()>) -> String {
    let plan = FaultPlan::new(Fault::DriverError, 0);
    let gpu = open_with_faults("null", &plan).unwrap();
    call(&gpu).unwrap_err().to_string()
}

#[test]
fn compile_errors_name_the_function() {
    let expected = |function: &str| {
        format!(
            "{function}: compile failed on null device: injected; help: update the driver; if it \
             still fails, report it with the output of `scry doctor`"
        )
    };
    assert_eq!(driver_error(|gpu| gpu.compile(STEP).map(drop)), expected("Device::compile"));
    let named = driver_error(|gpu| gpu.compile_named(STEP, "step").map(drop));
    assert_eq!(named, expected("Device::compile_named"));
    let with = driver_error(|gpu| gpu.compile_with(STEP, &CompileOptions::new()).map(drop));
    assert_eq!(with, expected("Device::compile_with"));
}

#[test]
fn missing_features_name_the_function() {
    let mut info = null_info();
    info.features = info.features.difference(Features::F64);
    let (gpu, _log) = observed(info);
    let double = "@compute @workgroup_size(1) fn wide() { var x: f64 = 1.0lf; x = x + x; }";
    let error = gpu.compile(double).unwrap_err().to_string();
    assert!(error.starts_with("Device::compile: kernel `wide` needs "), "{error}");
    let error = gpu.dispatch(double, &[], 1).unwrap_err().to_string();
    assert!(error.starts_with("Device::dispatch: kernel `wide` needs "), "{error}");
}

#[test]
fn oversized_requests_name_the_function() {
    let (gpu, _log) = observed(null_info());
    let error_of = |error: GpuError| {
        assert!(matches!(error, GpuError::TooLarge(_)), "{error}");
        error.to_string()
    };
    let text = error_of(gpu.alloc::<u32>(1 << 60).unwrap_err());
    let prefix = "Device::alloc: a buffer of 1152921504606846976 elements of 4 bytes is ";
    assert!(text.starts_with(prefix), "{text}");
    let text = error_of(gpu.alloc_untyped(DType::F32, 1 << 60).unwrap_err());
    assert!(text.starts_with("Device::alloc_untyped: a buffer of "), "{text}");
    let (a, b) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let step = gpu.compile(STEP).unwrap();
    let text = error_of(gpu.batch().run(&step, &[&a, &b], 1u64 << 40).map(drop).unwrap_err());
    assert!(text.starts_with("Batch::run: the launch of kernel `step` along x is "), "{text}");
}

#[test]
fn timeouts_name_the_function() {
    let plan = FaultPlan::new(Fault::Hang, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    let a = gpu.upload(&[1u32; 8]).unwrap();
    gpu.wait().unwrap();
    gpu.set_time_limit(Some(Duration::from_millis(5)));
    plan.fail_after(0);
    a.fill(2).unwrap();
    let error = a.download().unwrap_err();
    assert!(matches!(error, GpuError::Timeout(_)), "{error}");
    let expected = "Buffer::download: work on null device did not finish within the time limit of \
                    5ms; help: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn out_of_memory_names_the_function() {
    let plan = FaultPlan::new(Fault::OutOfMemory, 0);
    let gpu = open_with_faults("null", &plan).unwrap();
    let text = gpu.alloc::<u32>(8).unwrap_err().to_string();
    assert!(text.starts_with("Device::alloc: null device is out of memory: "), "{text}");
}
