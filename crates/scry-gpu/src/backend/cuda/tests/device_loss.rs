//! Tests of the loss of the context, in a child process: the loss affects all devices of a process.

use std::time::Instant;

use scry_ir::Program;

use super::*;
use crate::api::error::{GpuError, Result};
use crate::cache::KernelKey;
use crate::core::driver::{CompileJob, KernelId, MemoryKind};

/// A kernel that, unchecked, writes 16 GiB past the end of its buffer.
const STRAY: &str = "
    var<immediate> far: u32;
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(1)
    fn stray() { data[far] = 1u; }";

/// Environment variable that marks the child process.
const CHILD: &str = "SCRY_TEST_CHILD";

/// Compiles a kernel without bounds checks.
fn compile_unchecked(driver: &dyn Driver, source: &str) -> KernelId {
    let key = KernelKey {
        source: source.to_owned(),
        entry: None,
        overrides: Vec::new(),
        checked: false,
        native: None,
    };
    let program = Program::parse(source).unwrap();
    let job = CompileJob {
        program: &program,
        grid: GridSource::Native,
        checked: false,
        key: &key,
        cache: None,
        dump: None,
    };
    driver.compile(&job).unwrap()
}

#[test]
fn stray_access_loses_device_without_hang() {
    if driver().is_none() {
        return;
    }
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new(this)
        .args(["--exact", "--nocapture", "backend::cuda::tests::device_loss::child"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("device lost as expected"), "{text}");
}

fn assert_lost<T: std::fmt::Debug>(what: &str, outcome: Result<T>) {
    let error = outcome.expect_err(what);
    assert!(matches!(error, GpuError::DeviceLost(_)), "{what}: {error}");
}

/// Not a test of its own: the body of the child process.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let driver = driver().expect("the parent process found the device");
    let kernel = compile_unchecked(&*driver, STRAY);
    let data = range(driver.upload(&[0]), 4);
    let far = (u32::MAX - 16).to_le_bytes();
    let stray = dispatch_with(kernel, &[(data, true)], [1; 3], &far);
    let recording = driver.record(&[compute_barrier()]).unwrap();
    let start = Instant::now();
    // The kernel may fail before the whole submission is issued.
    let submitted = driver.submit(Work::Once(&[stray]), true);
    let submission = submitted.as_ref().map_or(SubmissionIndex(1), |submission| *submission);
    assert_lost("wait", submitted.and_then(|submission| driver.wait(submission, LONG)));
    assert_lost("wait again", driver.wait(submission, Duration::ZERO));
    assert_lost("submit", driver.submit(Work::Once(&[]), false));
    assert_lost("replay", driver.submit(Work::Replay(recording), false));
    assert_lost("record", driver.record(&[]));
    assert_lost("cancel", driver.cancel(submission));
    assert_lost("timings", driver.timings(submission));
    assert_lost("allocate", driver.allocate(MemoryKind::Device, 4, ""));
    driver.free_recording(recording);
    drop(driver);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    println!("device lost as expected");
}
