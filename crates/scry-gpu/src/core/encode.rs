//! Encodes public calls into commands, after all checks.

use std::sync::Arc;

use arrayvec::ArrayVec;
use scry_ir::Interface;

use crate::api::binding::{Binding, View};
use crate::api::error::{BufferAccessError, GpuError, Result};
use crate::api::kernel::Kernel;
use crate::api::launch::{self, Grid, Launch, LaunchSize};
use crate::core::check::{self, Argument};
use crate::core::command::{BoundBuffer, BufferRange, Command, Dispatch, Groups, Role};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::copy;
use crate::core::driver::GridSource;
use crate::core::handles::MemoryKind;
use crate::core::indirect::{self, PreparedGrid};
use crate::core::memory::Memory;
use crate::core::report::ReportingLaunch;
use crate::core::same_device::{quoted, same_device};

/// Maximum bytes of a repeated pattern that the host writes, unless one element is larger; the
/// device copies them to the rest.
const MAX_PATTERN_SEED: u64 = 64 << 10;

/// Submits a single copy; errors name `operation`, the public function.
pub(crate) fn copy_now(
    context: &Arc<Context>,
    operation: &'static str,
    src: View<'_>,
    dst: View<'_>,
) -> Result<()> {
    let mut list = CommandList::default();
    copy(context, &mut list, operation, src, dst)?;
    context.submit_unless_empty(list)
}

/// Appends a copy; errors name `operation`, the public function.
pub(crate) fn copy(
    context: &Arc<Context>,
    list: &mut CommandList,
    operation: &'static str,
    src: View<'_>,
    dst: View<'_>,
) -> Result<()> {
    same_device(context, (src.context, src.label), operation, || "the source".to_owned())?;
    same_device(context, (dst.context, dst.label), operation, || "the destination".to_owned())?;
    if src.size != dst.size {
        let count = |view: &View<'_>| view.size / view.element.size.max(1);
        return Err(GpuError::BufferAccess(BufferAccessError {
            operation,
            problem: format!(
                "{} elements of {} do not fit the {} elements of {}",
                count(&src),
                quoted(src.label),
                count(&dst),
                quoted(dst.label)
            ),
            help: "copy between slices of the same length".to_owned(),
        }));
    }
    let (Some((_, a)), Some((_, b))) = (src.bytes(), dst.bytes()) else {
        return Ok(());
    };
    if a.memory == b.memory && a.offset < b.end() && b.offset < a.end() {
        return Err(GpuError::BufferAccess(BufferAccessError {
            operation,
            problem: format!(
                "source bytes {}..{} and destination bytes {}..{} of {} overlap",
                a.offset,
                a.end(),
                b.offset,
                b.end(),
                quoted(src.label)
            ),
            help: "copy through another buffer".to_owned(),
        }));
    }
    copy::append(context, list, [src, dst])
}

/// Appends a fill of `dst`, on the same device, with `pattern`, the bytes of one element.
pub(crate) fn fill(
    context: &Arc<Context>,
    list: &mut CommandList,
    dst: View<'_>,
    pattern: &[u8],
) -> Result<()> {
    let Some((memory, range)) = dst.bytes() else {
        return Ok(());
    };
    if let Some(word) =
        repeated_word(pattern).filter(|_| range.offset % 4 == 0 && range.size % 4 == 0)
    {
        list.push(Command::Fill { dst: range, pattern: word }, [memory]);
        return Ok(());
    }
    // The host writes the first bytes; the device doubles them until the range is full.
    let element = pattern.len() as u64;
    let seed = range.size.min(MAX_PATTERN_SEED / element.max(1) * element).max(element);
    let bytes: Vec<u8> = pattern.iter().copied().cycle().take(seed as usize).collect();
    let part =
        |offset: u64, size: u64| BufferRange { offset: range.offset + offset, size, ..range };
    write_bytes(context, list, (memory, part(0, seed)), &bytes)?;
    let mut done = seed;
    while done < range.size {
        let size = done.min(range.size - done);
        list.push(Command::Copy { src: part(0, size), dst: part(done, size) }, [memory]);
        done += size;
    }
    Ok(())
}

/// Returns the 32-bit word whose repetition has the same bytes as that of the pattern, if there is
/// one and the length of the pattern is 1, 2 or a multiple of 4.
fn repeated_word(pattern: &[u8]) -> Option<u32> {
    let word: [u8; 4] = match pattern {
        [a] => [*a; 4],
        [a, b] => [*a, *b, *a, *b],
        _ => pattern.first_chunk().copied()?,
    };
    let has_word_period = pattern.len() <= 2 || pattern.len().is_multiple_of(4);
    let repeats = pattern.iter().zip(word.iter().cycle()).all(|(a, b)| a == b);
    (has_word_period && repeats).then(|| u32::from_ne_bytes(word))
}

/// Appends a copy of host bytes, captured now, to device memory.
pub(crate) fn write_bytes(
    context: &Arc<Context>,
    list: &mut CommandList,
    dst: (&Arc<Memory>, BufferRange),
    bytes: &[u8],
) -> Result<()> {
    let source = capture(context, bytes, "captured host data")?;
    let src = BufferRange { size: dst.1.size, ..source.whole() };
    list.push(Command::Copy { src, dst: dst.1 }, [&source, dst.0]);
    Ok(())
}

/// Copies host bytes to new memory that the device can read.
fn capture(context: &Arc<Context>, bytes: &[u8], label: &str) -> Result<Arc<Memory>> {
    let memory = context.allocate(MemoryKind::Upload, bytes.len() as u64, label)?;
    context.note_loss(context.driver.write(memory.id(), 0, bytes))?;
    Ok(memory)
}

/// Appends a launch; errors name `operation`, the public function. Appends nothing if there are no
/// invocations.
pub(crate) fn dispatch(
    context: &Arc<Context>,
    list: &mut CommandList,
    operation: &str,
    kernel: &Kernel,
    bindings: &[&dyn Binding],
    launch: &Launch,
) -> Result<()> {
    append(context, list, operation, kernel, bindings, launch)
        .map_err(|error| error.with_label(kernel.label().map(|label| &**label)))
}

/// Checks the buffers of a launch with at least one workgroup.
fn check_arguments(context: &Context, kernel: &Kernel, arguments: &[Argument<'_>]) -> Result<()> {
    let (interface, info) = (kernel.checked_interface(), &context.info);
    if interface.is_native() {
        check::native_arguments(interface, info, arguments)?;
        return kernel.check_lengths(arguments);
    }
    check::arguments(interface, info, arguments)
}

/// Maximum number of arguments that are checked on the stack; launches with more are rare.
const MAX_STACK_ARGUMENTS: usize = 8;

/// Implements [`dispatch`]; errors do not have the label of the kernel's source.
fn append(
    context: &Arc<Context>,
    list: &mut CommandList,
    operation: &str,
    kernel: &Kernel,
    bindings: &[&dyn Binding],
    launch: &Launch,
) -> Result<()> {
    let interface = kernel.interface();
    kernel.check_device(context, operation)?;
    // Filled in place: both are too large to move for each launch.
    let mut on_stack = ArrayVec::<Argument<'_>, MAX_STACK_ARGUMENTS>::new();
    let mut on_heap = Vec::new();
    let arguments: &[Argument<'_>] = if bindings.len() <= MAX_STACK_ARGUMENTS {
        collect_arguments(context, operation, kernel, bindings, &mut on_stack)?;
        &on_stack
    } else {
        collect_arguments(context, operation, kernel, bindings, &mut on_heap)?;
        &on_heap
    };
    let given = launch.immediates.as_ref();
    let given = given.map(|given| (&given.layout, given.type_name, &*given.bytes));
    let checked = kernel.checked_interface();
    let immediates = check::immediates(checked, given)?;
    let size = launch_grid(context, operation, kernel, launch)?;
    let Some(size) = size else {
        return check::signature(checked, arguments);
    };
    check_arguments(context, kernel, arguments)?;
    if let LaunchGrid::Indirect(_, counts) = &size {
        check::overwritten_counts(checked, arguments, *counts)?;
    }
    kernel.check_maps(bindings, &immediates)?;
    let GridChoice { groups, source, params } = choose_grid(context, list, interface, size)?;
    let variant;
    let compiled = match source {
        GridSource::Native => kernel.compiled().native_grid(),
        _ => {
            variant = kernel.compiled().variant(context, source)?;
            &variant
        }
    };
    let failure_report = compiled.report();
    // Exact capacity: recording many launches is memory-bound.
    let extra = usize::from(params.is_some()) + usize::from(failure_report.is_some());
    let mut bound = Vec::with_capacity(bindings.len() + extra);
    for (given, binding) in bindings.iter().zip(&interface.bindings) {
        let (memory, whole) = given.view().bytes().expect("the check rejects empty arguments");
        let range = BufferRange { size: check::bound_size(binding, whole.size), ..whole };
        list.retain_memory(memory);
        bound.push(BoundBuffer { range, writes: binding.access.writes() });
    }
    bound.extend(params.map(|range| BoundBuffer { range, writes: false }));
    if let Some(failure_report) = failure_report {
        let command_index = list.commands.len();
        let (memory, range) = list.reports.add(
            ReportingLaunch {
                kernel: kernel.entry_point().to_owned(),
                label: kernel.label().cloned(),
                failure_report: failure_report.clone(),
                command_index,
            },
            context.info.binding_alignment,
            |size| context.allocate(MemoryKind::Device, size, "reports of launches"),
        )?;
        bound.push(BoundBuffer { range, writes: true });
        list.retain_memory(&memory);
    }
    list.commands.push(Command::Dispatch(Dispatch {
        kernel: compiled.id(),
        bindings: bound,
        groups,
        immediates,
        role: Role::Launch,
    }));
    list.retain(compiled);
    Ok(())
}

/// Appends the bindings to `out` as [`Argument`]s, and checks that all belong to this device.
fn collect_arguments<'a>(
    context: &Arc<Context>,
    operation: &str,
    kernel: &Kernel,
    bindings: &[&'a dyn Binding],
    out: &mut impl Extend<Argument<'a>>,
) -> Result<()> {
    for (index, binding) in bindings.iter().enumerate() {
        let view = binding.view();
        same_device(context, (view.context, view.label), operation, || {
            binding_role(kernel, index)
        })?;
        out.extend([argument(view)]);
    }
    Ok(())
}

/// Describes the binding to which the buffer at this index is bound, for errors.
fn binding_role(kernel: &Kernel, index: usize) -> String {
    let interface = kernel.checked_interface();
    match interface.bindings.get(index) {
        Some(binding) => {
            format!("{} of kernel `{}`", interface.binding_name(binding), interface.entry_point)
        }
        None => format!("buffer {index}, counted from 0, of kernel `{}`", interface.entry_point),
    }
}

/// The checked grid of a launch: known to the host, or workgroup counts in memory.
enum LaunchGrid<'a> {
    Direct(Grid),
    Indirect(&'a Arc<Memory>, BufferRange),
}

/// Checks the size of a launch and returns its grid; `None` if there are no invocations.
fn launch_grid<'a>(
    context: &Arc<Context>,
    operation: &str,
    kernel: &Kernel,
    launch: &'a Launch,
) -> Result<Option<LaunchGrid<'a>>> {
    let interface = kernel.interface();
    match &launch.size {
        LaunchSize::Direct(size) => {
            let grid = launch::grid(kernel.checked_interface(), &context.info, *size)?;
            Ok((!grid.empty).then_some(LaunchGrid::Direct(grid)))
        }
        LaunchSize::Indirect(counts) => {
            kernel.check_indirect()?;
            let (memory, range) = counts.check(context, operation, interface)?;
            Ok(Some(LaunchGrid::Indirect(memory, range)))
        }
    }
}

/// The grid of a launch and the kernel variant that it needs.
struct GridChoice {
    groups: Groups,
    /// The variant of the kernel.
    source: GridSource,
    /// The grid parameters, if the variant is the linearised one.
    params: Option<BufferRange>,
}

/// Chooses the grid source of a launch, and appends the commands that prepare it.
fn choose_grid(
    context: &Arc<Context>,
    list: &mut CommandList,
    interface: &Interface,
    size: LaunchGrid<'_>,
) -> Result<GridChoice> {
    match size {
        LaunchGrid::Direct(Grid { native, linearised: None, .. }) => Ok(GridChoice {
            groups: Groups::Direct(native),
            source: GridSource::Native,
            params: None,
        }),
        LaunchGrid::Direct(Grid { native, linearised: Some(linearised), .. }) => {
            let label = "parameters of a linearised grid";
            let memory = capture(context, &linearised.to_bytes(), label)?;
            let params = Some(memory.whole());
            list.memories.push(memory);
            let source = GridSource::Linearised;
            Ok(GridChoice { groups: Groups::Direct(native), source, params })
        }
        LaunchGrid::Indirect(memory, counts) => {
            list.retain_memory(memory);
            let source = context.driver.indirect();
            if source != GridSource::Linearised {
                return Ok(GridChoice {
                    groups: Groups::Indirect(Box::new(counts)),
                    source,
                    params: None,
                });
            }
            let PreparedGrid { native, params } =
                indirect::prepare(context, list, interface, (memory, counts))?;
            Ok(GridChoice {
                groups: Groups::Indirect(Box::new(native)),
                source,
                params: Some(params),
            })
        }
    }
}

/// Converts a view of a buffer to an [`Argument`] for the checks.
pub(crate) fn argument(view: View<'_>) -> Argument<'_> {
    Argument {
        label: view.label,
        element_size: view.element.size,
        layout: view.element.layout,
        type_name: view.element.name,
        memory: view.memory.map(|memory| memory.id()),
        offset: view.offset,
        size: view.size,
    }
}
