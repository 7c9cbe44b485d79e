//! Faults 34 and 36: forks, and a system without files, threads or disk space.
#![cfg(unix)]

use std::ffi::OsString;
use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceKind, GpuError};

use super::child::{in_child, in_child_with};
use super::devices::{STEP, check_works, devices, devices_and_null, null, selectors, try_to_work};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `body` in a fork of this process. Fails if it panics or does not end in time.
pub fn in_fork(patience: Duration, body: impl FnOnce()) {
    // SAFETY: the child runs `body` on its only thread, then exits without returning; these tests
    // are about running in a copy of a process with several threads.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    let deadline = Instant::now() + patience;
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
            panic!("the forked child did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let well = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    assert!(well, "the forked child ended with {status:#x}");
}

#[test]
fn fault_34_forked_child_gets_an_error() {
    let name = "system::fault_34_forked_child_gets_an_error";
    in_child(name, PATIENCE, || {
        for gpu in devices_and_null() {
            let (a, b) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc(64).unwrap());
            let kernel = gpu.compile(STEP).unwrap();
            let mut batch = gpu.batch();
            batch.run(&kernel, &[&a, &b], 64).unwrap();
            let recording = batch.record().unwrap();
            let ticket = recording.replay().unwrap();
            let mut unfinished = gpu.batch();
            unfinished.copy(&b, &a).unwrap();
            in_fork(Duration::from_secs(20), || {
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
                // In an order in which each is the last of its kind once.
                drop((a, b, ticket, recording, gpu.clone(), gpu, kernel));
            });
        }
        // The parent's devices are as they were.
        devices_and_null().iter().for_each(check_works);
    });
}

#[test]
fn fault_34_opening_after_fork_works() {
    let name = "system::fault_34_opening_after_fork_works";
    in_child(name, PATIENCE, || {
        in_fork(Duration::from_secs(20), || devices_and_null().iter().for_each(check_works));
        devices_and_null().iter().for_each(check_works);
        // Whether a driver works in the child of a process that used it depends on the driver; the
        // CPU device does.
        let all = devices();
        if all.iter().any(|gpu| gpu.info().kind != DeviceKind::Software) {
            println!("skipped fault 34, forks of a process that used a GPU");
            return;
        }
        let selectors = selectors();
        in_fork(Duration::from_secs(20), || {
            for selector in selectors {
                check_works(&Device::open(&selector).unwrap());
            }
        });
        all.iter().for_each(check_works);
    });
}

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

fn open_files() -> u64 {
    let entries = std::fs::read_dir("/proc/self/fd").expect("Linux has /proc");
    entries.count() as u64 - 1
}

#[test]
#[cfg(target_os = "linux")]
fn fault_36_no_file_can_be_opened() {
    let name = "system::fault_36_no_file_can_be_opened";
    let variables = [("SCRY_VALIDATE", OsString::new())];
    in_child_with(name, PATIENCE, &variables, || {
        let open: Vec<Device> = devices_and_null();
        open.iter().for_each(check_works);
        let used = open_files();
        for spare in [0, 1, 2, 3, 5, 8, 12] {
            let before = set_limit(libc::RLIMIT_NOFILE, used + spare);
            // Open devices still work, or report why not.
            for gpu in &open {
                if let Err(error) = try_to_work(gpu) {
                    println!("{gpu:?} with {spare} files: {error}");
                }
            }
            for selector in selectors() {
                match Device::open(&selector) {
                    Ok(gpu) => drop(try_to_work(&gpu)),
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
    .finished();
}

/// The device works again. NVIDIA's driver (580) allocates no more host memory for a process that
/// once had no file left: then the error must be out of memory.
#[cfg(target_os = "linux")]
fn check_recovers(gpu: &Device) {
    match try_to_work(gpu) {
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
    in_child_with(name, PATIENCE, &variables, || {
        let used = open_files();
        for spare in 0..16 {
            let before = set_limit(libc::RLIMIT_NOFILE, used + spare);
            let result = Device::auto().and_then(|gpu| try_to_work(&gpu));
            set_limit(libc::RLIMIT_NOFILE, before);
            if let Err(error) = result {
                assert!(may_come_of_files(&error), "{spare} files: {error}");
                println!("{spare} files: {error}");
            }
        }
        present.split(' ').for_each(check_opens_again);
    })
    .finished();
}

/// Returns whether an error may be that of a driver that could not open a file.
#[cfg(target_os = "linux")]
fn may_come_of_files(error: &GpuError) -> bool {
    match error {
        GpuError::NoDevice(found) => {
            found.attempts().iter().all(|it| !it.reason().is_empty() && !it.help().is_empty())
        }
        // Drivers open files for memory too, and report no more than that.
        GpuError::OutOfMemory(_) => true,
        // CUDA has a code for failed system calls.
        GpuError::Driver(error) => error.code().contains("CUDA_ERROR_OPERATING_SYSTEM"),
        _ => false,
    }
}

/// The device is found after a failed search. CUDA's driver, once it could not start, may fail for
/// the rest of the process: then the error must be the driver's.
#[cfg(target_os = "linux")]
fn check_opens_again(selector: &str) {
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
fn fault_36_no_thread_can_be_started() {
    let name = "system::fault_36_no_thread_can_be_started";
    in_child(name, PATIENCE, || {
        let open = devices_and_null();
        open.iter().for_each(check_works);
        // The limit does not apply to root: become another user.
        // SAFETY: plain calls that change only this process.
        let changed = unsafe {
            libc::geteuid() != 0 || (libc::setgid(65534) == 0 && libc::setuid(65534) == 0)
        };
        if !changed {
            println!("skipped fault 36, thread limit: it does not bind root");
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
fn fault_36_nothing_can_be_written_to_disk() {
    let name = "system::fault_36_nothing_can_be_written_to_disk";
    // Not available in the child.
    let folder = tempfile::tempdir().ok();
    let cache = folder.as_ref().map(|it| it.path().as_os_str().to_owned());
    let variables = [
        ("SCRY_CACHE_DIR", cache.unwrap_or_default()),
        ("TMPDIR", OsString::from("/nonexistent")),
        ("HOME", OsString::from("/nonexistent")),
        // Otherwise validation would write its messages.
        ("SCRY_VALIDATE", OsString::new()),
    ];
    in_child_with(name, PATIENCE, &variables, || {
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        // Writes fail, as on a full disk.
        set_limit(libc::RLIMIT_FSIZE, 0);
        for gpu in devices().into_iter().chain([null()]) {
            check_works(&gpu);
        }
    })
    .finished();
}
