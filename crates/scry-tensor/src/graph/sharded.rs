//! Kernels of a plan above the limit of a binding or a buffer, as launches of parts.

use scry_gpu::{Device, UntypedBuffer};

use super::bound_graph::{BoundGraph, BoundNode};
use super::grouped::{BufferId, Grouped, Kernel, RowWork};
use super::launches::{Initial, Prepared, Target, named, prepare_rows};
use crate::error::{ErrorKind, Result};
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
pub(super) fn prepare_row_shards(
    target: Target<'_>,
    work: &RowWork,
    [operands, results]: &[Vec<&UntypedBuffer>; 2],
) -> Option<scry_gpu::Result<Prepared>> {
    let limit = target.runtime.max_binding();
    if operands.iter().chain(results).all(|it| it.byte_size() <= limit) {
        return None;
    }
    let RowWork { program, rows, columns, walks, .. } = work;
    let sizes: Vec<u64> = operands.iter().map(|it| it.byte_size()).collect();
    let row_bytes = program.row_bytes(*columns as usize);
    let shards = split_rows(program, (*rows, walks), (&row_bytes, &sizes), limit)?;
    let prepare = |shard: &RowShard| -> scry_gpu::Result<Prepared> {
        let read = slices(operands, &shard.operands)?;
        let written = slices(results, &shard.results)?;
        let buffers = [read.iter().collect(), written.iter().collect()];
        prepare_rows(target, work, (shard.rows, &shard.walks), &buffers)
    };
    let launches = shards.iter().map(prepare).collect::<scry_gpu::Result<Vec<_>>>();
    Some(launches.map(Prepared::Shards))
}

/// Returns a range of bytes of each buffer.
fn slices(
    buffers: &[&UntypedBuffer],
    ranges: &[std::ops::Range<u64>],
) -> scry_gpu::Result<Vec<UntypedBuffer>> {
    buffers.iter().zip(ranges).map(|(it, range)| slice(it, range)).collect()
}
