//! Kernels of a plan above the limit of a binding or a buffer, as launches of parts.

use std::sync::atomic::Ordering;

use scry_gpu::{Device, UntypedBuffer};

use super::bound::{BoundGraph, BoundNode};
use super::grouped::{BufferId, Grouped, Kernel, RowWork};
use super::launches::{Initial, Prepared, Target, named};
use crate::error::{ErrorKind, Result};
use crate::lower::RowIteration;
use crate::sharding::{RowShard, slice, split_rows};

/// Returns the node that a kernel computes last.
pub(super) fn last_node<'g>(graph: &'g BoundGraph, kernel: &Kernel) -> &'g BoundNode {
    // Copies compute no node, but store the value of one.
    let stored = kernel.value.as_ref().map(|(node, _)| node);
    let node = kernel.nodes.last().or(stored).map_or(0, |node| node.index());
    &graph.nodes[node]
}

/// Checks that the device allocates buffers for all results.
pub(super) fn check_sizes(device: &Device, graph: &BoundGraph, grouped: &Grouped) -> Result<()> {
    let limit = device.info().limits.max_buffer_size;
    let bytes = |id: &BufferId| grouped.buffers[id.index()].bytes as u64;
    for kernel in &grouped.kernels {
        let results = kernel.results();
        let Some(result) = results.iter().find(|id| bytes(id) > limit) else { continue };
        let (node, bytes, name) = (last_node(graph, kernel), bytes(result), device.name());
        let problem = format!(
            "the result has {bytes} bytes in memory, but a buffer of {name} at most {limit}"
        );
        let help = "compute parts of it, one after the other, or use a smaller element type";
        return Err(node.call.error(ErrorKind::TooLarge, problem, help).in_scope(&node.scope));
    }
    Ok(())
}

/// Returns the parts of an operation of the kernel library with the name of their variant.
pub(super) fn named_shards(
    initial: Initial,
    ops: Vec<scry_kernels::Op>,
) -> (Prepared, Option<String>) {
    let (mut shards, mut variant, mut initial) = (Vec::new(), None, Some(initial));
    for op in ops {
        let (prepared, name) = named(initial.take().unwrap_or(Initial::Any), op);
        shards.push(prepared);
        variant = variant.or(name);
    }
    match shards.len() {
        1 => (shards.pop().unwrap_or(Prepared::Nothing), variant),
        _ => (Prepared::Shards(shards), variant),
    }
}

/// Prepares the shards of a row kernel; `None` if the device binds all of its buffers, or it cannot
/// be split.
pub(super) fn prepare_row_shards<'b>(
    target: Target<'_>,
    work: &RowWork,
    buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
    result: &UntypedBuffer,
) -> Option<scry_gpu::Result<(Prepared, Option<String>)>> {
    let operands: Vec<_> = work.operands.iter().filter_map(|it| buffer(*it)).collect();
    let others = work.others.iter().filter_map(|(id, _)| buffer(*id));
    let results: Vec<_> = std::iter::once(result).chain(others).collect();
    let sizes: Vec<u64> = operands.iter().map(|it| it.byte_size()).collect();
    let limit = target.runtime.max_binding();
    let all = operands.iter().chain(&results);
    if all.map(|it| it.byte_size()).all(|bytes| bytes <= limit) {
        return None;
    }
    let RowWork { program, rows, columns, walks, arguments, .. } = work;
    let row_bytes = program.row_bytes(*columns as usize);
    let shards = split_rows(program, (*rows, walks), (&row_bytes, &sizes), limit)?;
    let prepare = |shard: &RowShard| -> scry_gpu::Result<Prepared> {
        let RowShard { rows, walks, results: written, operands: read } = shard;
        let operands = slices(&operands, read)?;
        let results = slices(&results, written)?;
        let iteration = RowIteration { rows: *rows, columns: *columns, walks, arguments };
        let (operands, results) = (operands.iter().collect::<Vec<_>>(), results.iter());
        let results: Vec<_> = results.collect();
        let (launch, is_compiled) =
            target.runtime.prepare_rows(program, &iteration, &operands, &results)?;
        target.compiles.fetch_add(is_compiled.into(), Ordering::Relaxed);
        Ok(Prepared::Map(launch))
    };
    let launches = shards.iter().map(prepare).collect::<scry_gpu::Result<Vec<_>>>();
    Some(launches.map(|launches| (Prepared::Shards(launches), Some("rows".to_owned()))))
}

/// Returns a range of bytes of each buffer.
fn slices(
    buffers: &[&UntypedBuffer],
    ranges: &[std::ops::Range<u64>],
) -> scry_gpu::Result<Vec<UntypedBuffer>> {
    buffers.iter().zip(ranges).map(|(it, range)| slice(it, range)).collect()
}
