//! Device-to-device copies: large ones run as a kernel, if the driver provides one.
//!
//! The kernel ([`Driver::copy_kernel`]) copies whole vectors at aligned offsets. The remaining
//! bytes, small copies and all copies on other drivers are copy commands. The launches are ordinary
//! launches for hazard tracking, retention and recordings.
//!
//! [`Driver::copy_kernel`]: crate::core::driver::Driver::copy_kernel

use std::sync::Arc;

use crate::api::binding::{Binding, Sealed, View};
use crate::api::dtype::ElementType;
use crate::api::element::ElementLayout;
use crate::api::error::Result;
use crate::api::info::DeviceInfo;
use crate::api::kernel::{CompileOptions, Kernel};
use crate::api::launch::Launch;
use crate::core::command::{Command, Role};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::driver::CopyKernel;
use crate::core::encode;

/// Bytes that an invocation copies: a `vec4<u32>`.
const VECTOR_BYTES: u64 = 16;

/// Maximum workgroups along x. Below the limit of every GPU: no launch is linearised.
const MAX_GROUPS_X: u64 = 32768;

/// A copy that runs as a kernel.
struct KernelCopy {
    kernel: Kernel,
    /// Invocations of a workgroup.
    invocations: u64,
    /// Maximum bytes of one launch.
    max_size: u64,
}

/// Returns the kernel for this copy; `None` if the copy must be a copy command.
fn kernel_copy(context: &Arc<Context>, src: &View<'_>, dst: &View<'_>) -> Option<KernelCopy> {
    let CopyKernel { source, invocations, min_size } = *context.copier.kernel()?;
    if src.size < min_size {
        return None;
    }
    let max_size = max_copy_size(&context.info, [src.offset, dst.offset])?;
    let compile = || {
        let compiled = Kernel::compile(context, source, &CompileOptions::default(), true);
        let warn = |error: &_| log::warn!("large copies use the copy command: {error}");
        compiled.inspect_err(warn).ok().map(Kernel::into_compiled)
    };
    let kernel = context.copier.get_or_compile(compile)?;
    Some(KernelCopy { kernel: Kernel::from_compiled(kernel, context), invocations, max_size })
}

/// Appends a copy between two non-empty ranges of the same size that do not overlap.
pub(crate) fn append(
    context: &Arc<Context>,
    list: &mut CommandList,
    ranges: [View<'_>; 2],
) -> Result<()> {
    let [src, dst] = ranges;
    let mut done = 0;
    if let Some(copy) = kernel_copy(context, &src, &dst) {
        let vectors = src.size / VECTOR_BYTES * VECTOR_BYTES;
        while done < vectors {
            let size = copy.max_size.min(vectors - done);
            launch(context, list, &copy, ranges.map(|view| Vectors(part(view, done, size))))?;
            done += size;
        }
    }
    let rest = src.size - done;
    let (src, dst) = (part(src, done, rest), part(dst, done, rest));
    if let (Some((from, src)), Some((to, dst))) = (src.bytes(), dst.bytes()) {
        list.push(Command::Copy { src, dst }, [from, to]);
    }
    Ok(())
}

/// Returns a part of a range, in bytes.
fn part(view: View<'_>, start: u64, size: u64) -> View<'_> {
    View { offset: view.offset + start, size, ..view }
}

/// Returns the maximum bytes that one launch can copy between ranges at these offsets; `None` if
/// the offsets are not aligned for bindings.
fn max_copy_size(info: &DeviceInfo, offsets: [u64; 2]) -> Option<u64> {
    let unit = info.binding_alignment.max(VECTOR_BYTES);
    // Less than 4 GiB: byte offsets in shaders have 32 bits.
    let bound = info.limits.max_storage_binding_size.min(u64::from(u32::MAX));
    let max_size = bound / unit * unit;
    let can_bind = offsets.iter().all(|offset| offset.is_multiple_of(unit));
    (can_bind && max_size > 0).then_some(max_size)
}

/// Appends the launch that copies a range of vectors.
fn launch(
    context: &Arc<Context>,
    list: &mut CommandList,
    copy: &KernelCopy,
    [src, dst]: [Vectors<'_>; 2],
) -> Result<()> {
    let launch = Launch::workgroups(grid(src.0.size, copy.invocations * VECTOR_BYTES));
    encode::dispatch(context, list, "Slice::copy_to", &copy.kernel, &[&src, &dst], &launch)?;
    if let Some(Command::Dispatch(dispatch)) = list.commands.last_mut() {
        dispatch.role = Role::Copy;
    }
    Ok(())
}

/// Returns the grid that copies `size` bytes, `group` bytes per workgroup, in rows of equal length.
/// It has fewer excess workgroups than rows.
fn grid(size: u64, group: u64) -> [u32; 3] {
    let groups = size.div_ceil(group);
    let rows = groups.div_ceil(MAX_GROUPS_X);
    let to_u32 = |n: u64| u32::try_from(n).expect("a launch copies less than 4 GiB");
    [to_u32(groups.div_ceil(rows)), to_u32(rows), 1]
}

/// The bytes of a buffer of any type, viewed as the kernel's vectors.
struct Vectors<'a>(View<'a>);

impl Sealed for Vectors<'_> {
    fn view(&self) -> View<'_> {
        let (layout, size) = (ElementLayout::Opaque, VECTOR_BYTES);
        let element = ElementType { layout, size, align: size, name: "16 bytes" };
        View { element, ..self.0 }
    }
}

impl Binding for Vectors<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::null::null_info;

    #[test]
    fn copy_launches_need_bindable_ranges() {
        let mut info = null_info();
        info.binding_alignment = 64;
        info.limits.max_storage_binding_size = (128 << 20) + 63;
        let max_size = |offsets| max_copy_size(&info, offsets);
        assert_eq!(max_size([0, 64]), Some(128 << 20));
        assert_eq!(max_size([32, 64]), None);
        assert_eq!(max_size([0, 65]), None);
        info.binding_alignment = 4;
        assert_eq!(max_copy_size(&info, [0, 4]), None, "not aligned to a vector");
        info.limits.max_storage_binding_size = u64::MAX;
        assert_eq!(max_copy_size(&info, [0, 0]), Some((1 << 32) - 16));
    }

    #[test]
    fn copy_grids_cover_every_vector() {
        const GROUP: u64 = 4096;
        let sizes = [
            16,
            GROUP,
            GROUP + 16,
            MAX_GROUPS_X * GROUP,
            MAX_GROUPS_X * GROUP + 16,
            (1 << 32) - 16,
        ];
        for size in sizes {
            let [x, y, z] = grid(size, GROUP).map(u64::from);
            let excess = (x * y * z).checked_sub(size.div_ceil(GROUP));
            assert!(excess.is_some_and(|excess| excess < y), "{size}: {x} {y} {z}");
            assert!(x <= MAX_GROUPS_X && y <= MAX_GROUPS_X);
        }
    }
}
