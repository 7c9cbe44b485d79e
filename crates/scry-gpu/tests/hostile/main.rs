//! Tests with hostile kernels: none may change a byte outside of its bindings, and each must
//! terminate or be ended by the time limit, on every device.
//!
//! Environment variables: `SCRY_FUZZ_SEEDS` is the number of kernels on each device,
//! `SCRY_FUZZ_FIRST` the first seed, and `SCRY_FUZZ_PROBLEMS` the number of problems after which
//! the test ends (default 1). `scry fuzz --hostile` runs many, in separate processes.

mod ir;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scry_fuzz::hostile::{Comparable, HostileKernel, Rules, kernel, shrink};
use scry_gpu::verify::{GuardedRun, compare, run_guarded};
use scry_gpu::{BackendKind, Device, DeviceKind, Features, GpuError, Launch};
use scry_test_support::{devices, env_number};

/// Default number of kernels on each device.
const DEFAULT_SEEDS: u64 = 150;
/// Time limit of a kernel.
const LIMIT: Duration = Duration::from_millis(200);
/// Maximum number of candidates when shrinking a failing kernel.
const MAX_CANDIDATES: usize = 2000;
/// Time limit of shrinking.
const SHRINKING_LIMIT: Duration = Duration::from_secs(30);

/// Returns the devices, for one test at a time. They are shared: another test would change their
/// time limit, and delay kernels until the limit.
fn exclusive_devices() -> (MutexGuard<'static, ()>, Vec<Device>) {
    static IN_USE: Mutex<()> = Mutex::new(());
    (IN_USE.lock().unwrap_or_else(PoisonError::into_inner), devices())
}

#[test]
fn kernels_write_only_their_bindings() {
    let (_in_use, devices) = exclusive_devices();
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    let seeds = first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let max_problems = env_number("SCRY_FUZZ_PROBLEMS").unwrap_or(1);
    let reference = devices.iter().find(|device| device.backend_kind() == BackendKind::Cpu);
    let mut found = Vec::new();
    for device in &devices {
        device.set_time_limit(cancels_loops(device).then_some(limit(device)));
        for seed in seeds.clone() {
            if found.len() >= max_problems as usize {
                break;
            }
            let kernel = kernel(seed, features(device, reference), rules(device));
            if let Some(problem) = find_problem(&kernel, device, reference) {
                describe(&kernel, &problem, device, reference);
                found.push((device.name(), seed));
            }
        }
        device.set_time_limit(None);
    }
    assert!(found.is_empty(), "problems, each described above, with the seeds {found:?}");
}

/// Returns whether loops can be cancelled, so that kernels need not terminate: not in SPIR-V that
/// naga writes, nor through wgpu.
fn cancels_loops(device: &Device) -> bool {
    executes_kernel_ir(device) && device.backend_kind() != BackendKind::Wgpu
}

/// Returns whether the device executes the kernel IR, not SPIR-V that naga writes.
fn executes_kernel_ir(device: &Device) -> bool {
    let naga = std::env::var_os("SCRY_SPIRV").is_some_and(|writer| writer == "naga");
    device.backend_kind() != BackendKind::Vulkan || !naga
}

/// Returns the time limit of a kernel. Software drivers of Vulkan compile kernels during their
/// first launch, which needs seconds on a busy machine and cannot be cancelled.
fn limit(device: &Device) -> Duration {
    match device.backend_kind() {
        BackendKind::Vulkan if device.info().kind == DeviceKind::Software => 100 * LIMIT,
        _ => LIMIT,
    }
}

/// Returns whether the driver aborts long loops, which the device reports.
fn aborts_loops(device: &Device) -> bool {
    device.info().workarounds.iter().any(|it| it.name == "report-aborted-loops")
}

fn rules(device: &Device) -> Rules {
    Rules { endless: cancels_loops(device) }
}

/// Returns the optional features that both the device and the reference have.
fn features(device: &Device, reference: Option<&Device>) -> scry_fuzz::Features {
    let reference = reference.unwrap_or(device);
    let common = device.info().features & reference.info().features;
    scry_fuzz::Features {
        f16: common.contains(Features::F16),
        f64: common.contains(Features::F64),
        i64: common.contains(Features::I64),
        i16: common.contains(Features::I16),
    }
}

fn run(kernel: &HostileKernel, device: &Device) -> Result<GuardedRun, GpuError> {
    let case = kernel.case();
    let launch = Launch::workgroups(case.groups);
    run_guarded(device, &case.source, &case.buffers, &launch, case.seed)
}

/// Returns the problem of a kernel on a device, if there is one: its kind and a text.
fn find_problem(
    kernel: &HostileKernel,
    device: &Device,
    reference: Option<&Device>,
) -> Option<(&'static str, String)> {
    let result = match run(kernel, device) {
        Ok(result) => result,
        // The driver aborted the loops before the time limit.
        Err(GpuError::Kernel(_)) if kernel.may_not_terminate() && aborts_loops(device) => {
            return None;
        }
        Err(error) => return Some(("failure", error.to_string())),
    };
    if let Some(region) = result.corrupted.first() {
        return Some(("damage", region.to_string()));
    }
    if result.timed_out && !kernel.may_not_terminate() {
        return Some(("timeout", "a kernel whose loops all terminate did not".to_owned()));
    }
    difference(kernel, &result, device, reference).map(|text| ("difference", text))
}

/// Returns where a device's bytes differ from the reference's, if the kernel is deterministic.
fn difference(
    kernel: &HostileKernel,
    result: &GuardedRun,
    device: &Device,
    reference: Option<&Device>,
) -> Option<String> {
    let reference = reference.filter(|reference| reference.info() != device.info())?;
    match kernel.comparable() {
        Comparable::Nothing => return None,
        Comparable::SameIr if !executes_kernel_ir(device) => return None,
        Comparable::SameIr | Comparable::Everywhere => {}
    }
    let expected = run(kernel, reference).ok()?;
    expected.outputs.iter().zip(&result.outputs).find_map(|(expected, actual)| {
        let compared = compare(&expected.layout, &expected.bytes, &actual.bytes, 0);
        let first = compared.first_difference?;
        Some(format!("{}{} is {}, not {}", expected.name, first.path, first.found, first.expected))
    })
}

/// Prints a problem, and the smallest kernel found with one of its kind.
fn describe(
    kernel: &HostileKernel,
    (kind, text): &(&'static str, String),
    device: &Device,
    reference: Option<&Device>,
) {
    // Printed at once, because a run of many kernels may be interrupted.
    eprintln!("{}: seed {}: {text}", device.name(), kernel.case().seed);
    let deadline = Instant::now() + SHRINKING_LIMIT;
    let small = shrink(kernel, MAX_CANDIDATES, |smaller| {
        let found = || find_problem(smaller, device, reference);
        *kind != "failure"
            && Instant::now() < deadline
            && found().is_some_and(|found| found.0 == *kind)
    });
    let problem = find_problem(&small, device, reference).map_or(text.clone(), |(_, text)| text);
    let case = small.case();
    eprintln!("shrunk: {problem}\n{}\n{:?}", case.source, case.buffers);
}

/// A device stays usable after a cancelled kernel.
#[test]
fn devices_survive_endless_kernels() {
    let (_in_use, devices) = exclusive_devices();
    for device in devices.iter().filter(|device| cancels_loops(device)) {
        let gpu = Device::open(&format!("{}:{}", device.backend_kind(), device.info().index));
        let gpu = gpu.unwrap_or_else(|error| panic!("{error}"));
        gpu.set_time_limit(Some(limit(&gpu)));
        let endless = (0..).map(|seed| kernel(seed, scry_fuzz::Features::default(), rules(&gpu)));
        let endless = endless.filter(HostileKernel::may_not_terminate).take(20);
        let was_cancelled = |kernel: &HostileKernel| match run(kernel, &gpu) {
            Ok(ran) => ran.timed_out,
            Err(GpuError::Kernel(_)) if aborts_loops(&gpu) => true,
            Err(error) => panic!("{error}"),
        };
        assert!(endless.filter(was_cancelled).count() > 0, "no kernel of 20 was endless");
        let terminating = kernel(0, scry_fuzz::Features::default(), Rules { endless: false });
        assert!(!run(&terminating, &gpu).expect("the device is usable").timed_out);
    }
}
