//! Reductions of row kernels, one by one: in their order, so that kernels can be compared closely,
//! and compared with those of the kernel library.

use std::collections::BTreeMap;

use super::bound_graph::BoundGraph;
use super::grouped::Work;
use super::node::NodeId;
use super::specialised::Specialised;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::{Expression, Map};
use crate::lower::{RowIteration, RowProgram, RowReduction, RowSource, RowStep, RowWalk};
use crate::op::{Library, Op, Reduce, View, packed_bytes};
use crate::shape::{Layout, Shape};
use crate::stored::Stored;
use crate::waiting::Waiting;

/// How a row kernel reduces a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowOrder {
    /// The kernel, by position.
    pub(super) kernel: usize,
    reduction: RowReduction,
    threads: u32,
    width: u32,
}

/// The order of the reductions that row kernels compute, by the nodes that were recorded.
pub(super) type RowOrders = BTreeMap<NodeId, RowOrder>;

/// Returns the orders of a plan.
pub(super) fn orders(specialised: &Specialised) -> RowOrders {
    let mut orders = RowOrders::new();
    for (kernel, position) in specialised.grouped.kernels.iter().zip(0..) {
        let Work::Rows(work) = &kernel.work else { continue };
        let RowProgram { steps, threads, width, .. } = &work.program;
        let reductions = steps.iter().filter_map(|step| match step {
            RowStep::Reduce(reduction, ..) => Some(*reduction),
            _ => None,
        });
        for (reduction, node) in reductions.zip(&work.reductions) {
            let (threads, width) = (*threads, *width);
            let order = RowOrder { kernel: position, reduction, threads, width };
            orders.insert(specialised.graph.nodes[node.index()].origin, order);
        }
    }
    orders
}

/// Returns the map that converts elements.
fn conversion(from: DType, to: DType) -> Map {
    let mut e = Expression::default();
    let x = e.operand(from);
    e.finish(x, to)
}

impl RowOrder {
    /// Computes a reduction.
    pub(super) fn reduce(
        self,
        call: Call,
        reduce: &Reduce,
        x: &Stored,
        shape: &Shape,
    ) -> Result<Stored> {
        let x = arranged(call, reduce, x)?;
        let (runtime, dtype) = (&x.runtime, x.dtype);
        let rows = shape.count().unwrap_or(0);
        let columns = x.shape().count().unwrap_or(0) / rows.max(1);
        let whole = Layout::contiguous([rows, columns].into());
        let walks = [RowWalk::new(&whole, 1)];
        let mut steps = vec![RowStep::Reduce(self.reduction, dtype, RowSource::Memory(0))];
        // A row kernel stores results of rows as words: those of 16 bits are converted exactly.
        let stored = if dtype.size() == 4 { dtype } else { DType::F32 };
        if stored != dtype {
            let map = conversion(dtype, stored);
            steps.push(RowStep::Row(map.into(), vec![RowSource::Step(0)]));
        }
        let accesses = vec![walks[0].access(0)];
        let Self { threads, width, .. } = self;
        let program = RowProgram {
            operands: vec![dtype],
            accesses,
            steps,
            stored: Vec::new(),
            threads,
            // Of no influence on the order.
            held: 0,
            width,
        };
        let (rows, columns) = (rows as u32, columns as u32);
        let iteration = RowIteration { rows, columns, walks: &walks, arguments: &[] };
        let run = || {
            let result = runtime.device().alloc_untyped(None, packed_bytes(shape, stored))?;
            runtime.prepare_rows(&program, &iteration, &[&x.buffer], &[&result])?.0.run()?;
            Ok(result)
        };
        let buffer = run().map_err(|error| call.gpu(error))?;
        let layout = Layout::contiguous(shape.clone());
        let result = Stored { runtime: runtime.clone(), buffer, layout, dtype: stored };
        match stored == dtype {
            true => Ok(result),
            false => Op::map(conversion(stored, dtype), Vec::new()).run(call, &[&result]),
        }
    }

    /// Returns the bound of the difference between two orders, for each result.
    async fn bounds(
        self,
        call: Call,
        reduce: &Reduce,
        x: &Stored,
        waiting: Waiting,
    ) -> Result<Vec<f64>> {
        let device = x.runtime.device().clone();
        let (of, x) = (reduce.clone(), x.clone());
        let arrange = move || arranged(call, &of, &x);
        let x = waiting.compile(call, &device, arrange).await?;
        let reduced = reduce.axes.iter().filter(|axis| **axis).count();
        let columns: usize = x.shape()[x.shape().rank() - reduced..].iter().product();
        let elements = x.floats(call, waiting).await?.unwrap_or_default();
        let sums = elements.chunks(columns.max(1));
        let sums = sums.map(|row| row.iter().map(|x| x.abs()).sum::<f64>());
        let divisor = if self.reduction == RowReduction::Mean { columns as f64 } else { 1.0 };
        // Both have errors of at most 48 units.
        Ok(sums.map(|sum| sum / divisor * 96.0 / 16_777_216.0).collect())
    }

    /// Returns the first result that differs from that of the kernel library, and both, if one
    /// does.
    pub(super) async fn difference(
        self,
        call: Call,
        graph: &BoundGraph,
        id: NodeId,
        values: &[Stored],
        waiting: Waiting,
    ) -> Result<Option<(usize, f64, f64)>> {
        let node = &graph.nodes[id.index()];
        let super::node::Content::Op(op) = &node.content else { return Ok(None) };
        let Op::Library(Library::Reduce(reduce)) = op else { return Ok(None) };
        let x = &values[node.sources[0].index()];
        let own = &values[id.index()];
        let (op, source, at) = (op.clone(), x.clone(), node.call);
        let run = move || op.run(at, &[&source]);
        let wanted = waiting.compile(call, x.runtime.device(), run).await?;
        let is_sum = matches!(self.reduction, RowReduction::Sum | RowReduction::Mean);
        let bounds = match (is_sum, node.dtype) {
            (true, DType::F32 | DType::F16 | DType::BF16) => {
                self.bounds(call, reduce, x, waiting).await?
            }
            _ => vec![0.0; own.shape().count().unwrap_or(0)],
        };
        let unit = match node.dtype {
            DType::F16 => 1.0 / 1024.0,
            DType::BF16 => 1.0 / 128.0,
            _ => 1.0 / 8_388_608.0,
        };
        let agrees = |((a, b), bound): ((f64, f64), f64)| {
            let is_same = a == b || a.is_nan() && b.is_nan();
            // Sums near the largest number may overflow in one order only.
            let is_finite = a.is_finite() && b.is_finite();
            let may_overflow = is_sum && !is_finite && (bound.is_nan() || bound >= 1e30);
            is_same || may_overflow || bound > 0.0 && (a - b).abs() <= bound + unit * b.abs()
        };
        let own = wide(call, own, waiting).await?;
        let wanted = wide(call, &wanted, waiting).await?;
        let pairs = own.into_iter().zip(wanted).zip(bounds);
        let mut pairs = pairs.enumerate();
        let found = pairs.find(|(_, pair)| !agrees(*pair));
        Ok(found.map(|(position, ((own, wanted), _))| (position, own, wanted)))
    }
}

/// Returns the elements of numbers.
async fn wide(call: Call, x: &Stored, waiting: Waiting) -> Result<Vec<f64>> {
    Ok(match x.dtype {
        DType::I32 => x.read_by::<i32>(call, waiting).await?.into_iter().map(f64::from).collect(),
        DType::U32 => x.read_by::<u32>(call, waiting).await?.into_iter().map(f64::from).collect(),
        _ => x.floats(call, waiting).await?.unwrap_or_default(),
    })
}

/// Returns the elements with the reduced axes last, packed.
fn arranged(call: Call, reduce: &Reduce, x: &Stored) -> Result<Stored> {
    let shapes = [x.shape()];
    let views: Vec<View> = Library::Reduce(reduce.clone()).view(0, &shapes);
    let mut x = x.clone();
    for view in views {
        x = Op::View(view).run(call, &[&x])?;
    }
    if x.is_packed() { Ok(x) } else { x.copied(call) }
}
