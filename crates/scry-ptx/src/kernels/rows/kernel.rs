//! The row kernels: the order of loads, reductions and stores.

use crate::kernels::name::Name;
use std::sync::Arc;

use super::exchange::RowReduction;
use super::format::{Elements, Format};
use super::fragment::Fragment;
use super::op::{Context, RowOp};
use super::partition::RowPartition;
use super::shape::{Rows, argument_error};
use super::thread_group::ThreadGroup;
use crate::kernels::{
    BufferAccess, BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PlanError,
    PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, KernelBuilder, Val};
use crate::types::PtxType;

/// The part of the computation that a launch executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// All of it: a thread group holds a row.
    Whole,
    /// The first half of split rows: the statistics of each slice.
    Gather,
    /// The second half: results from the statistics of all slices.
    Apply,
}

/// A launch.
#[derive(Debug)]
pub(super) struct RowKernel {
    op: Arc<dyn RowOp>,
    rows: Rows,
    format: Format,
    thread_group: ThreadGroup,
    role: Role,
    /// Slices of a row: the number of thread groups that share it.
    slices: u32,
    /// Number of blocks.
    grid: u32,
    /// The distance of [`ThreadGroup::prefetch_distance`], for rows that are not split.
    prefetch_distance: Option<u32>,
    /// Whether it starts while its predecessor runs (PDL).
    pdl: bool,
}

/// The most threads of a kernel with PDL for each multiprocessor, which holds 2048 at a time. Of
/// many blocks, each would wait before its loads, and only the first ones overlap.
const MAX_PDL_THREADS: u64 = 2 * 2048;

impl RowKernel {
    pub fn new(
        op: Arc<dyn RowOp>,
        rows: Rows,
        format: Format,
        thread_group: ThreadGroup,
        role: Role,
        gpu: GpuSpec,
    ) -> Result<Self, PlanError> {
        let vectors = (rows.length / u64::from(format.per_vector())) as u32;
        let slices =
            if role == Role::Whole { 1 } else { vectors.div_ceil(thread_group.capacity()).max(1) };
        let blocks = rows.count.div_ceil(thread_group.rows().into())
            * u64::from(thread_group.blocks * slices);
        if blocks >= 1 << 31 || rows.count >= 1 << 32 {
            let problem = format!("{} rows of {} elements", rows.count, rows.length);
            let help = "split the matrix over several calls, of fewer rows each";
            return Err(argument_error(&*op, "count", problem, help));
        }
        let prefetch_distance =
            thread_group.prefetch_distance(format, gpu).filter(|_| role == Role::Whole);
        let max_threads = MAX_PDL_THREADS * u64::from(gpu.multiprocessors);
        // Clusters hold long rows, whose registers are scarce, since loads after a wait stay there.
        let pdl = gpu.target.has(90)
            && thread_group.blocks == 1
            && blocks * u64::from(thread_group.block()) <= max_threads;
        Ok(Self {
            op,
            rows,
            format,
            thread_group,
            role,
            slices,
            grid: blocks as u32,
            prefetch_distance,
            pdl,
        })
    }

    /// Values per entry of statistics in memory: 2 or 4, of which some may be padding.
    fn stats_len(&self) -> u32 {
        self.op.empty_stats().len().next_power_of_two().max(2) as u32
    }

    /// Bytes of the statistics of all slices.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_len() * 4
    }

    fn scratch_len(&self) -> u64 {
        self.rows.count * u64::from(self.slices * self.stats_len())
    }

    /// Returns the buffers that it binds.
    pub fn buffers(&self) -> Vec<BufferParameter> {
        let Rows { count, length, element } = self.rows;
        let columns = self.op.column_operands().iter();
        let column = |name: &&'static str| BufferParameter {
            name,
            access: BufferAccess::Read,
            element,
            len: length,
        };
        let len = count * length;
        let mut buffers =
            vec![BufferParameter { name: "x", access: BufferAccess::Read, element, len }];
        if self.role != Role::Gather {
            buffers.extend(columns.map(column));
            buffers.push(BufferParameter { name: "y", access: BufferAccess::Write, element, len });
        }
        if self.role != Role::Whole {
            let access =
                if self.role == Role::Gather { BufferAccess::Write } else { BufferAccess::Read };
            let (len, element) = (self.scratch_len(), PtxType::F32);
            buffers.push(BufferParameter { name: "partials", access, element, len });
        }
        buffers
    }

    /// Returns the alignment of rows, in elements, as far as the kernel's text depends on it: for
    /// loads of column operands. Where the text is the same for all unaligned rows, it is 1.
    fn text_unit(&self) -> u32 {
        let unit = self.rows.unit(self.format);
        let ignores_alignment = self.op.column_operands().is_empty() || self.format == Format::F32;
        if ignores_alignment && unit < self.format.per_vector() { 1 } else { unit }
    }
}

impl PtxKernel for RowKernel {
    fn name(&self) -> String {
        let name = Name::new(self.op.name());
        let name = match self.role {
            Role::Whole => name,
            Role::Gather => name.with("stats"),
            Role::Apply => name.with("apply"),
        };
        let ThreadGroup { threads, blocks, vectors } = self.thread_group;
        let name = name.with(self.rows.element.name());
        let name = name.with(format_args!("{blocks}x{threads}x{vectors}"));
        let (unit, vector_unit) = (self.text_unit(), self.format.per_vector());
        name.with_if(unit != vector_unit, format_args!("vec{unit}"))
            .with_if(self.pdl, "pdl")
            .build()
    }

    fn default_target(&self) -> Target {
        if self.thread_group.blocks > 1 { Target::SM_90 } else { Target::SM_80 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [self.thread_group.block(), 1, 1];
        let mut kernel =
            typed::kernel(&self.name(), target, block, |k| Writer::new(k, self).write());
        let blocks = self.thread_group.blocks;
        kernel.min_blocks =
            self.thread_group.min_resident_blocks(&*self.op, self.rows, self.format);
        kernel.cluster = (blocks > 1).then_some([blocks, 1, 1]);
        kernel
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        self.pdl.then_some(&[])
    }

    fn launch(&self) -> LaunchShape {
        let block = [self.thread_group.block(), 1, 1];
        LaunchShape { grid: [self.grid, 1, 1], block, dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let buffers = self.buffers();
        let mut parameters: Vec<_> = (0..buffers.len()).map(Parameter::Pointer).collect();
        parameters.push(Parameter::U32(self.rows.count as u32));
        parameters.push(Parameter::U32(self.rows.length as u32));
        if self.role != Role::Whole {
            parameters.push(Parameter::U32(self.slices));
        }
        if self.role != Role::Gather {
            parameters.extend(self.op.scalar().map(|(_, scalar)| Parameter::F32(scalar)));
        }
        parameters.extend(self.prefetch_distance.map(Parameter::U32));
        KernelInterface { buffers, parameters }
    }
}

/// Writes a kernel's code, from its parameters.
struct Writer<'k, 'a> {
    k: &'k KernelBuilder,
    kernel: &'a RowKernel,
    x: Elements<'k>,
    columns: Vec<Elements<'k>>,
    y: Option<Elements<'k>>,
    scratch: Option<typed::Ptr<'k, typed::Global, f32>>,
    count: Val<'k, u32>,
    length: Val<'k, u32>,
    slices: Option<Val<'k, u32>>,
    scalar: Option<Val<'k, f32>>,
    prefetch_distance: Option<Val<'k, u32>>,
}

impl<'k, 'a> Writer<'k, 'a> {
    /// Declares the parameters, in the order of the interface.
    fn new(k: &'k KernelBuilder, kernel: &'a RowKernel) -> Self {
        let (op, writes) = (&kernel.op, kernel.role != Role::Gather);
        let split = kernel.role != Role::Whole;
        let columns = if writes { op.column_operands() } else { &[] };
        Self {
            k,
            kernel,
            x: k.pointer_param("x"),
            columns: columns.iter().map(|name| k.pointer_param(name)).collect(),
            y: writes.then(|| k.pointer_param("y")),
            scratch: split.then(|| k.pointer_param("partials")),
            count: k.scalar_param("count"),
            length: k.scalar_param("length"),
            slices: split.then(|| k.scalar_param("slices")),
            scalar: op.scalar().filter(|_| writes).map(|(name, _)| k.scalar_param(name)),
            prefetch_distance: kernel
                .prefetch_distance
                .map(|_| k.scalar_param("prefetch_distance")),
        }
    }

    fn write(&self) {
        let thread_group = self.kernel.thread_group;
        if thread_group.blocks > 1 {
            self.k.arrive_cluster_relaxed();
        }
        if self.kernel.pdl {
            self.k.pdl_wait();
            self.k.pdl_launch_dependents();
        }
        let (row, slice) = self.row_and_slice();
        let partition = self.partition(row, slice);
        let mut fragment = Fragment::load(&partition, self.x, self.kernel.op.padding());
        if let Some(prefetch_distance) = self.prefetch_distance.filter(|_| self.k.target().has(90))
        {
            self.prefetch(row, prefetch_distance);
        }
        let context = self.context(&partition);
        let reduction = RowReduction {
            op: &*self.kernel.op,
            context,
            thread_group,
            stats_len: self.kernel.stats_len(),
        };
        match self.kernel.role {
            Role::Whole => {
                let group = self.kernel.op.stats(&context, &mut fragment.items);
                let stats = reduction.reduce_group(&group);
                self.finish(&context, &partition, &fragment, [&stats, &group]);
            }
            Role::Gather => {
                let stats =
                    reduction.reduce_group(&self.kernel.op.stats(&context, &mut fragment.items));
                reduction.store_partial(
                    self.slice_stats(row).at(slice * self.kernel.stats_len()),
                    &stats,
                );
            }
            Role::Apply => {
                let slices = self.slices.expect("rows are split into slices");
                let stats = reduction.load_partials(self.slice_stats(row), slices);
                self.finish(&context, &partition, &fragment, [&stats, &[]]);
            }
        }
    }

    /// Returns the row of this thread group, and the index of its slice.
    fn row_and_slice(&self) -> (Val<'k, u32>, Val<'k, u32>) {
        let (k, thread_group) = (self.k, self.kernel.thread_group);
        let block = k.block_id(0);
        let Some(slices) = self.slices else {
            let row = (block >> thread_group.blocks.ilog2()) * thread_group.rows();
            let row = if thread_group.rows() > 1 {
                row + (k.thread_id() >> thread_group.threads.ilog2())
            } else {
                row
            };
            return (row, k.constant(0u32));
        };
        // The first launch's last rows are processed first, since some of them are still in L2.
        let last = k.block_count(0) - 1;
        let block = if self.kernel.role == Role::Apply { last - block } else { block };
        let row = block / slices;
        (row, block - row * slices)
    }

    /// Prefetches a row of a later block into L2, so that memory is busy while this block computes.
    fn prefetch(&self, row: Val<'k, u32>, prefetch_distance: Val<'k, u32>) {
        let k = self.k;
        let is_first_thread = k.thread_id().eq(0);
        k.if_then(is_first_thread & (row + prefetch_distance).lt(self.count), || {
            self.partition(row + prefetch_distance, k.constant(0u32)).prefetch(self.x);
        });
    }

    fn partition(&self, row: Val<'k, u32>, slice: Val<'k, u32>) -> RowPartition<'k> {
        let kernel = self.kernel;
        let single_row = kernel.thread_group.rows() == 1;
        RowPartition {
            k: self.k,
            format: kernel.format,
            thread_group: kernel.thread_group,
            unit: kernel.text_unit(),
            split: kernel.role != Role::Whole,
            in_bounds: (!single_row).then(|| row.lt(self.count)),
            row: if single_row { row } else { row.min(self.count - 1) },
            slice,
            length: self.length,
        }
    }

    fn context(&self, partition: &RowPartition<'k>) -> Context<'k> {
        let first = self.kernel.op.needs_first().then(|| partition.first(self.x));
        let lanes = self.kernel.thread_group.lanes();
        // Unpacking 16-bit floats twice needs fewer registers than holding `f32` values.
        let may_replace = self.kernel.role == Role::Whole && self.kernel.format == Format::F32;
        Context { k: self.k, lanes, length: self.length, first, may_replace, scalar: self.scalar }
    }

    /// Returns the address of the statistics of a row's slices.
    fn slice_stats(&self, row: Val<'k, u32>) -> typed::Ptr<'k, typed::Global, f32> {
        let (scratch, slices) = (self.scratch, self.slices);
        let (scratch, slices) = scratch.zip(slices).expect("rows are split into slices");
        let to_u64 = |value: Val<'k, u32>| value.convert::<u64>("");
        scratch.at_wide(to_u64(row) * to_u64(slices * self.kernel.stats_len()))
    }

    /// Computes and stores the results, from the statistics of the row and of the group.
    fn finish(
        &self,
        context: &Context<'k>,
        partition: &RowPartition<'k>,
        fragment: &Fragment<'k>,
        [row, group]: [&[Val<'k, f32>]; 2],
    ) {
        let op = &self.kernel.op;
        let row = op.finish(context, row, group);
        let y = self.y.expect("results are written");
        fragment
            .store(partition, y, &self.columns, |x, columns| op.apply(context, x, &row, columns));
    }
}
