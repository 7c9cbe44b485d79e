//! Reopens devices that are lost in a kernel that exceeds the time limit and cannot be cancelled.

use std::path::Path;

use scry_gpu::{Device, GpuError};

use super::verdicts;
use crate::args::TimeLimit;
use crate::report::Failure;

/// The devices of a run, with its time limit.
pub(super) struct Devices {
    /// The device that the others are compared with.
    pub reference: Device,
    pub others: Vec<Device>,
    limit: TimeLimit,
    /// The reason why no further kernel is run.
    lost: Option<String>,
}

impl Devices {
    /// Sets the time limit of each device.
    pub fn new((reference, others): (Device, Vec<Device>), limit: TimeLimit) -> Self {
        others.iter().chain([&reference]).for_each(|device| limit.apply_to(device));
        Self { reference, others, limit, lost: None }
    }

    /// Returns an error after a lost device could not be reopened; no further kernel is then run.
    pub fn check_usable(&self) -> Result<(), Failure> {
        self.lost.clone().map_or(Ok(()), |why| Err(Failure::Runtime(why)))
    }

    /// Reopens the devices that were lost in a kernel of the file `path`.
    pub fn reopen_lost(&mut self, path: &Path) {
        if self.lost.is_some() {
            return;
        }
        for device in self.others.iter_mut().chain([&mut self.reference]) {
            if !matches!(device.wait(), Err(GpuError::DeviceLost(_))) {
                continue;
            }
            match reopen(device, self.limit) {
                Ok(opened) => *device = opened,
                Err(_) => {
                    let title = verdicts::title(device);
                    let path = path.display();
                    self.lost = Some(format!("not run: {title} was lost in {path}"));
                }
            }
        }
    }
}

/// A trivial kernel, which finishes once the device is free.
const PROBE: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn probe() { x[0] = 1u; }";

/// Reopens a device. Fails if the previous kernel still occupies it: any other kernel would exceed
/// the time limit too.
fn reopen(device: &Device, limit: TimeLimit) -> Result<Device, GpuError> {
    let info = device.info();
    let opened = Device::open(&format!("{}:{}", info.backend, info.index))?;
    limit.apply_to(&opened);
    opened.run(&opened.compile(PROBE)?, &[&opened.upload(&[0u32])?], 1)?;
    opened.wait()?;
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use scry_gpu::{Buffer, Kernel};

    use super::*;

    const SLOW: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn slow(@builtin(global_invocation_id) id: vec3u) {
            for (var i = 0u; i < 60000u; i += 1u) { x[id.x] = x[id.x] * 1664525u + 1013904223u; }
        }";

    /// Returns the workgroups of [`SLOW`] that a device computes for 3 seconds: longer than the
    /// half second that it may take after its time limit.
    fn workgroups_for_3_seconds(device: &Device, slow: &Kernel, x: &Buffer<u32>) -> u32 {
        const FEW: u32 = 256;
        let mut seconds = 0.0;
        for _ in 0..2 {
            let start = Instant::now();
            device.run(slow, &[x], FEW).unwrap();
            device.wait().unwrap();
            seconds = start.elapsed().as_secs_f64();
        }
        (f64::from(FEW) * 3.0 / seconds) as u32
    }

    #[test]
    fn lost_devices_are_reopened() {
        let Ok(device) = Device::open("vulkan") else {
            eprintln!("skipped lost_devices_are_reopened: no device of vulkan");
            return;
        };
        let (cpu, limit) = (Device::open("cpu").unwrap(), Duration::from_secs(600));
        let limit = TimeLimit { time_limit: Some(limit) };
        let mut devices = Devices::new((cpu, vec![device.clone()]), limit);
        let slow = device.compile(SLOW).unwrap();
        let x = device.upload(&vec![1u32; 1 << 14]).unwrap();
        let workgroups = workgroups_for_3_seconds(&device, &slow, &x);
        device.set_time_limit(Some(Duration::from_millis(1)));
        let outcome = device.run(&slow, &[&x], workgroups).and_then(|()| device.wait());
        assert!(matches!(outcome, Err(GpuError::Timeout { .. })), "{outcome:?}");
        assert!(matches!(device.wait(), Err(GpuError::DeviceLost(_))));
        devices.reopen_lost(Path::new("slow.wgsl"));
        assert!(devices.check_usable().is_ok());
        let opened = &devices.others[0];
        assert_eq!(opened.time_limit(), limit.time_limit);
        assert!(opened.wait().is_ok() && opened.info() == device.info());
    }
}
