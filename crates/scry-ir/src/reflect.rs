//! Module → [`Interface`].

use naga::valid::{GlobalUse, ModuleInfo};
use naga::{AddressSpace, Module};

use crate::report::Report;
use crate::types::{self, layout};
use crate::{Access, Binding, Features, Immediates, Interface, Override, ShaderErrorKind, Space};

/// The interface of the only entry point of a validated module.
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
        let access = uses[handle];
        if access.is_empty() {
            continue;
        }
        let name = global.name.clone().unwrap_or_default();
        let lay_out = || {
            layout(module, global.ty)
                .map_err(|e| e.about(&name, module.global_variables.get_span(handle)))
        };
        let space = match global.space {
            AddressSpace::Uniform => Space::Uniform,
            AddressSpace::Storage { .. } => Space::Storage,
            AddressSpace::WorkGroup => {
                // Each variable starts on a boundary of 16 bytes, as WebGPU counts them.
                memory =
                    memory.saturating_add(types::size(module, global.ty)?.next_multiple_of(16));
                continue;
            }
            AddressSpace::Immediate => {
                let layout = lay_out()?;
                found.immediates = Some(Immediates { name, layout });
                continue;
            }
            _ => continue,
        };
        let Some(place) = global.binding else {
            continue;
        };
        found.bindings.push(Binding {
            group: place.group,
            binding: place.binding,
            space,
            access: if access.intersects(GlobalUse::WRITE | GlobalUse::ATOMIC) {
                Access::ReadWrite
            } else {
                Access::Read
            },
            layout: lay_out()?,
            name,
        });
    }
    found.workgroup_memory = u32::try_from(memory).unwrap_or(u32::MAX);
    found.bindings.sort_by_key(|b| (b.group, b.binding));
    unique(&found.bindings)?;
    Ok(found)
}

/// Refuses two used variables in one place.
fn unique(bindings: &[Binding]) -> Result<(), Box<Report>> {
    for pair in bindings.windows(2) {
        let [a, b] = pair else { continue };
        if (a.group, a.binding) == (b.group, b.binding) {
            return Err(Box::new(Report::new(
                ShaderErrorKind::Validation,
                format!(
                    "`{}` and `{}` share @group({}) @binding({}), and the kernel uses both",
                    a.name, b.name, a.group, a.binding
                ),
            )));
        }
    }
    Ok(())
}
