//! Tests that errors about a kernel start with its `CompileOptions::label`, or contain it.

use scry_gpu::testing::{Fault, FaultPlan, null_info, observed, open_with_faults, reporting};
use scry_gpu::{CompileOptions, Device, Features, Kernel, Launch, Result};
use scry_test_support::{STEP, null};

fn compile_labelled(gpu: &Device, source: &str) -> Result<Kernel> {
    gpu.compile_with(source, &CompileOptions::new().label("blur.wgsl"))
}

/// Calls `call` with a label and without one. Checks that the error text starts with the label, if
/// any, and then with `expected`.
#[track_caller]
fn assert_label_in_error<T>(expected: &str, call: impl Fn(Option<&'static str>) -> Result<T>) {
    let error_of = |label| call(label).map(|_| ()).unwrap_err().to_string();
    let labelled = error_of(Some("blur.wgsl"));
    assert!(labelled.starts_with(&format!("blur.wgsl: {expected}")), "{labelled}");
    assert_eq!(error_of(None), labelled["blur.wgsl: ".len()..], "without a label");
}

fn compile(gpu: &Device, source: &str, label: Option<&str>) -> Result<Kernel> {
    let label = label.map(str::to_owned);
    gpu.compile_with(source, &CompileOptions { label, ..CompileOptions::new() })
}

#[test]
fn missing_features_name_the_source() {
    let mut info = null_info();
    info.features = info.features.difference(Features::F64);
    let (gpu, _log) = observed(info);
    let double = "@compute @workgroup_size(1) fn wide() { var x: f64 = 1.0lf; x = x + x; }";
    let expected = "Device::compile_with: kernel `wide` needs ";
    assert_label_in_error(expected, |label| compile(&gpu, double, label));
    let large = "@compute @workgroup_size(16384) fn large() {}";
    let expected = "Device::compile_with: kernel `large`, @workgroup_size";
    assert_label_in_error(expected, |label| compile(&gpu, large, label));
}

#[test]
fn launches_name_the_source() {
    let gpu = null();
    let (a, b) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let kernel = |label| compile(&gpu, STEP, label).unwrap();
    assert_label_in_error("kernel `step`, buffers: ", |label| gpu.run(&kernel(label), &[&a], 8));
    assert_label_in_error("kernel `step`, `output` at @group(0) @binding(1): ", |label| {
        gpu.run(&kernel(label), &[&a, &a], 8)
    });
    assert_label_in_error("kernel `step`, size of the launch: ", |label| {
        gpu.run(&kernel(label), &[&a, &b], -1)
    });
    assert_label_in_error("Device::run: the launch of kernel `step`", |label| {
        gpu.run(&kernel(label), &[&a, &b], Launch::workgroups([u32::MAX, 1, 1]))
    });
    assert_label_in_error("kernel `step`, buffers: ", |label| {
        gpu.batch().run(&kernel(label), &[], 8).map(|_| ())
    });
    assert_label_in_error("kernel `step`, `input`: ", |label| kernel(label).bind().run(8));
}

#[test]
fn wrong_device_errors_name_source() {
    let kernel = compile_labelled(&null(), STEP).unwrap();
    let error = null().run(&kernel, &[], 8).unwrap_err().to_string();
    assert!(error.starts_with("Device::run: kernel `step` of blur.wgsl belongs to "), "{error}");
}

#[test]
fn launch_failures_name_the_source() {
    assert_label_in_error("kernel `step` on null device: the launch failed by plan", |label| {
        let (gpu, _log) = reporting(null_info(), &[0]);
        let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
        gpu.run(&compile(&gpu, STEP, label).unwrap(), &[&a, &b], 64).unwrap();
        b.download()
    });
}

/// The variant of a kernel for grids above the device's limits is compiled by the first launch that
/// needs it.
#[test]
fn linearised_compile_errors_name_source() {
    for is_indirect in [false, true] {
        let mut failed_compilations = 0;
        // The driver call that fails, counted from the launch; some are not compilations.
        for call in 0..4 {
            let run = |label| {
                let plan = FaultPlan::new(Fault::DriverError, u64::MAX);
                let gpu = open_with_faults("null", &plan).unwrap();
                let (a, b) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap());
                let kernel = compile(&gpu, STEP, label).unwrap();
                let counts = gpu.alloc::<u32>(3).unwrap();
                let launch = match is_indirect {
                    true => Launch::indirect(&counts),
                    false => Launch::workgroups([1 << 17, 1, 1]),
                };
                plan.fail_after(call);
                gpu.run(&kernel, &[&a, &b], launch)
            };
            if run(None).is_err_and(|error| error.to_string().contains("compile failed")) {
                failed_compilations += 1;
                assert_label_in_error("Device::run: compile failed on null device: injected", run);
            }
        }
        // An indirect launch also compiles the core's own kernel that reads the counts.
        assert_eq!(failed_compilations, 1 + u32::from(is_indirect), "indirect: {is_indirect}");
    }
}

#[test]
fn linearised_launch_failures_name_source() {
    assert_label_in_error("kernel `step` on null device: the launch failed by plan", |label| {
        let mut info = null_info();
        info.limits.max_native_workgroups = [4, 4, 4];
        let (gpu, _log) = reporting(info, &[0]);
        let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
        let kernel = compile(&gpu, STEP, label).unwrap();
        gpu.run(&kernel, &[&a, &b], Launch::workgroups([64, 1, 1])).unwrap();
        b.download()
    });
}

/// The memory cache returns one compiled kernel for all; each handle keeps its own label.
#[test]
fn cached_kernels_keep_their_labels() {
    let gpu = null();
    let plain = gpu.compile(STEP).unwrap();
    let blur = compile_labelled(&gpu, STEP).unwrap();
    let other = gpu.compile_with(STEP, &CompileOptions::new().label("other.wgsl")).unwrap();
    let error_of = |kernel: &Kernel| gpu.run(kernel, &[], 8).unwrap_err().to_string();
    assert!(error_of(&plain).starts_with("kernel `step`, "), "{}", error_of(&plain));
    assert!(
        error_of(&blur.clone()).starts_with("blur.wgsl: kernel `step`, "),
        "{}",
        error_of(&blur)
    );
    assert!(error_of(&other).starts_with("other.wgsl: kernel `step`, "), "{}", error_of(&other));
}
