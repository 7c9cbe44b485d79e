//! Indirect launches: the workgroup counts are in memory.
//!
//! The driver decides who reads the counts ([`Driver::indirect`]). On devices where a native grid
//! above the limits is undefined behaviour, the core inserts a small launch that reads the counts
//! once and computes both the native grid and the parameters of the linearised kernel. The two
//! therefore always agree, and the grid is within the limits.
//!
//! [`Driver::indirect`]: crate::core::driver::Driver::indirect

use std::sync::Arc;

use scry_ir::{Interface, LinearisedGrid};

use crate::api::binding::{Binding, Sealed, View};
use crate::api::dtype::ElementType;
use crate::api::element::ElementLayout;
use crate::api::error::Result;
use crate::api::kernel::{CompileOptions, Kernel};
use crate::api::launch::Launch;
use crate::core::command::{BufferRange, Command, Groups, Role};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::encode;
use crate::core::handles::MemoryKind;
use crate::core::memory::Memory;

/// Computes a [`LinearisedGrid`] and, after it, the native grid.
const SOURCE: &str = include_str!("indirect.wgsl");

/// Bytes that the kernel writes: a [`LinearisedGrid`], and the native grid padded to 16 bytes.
const GRID_BYTES: u64 = 48;

/// Returns the kernel that prepares indirect launches.
fn kernel(context: &Arc<Context>) -> Result<Kernel> {
    let compile = || {
        let kernel = Kernel::compile(context, SOURCE, &CompileOptions::default(), true)?;
        Ok(kernel.into_compiled())
    };
    Ok(Kernel::from_compiled(context.preparer.get_or_compile(compile)?, context))
}

/// The prepared grid of an indirect launch.
pub(crate) struct PreparedGrid {
    /// Three `u32`: workgroups within the device's limits.
    pub native: BufferRange,
    /// A [`LinearisedGrid`].
    pub params: BufferRange,
}

/// Appends the launch that prepares an indirect launch of a kernel.
pub(crate) fn prepare(
    context: &Arc<Context>,
    list: &mut CommandList,
    interface: &Interface,
    (memory, counts): (&Arc<Memory>, BufferRange),
) -> Result<PreparedGrid> {
    let grid = context.allocate(MemoryKind::Device, GRID_BYTES, "grid of an indirect launch")?;
    // The launch overwrites the whole allocation.
    grid.mark_initialised();
    // The counts may have any offset, but bindings must be aligned: bind an aligned range around
    // them.
    let alignment = context.info.binding_alignment.max(4);
    let offset = counts.offset / alignment * alignment;
    let first = (counts.offset - offset) / 4;
    let source = Words { context, memory, offset, size: counts.end() - offset };
    let target = Words { context, memory: &grid, offset: 0, size: GRID_BYTES };
    let first = u32::try_from(first).expect("less than the alignment");
    let launch = Launch::workgroups([1; 3]).immediate_bytes(immediates(
        context.info.limits.max_native_workgroups,
        first,
        interface,
    ));
    let kernel = kernel(context)?;
    encode::dispatch(context, list, "Launch::indirect", &kernel, &[&source, &target], &launch)?;
    if let Some(Command::Dispatch(dispatch)) = list.commands.last_mut() {
        dispatch.role = Role::Preparation;
    }
    let size = size_of::<LinearisedGrid>() as u64;
    let part = |offset, size| BufferRange { memory: grid.id(), offset, size };
    Ok(PreparedGrid { native: part(size, Groups::SIZE), params: part(0, size) })
}

/// Returns the immediates of the kernel: `Params` in `indirect.wgsl`.
fn immediates(max_native: [u32; 3], first: u32, interface: &Interface) -> Vec<u8> {
    let [x, y, z] = max_native.map(|count| count.max(1));
    let [width, height, depth] = interface.workgroup_size;
    let words = [x, y, z, first, width, height, depth];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Bytes of an allocation, viewed as words.
struct Words<'a> {
    context: &'a Arc<Context>,
    memory: &'a Arc<Memory>,
    offset: u64,
    size: u64,
}

impl Sealed for Words<'_> {
    fn view(&self) -> View<'_> {
        View {
            context: self.context,
            memory: Some(self.memory),
            label: "",
            offset: self.offset,
            size: self.size,
            element: ElementType { layout: ElementLayout::Opaque, size: 4, align: 4, name: "u32" },
        }
    }
}

impl Binding for Words<'_> {}

#[cfg(test)]
mod tests;
