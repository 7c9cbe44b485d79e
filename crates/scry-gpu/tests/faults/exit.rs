//! Fault 32: programs that end while devices are open, or in the middle of work.

use std::thread;
use std::time::Duration;

use scry_gpu::{Device, DeviceKind, GpuError};

use super::child::{in_child_alone, in_child_alone_with};
use super::devices::{check_works, devices, devices_and_null, try_to_work};

const PATIENCE: Duration = Duration::from_secs(60);

/// Drivers have threads that wake up at times of their own.
const TIMES: u64 = 12;

/// Opens a device that is there once more.
fn another(gpu: &Device) -> Result<Device, GpuError> {
    Device::open(&format!("{}:{}", gpu.backend_kind(), gpu.info().index))
}

#[test]
fn fault_32_exit_with_open_devices() {
    let name = "exit::fault_32_exit_with_open_devices";
    for _ in 0..TIMES {
        in_child_alone(name, PATIENCE, || {
            let devices = devices_and_null();
            devices.iter().for_each(check_works);
            let closed: Vec<_> = devices.iter().map(another).collect();
            closed.iter().flatten().for_each(check_works);
            drop(closed);
            // The others are open until the process is gone.
            std::mem::forget(devices);
        });
    }
}

#[test]
fn fault_32_exit_during_work() {
    let name = "exit::fault_32_exit_during_work";
    for nth in 0..TIMES {
        in_child_alone(name, PATIENCE, || {
            for gpu in devices() {
                let other = gpu.clone();
                thread::spawn(move || while try_to_work(&gpu).is_ok() {});
                thread::spawn(move || while another(&other).is_ok_and(|it| it.wait().is_ok()) {});
            }
            thread::sleep(Duration::from_millis(50 + 7 * nth));
        });
    }
}

#[test]
#[cfg(unix)]
fn fault_32_forked_child_exits_during_work() {
    let name = "exit::fault_32_forked_child_exits_during_work";
    // Vulkan's validation layer has threads and locks of its own, which a fork in the middle of
    // work breaks; without it the same kernels run on the same devices.
    let unvalidated = [("SCRY_VALIDATE", "0".into())];
    in_child_alone_with(name, PATIENCE, &unvalidated, || {
        devices().iter().for_each(check_works);
        // Whether a GPU's driver can begin anew in the child of a process that used it is the
        // driver's affair.
        let is_software = |gpu: &Device| gpu.info().kind == DeviceKind::Software;
        let (software, others): (Vec<_>, Vec<_>) = devices().into_iter().partition(is_software);
        for gpu in others {
            println!("skipped on {gpu:?}: forks of a process that used a GPU");
        }
        for nth in 0..TIMES {
            super::system::in_fork(Duration::from_secs(20), || {
                for gpu in software.iter().map(|gpu| another(gpu).expect("it opened before")) {
                    thread::spawn(move || while try_to_work(&gpu).is_ok() {});
                }
                thread::sleep(Duration::from_millis(30 + 7 * nth));
                // SAFETY: the ordinary end of a program; other threads use no handler of this one.
                unsafe { libc::exit(0) };
            });
        }
    });
}
