//! Fault 32: programs that exit while devices are open, or during work.

use std::thread;
use std::time::Duration;

use scry_gpu::{Device, DeviceKind, GpuError};

use super::child::{in_child_alone, in_child_alone_with};
use super::devices::{check_works, devices, devices_and_null, try_to_work};

const PATIENCE: Duration = Duration::from_secs(60);

/// Repeated because drivers have threads that wake up at arbitrary times.
const TIMES: u64 = 12;

/// Opens a present device again.
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
            // The others stay open until the process exits.
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
    // Vulkan's validation layer has threads and locks of its own, which a fork during work breaks;
    // without it the same kernels run on the same devices.
    let unvalidated = [("SCRY_VALIDATE", "0".into())];
    in_child_alone_with(name, PATIENCE, &unvalidated, || {
        // No GPU driver is used before the forks: Mesa's exit handler joins the driver's threads,
        // which a child of a process that used it does not have, and hangs or crashes there.
        check_works(&Device::open("cpu").expect("the CPU is a device"));
        for nth in 0..TIMES {
            super::system::in_fork(Duration::from_secs(20), || {
                let is_software = |gpu: &Device| gpu.info().kind == DeviceKind::Software;
                for gpu in devices().into_iter().filter(is_software) {
                    thread::spawn(move || while try_to_work(&gpu).is_ok() {});
                }
                thread::sleep(Duration::from_millis(30 + 7 * nth));
                // SAFETY: a normal exit; other threads use no exit handler of this one.
                unsafe { libc::exit(0) };
            });
        }
    });
}
