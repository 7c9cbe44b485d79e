//! The properties of the null device.

use scry_ir::{Features, MatrixProducts};

use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits};

/// Returns a device with generous limits and every feature.
pub(crate) fn null_info() -> DeviceInfo {
    DeviceInfo {
        index: 0,
        name: "null device".to_owned(),
        backend: BackendKind::Null,
        kind: DeviceKind::Other,
        vendor_id: 0,
        device_id: 0,
        uuid: None,
        driver_uuid: None,
        pci: None,
        driver: concat!("scry-gpu ", env!("CARGO_PKG_VERSION")).to_owned(),
        api_version: env!("CARGO_PKG_VERSION").to_owned(),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory: 1 << 30,
        memory_budget: None,
        subgroup_size: 32,
        binding_alignment: 16,
        features: Features::all(),
        matrix_products: MatrixProducts::all(),
        limits: Limits {
            max_buffer_size: 1 << 30,
            max_storage_binding_size: 1 << 30,
            max_uniform_binding_size: 64 << 10,
            max_storage_bindings: 32,
            max_uniform_bindings: 12,
            max_workgroup_size: [1024, 1024, 64],
            max_workgroup_invocations: 1024,
            max_workgroup_memory: 32 << 10,
            max_immediates: 128,
            max_native_workgroups: [65535; 3],
        },
        workarounds: Vec::new(),
    }
}
