//! Tests of the kernel caches: in memory, and on disk for the next process.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{CompileOptions, Device, disk_cache};
use scry_test_support::{STEP, devices};

use super::child::in_child_with;
use super::devices::check_works;

/// Returns the null device, and a plan without faults that counts its driver calls.
fn open_counted() -> (Device, Arc<FaultPlan>) {
    let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    (gpu, plan)
}

#[test]
fn second_dispatch_does_not_compile() {
    let (gpu, plan) = open_counted();
    let (a, b) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let calls_of = |work: &dyn Fn()| {
        let before = plan.calls();
        work();
        plan.calls() - before
    };
    let dispatch = || gpu.dispatch(STEP, &[&a, &b], 64).unwrap();
    // Each dispatch is one driver call, the submission; the first one also compiles.
    assert_eq!(calls_of(&dispatch), 2);
    assert_eq!(calls_of(&dispatch), 1);
    let same_source = STEP.to_owned();
    let same = || gpu.dispatch(&same_source, &[&a, &b], 64).unwrap();
    assert_eq!(calls_of(&same), 1);
    assert_eq!(calls_of(&|| drop(gpu.compile(STEP).unwrap())), 0);
    let named = CompileOptions::new().entry("step");
    assert_eq!(calls_of(&|| drop(gpu.compile_with(STEP, &named).unwrap())), 1);
    let other = format!("{STEP} ");
    assert_eq!(calls_of(&|| gpu.dispatch(&other, &[&a, &b], 64).unwrap()), 2);
    // Concurrent requests share one compilation.
    let fresh = format!("{STEP}  ");
    let many = || {
        std::thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(|| gpu.compile(&fresh).unwrap())));
        });
    };
    assert_eq!(calls_of(&many), 1);
}

#[test]
fn rejected_kernels_are_not_cached() {
    let (gpu, plan) = open_counted();
    for _ in 0..3 {
        gpu.compile("fn broken(").unwrap_err();
    }
    assert_eq!(plan.calls(), 0);
    check_works(&gpu);
}

/// Runs work in a child process with the disk cache in `folder`. Returns the paths and modification
/// times of the cache's entries.
fn run_with_cache(name: &str, folder: &Path) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let variables = [("SCRY_CACHE_DIR", folder.as_os_str().to_owned())];
    let output = in_child_with(name, Duration::from_secs(30), &variables, || {
        for gpu in devices() {
            check_works(&gpu);
        }
        for entry in disk_cache::entries() {
            println!("entry {}", entry.path.display());
        }
    })
    .assert_finished();
    let paths = output.lines().filter_map(|line| line.strip_prefix("entry "));
    let entries = paths.map(|path| {
        let modified = fs::metadata(path).and_then(|it| it.modified());
        (path.into(), modified.expect("the cache listed the file"))
    });
    entries.collect()
}

#[test]
fn next_process_uses_disk_cache() {
    let name = "kernel_cache::next_process_uses_disk_cache";
    let folder = tempfile::tempdir().unwrap();
    let first = run_with_cache(name, folder.path());
    if first.is_empty() {
        for gpu in devices() {
            eprintln!("skipped on {gpu:?}: its driver does not return compiled kernels");
        }
        return;
    }
    // Valid entries are left unchanged.
    let second = run_with_cache(name, folder.path());
    assert_eq!(second, first);
    // Damaged entries are replaced, and the work succeeds.
    for (path, _) in &first {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let third = run_with_cache(name, folder.path());
    assert_eq!(third.len(), first.len());
    for (path, _) in &third {
        let size = fs::metadata(path).unwrap().len();
        assert!(size > 0, "{}", path.display());
    }
    let fourth = run_with_cache(name, folder.path());
    assert_eq!(fourth, third, "the replaced entries are used");
}
