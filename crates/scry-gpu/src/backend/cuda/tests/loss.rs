//! Errors after which CUDA answers nothing more. They happen in child processes: what they do to
//! the process is NVIDIA's to say.

use std::process::Command as Process;
use std::time::Instant;

use scry_ir::Program;

use super::*;
use crate::Device;
use crate::cache::KernelKey;
use crate::driver::{CompileJob, MemoryKind};
use crate::error::GpuError;

/// Tells a child process of a test that it is one.
const CHILD: &str = "SCRY_TEST_CHILD";

/// A kernel that, unchecked, writes 16 GB behind its buffer.
const ASTRAY: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(1)
    fn astray(@builtin(workgroup_id) id: vec3<u32>) { data[id.x + 4000000000u] = 1u; }";

/// Has a driver run [`ASTRAY`]; what comes of it.
fn lose(driver: &dyn Driver) -> GpuError {
    let key = KernelKey {
        source: ASTRAY.to_owned(),
        entry: None,
        overrides: Vec::new(),
        checked: false,
        native: None,
    };
    let program = Program::parse(ASTRAY).unwrap();
    let job =
        CompileJob { program: &program, folded: false, checked: false, key: &key, cache: None };
    let kernel = driver.compile(&job).unwrap();
    let data = span(driver.device_memory(64), 64);
    let step = dispatch(kernel, &[(data, true)], [8, 1, 1]);
    let point = driver.submit(Work::Once(&[step]), false);
    point.and_then(|point| driver.wait(point, LONG)).unwrap_err()
}

/// The device is lost, says so at every call, and takes nothing else with it.
fn child() {
    let driver = driver().unwrap();
    let error = lose(&*driver);
    let GpuError::DeviceLost { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("(700)") || reason.contains("(719)"), "{reason}");
    let again = driver.submit(Work::Once(&[]), false).unwrap_err();
    assert_eq!(again, error, "the reason stays");
    all_calls_say_so(&*driver);
    driver.abandon();
    drop(driver);
    let cpu = Device::open("cpu").unwrap();
    let data = cpu.upload(&[1u32, 2, 3]).unwrap();
    assert_eq!(data.download().unwrap(), [1, 2, 3]);
    // NVIDIA promises nothing here, but it is an answer, and soon.
    let reopened = adapter().unwrap().open().and_then(|driver| {
        let memory = driver.allocate(MemoryKind::Device, 64, "")?;
        let fill = run(Command::Fill { dst: span(memory, 64), pattern: 5 });
        let point = driver.submit(Work::Once(&[fill]), false)?;
        driver.wait(point, LONG)
    });
    println!("lost: {reason}; opened again: {reopened:?}");
}

fn all_calls_say_so(driver: &dyn Driver) {
    let start = Instant::now();
    let point = Point(1);
    for (call, error) in [
        ("wait", driver.wait(point, LONG).err()),
        ("wait for no time", driver.wait(point, Duration::ZERO).err()),
        ("record", driver.record(&[]).err()),
        ("cancel", driver.cancel(point).err()),
        ("timings", driver.timings(point).err()),
        ("allocate", driver.allocate(MemoryKind::Device, 64, "").err()),
    ] {
        assert!(matches!(error, Some(GpuError::DeviceLost { .. })), "{call}: {error:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_kernel_gone_astray_loses_its_device_alone() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    if adapter().is_none() {
        return;
    }
    let output = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("backend::cuda::tests::loss::a_kernel_gone_astray_loses_its_device_alone")
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("lost: "), "{told}{errors}");
    println!("{told}");
}
