//! Launches of a plan's kernels, and their preparation: row kernels, kernels of several maps, and
//! custom kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scry_gpu::{BackendKind, Batch, PreparedLaunch, UntypedBuffer};
use scry_kernels::Kernels;

use super::grouped::{BufferId, Kernel, Part, RowWork, Store, Work};
use crate::dtype::DType;
use crate::lower::{PartLaunch, RowIteration, RowWalk, StoreKind};
use crate::runtime::Runtime;

/// A prepared kernel.
pub(super) enum Prepared {
    /// There are no elements.
    Nothing,
    Map(PreparedLaunch),
    /// An operation of the library, after its result becomes what the operation adds to.
    Library(Initial, Box<scry_kernels::Op>),
    /// Results that become 0, and then the launch.
    Custom(Vec<UntypedBuffer>, Option<PreparedLaunch>),
    Copies(Vec<(UntypedBuffer, UntypedBuffer)>),
    /// Launches of shards, because buffers are above the limit of a binding.
    Shards(Vec<Prepared>),
}

/// What the result of an operation of the library is before the operation.
pub(super) enum Initial {
    /// Anything: it is overwritten, or computed from what is there.
    Any,
    Zero(UntypedBuffer),
    Copy {
        from: UntypedBuffer,
        to: UntypedBuffer,
    },
}

impl Prepared {
    pub(super) fn add_to(&self, batch: &mut Batch) -> scry_gpu::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Map(launch) => batch.run_prepared(launch).map(|_| ()),
            Self::Library(initial, op) => {
                match initial {
                    Initial::Any => {}
                    Initial::Zero(result) => _ = batch.fill(result, 0)?,
                    Initial::Copy { from, to } => _ = batch.copy(from, to)?,
                }
                op.add_to(batch)
            }
            Self::Custom(results, launch) => {
                for result in results.iter().filter(|it| !it.is_empty()) {
                    batch.fill(result, 0)?;
                }
                launch.as_ref().map_or(Ok(()), |launch| batch.run_prepared(launch).map(|_| ()))
            }
            Self::Shards(launches) => launches.iter().try_for_each(|it| it.add_to(batch)),
            Self::Copies(pairs) => {
                pairs.iter().try_for_each(|(from, to)| batch.copy(from, to).map(|_| ()))
            }
        }
    }

    /// Returns the number of launches that a kernel is split into.
    pub(super) fn shards(&self) -> usize {
        match self {
            Self::Shards(launches) => launches.len(),
            _ => 1,
        }
    }
}

/// The device of a plan, and how many kernels were compiled for it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t> {
    pub(crate) runtime: &'t Arc<Runtime>,
    /// The kernel library, with the options of the plan.
    pub(crate) library: &'t Kernels,
    pub(crate) compiles: &'t AtomicU64,
}

impl Target<'_> {
    pub(super) fn is_cuda(self) -> bool {
        self.runtime.device().backend_kind() == BackendKind::Cuda
    }
}

/// Returns an operation of the kernel library with the name of its variant.
pub(super) fn named(initial: Initial, op: scry_kernels::Op) -> (Prepared, Option<String>) {
    let variant = op.explain().variant().to_owned();
    (Prepared::Library(initial, Box::new(op)), Some(variant))
}

/// Prepares a kernel of several maps, and counts it if it is compiled.
pub(super) fn prepare_maps<'b>(
    target: Target<'_>,
    parts: &[Part],
    kernel: &Kernel,
    buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
) -> scry_gpu::Result<(Prepared, Option<String>)> {
    let (launches, operands) = part_launches(parts);
    let results = kernel.results();
    let results: Vec<_> = results.into_iter().filter_map(buffer).collect();
    let operands: Vec<_> =
        operands.into_iter().filter_map(|(id, dtype)| Some((buffer(id)?, dtype))).collect();
    let (launch, is_compiled) = target.runtime.prepare_maps(&launches, &results, &operands)?;
    target.compiles.fetch_add(is_compiled.into(), Ordering::Relaxed);
    Ok((Prepared::Map(launch), Some("maps".to_owned())))
}

/// Returns the maps of a kernel of several, and the operands of the kernel.
pub(super) fn part_launches(parts: &[Part]) -> (Vec<PartLaunch<'_>>, Vec<(BufferId, DType)>) {
    let mut operands: Vec<(BufferId, DType)> = Vec::new();
    let mut position = |of: (BufferId, DType)| {
        let known = operands.iter().position(|it| *it == of);
        known.unwrap_or_else(|| {
            operands.push(of);
            operands.len() - 1
        }) as u32
    };
    let mut launches = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let dtypes = part.map.operands.iter();
        let own = part.operands.iter().zip(dtypes);
        let own = own.map(|((id, layout), dtype)| (position((*id, *dtype)), layout.clone()));
        let operands = own.collect();
        let (store, place) = match part.store {
            Store::Words(first) => (StoreKind::Words, first),
            Store::Row { index, dtype, rows } => {
                (StoreKind::Row(position((index, dtype))), rows as u32)
            }
        };
        launches.push(PartLaunch {
            map: &part.map,
            sizes: &part.shape,
            count: part.shape.count().unwrap_or(0) as u32,
            operands,
            gathered: part.gathered,
            arguments: &part.arguments,
            result: n as u32,
            store,
            place,
        });
    }
    (launches, operands)
}

/// Returns the operands and the results of a row kernel, of which `result` is the first.
pub(super) fn row_buffers<'b>(
    work: &RowWork,
    buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
    result: &'b UntypedBuffer,
) -> [Vec<&'b UntypedBuffer>; 2] {
    let others = work.others.iter().filter_map(|(id, _)| buffer(*id));
    let results = std::iter::once(result).chain(others).collect();
    [work.operands.iter().filter_map(|it| buffer(*it)).collect(), results]
}

/// Prepares a row kernel, or a part of its rows, and counts it if it is compiled.
pub(super) fn prepare_rows(
    target: Target<'_>,
    work: &RowWork,
    (rows, walks): (u32, &[RowWalk]),
    [operands, results]: &[Vec<&UntypedBuffer>; 2],
) -> scry_gpu::Result<Prepared> {
    let RowWork { program, columns, arguments, .. } = work;
    let iteration = RowIteration { rows, columns: *columns, walks, arguments };
    let (launch, is_compiled) =
        target.runtime.prepare_rows(program, &iteration, operands, results)?;
    target.compiles.fetch_add(is_compiled.into(), Ordering::Relaxed);
    Ok(Prepared::Map(launch))
}

/// Prepares a custom kernel.
pub(super) fn prepare_custom<'b>(
    kernel: &Kernel,
    buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
) -> scry_gpu::Result<(Prepared, Option<String>)> {
    let Work::Custom { kernel: Some(custom), operands, .. } = &kernel.work else {
        return Ok((Prepared::Nothing, None));
    };
    let types = custom.outputs.iter().map(|(_, dtype)| *dtype);
    let results = kernel.results().into_iter().zip(types);
    let results: Vec<_> = results.filter_map(|(id, dtype)| Some((buffer(id)?, dtype))).collect();
    let filled = results.iter().map(|(buffer, _)| (*buffer).clone()).collect();
    let operands = operands.iter();
    let mut buffers: Vec<_> =
        operands.filter_map(|(id, dtype)| Some((buffer(*id)?, *dtype))).collect();
    buffers.extend(results);
    let launch = custom.prepare(&buffers, kernel.shape.count().unwrap_or(0))?;
    Ok((Prepared::Custom(filled, launch), Some(format!("kernel `{custom:?}`"))))
}
