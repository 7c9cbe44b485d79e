//! The device and driver that compiled code is valid for.

use crate::api::info::{DeviceInfo, DeviceKind};

use super::format::{Writer, hash};

/// A device, the driver that compiles for it, and the version of this crate.
#[derive(Debug, Clone)]
pub(crate) struct DeviceIdentity {
    vendor_id: u32,
    device_id: u32,
    driver: Vec<u8>,
    device: Vec<u8>,
}

impl DeviceIdentity {
    /// Returns the identity of a device. `None` if the device or its driver has no UUID, because
    /// code of one driver must never be loaded by another.
    pub(crate) fn from_info(info: &DeviceInfo) -> Option<Self> {
        Self::with_version(info, env!("CARGO_PKG_VERSION"))
    }

    pub(super) fn with_version(info: &DeviceInfo, crate_version: &str) -> Option<Self> {
        let mut driver = Writer::default();
        driver.bytes(&info.driver_uuid?);
        driver.bytes(info.driver.as_bytes());
        driver.bytes(info.api_version.as_bytes());
        driver.bytes(info.backend.name().as_bytes());
        driver.bytes(std::env::consts::ARCH.as_bytes());
        let mut device = Writer::default();
        device.bytes(crate_version.as_bytes());
        device.number(info.vendor_id.into());
        device.number(info.device_id.into());
        device.bytes(&info.uuid?);
        device.bytes(info.name.as_bytes());
        device.number(info.subgroup_size.into());
        // A software device's code runs on the host, and hosts can share home folders.
        if info.kind == DeviceKind::Software {
            device.bytes(host_instructions().as_bytes());
        }
        Some(Self {
            vendor_id: info.vendor_id,
            device_id: info.device_id,
            driver: driver.finish(),
            device: device.finish(),
        })
    }

    /// Returns all fields, as part of the key of each entry.
    pub(super) fn key_part(&self) -> Vec<u8> {
        let mut part = Writer::default();
        part.bytes(&self.driver);
        part.bytes(&self.device);
        part.finish()
    }

    /// Returns the name of the device's folder: vendor, model, and a hash of the driver's identity.
    pub(super) fn folder_name(&self) -> String {
        let driver = (hash(&self.driver) >> 64) as u64;
        format!("{:04x}-{:04x}-{driver:016x}", self.vendor_id, self.device_id)
    }
}

/// Returns the host's instruction set extensions that compilers use, and its operating system.
fn host_instructions() -> String {
    let mut found = String::new();
    let mut add = |name: &str, present: bool| {
        if present {
            found.push_str(name);
            found.push(' ');
        }
    };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        add("sse4.1", has!("sse4.1"));
        add("sse4.2", has!("sse4.2"));
        add("popcnt", has!("popcnt"));
        add("avx", has!("avx"));
        add("avx2", has!("avx2"));
        add("fma", has!("fma"));
        add("f16c", has!("f16c"));
        add("bmi1", has!("bmi1"));
        add("bmi2", has!("bmi2"));
        add("avx512f", has!("avx512f"));
        add("avx512bw", has!("avx512bw"));
        add("avx512dq", has!("avx512dq"));
        add("avx512vl", has!("avx512vl"));
        add("avx512vnni", has!("avx512vnni"));
    }
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::is_aarch64_feature_detected as has;
        add("dotprod", has!("dotprod"));
        add("fp16", has!("fp16"));
        add("lse", has!("lse"));
        add("i8mm", has!("i8mm"));
        add("bf16", has!("bf16"));
        add("sve", has!("sve"));
        add("sve2", has!("sve2"));
    }
    add(std::env::consts::OS, true);
    found
}
