//! `scry devices`: lists the available devices.

use std::fmt::Write;

use scry_gpu::{Device, DeviceInfo, Limits, Workaround};
use serde_json::{Value, json};

use super::{format_bytes, libraries, open};
use crate::args::DeviceSelection;
use crate::report::{Failure, Report};

/// Lists the devices, or shows the selected one.
pub fn run(args: &DeviceSelection) -> Result<Report, Failure> {
    let devices = match args.device.as_deref() {
        Some(selector) => vec![open(Some(selector))?.info().clone()],
        None => Device::list(),
    };
    let mut report = Report::new(
        devices.iter().map(text).collect(),
        json!({ "devices": devices.iter().map(to_json).collect::<Vec<_>>() }),
    );
    if devices.is_empty() {
        report.ok = false;
        report.text = "no device was found; `scry doctor` reports why\n".to_owned();
    }
    Ok(report)
}

fn text(info: &DeviceInfo) -> String {
    let mut text = format!("{}:{}  {}\n", info.backend, info.index, info.name);
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {name:9} {value}");
    };
    line("kind", info.kind.to_string());
    line("driver", format!("{}, API {}", info.driver, info.api_version));
    let budget = info.memory_budget.map(|bytes| format!(", {} free", format_bytes(bytes)));
    if info.memory > 0 {
        line("memory", format_bytes(info.memory) + budget.as_deref().unwrap_or_default());
    }
    line("subgroup", info.subgroup_size.to_string());
    line("features", info.features.to_string());
    if !info.matrix_products.is_empty() {
        line("matrices", info.matrix_products.to_string());
    }
    if let Some(uuid) = info.uuid {
        line("uuid", uuid_text(uuid));
    }
    if let Some(pci) = info.pci {
        line("pci", pci.to_string());
    }
    if !info.peers.is_empty() {
        line("peers", peer_selectors(info).join(", "));
    }
    text + &workarounds_text(info)
}

/// Returns the selectors of the devices whose memory a device can access.
fn peer_selectors(info: &DeviceInfo) -> Vec<String> {
    info.peers.iter().map(|index| format!("{}:{index}", info.backend)).collect()
}

/// Formats the driver faults that are worked around on a device, one per line.
pub fn workarounds_text(info: &DeviceInfo) -> String {
    let line = |it: &Workaround| {
        format!("    works around {} (seen in {}): {}\n", it.name, it.tested_versions, it.reason)
    };
    info.workarounds.iter().map(line).collect()
}

/// Returns a device as JSON.
pub fn to_json(info: &DeviceInfo) -> Value {
    json!({
        "selector": format!("{}:{}", info.backend, info.index),
        "backend": info.backend.name(),
        "index": info.index,
        "name": info.name,
        "kind": info.kind.to_string(),
        "vendor_id": info.vendor_id,
        "device_id": info.device_id,
        "uuid": info.uuid.map(uuid_text),
        "driver_uuid": info.driver_uuid.map(uuid_text),
        "pci": info.pci.map(|pci| pci.to_string()),
        "peers": peer_selectors(info),
        "driver": info.driver,
        "api_version": info.api_version,
        "compute_capability": libraries::capability_text(info),
        "multiprocessors": info.multiprocessors,
        "shared_memory": info.shared_memory.map(|shared| json!({
            "per_block": shared.per_block,
            "per_block_opt_in": shared.per_block_opt_in,
            "per_multiprocessor": shared.per_multiprocessor,
        })),
        "memory_bytes": info.memory,
        "memory_budget_bytes": info.memory_budget,
        "subgroup_size": info.subgroup_size,
        "binding_alignment": info.binding_alignment,
        "features": info.features.names().collect::<Vec<_>>(),
        "matrix_products": info.matrix_products.names().collect::<Vec<_>>(),
        "limits": limits(&info.limits),
        "workarounds": info.workarounds.iter().map(|it| json!({
            "name": it.name,
            "reason": it.reason,
            "tested_versions": it.tested_versions,
        })).collect::<Vec<_>>(),
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "max_buffer_size": limits.max_buffer_size,
        "max_storage_binding_size": limits.max_storage_binding_size,
        "max_uniform_binding_size": limits.max_uniform_binding_size,
        "max_storage_bindings": limits.max_storage_bindings,
        "max_uniform_bindings": limits.max_uniform_bindings,
        "max_workgroup_size": limits.max_workgroup_size,
        "max_workgroup_invocations": limits.max_workgroup_invocations,
        "max_workgroup_memory": limits.max_workgroup_memory,
        "max_immediates": limits.max_immediates,
        "max_native_workgroups": limits.max_native_workgroups,
    })
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn peers_are_listed_as_selectors() {
        let mut info = scry_gpu::testing::null_info();
        info.backend = scry_gpu::BackendKind::Cuda;
        info.peers = vec![1, 3];
        assert!(
            super::text(&info).contains("    peers     cuda:1, cuda:3\n"),
            "{}",
            super::text(&info)
        );
        assert_eq!(super::to_json(&info)["peers"], serde_json::json!(["cuda:1", "cuda:3"]));
    }

    #[test]
    fn uuids_are_written_in_five_groups() {
        let uuid = std::array::from_fn(|i| i as u8);
        assert_eq!(super::uuid_text(uuid), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
