//! Merges small independent maps into one kernel, and writes of states into the maps that compute
//! what is written.
//!
//! A launch takes longer than the work of a small map. Kernels are added to the new order one by
//! one; a map joins one of the last kernels before it if one of both can be moved to the other: if
//! no kernel that it passes writes what it reads or writes, or reads what it writes. Results keep
//! their bits, but for those of NaN in 16-bit floats, which a copied element is converted from and
//! to.

use super::group::Limits;
use super::grouped::{BufferId, Grouped, Kernel, Origin, Part, Store, Work};
use super::state_regions;
use crate::dtype::DType;
use crate::expr::{Expression, Map};
use crate::lower::elements_per_word;
use crate::shape::{Layout, Shape};

/// The most words that a kernel of several maps writes: with more, each fills a GPU alone.
const MAX_WORDS: usize = 1 << 16;

/// The most maps of a kernel.
const MAX_PARTS: usize = 4;

/// How many kernels before it a map may join.
const MAX_DISTANCE: usize = 8;

/// Replaces maps and writes by kernels of several maps.
pub(crate) fn fuse(grouped: &mut Grouped, limits: Limits) {
    let mut readers = vec![0usize; grouped.buffers.len()];
    let operands = grouped.kernels.iter().flat_map(Kernel::operands);
    operands.for_each(|buffer| readers[buffer.index()] += 1);
    let kernels = std::mem::take(&mut grouped.kernels);
    let mut pass = Pass { grouped, limits, readers, kernels: Vec::with_capacity(kernels.len()) };
    kernels.into_iter().for_each(|kernel| pass.add(kernel));
    grouped.kernels = pass.kernels;
}

struct Pass<'g> {
    /// The buffers; kernels are in `kernels`.
    grouped: &'g Grouped,
    limits: Limits,
    /// The number of kernels that read each buffer.
    readers: Vec<usize>,
    kernels: Vec<Kernel>,
}

impl Pass<'_> {
    fn add(&mut self, kernel: Kernel) {
        let kernel = self.with_producer(kernel);
        let Some(parts) = self.parts(&kernel) else { return self.kernels.push(kernel) };
        let end = self.kernels.len();
        for position in (end.saturating_sub(MAX_DISTANCE)..end).rev() {
            let Some(joined) = self.joined(position, &kernel, &parts) else { continue };
            let between = || self.kernels[position + 1..].iter();
            if between().all(|other| !conflict(other, &kernel)) {
                self.kernels[position] = joined;
                return;
            }
            if between().all(|other| !conflict(other, &self.kernels[position])) {
                self.kernels.remove(position);
                return self.kernels.push(joined);
            }
        }
        self.kernels.push(kernel);
    }

    /// Returns a write of a state with the map that computes what is written, if nothing else reads
    /// that; otherwise a write of one row as a map.
    fn with_producer(&mut self, kernel: Kernel) -> Kernel {
        let (Work::Write { new, .. } | Work::WriteRows { new, .. }) = kernel.work else {
            return kernel;
        };
        let Some(mut parts) = self.parts(&kernel) else { return kernel };
        let produced = match self.producer(new) {
            Some((position, part)) => {
                let Part { map, operands, arguments, gathered, shape, mut nodes, .. } = part;
                let others = operands.iter().all(|(buffer, _)| *buffer != kernel.result);
                let own = &mut parts[0];
                let fits = operands.len() + 2 < self.limits.bindings;
                if others && fits && map.output == own.map.output {
                    nodes.append(&mut own.nodes);
                    let (store, value) = (own.store, own.value.take());
                    let result = own.result;
                    *own = Part {
                        map,
                        operands,
                        arguments,
                        gathered,
                        result,
                        store,
                        shape,
                        nodes,
                        value,
                    };
                    Some(position)
                } else {
                    None
                }
            }
            None => None,
        };
        match produced {
            Some(position) => self.remove(position, new),
            // The kernel library writes rows by several kernels, because indices may be equal.
            None if matches!(kernel.work, Work::WriteRows { .. }) => {}
            None => return kernel,
        }
        with_parts(kernel, parts)
    }

    /// Returns the map that computes a result which one kernel reads, and the position of its
    /// kernel, if it can be moved to the end.
    fn producer(&self, buffer: BufferId) -> Option<(usize, Part)> {
        let is_single = self.readers[buffer.index()] == 1
            && self.grouped.buffers[buffer.index()].origin == Origin::Result
            && !self.grouped.outputs.iter().any(|(output, ..)| *output == buffer);
        if !is_single {
            return None;
        }
        let start = self.kernels.len().saturating_sub(MAX_DISTANCE);
        let position = (start..self.kernels.len())
            .rfind(|position| self.kernels[*position].results().contains(&buffer))?;
        let parts = self.parts(&self.kernels[position])?;
        let part = parts.into_iter().find(|part| part.result == buffer)?;
        let reads = part.reads();
        let mut written = self.kernels[position..].iter().flat_map(Kernel::results);
        written.all(|it| !reads.iter().any(|(read, _)| *read == it)).then_some((position, part))
    }

    /// Removes the map with a result from a kernel.
    fn remove(&mut self, position: usize, result: BufferId) {
        let kernel = self.kernels.remove(position);
        let Work::Maps(parts) = &kernel.work else { return };
        let parts: Vec<Part> = parts.iter().filter(|part| part.result != result).cloned().collect();
        if !parts.is_empty() {
            self.kernels.insert(position, with_parts(kernel, parts));
        }
    }

    /// Returns a kernel as maps; `None` if it is not small maps.
    fn parts(&self, kernel: &Kernel) -> Option<Vec<Part>> {
        let info = |id: &BufferId| &self.grouped.buffers[id.index()];
        let results = kernel.results();
        if results.iter().any(|id| info(id).origin == Origin::Constant) {
            return None;
        }
        // Only a map of its own is split into launches of parts, and binds a part of each buffer.
        // Empty buffers cannot be bound.
        let limit = self.limits.binding_bytes;
        let is_bound = |id: &BufferId| (1..=limit).contains(&(info(id).bytes as u64));
        if !kernel.operands().iter().chain(&results).all(is_bound) {
            return None;
        }
        let part = |map: Map, operands, shape: &Shape, store| Part {
            map,
            operands,
            arguments: Vec::new(),
            gathered: None,
            result: kernel.result,
            store,
            shape: shape.clone(),
            nodes: kernel.nodes.clone(),
            value: kernel.value.clone(),
        };
        let parts = match &kernel.work {
            Work::Maps(parts) => parts.clone(),
            Work::Map { map, operands, arguments, gathered } => {
                let part = part(map.clone(), operands.clone(), &kernel.shape, Store::Words(0));
                vec![Part { arguments: arguments.clone(), gathered: *gathered, ..part }]
            }
            Work::Write { new, region, dtype } => {
                let (starts, len) = state_regions::ranges(region);
                let per_word = elements_per_word(*dtype) as usize;
                let [start] = starts[..] else { return None };
                if !start.is_multiple_of(per_word) || !len.is_multiple_of(per_word) {
                    return None;
                }
                let store = Store::Words(u32::try_from(start / per_word).ok()?);
                let copied = (*new, Layout::contiguous(region.shape.clone()));
                vec![part(copy(*dtype), vec![copied], &region.shape, store)]
            }
            Work::WriteRows { new, indices, dtype, index_dtype, count: 1 } => {
                let shape = Shape::from([&[1], &kernel.shape[1..]].concat());
                if !shape.count()?.is_multiple_of(elements_per_word(*dtype) as usize) {
                    return None;
                }
                let (index, rows) = (*indices, kernel.shape[0]);
                let store = Store::Row { index, dtype: *index_dtype, rows };
                let copied = (*new, Layout::contiguous(shape.clone()));
                vec![part(copy(*dtype), vec![copied], &shape, store)]
            }
            _ => return None,
        };
        (1..=MAX_WORDS).contains(&words(&parts)?).then_some(parts)
    }

    /// Returns the kernel of the maps of an earlier kernel and of a later one, which have these
    /// parts, if it is within all limits and neither needs the other.
    fn joined(&self, position: usize, later: &Kernel, parts: &[Part]) -> Option<Kernel> {
        let earlier = &self.kernels[position];
        let mut all = self.parts(earlier)?;
        if conflict(earlier, later) || all.len() + parts.len() > MAX_PARTS {
            return None;
        }
        all.extend_from_slice(parts);
        let mut reads: Vec<(BufferId, DType)> = all.iter().flat_map(Part::reads).collect();
        reads.sort_unstable_by_key(|(buffer, dtype)| (*buffer, dtype.name()));
        reads.dedup();
        // With a buffer of parameters.
        let fits = reads.len() + all.len() < self.limits.bindings && words(&all)? <= MAX_WORDS;
        fits.then(|| with_parts(later.clone(), all))
    }
}

/// Returns the words that maps write.
fn words(parts: &[Part]) -> Option<usize> {
    let words = |part: &Part| {
        Some(part.shape.count()?.div_ceil(elements_per_word(part.map.output) as usize))
    };
    let each = parts.iter().map(words).collect::<Option<Vec<_>>>()?;
    if each.contains(&0) { Some(0) } else { Some(each.iter().sum()) }
}

/// Returns the kernel that computes maps, for the reason of another kernel.
fn with_parts(kernel: Kernel, parts: Vec<Part>) -> Kernel {
    let mut nodes = Vec::new();
    for part in &parts {
        nodes.extend(
            part.nodes.iter().filter(|it| !nodes.contains(*it)).copied().collect::<Vec<_>>(),
        );
    }
    let Some(first) = parts.first() else { return kernel };
    let (result, shape, value) = (first.result, first.shape.clone(), first.value.clone());
    let reason = kernel.reason;
    Kernel { work: Work::Maps(parts), result, shape, nodes, reason, value }
}

/// Returns whether two kernels must remain in their order: one writes what the other one accesses.
fn conflict(a: &Kernel, b: &Kernel) -> bool {
    let (reads, writes) = (b.operands(), b.results());
    let written = a.results();
    written.iter().any(|it| reads.contains(it) || writes.contains(it))
        || a.operands().iter().any(|it| writes.contains(it))
}

/// Returns the map that copies elements.
fn copy(dtype: DType) -> Map {
    let mut e = Expression::default();
    let x = e.operand(dtype);
    e.finish(x, dtype)
}
