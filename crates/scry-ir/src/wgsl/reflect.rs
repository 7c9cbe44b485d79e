//! Reflection: computes the [`Interface`] of a module.

use naga::valid::{GlobalUse, ModuleInfo};
use naga::{AddressSpace, GlobalVariable, Handle, Module};

use crate::wgsl::report::Report;
use crate::wgsl::type_layout::{self, layout};
use crate::{
    Access, BindingInfo, BufferBindingType, Features, Immediates, Interface, Override, TypeLayout,
};

/// Returns the interface of the only entry point of a validated module.
pub(crate) fn interface(
    module: &Module,
    info: &ModuleInfo,
    features: Features,
    overrides: Vec<Override>,
) -> Result<Interface, Box<Report>> {
    let entry = &module.entry_points[0];
    let uses = info.get_entry_point(0);
    let mut found = Interface {
        entry_point: entry.name.clone(),
        workgroup_size: entry.workgroup_size,
        workgroup_memory: 0,
        bindings: Vec::new(),
        immediates: None,
        overrides,
        features,
    };
    let mut memory = 0u64;
    for (handle, global) in module.global_variables.iter() {
        let used = uses[handle];
        if used.is_empty() {
            continue;
        }
        match global.space {
            AddressSpace::Uniform | AddressSpace::Storage { .. } => {
                if let Some(new) = binding(module, handle, used)? {
                    let key = (new.group, new.binding);
                    let at = found.bindings.partition_point(|b| (b.group, b.binding) <= key);
                    found.bindings.insert(at, new);
                }
            }
            AddressSpace::WorkGroup => {
                // WebGPU rounds the size of each variable up to 16 bytes.
                let size = type_layout::size(module, global.ty)?.checked_next_multiple_of(16);
                memory = memory.saturating_add(size.unwrap_or(u64::MAX));
            }
            AddressSpace::Immediate => {
                let (name, layout) = name_and_layout(module, handle)?;
                found.immediates = Some(Immediates { name, layout });
            }
            _ => {}
        }
    }
    found.workgroup_memory = u32::try_from(memory).unwrap_or(u32::MAX);
    Ok(found)
}

/// Returns the binding of a buffer; `None` if its variable has no `@group` and `@binding`.
fn binding(
    module: &Module,
    handle: Handle<GlobalVariable>,
    used: GlobalUse,
) -> Result<Option<BindingInfo>, Box<Report>> {
    let global = &module.global_variables[handle];
    let Some(place) = global.binding else {
        return Ok(None);
    };
    let (name, layout) = name_and_layout(module, handle)?;
    Ok(Some(BindingInfo {
        group: place.group,
        binding: place.binding,
        name,
        ty: match global.space {
            AddressSpace::Uniform => BufferBindingType::Uniform,
            _ => BufferBindingType::Storage,
        },
        access: if used.intersects(GlobalUse::WRITE | GlobalUse::ATOMIC) {
            Access::ReadWrite
        } else {
            Access::Read
        },
        layout,
    }))
}

/// Returns name and layout of a variable.
fn name_and_layout(
    module: &Module,
    handle: Handle<GlobalVariable>,
) -> Result<(String, TypeLayout), Box<Report>> {
    let global = &module.global_variables[handle];
    let name = global.name.clone().unwrap_or_default();
    let layout = layout(module, global.ty)
        .map_err(|why| why.report(&name, module.global_variables.get_span(handle)))?;
    Ok((name, layout))
}
