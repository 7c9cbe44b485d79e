//! Kernels of a plan as data: what they compute, and their buffers.

use std::sync::Arc;

use super::node::{CustomKernel, NodeId};
use super::reason::Reason;
use crate::dtype::DType;
use crate::expr::Map;
use crate::lower::{GatherAxis, RowProgram, RowWalk};
use crate::op::{Library, View};
use crate::shape::{Layout, Shape};

/// A range of memory, by position in [`Grouped::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BufferId(pub(crate) u32);

impl BufferId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a buffer contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An input of the run, packed.
    Input(usize),
    /// A tensor in memory.
    Param(usize),
    /// The result of a kernel.
    Result,
    /// The result of a kernel that depends on no input: computed once, before the first run.
    Constant,
    /// The result of a kernel that is an output.
    Output,
    /// A state of the plan.
    State(usize),
}

/// A buffer, with its size.
#[derive(Debug, Clone)]
pub(crate) struct BufferInfo {
    pub(crate) origin: Origin,
    /// The bytes, padded to whole words.
    pub(crate) bytes: usize,
}

/// A row kernel.
#[derive(Clone)]
pub(crate) struct RowWork {
    pub(crate) program: RowProgram,
    pub(crate) operands: Vec<BufferId>,
    /// The strides of each access.
    pub(crate) walks: Vec<RowWalk>,
    pub(crate) arguments: Vec<u32>,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    /// The nodes that are reductions.
    pub(crate) reductions: Vec<NodeId>,
    /// The results after the first, with their values as that of a [`Kernel`].
    pub(crate) others: Vec<(BufferId, Option<Viewed>)>,
}

/// A node whose value is stored, and the views of it.
pub(crate) type Viewed = (NodeId, Vec<View>);

/// Where a map of several stores its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    /// In consecutive words of the result, from one on.
    Words(u32),
    /// In the row of the result, one of `rows`, at an index; nowhere if it is out of range.
    Row { index: BufferId, dtype: DType, rows: usize },
}

/// A map, as one of several that a kernel computes.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) map: Map,
    pub(crate) operands: Vec<(BufferId, Layout)>,
    pub(crate) arguments: Vec<u32>,
    pub(crate) gathered: Option<GatherAxis>,
    pub(crate) result: BufferId,
    pub(crate) store: Store,
    /// The shape for which it is computed.
    pub(crate) shape: Shape,
    /// As those of [`Kernel`].
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) value: Option<Viewed>,
}

impl Part {
    /// Returns the buffers that it reads, with the types of elements.
    pub(crate) fn reads(&self) -> Vec<(BufferId, DType)> {
        let buffers = self.operands.iter().map(|(buffer, _)| *buffer);
        let mut reads: Vec<_> = buffers.zip(self.map.operands.iter().copied()).collect();
        if let Store::Row { index, dtype, .. } = self.store {
            reads.push((index, dtype));
        }
        reads
    }
}

/// What a kernel computes.
#[derive(Clone)]
pub(crate) enum Work {
    Map {
        map: Map,
        operands: Vec<(BufferId, Layout)>,
        arguments: Vec<u32>,
        gathered: Option<GatherAxis>,
    },
    /// Several maps, no two of which write one buffer, or one that stores its result in a state.
    Maps(Vec<Part>),
    /// Maps and reductions of rows.
    Rows(Box<RowWork>),
    Library {
        library: Library,
        /// Operands with the view that the operation has of them.
        operands: Vec<(BufferId, Layout, DType)>,
        flops: u64,
    },
    /// A custom kernel.
    Custom {
        kernel: Option<Arc<CustomKernel>>,
        operands: Vec<(BufferId, DType)>,
        /// Its outputs after the first.
        others: Vec<BufferId>,
    },
    /// A write of packed elements to those of a layout of a state.
    Write { new: BufferId, region: Layout, dtype: DType },
    /// A write of rows to a state at indices.
    WriteRows { new: BufferId, indices: BufferId, dtype: DType, index_dtype: DType, count: usize },
}

/// A kernel of a plan.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) work: Work,
    pub(crate) result: BufferId,
    /// The shape for which it is computed.
    pub(crate) shape: Shape,
    /// The nodes that it computes; the last one is its result, or a view of it.
    pub(crate) nodes: Vec<NodeId>,
    /// Why its result is stored.
    pub(crate) reason: Reason,
    /// The node with the value that it stores, and the views of it.
    pub(crate) value: Option<Viewed>,
}

impl Kernel {
    /// Returns the buffers that it reads.
    pub(crate) fn operands(&self) -> Vec<BufferId> {
        match &self.work {
            Work::Map { operands, .. } => operands.iter().map(|(buffer, _)| *buffer).collect(),
            Work::Maps(parts) => {
                let mut operands: Vec<BufferId> =
                    parts.iter().flat_map(Part::reads).map(|(buffer, _)| buffer).collect();
                operands.sort_unstable();
                operands.dedup();
                operands
            }
            Work::Rows(work) => work.operands.clone(),
            Work::Library { operands, .. } => operands.iter().map(|(id, ..)| *id).collect(),
            Work::Custom { operands, .. } => operands.iter().map(|(id, _)| *id).collect(),
            Work::Write { new, .. } => vec![*new],
            Work::WriteRows { new, indices, .. } => vec![*new, *indices],
        }
    }

    /// Returns whether it is a product with an epilogue.
    pub(crate) fn has_epilogue(&self) -> bool {
        matches!(&self.work, Work::Library { library: Library::FusedProduct(_), .. })
    }

    /// Returns the operand that is in the memory of the result before the kernel, its position and
    /// its buffer.
    pub(crate) fn residual(&self) -> Option<(usize, BufferId)> {
        let Work::Library { library: Library::FusedProduct(product), operands, .. } = &self.work
        else {
            return None;
        };
        product.residual().map(|position| (position, operands[position].0))
    }

    /// Returns the buffers that it writes.
    pub(crate) fn results(&self) -> Vec<BufferId> {
        let mut results = vec![self.result];
        match &self.work {
            Work::Custom { others, .. } => results.extend(others),
            Work::Rows(work) => results.extend(work.others.iter().map(|(buffer, _)| *buffer)),
            Work::Maps(parts) => return parts.iter().map(|part| part.result).collect(),
            _ => {}
        }
        results
    }

    /// Returns for each of [`results`](Self::results) the node with its value, and the views of it;
    /// of a custom kernel only for the first.
    pub(crate) fn values(&self) -> Vec<Option<&Viewed>> {
        match &self.work {
            Work::Maps(parts) => parts.iter().map(|part| part.value.as_ref()).collect(),
            Work::Rows(work) => {
                let others = work.others.iter().map(|(_, value)| value.as_ref());
                std::iter::once(self.value.as_ref()).chain(others).collect()
            }
            _ => vec![self.value.as_ref()],
        }
    }
}

/// The kernels of a plan, in order.
pub(crate) struct Grouped {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) buffers: Vec<BufferInfo>,
    /// The outputs of the plan, which may share a buffer.
    pub(crate) outputs: Vec<(BufferId, Layout, DType)>,
}

impl Grouped {
    /// Marks results that depend on parameters alone, such as weights in another order.
    pub(crate) fn fold_constants(&mut self) {
        for kernel in &self.kernels {
            let origin = |id: &BufferId| self.buffers[id.index()].origin;
            let operands = kernel.operands();
            let is_constant =
                |id: &BufferId| matches!(origin(id), Origin::Param(_) | Origin::Constant);
            let is_folded = !operands.is_empty()
                && operands.iter().all(is_constant)
                && kernel.results().iter().all(|id| origin(id) == Origin::Result);
            if is_folded {
                for result in kernel.results() {
                    self.buffers[result.index()].origin = Origin::Constant;
                }
            }
        }
    }
}
