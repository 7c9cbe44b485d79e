//! Fuses reductions of rows with each other, and with the maps before and after them: softmax, or a
//! norm, is one kernel.
//!
//! One greedy pass over kernels, from the last one to the first: a kernel absorbs those that
//! produce its operands if all of them compute the same rows: their elements, or a result for each
//! row. Elements that kernels after it read, too, are stored by it. Rows must have few enough
//! columns for one workgroup ([`MAX_COLUMNS`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use scry_kernels::Reduction;

use super::Fusion;
use super::group::Limits;
use super::grouped::{BufferId, Grouped, Kernel, Origin, RowWork, Viewed, Work};
use super::node::NodeId;
use super::reason::MAX_STEPS;
use crate::dtype::DType;
use crate::lower::{
    MAX_COLUMNS, RowProgram, RowReduction, RowSource, RowStep, RowWalk, WORKGROUP,
    elements_per_word,
};
use crate::op::Library;
use crate::shape::{Layout, Shape};
use crate::sharding::split_rows;

/// The rows that kernels compute: their number, and the elements of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows {
    count: usize,
    columns: usize,
}

/// What a kernel computes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A map of the elements. The axes of its shape before this one are those of rows.
    Elements(usize),
    /// A map of a value for each row.
    Row,
    /// A reduction of each row.
    Reduce(RowReduction, DType),
}

/// The most elements that the CPU device reduces in a row kernel that stores no elements: the
/// kernel library, in native code, reduces more of them faster.
const MAX_REDUCED_ON_CPU: usize = 4096;

/// The most results that a row kernel stores beside its last one.
const MAX_STORED: usize = 2;

/// Replaces kernels by row kernels.
pub(crate) fn fuse(grouped: &mut Grouped, limits: Limits) {
    let mut producers = vec![None; grouped.buffers.len()];
    let mut readers = vec![Vec::new(); grouped.buffers.len()];
    for (position, kernel) in grouped.kernels.iter().enumerate() {
        kernel.results().iter().for_each(|it| producers[it.index()] = Some(position));
        kernel.operands().iter().for_each(|it| readers[it.index()].push(position));
    }
    let mut pass = Pass { grouped, limits, producers, readers, fused: BTreeSet::new() };
    let mut found = Vec::new();
    for position in (0..pass.grouped.kernels.len()).rev() {
        if pass.fused.contains(&position) {
            continue;
        }
        let rows = pass.candidates(position);
        let groups = rows.into_iter().filter_map(|rows| Some((pass.group(position, rows)?, rows)));
        if let Some((members, rows)) = groups.max_by_key(|(members, _)| members.len()) {
            let kernel = pass.kernel(&members, rows);
            pass.fused.extend(&members);
            found.push((position, kernel));
        }
    }
    let fused = pass.fused;
    for (position, kernel) in &found {
        grouped.kernels[*position] = kernel.clone();
    }
    let is_kept = |n: &usize| !fused.contains(n) || found.iter().any(|(position, _)| position == n);
    let kernels = std::mem::take(&mut grouped.kernels).into_iter().enumerate();
    grouped.kernels = kernels.filter(|(n, _)| is_kept(n)).map(|(_, kernel)| kernel).collect();
}

struct Pass<'g> {
    grouped: &'g Grouped,
    limits: Limits,
    /// The kernel that writes each buffer, and those that read it, by position.
    producers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
    /// Kernels that are parts of row kernels.
    fused: BTreeSet<usize>,
}

impl Pass<'_> {
    /// Returns the rows that a kernel may compute: those of a reduction close before it.
    fn candidates(&self, position: usize) -> Vec<Rows> {
        let mut found: Vec<Rows> = Vec::new();
        let mut near = vec![position];
        for _ in 0..3 {
            for kernel in near.iter().map(|it| &self.grouped.kernels[*it]) {
                if let Some((_, _, rows)) = self.reduction(kernel)
                    && !found.contains(&rows)
                {
                    found.push(rows);
                }
            }
            let kernels = near.iter().map(|it| &self.grouped.kernels[*it]);
            let operands = kernels.flat_map(Kernel::operands);
            near = operands.filter_map(|it| self.producers[it.index()]).collect();
            near.sort_unstable();
            near.dedup();
        }
        found
    }

    /// Returns the reduction that a kernel is, if a row kernel computes it.
    fn reduction(&self, kernel: &Kernel) -> Option<(RowReduction, DType, Rows)> {
        let Work::Library { library: Library::Reduce(reduce), operands, .. } = &kernel.work else {
            return None;
        };
        let (_, layout, dtype) = &operands[0];
        let reduction = match reduce.reduction {
            Reduction::Sum => RowReduction::Sum,
            Reduction::Mean => RowReduction::Mean,
            Reduction::Min => RowReduction::Min,
            Reduction::Max => RowReduction::Max,
            _ => return None,
        };
        let is_float = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        let is_exact = matches!(reduction, RowReduction::Min | RowReduction::Max) || !is_float;
        if !(is_exact || self.limits.fusion == Fusion::Full) {
            return None;
        }
        let reduced = reduce.axes.iter().filter(|axis| **axis).count();
        let sizes = layout.shape.split_at(layout.shape.rank() - reduced);
        let [count, columns] = [sizes.0, sizes.1].map(|sizes| sizes.iter().product());
        let workgroups = count as u64
            / u64::from(WORKGROUP / RowProgram::threads(columns, 1, self.limits.is_cpu));
        let fits = (2..=MAX_COLUMNS).contains(&columns)
            && count > 0
            && (workgroups + 1) * u64::from(WORKGROUP) <= u64::from(u32::MAX)
            && layout.is_contiguous()
            && layout.offset == 0;
        fits.then_some((reduction, *dtype, Rows { count, columns }))
    }

    fn role(&self, kernel: &Kernel, rows: Rows) -> Option<Role> {
        if let Work::Map { map, gathered: None, .. } = &kernel.work
            && !map.has_coordinates()
        {
            let count = kernel.shape.count()?;
            return match count == rows.count {
                true => Some(Role::Row),
                false => split(&kernel.shape, rows).map(Role::Elements),
            };
        }
        let (reduction, dtype, own) = self.reduction(kernel)?;
        (own == rows).then_some(Role::Reduce(reduction, dtype))
    }

    /// Returns the kernels, in order, that become one with the last of them; `None` if there is no
    /// reduction, or no other kernel.
    fn group(&self, last: usize, rows: Rows) -> Option<BTreeSet<usize>> {
        let kernel = &self.grouped.kernels[last];
        let origin = self.grouped.buffers[kernel.result.index()].origin;
        let role = self.role(kernel, rows)?;
        let is_stored = matches!(origin, Origin::Result | Origin::Output)
            && match (&kernel.work, role) {
                (Work::Map { map, .. }, Role::Elements(_)) => {
                    rows.columns.is_multiple_of(elements_per_word(map.output) as usize)
                }
                (Work::Map { map, .. }, _) => map.output.size() == 4,
                (_, Role::Reduce(_, dtype)) => dtype.size() == 4,
                _ => false,
            };
        let is_slow = self.limits.is_cpu
            && !matches!(role, Role::Elements(_))
            && rows.count * rows.columns > MAX_REDUCED_ON_CPU;
        if !is_stored || is_slow {
            return None;
        }
        let mut members = BTreeSet::from([last]);
        let mut near: BTreeSet<usize> = self.sources(last).collect();
        while let Some(position) = near.pop_last() {
            if self.joins(position, last, &members, rows) {
                members.insert(position);
                near.extend(self.sources(position));
            }
        }
        let is_reduction = |it: &usize| self.reduction(&self.grouped.kernels[*it]).is_some();
        (members.len() > 1 && members.iter().any(is_reduction) && self.is_bound(&members, rows))
            .then_some(members)
    }

    /// Returns whether a device binds the buffers of a row kernel, of parts of the rows if they are
    /// large.
    fn is_bound(&self, members: &BTreeSet<usize>, rows: Rows) -> bool {
        let limit = self.limits.binding_bytes;
        let bytes = |it: &BufferId| self.grouped.buffers[it.index()].bytes as u64;
        let kernels = members.iter().map(|it| &self.grouped.kernels[*it]);
        let mut all = kernels.flat_map(|it| it.operands().into_iter().chain(it.results()));
        if all.all(|it| bytes(&it) <= limit) {
            return true;
        }
        let kernel = self.kernel(members, rows);
        let Work::Rows(work) = &kernel.work else { return false };
        let RowWork { program, operands, walks, rows, columns, .. } = &**work;
        let sizes: Vec<u64> = operands.iter().map(bytes).collect();
        let row_bytes = program.row_bytes(*columns as usize);
        split_rows(program, (*rows, walks), (&row_bytes, &sizes), limit).is_some()
    }

    /// Returns the kernels that produce operands of a kernel.
    fn sources(&self, position: usize) -> impl Iterator<Item = usize> {
        let operands = self.grouped.kernels[position].operands();
        operands.into_iter().filter_map(|it| self.producers[it.index()])
    }

    /// Returns whether a kernel can be computed in the row kernel of the members, which contain all
    /// later kernels that can.
    fn joins(&self, position: usize, last: usize, members: &BTreeSet<usize>, rows: Rows) -> bool {
        let kernel = &self.grouped.kernels[position];
        let Some(role) = self.role(kernel, rows) else { return false };
        let readers = &self.readers[kernel.result.index()];
        let is_read = |reader: &usize| {
            members.contains(reader) && self.reads(*reader, kernel.result, role, rows)
        };
        let mut all = members.clone();
        all.insert(position);
        let is_stored = self.is_stored(position, members);
        let is_read = match is_stored {
            false => readers.iter().all(is_read),
            true => {
                let is_later = |reader: &usize| *reader > last || is_read(reader);
                self.can_store(kernel, role, rows) && readers.iter().all(is_later)
            }
        };
        let stored = all.iter().filter(|it| **it != last && self.is_stored(**it, &all)).count();
        is_read
            && !self.fused.contains(&position)
            && stored <= MAX_STORED
            && self.operands(&all).len() + stored <= self.limits.inputs()
            && self.steps(&all) <= MAX_STEPS
            && self.keeps_states(kernel, position..last)
    }

    /// Returns whether something besides the members needs the result of a kernel.
    fn is_stored(&self, position: usize, members: &BTreeSet<usize>) -> bool {
        let result = self.grouped.kernels[position].result.index();
        self.grouped.buffers[result].origin != Origin::Result
            || self.readers[result].iter().any(|reader| !members.contains(reader))
    }

    /// Returns whether a row kernel can store the result of one of its kernels.
    fn can_store(&self, kernel: &Kernel, role: Role, rows: Rows) -> bool {
        let origin = self.grouped.buffers[kernel.result.index()].origin;
        let Work::Map { map, .. } = &kernel.work else { return false };
        matches!(role, Role::Elements(_))
            && matches!(origin, Origin::Result | Origin::Output)
            && rows.columns.is_multiple_of(elements_per_word(map.output) as usize)
    }

    /// Returns whether a kernel uses the result of another one of the same rows where it is
    /// computed: for the same element, or the same row.
    fn reads(&self, reader: usize, buffer: BufferId, of: Role, rows: Rows) -> bool {
        let kernel = &self.grouped.kernels[reader];
        let is_whole = |layout: &Layout| layout.is_contiguous() && layout.offset == 0;
        let is_elements = matches!(of, Role::Elements(_));
        let (Some(role), Work::Map { operands, .. }) = (self.role(kernel, rows), &kernel.work)
        else {
            // The operand of a reduction is in row-major order.
            return is_elements;
        };
        let mut layouts = operands.iter().filter(|it| it.0 == buffer).map(|(_, layout)| layout);
        match role {
            Role::Elements(_) if is_elements => layouts.all(is_whole),
            Role::Elements(split) => layouts.all(|it| is_repeated(it, split)),
            _ => !is_elements && layouts.all(is_whole),
        }
    }

    /// Returns the buffers that members read and do not compute, once each.
    fn operands(&self, members: &BTreeSet<usize>) -> BTreeSet<BufferId> {
        let operands = members.iter().flat_map(|it| self.grouped.kernels[*it].operands());
        let is_computed =
            |it: &BufferId| self.producers[it.index()].is_some_and(|it| members.contains(&it));
        operands.filter(|it| !is_computed(it)).collect()
    }

    fn steps(&self, members: &BTreeSet<usize>) -> usize {
        let steps = |position: &usize| match &self.grouped.kernels[*position].work {
            Work::Map { map, .. } => map.scalars.len(),
            _ => 1,
        };
        members.iter().map(steps).sum()
    }

    /// Returns whether no kernel of a range writes a state that a kernel reads.
    fn keeps_states(&self, kernel: &Kernel, range: std::ops::Range<usize>) -> bool {
        let operands = kernel.operands();
        let mut written = self.grouped.kernels[range].iter().map(|it| it.result);
        written.all(|it| !operands.contains(&it))
    }

    /// Builds the row kernel of members, of which there is at least one.
    fn kernel(&self, members: &BTreeSet<usize>, rows: Rows) -> Kernel {
        let mut build = Build::default();
        let (mut nodes, mut last, mut width) = (Vec::new(), None, 1);
        for position in members {
            let kernel = &self.grouped.kernels[*position];
            let role = self.role(kernel, rows);
            if let Some(role) = role {
                build.add(kernel, role);
            }
            let is_last = members.last() == Some(position);
            if !is_last && self.is_stored(*position, members) {
                build.stored.push(build.steps.len() as u32 - 1);
                build.others.push((kernel.result, kernel.value.clone()));
            }
            if let (Work::Map { map, .. }, Some(Role::Elements(_))) = (&kernel.work, role)
                && (is_last || self.is_stored(*position, members))
            {
                width = elements_per_word(map.output).max(width);
            }
            nodes.retain(|it| !kernel.nodes.contains(it));
            nodes.extend(&kernel.nodes);
            last = Some(kernel);
        }
        let kernel = last.expect("a group has members").clone();
        let threads = RowProgram::threads(rows.columns, width, self.limits.is_cpu);
        Kernel { work: build.finish(rows, threads, width, self.limits.is_cpu), nodes, ..kernel }
    }
}

/// A row kernel that is being built.
#[derive(Default)]
struct Build {
    steps: Vec<RowStep>,
    /// The buffers that steps compute.
    computed: Vec<BufferId>,
    operands: Vec<(BufferId, DType)>,
    /// The operand of each access, and its strides.
    walks: Vec<(u32, RowWalk)>,
    arguments: Vec<u32>,
    reductions: Vec<NodeId>,
    /// The steps that are stored besides the last, and their buffers.
    stored: Vec<u32>,
    others: Vec<(BufferId, Option<Viewed>)>,
}

impl Build {
    fn add(&mut self, kernel: &Kernel, role: Role) {
        let step = match (&kernel.work, role) {
            (Work::Map { map, operands, arguments, .. }, role) => {
                let split = match role {
                    Role::Elements(split) => split,
                    _ => kernel.shape.rank(),
                };
                let dtypes = map.operands.iter();
                let sources = operands.iter().zip(dtypes);
                let sources = sources
                    .map(|((buffer, layout), dtype)| self.source(*buffer, *dtype, layout, split));
                let sources = sources.collect();
                self.arguments.extend(arguments);
                match role {
                    Role::Elements(_) => RowStep::Elements(Arc::new(map.clone()), sources),
                    _ => RowStep::Row(Arc::new(map.clone()), sources),
                }
            }
            (Work::Library { library: Library::Reduce(reduce), operands, .. }, role) => {
                let Role::Reduce(reduction, dtype) = role else { return };
                let (buffer, layout, _) = &operands[0];
                let reduced = reduce.axes.iter().filter(|axis| **axis).count();
                let split = layout.shape.rank() - reduced;
                self.reductions.extend(&kernel.nodes);
                RowStep::Reduce(reduction, dtype, self.source(*buffer, dtype, layout, split))
            }
            _ => return,
        };
        self.steps.push(step);
        self.computed.push(kernel.result);
    }

    fn source(&mut self, buffer: BufferId, dtype: DType, layout: &Layout, at: usize) -> RowSource {
        if let Some(step) = self.computed.iter().position(|it| *it == buffer) {
            return RowSource::Step(step as u32);
        }
        let operand = position(&mut self.operands, (buffer, dtype));
        RowSource::Memory(position(&mut self.walks, (operand, RowWalk::new(layout, at))))
    }

    fn finish(self, rows: Rows, threads: u32, width: u32, is_cpu: bool) -> Work {
        let Self { steps, operands, walks, arguments, reductions, stored, others, .. } = self;
        let accesses: Vec<_> = walks.iter().map(|(operand, walk)| walk.access(*operand)).collect();
        // Processors have few registers, and caches that are as fast.
        let held = match is_cpu {
            true => 0,
            false => {
                let values = accesses.len() * width as usize;
                RowProgram::held(rows.columns / width as usize, threads, values)
            }
        };
        let walks = walks.into_iter().map(|(_, walk)| walk).collect();
        let (operands, dtypes): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
        let program =
            RowProgram { operands: dtypes, accesses, steps, stored, threads, held, width };
        let [rows, columns] = [rows.count as u32, rows.columns as u32];
        Work::Rows(Box::new(RowWork {
            program,
            operands,
            walks,
            arguments,
            rows,
            columns,
            reductions,
            others,
        }))
    }
}

/// Returns the position of an entry, added if it is new.
fn position<T: PartialEq>(list: &mut Vec<T>, entry: T) -> u32 {
    let known = list.iter().position(|it| *it == entry);
    let position = known.unwrap_or(list.len());
    if known.is_none() {
        list.push(entry);
    }
    position as u32
}

/// Returns the number of axes of a shape of which rows consist; `None` if it has other rows.
fn split(shape: &Shape, rows: Rows) -> Option<usize> {
    let product = |sizes: &[usize]| sizes.iter().product::<usize>();
    (0..=shape.rank())
        .rfind(|at| product(&shape[..*at]) == rows.count && product(&shape[*at..]) == rows.columns)
}

/// Returns whether each row of a layout has one element, in the order of rows.
fn is_repeated(layout: &Layout, split: usize) -> bool {
    let (shape, strides) =
        (layout.shape[..split].to_vec().into(), layout.strides[..split].to_vec());
    let rows = Layout { shape, strides, offset: layout.offset };
    let mut columns = layout.shape.iter().zip(&layout.strides).skip(split);
    rows.is_contiguous()
        && rows.offset == 0
        && columns.all(|(size, stride)| *size == 1 || *stride == 0)
}
