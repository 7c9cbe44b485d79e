//! Tests of fault 32: programs that exit while devices are open, or during work.

use std::thread;
use std::time::Duration;

use scry_gpu::{Device, DeviceKind, GpuError};
use scry_test_support::devices;

use super::child::{in_exclusive_child, in_exclusive_child_with};
use super::devices::{check_works, devices_and_null, try_run_work};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Drivers have threads that wake up at arbitrary times: one run proves little.
const REPETITIONS: u64 = 12;

/// Opens a second `Device` of the same hardware.
fn reopen(gpu: &Device) -> Result<Device, GpuError> {
    Device::open(&format!("{}:{}", gpu.backend_kind(), gpu.info().index))
}

#[test]
fn fault_32_exit_with_open_devices() {
    let name = "exit::fault_32_exit_with_open_devices";
    for _ in 0..REPETITIONS {
        in_exclusive_child(name, TIMEOUT, || {
            let devices = devices_and_null();
            devices.iter().for_each(check_works);
            let reopened: Vec<_> = devices.iter().map(reopen).collect();
            reopened.iter().flatten().for_each(check_works);
            drop(reopened);
            // The others stay open until the process exits.
            std::mem::forget(devices);
        });
    }
}

#[test]
fn fault_32_exit_during_work() {
    let name = "exit::fault_32_exit_during_work";
    for i in 0..REPETITIONS {
        in_exclusive_child(name, TIMEOUT, || {
            for gpu in devices() {
                let other = gpu.clone();
                thread::spawn(move || while try_run_work(&gpu).is_ok() {});
                thread::spawn(move || while reopen(&other).is_ok_and(|it| it.wait().is_ok()) {});
            }
            thread::sleep(Duration::from_millis(50 + 7 * i));
        });
    }
}

#[test]
#[cfg(unix)]
fn fault_32_forked_child_exits_during_work() {
    let name = "exit::fault_32_forked_child_exits_during_work";
    // Without Vulkan's validation layer, whose threads and locks do not survive a fork during work.
    let unvalidated = [("SCRY_VALIDATE", "0".into())];
    in_exclusive_child_with(name, TIMEOUT, &unvalidated, || {
        // Initialise no GPU driver before the forks: Mesa's exit handler joins the driver's
        // threads. They do not exist in the fork of a process that initialised it: the handler
        // would hang or crash.
        check_works(&Device::open("cpu").expect("the CPU is a device"));
        for i in 0..REPETITIONS {
            super::system::run_in_fork(Duration::from_secs(20), || {
                let is_software = |gpu: &Device| gpu.info().kind == DeviceKind::Software;
                for gpu in devices().into_iter().filter(is_software) {
                    thread::spawn(move || while try_run_work(&gpu).is_ok() {});
                }
                thread::sleep(Duration::from_millis(30 + 7 * i));
                // SAFETY: no other thread of this process calls `exit`. The library's exit handler,
                // under test here, waits for the driver calls of the worker threads.
                unsafe { libc::exit(0) };
            });
        }
    });
}
