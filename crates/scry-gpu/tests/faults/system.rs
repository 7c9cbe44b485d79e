//! Tests of faults 34 and 36: forks, and a system without file descriptors, threads or disk space.
#![cfg(unix)]

use std::ffi::OsString;
use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceKind, GpuError};
use scry_test_support::{STEP, devices, null};

use super::child::{in_child, in_child_with};
use super::devices::{check_works, devices_and_null, selectors, try_run_work};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs `body` in a fork of this process. Panics if it panics or does not end before the timeout.
pub fn run_in_fork(timeout: Duration, body: impl FnOnce()) {
    // SAFETY: the child has only this thread, runs `body` and exits without returning. Locks that
    // other threads of the parent hold stay locked in it: a hang fails the test at the timeout.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the process; no code runs after it.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    let deadline = Instant::now() + timeout;
    let mut status = 0;
    loop {
        // SAFETY: `child` is a child of this process, and `status` outlives the call.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if Instant::now() >= deadline {
            // SAFETY: `child` is a child of this process that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the forked child did not end within {timeout:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let succeeded = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    assert!(succeeded, "the forked child ended with {status:#x}");
}

#[test]
fn fault_34_forked_child_gets_errors() {
    let name = "system::fault_34_forked_child_gets_errors";
    in_child(name, TIMEOUT, || {
        for gpu in devices_and_null() {
            let (a, b) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc(64).unwrap());
            let kernel = gpu.compile(STEP).unwrap();
            let mut batch = gpu.batch();
            batch.run(&kernel, &[&a, &b], 64).unwrap();
            let recording = batch.record().unwrap();
            let ticket = recording.replay().unwrap();
            let mut unfinished = gpu.batch();
            unfinished.copy(&b, &a).unwrap();
            run_in_fork(Duration::from_secs(20), || {
                let results = [
                    gpu.wait(),
                    gpu.alloc::<u32>(4).map(|_| ()),
                    gpu.compile(STEP).map(|_| ()),
                    gpu.run(&kernel, &[&a, &b], 64),
                    a.write(&[2; 64]),
                    a.fill(2),
                    a.download().map(|_| ()),
                    a.copy_to(&b),
                    ticket.wait(),
                    ticket.is_ready().map(|_| ()),
                    recording.replay().map(|_| ()),
                    unfinished.submit(),
                ];
                for result in results {
                    let Err(error @ GpuError::DeviceLost(_)) = result else {
                        panic!("{gpu:?} in a forked child: {result:?}");
                    };
                    assert!(error.to_string().contains("fork"), "{error}");
                }
                // Drops must not use the driver either. The kernel outlives the device's handles.
                drop((a, b, ticket, recording, gpu.clone(), gpu, kernel));
            });
        }
        // The parent's devices still work.
        devices_and_null().iter().for_each(check_works);
    });
}

#[test]
fn fault_34_opening_after_fork_works() {
    let name = "system::fault_34_opening_after_fork_works";
    in_child(name, TIMEOUT, || {
        run_in_fork(Duration::from_secs(20), || devices_and_null().iter().for_each(check_works));
        devices_and_null().iter().for_each(check_works);
        // Not every GPU driver works in the fork of a process that used it; software devices do.
        let all = devices();
        if all.iter().any(|gpu| gpu.info().kind != DeviceKind::Software) {
            println!("skipped fault 34, forks of a process that used a GPU");
            return;
        }
        let selectors = selectors();
        run_in_fork(Duration::from_secs(20), || {
            for selector in selectors {
                check_works(&Device::open(&selector).unwrap());
            }
        });
        all.iter().for_each(check_works);
    });
}

/// Sets the soft limit of a resource of this process; returns the previous one.
fn set_limit(resource: libc::__rlimit_resource_t, soft: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is plain data and outlives the calls.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &mut limit), 0);
        let before = limit.rlim_cur;
        limit.rlim_cur = soft.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(resource, &limit), 0);
        before
    }
}

/// Returns the number of open file descriptors, without that of the query.
fn open_files() -> u64 {
    let entries = std::fs::read_dir("/proc/self/fd").expect("Linux has /proc");
    entries.count() as u64 - 1
}

#[test]
#[cfg(target_os = "linux")]
fn fault_36_no_file_descriptors_left() {
    let name = "system::fault_36_no_file_descriptors_left";
    let variables = [("SCRY_VALIDATE", OsString::new())];
    in_child_with(name, TIMEOUT, &variables, || {
        let open: Vec<Device> = devices_and_null();
        open.iter().for_each(check_works);
        let used = open_files();
        for spare in [0, 1, 2, 3, 5, 8, 12] {
            let before = set_limit(libc::RLIMIT_NOFILE, used + spare);
            // Open devices still work, or report why not.
            for gpu in &open {
                if let Err(error) = try_run_work(gpu) {
                    println!("{gpu:?} with {spare} files: {error}");
                }
            }
            for selector in selectors() {
                match Device::open(&selector) {
                    Ok(gpu) => drop(try_run_work(&gpu)),
                    Err(error @ GpuError::NoDevice(_)) => {
                        println!("{selector} with {spare} files: {error}");
                    }
                    Err(other) => panic!("{selector} with {spare} files: {other}"),
                }
            }
            set_limit(libc::RLIMIT_NOFILE, before);
        }
        for selector in selectors() {
            check_recovers(&Device::open(&selector).unwrap());
        }
        open.iter().for_each(check_recovers);
    })
    .assert_finished();
}

/// Checks that the device works again. NVIDIA's driver (580) does not recover in a process that
/// once had no file descriptor left: then the error must be out of memory.
#[cfg(target_os = "linux")]
fn check_recovers(gpu: &Device) {
    match try_run_work(gpu) {
        Err(error @ GpuError::OutOfMemory(_)) if gpu.info().kind == DeviceKind::Discrete => {
            println!("skipped on {gpu:?}: its driver does not recover: {error}");
        }
        other => other.unwrap(),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn fault_36_device_search_without_files() {
    const PRESENT: &str = "SCRY_FAULTS_PRESENT";
    let name = "system::fault_36_device_search_without_files";
    // The child must not have opened a device before.
    let present = std::env::var(PRESENT).unwrap_or_else(|_| selectors().join(" "));
    let variables = [("SCRY_VALIDATE", OsString::new()), (PRESENT, present.clone().into())];
    in_child_with(name, TIMEOUT, &variables, || {
        let used = open_files();
        // With the limit 0 not even one file can be opened.
        for limit in std::iter::once(0).chain(used..used + 16) {
            let before = set_limit(libc::RLIMIT_NOFILE, limit);
            let result = Device::auto().and_then(|gpu| try_run_work(&gpu));
            set_limit(libc::RLIMIT_NOFILE, before);
            if let Err(error) = result {
                assert!(may_result_from_missing_files(&error), "limit {limit}: {error}");
                println!("limit {limit}, {used} open: {error}");
            }
        }
        present.split(' ').for_each(check_reopens);
    })
    .assert_finished();
}

/// Returns whether a driver that cannot open files may cause the error.
#[cfg(target_os = "linux")]
fn may_result_from_missing_files(error: &GpuError) -> bool {
    match error {
        GpuError::NoDevice(found) => {
            found.attempts().iter().all(|it| !it.reason().is_empty() && !it.help().is_empty())
        }
        // Drivers open files to allocate memory, and do not report why an allocation failed.
        GpuError::OutOfMemory(_) => true,
        // CUDA has a code for failed system calls.
        GpuError::Driver(error) => error.code().contains("CUDA_ERROR_OPERATING_SYSTEM"),
        _ => false,
    }
}

/// Checks that the device can be opened after searches that failed. CUDA's driver may not recover
/// in a process in which it once failed to start: then the error must be that of `cuInit`.
#[cfg(target_os = "linux")]
fn check_reopens(selector: &str) {
    match Device::open(selector) {
        Ok(gpu) => check_recovers(&gpu),
        Err(error @ GpuError::NoDevice(_)) if error.to_string().contains("cuda: cuInit of ") => {
            println!("skipped on {selector}: its driver does not recover: {error}");
        }
        Err(other) => panic!("{selector}: {other}"),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn fault_36_no_threads_left() {
    let name = "system::fault_36_no_threads_left";
    in_child(name, TIMEOUT, || {
        let open = devices_and_null();
        open.iter().for_each(check_works);
        // The limit does not apply to root: become another user.
        // SAFETY: the calls have no preconditions, and change only this process.
        let changed = unsafe {
            libc::geteuid() != 0 || (libc::setgid(65534) == 0 && libc::setuid(65534) == 0)
        };
        if !changed {
            println!("skipped fault 36, thread limit: it does not apply to root");
            return;
        }
        let before = set_limit(libc::RLIMIT_NPROC, 0);
        if std::thread::Builder::new().spawn(|| ()).is_ok() {
            println!("skipped fault 36, thread limit: this system ignores it");
            return;
        }
        for gpu in &open {
            let source = format!("{STEP} // {gpu:?}");
            match gpu.compile(&source) {
                Ok(_) => {}
                Err(error) => {
                    println!("{gpu:?} without threads: {error}");
                    assert!(error.to_string().contains("thread"), "{error}");
                }
            }
            // Compiled kernels still run.
            check_works(gpu);
        }
        set_limit(libc::RLIMIT_NPROC, before);
        for gpu in &open {
            gpu.compile(&format!("{STEP} // {gpu:?}")).unwrap();
            check_works(gpu);
        }
    });
}

#[test]
fn fault_36_disk_is_not_writable() {
    let name = "system::fault_36_disk_is_not_writable";
    // The child cannot create it: `TMPDIR` is invalid there.
    let folder = tempfile::tempdir().ok();
    let cache = folder.as_ref().map(|it| it.path().as_os_str().to_owned());
    let variables = [
        ("SCRY_CACHE_DIR", cache.unwrap_or_default()),
        ("TMPDIR", OsString::from("/nonexistent")),
        ("HOME", OsString::from("/nonexistent")),
        // Otherwise validation would write its messages.
        ("SCRY_VALIDATE", OsString::new()),
    ];
    in_child_with(name, TIMEOUT, &variables, || {
        // SAFETY: `SIG_IGN` installs no handler, so no code runs on the signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        // Writes fail, as on a full disk.
        set_limit(libc::RLIMIT_FSIZE, 0);
        for gpu in devices().into_iter().chain([null()]) {
            check_works(&gpu);
        }
    })
    .assert_finished();
}
