//! Tests of the checks; here the interfaces, devices and arguments that they share.

mod arguments;
mod kernels;
mod oracle;
mod types;

use scry_ir::{
    Access, BindingInfo, BufferBindingType, Features, Immediates, Interface, MatrixProducts,
    Member, Scalar, TypeLayout,
};

use super::Argument;
use crate::Element;
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits};
use crate::core::handles::MemoryId;
use crate::core::id::Slots;

/// `array<f32>`.
pub(crate) fn f32s() -> TypeLayout {
    array(TypeLayout::Scalar(Scalar::F32), 4)
}

/// `array<u32>`.
pub(crate) fn u32s() -> TypeLayout {
    array(TypeLayout::Scalar(Scalar::U32), 4)
}

/// `vecN<f32>`.
pub(crate) fn vec(len: u8) -> TypeLayout {
    TypeLayout::Vector { len, scalar: Scalar::F32 }
}

/// `matCxR<f32>`.
pub(crate) fn mat(columns: u8, rows: u8) -> TypeLayout {
    let stride = if rows == 2 { 8 } else { 16 };
    TypeLayout::Matrix { columns, rows, scalar: Scalar::F32, stride }
}

/// A runtime-sized array.
pub(crate) fn array(element: TypeLayout, stride: u32) -> TypeLayout {
    TypeLayout::Array { element: Box::new(element), len: None, stride }
}

/// A fixed-size array of `len` elements.
pub(crate) fn fixed(element: TypeLayout, len: u32, stride: u32) -> TypeLayout {
    TypeLayout::Array { element: Box::new(element), len: Some(len), stride }
}

pub(crate) fn structure(name: &str, size: u32, members: &[(&str, u32, TypeLayout)]) -> TypeLayout {
    TypeLayout::Struct {
        name: name.into(),
        size,
        members: members
            .iter()
            .map(|(name, offset, layout)| Member {
                name: (*name).into(),
                offset: *offset,
                layout: layout.clone(),
            })
            .collect(),
    }
}

pub(crate) fn binding(binding: u32, name: &str, access: Access, layout: TypeLayout) -> BindingInfo {
    BindingInfo {
        group: 0,
        binding,
        name: name.into(),
        ty: BufferBindingType::Storage,
        access,
        layout,
    }
}

pub(crate) fn uniform(index: u32, name: &str, layout: TypeLayout) -> BindingInfo {
    BindingInfo { ty: BufferBindingType::Uniform, ..binding(index, name, Access::Read, layout) }
}

/// A kernel called `main` with workgroups of 64.
pub(crate) fn kernel(bindings: Vec<BindingInfo>) -> Interface {
    Interface {
        entry_point: "main".into(),
        workgroup_size: [64, 1, 1],
        workgroup_memory: 0,
        bindings,
        immediates: None,
        overrides: Vec::new(),
        features: Features::empty(),
    }
}

pub(crate) fn kernel_with_immediates(name: &str, layout: TypeLayout) -> Interface {
    Interface { immediates: Some(Immediates { name: name.into(), layout }), ..kernel(Vec::new()) }
}

pub(crate) fn device() -> DeviceInfo {
    DeviceInfo {
        index: 0,
        name: "Test GPU".into(),
        backend: BackendKind::Null,
        kind: DeviceKind::Other,
        vendor_id: 0,
        device_id: 0,
        uuid: None,
        driver_uuid: None,
        pci: None,
        driver: String::new(),
        api_version: String::new(),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory: 1 << 30,
        memory_budget: None,
        subgroup_size: 32,
        binding_alignment: 16,
        features: Features::empty(),
        matrix_products: MatrixProducts::empty(),
        limits: Limits {
            max_buffer_size: 1 << 30,
            max_storage_binding_size: 1 << 20,
            max_uniform_binding_size: 1 << 16,
            max_storage_bindings: 8,
            max_uniform_bindings: 4,
            max_workgroup_size: [1024, 1024, 64],
            max_workgroup_invocations: 1024,
            max_workgroup_memory: 32 << 10,
            max_immediates: 128,
            max_native_workgroups: [65535; 3],
        },
        workarounds: Vec::new(),
    }
}

/// Returns handles of `N` different allocations.
pub(crate) fn memories<const N: usize>() -> [MemoryId; N] {
    let mut slots = Slots::default();
    [(); N].map(|()| slots.insert(()))
}

/// Returns a whole buffer of `len` elements as an argument.
pub(crate) fn buffer<T: Element>(memory: MemoryId, len: usize) -> Argument<'static> {
    Argument {
        label: "",
        element_size: size_of::<T>() as u64,
        layout: T::LAYOUT,
        type_name: std::any::type_name::<T>(),
        memory: Some(memory),
        offset: 0,
        size: (len * size_of::<T>()) as u64,
    }
}
