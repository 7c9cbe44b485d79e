//! GEMM on Hopper's tensor cores (`wgmma`, `sm_90a`): `f16` and `bf16`, and `f32` as TF32 or
//! TF32x3.
//!
//! The kernel is warp-specialised: in a producer warpgroup one thread per operand issues TMA loads
//! into a ring of pipeline stages in shared memory; one to three consumer warpgroups multiply 64
//! rows each and store the results. Blocks are persistent: they compute one work item after the
//! other, and the operands of the next one arrive during the epilogue. Kernels use programmatic
//! dependent launch (PDL): where one operand dominates the traffic, its tiles are loaded before the
//! preceding kernel has finished.
//!
//! | variant | used for |
//! | --- | --- |
//! | large tiles, up to 128 × 256 and 192 × 192 | many results: compute-bound |
//! | clusters of two with multicast of `b` | large GEMMs: L2-bound |
//! | split-K over clusters of 2 to 8 blocks | few tiles: memory-bound |
//! | split-K through global memory, with a reduction kernel | even fewer tiles |
//! | the transposed GEMM | few rows, since MMA instructions have 64 of them |
//!
//! A cost model chooses among them ([`Choice`]). Results are stored through TMA where rows start
//! and end at multiples of 16 bytes, otherwise as words of two 16-bit floats; or one by one if they
//! are `f32`, if tiles are narrow, where `out` is read, and by split-K clusters.

mod choice;
mod consumer;
mod params;
mod pipeline;
mod portfolio;
mod producer;
mod schedule;
mod split_k;
mod store;
mod store_16bit;
mod store_unaligned;
mod variant;

pub use choice::Choice;
pub(super) use choice::Problem;
pub use variant::{
    BiasAxis, EpilogueKind, HopperTile, Major, PdlPrefetch, Store, Streamed, Variant,
};

use pipeline::Ring;
use schedule::Schedule;
pub use schedule::WorkDivision;
use split_k::ReceiveBuffer;
use store::Results;

use crate::kernels::gemm::{Gemm, SPLIT_PRODUCT, argument_error};
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, KernelBuilder, Ptr, Shared};

/// Registers per thread of the producers and of the consumers (`setmaxnreg`), by the number of
/// consumer warpgroups; `None` if they are not reallocated. A block has at most the 65536 registers
/// of a multiprocessor.
const REGISTERS: [Option<(u32, u32)>; 4] = [None, None, Some((40, 232)), Some((32, 160))];

/// The named barrier of all threads of a block; barrier 1 is that of the consumers
/// ([`split_k`]).
const BLOCK_BARRIER: u32 = 2;

/// A GEMM, or its split-K slices, on Hopper's tensor cores.
#[derive(Debug, Clone)]
pub struct HopperGemm {
    /// The GEMM; TMA must be able to load its operands.
    pub gemm: Gemm,
    /// The compile-time parameters.
    pub variant: Variant,
    /// How the work is divided.
    pub division: WorkDivision,
}

/// Returns the number of tiles of the result along M, in clusters, and along N.
fn tiles(gemm: &Gemm, tile: &HopperTile) -> (u32, u32) {
    let rows = gemm.m.div_ceil(u64::from(tile.rows() * tile.cluster_m));
    (rows as u32, gemm.n.div_ceil(tile.columns.into()) as u32)
}

impl HopperGemm {
    /// Creates a GEMM with this many slices of K.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if there are too many tiles to count.
    pub fn new(
        gemm: Gemm,
        mut variant: Variant,
        splits: u32,
        gpu: GpuSpec,
    ) -> Result<Self, PlanError> {
        let HopperTile { columns, cluster_m, .. } = variant.tile;
        let rows = variant.tile.rows();
        // The tiles that are computed at the same time cover about as many rows as columns, which
        // minimises the operands that they read.
        let resident_elements = gpu.multiprocessors * rows * columns;
        let band = f64::from(resident_elements).sqrt() as u32 / (rows * cluster_m);
        let (tile_rows, tile_columns) = tiles(&gemm, &variant.tile);
        let is_batched = |stride| gemm.batch == 1 || stride != 0;
        variant.streamed = Streamed {
            a: tile_columns == 1 && is_batched(gemm.a.stride),
            b: tile_rows == 1 && is_batched(gemm.b.stride),
        };
        let work_items = [tile_rows, tile_columns, splits, gemm.batch as u32].map(u64::from);
        let work_items = work_items.into_iter().try_fold(1u64, u64::checked_mul);
        match work_items.filter(|work_items| *work_items < schedule::MAX_WORK_ITEMS.into()) {
            None => {
                let batch = gemm.batch;
                let problem = format!(
                    "{tile_rows} by {tile_columns} tiles with split-K {splits} in a batch of \
                     {batch}, too many"
                );
                Err(argument_error("out", problem, SPLIT_PRODUCT))
            }
            Some(work_items) => {
                let clusters = match variant.store {
                    Store::Cluster(_) => work_items as u32,
                    _ => (gpu.multiprocessors / cluster_m).clamp(1, work_items as u32),
                };
                let band = band.clamp(1, tile_rows);
                let division =
                    WorkDivision { splits, band, blocks: clusters * variant.tile.blocks() };
                Ok(Self { gemm, variant, division })
            }
        }
    }
}

impl PtxKernel for HopperGemm {
    fn name(&self) -> String {
        self.variant.name()
    }

    fn default_target(&self) -> Target {
        Target::SM_90A
    }

    fn write(&self, target: Target) -> PtxEntry {
        let variant = self.variant;
        let block = [variant.threads(), 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| write_body(k, variant));
        kernel.min_blocks = Some(1);
        let blocks = variant.tile.blocks();
        kernel.cluster = (blocks > 1).then_some([blocks, 1, 1]);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: [self.division.blocks, 1, 1],
            block: [self.variant.threads(), 1, 1],
            dynamic_shared: self.variant.shared_bytes(),
        }
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        match self.variant.pdl {
            PdlPrefetch::None => Some(&[]),
            PdlPrefetch::A => Some(&[0]),
            PdlPrefetch::B => Some(&[1]),
        }
    }

    fn interface(&self) -> KernelInterface {
        KernelInterface { buffers: self.buffers(), parameters: self.parameters() }
    }
}

/// Writes the kernel: dispatches to producers and consumers.
fn write_body(k: &KernelBuilder, variant: Variant) {
    let schedule = Schedule::new(k, variant);
    let operands = producer::Operands::new(k);
    let memory = k.dynamic_shared::<u8>(1024);
    let results = Results::new(k, variant, memory);
    init_barriers(k, variant, || {
        operands.prefetch(k);
        write_initialisation(k, variant, memory);
    });
    let producer = k.warp().ge(4 * variant.tile.warpgroups);
    let registers = REGISTERS[variant.tile.warpgroups as usize];
    k.if_else(
        producer,
        || {
            registers
                .into_iter()
                .for_each(|(producer_registers, _)| k.setmaxnreg_dec(producer_registers));
            let producer_thread = k.thread_id() - variant.tile.warpgroups * variant::WARPGROUP;
            let producer = producer::Producer { k, variant, memory, schedule, operands };
            k.if_then(producer_thread.eq(0), || producer.load_a());
            k.if_then(producer_thread.eq(32), || producer.load_b());
            k.sync_warp();
            split_k::wait_for_peers(k, variant);
        },
        || {
            registers
                .into_iter()
                .for_each(|(_, consumer_registers)| k.setmaxnreg_inc(consumer_registers));
            consumer::write(k, variant, memory, &schedule, &results);
        },
    );
    if variant.tile.cluster_m > 1 {
        // Before a block exits, other blocks may still arrive at its barriers.
        k.sync_warp();
        k.sync_cluster();
    }
}

/// Writes the initialisation of all barriers; executed by one thread.
fn write_initialisation<'k>(k: &'k KernelBuilder, variant: Variant, memory: Ptr<'k, Shared, u8>) {
    let receive = variant.has_receive_buffer().then(|| ReceiveBuffer::new(k, variant, memory));
    Ring::init(variant, memory);
    receive.iter().for_each(ReceiveBuffer::init);
    k.fence_mbarrier_init();
    receive.iter().for_each(ReceiveBuffer::expect);
}

/// Writes code with which one thread executes `init`, and the threads that use the barriers wait
/// until it has done so. Without multicast that thread's own warp does not wait.
fn init_barriers(k: &KernelBuilder, variant: Variant, init: impl FnOnce()) {
    let is_initialising_warp = k.warp().eq(4 * variant.tile.warpgroups);
    let init_by_leader = || {
        k.if_then(k.lane().eq(0), init);
        k.sync_warp();
    };
    if variant.tile.cluster_m > 1 {
        k.if_then(is_initialising_warp, init_by_leader);
        k.arrive_cluster_relaxed();
        return k.wait_cluster();
    }
    let threads = variant.threads();
    // Peers must be running before partial sums are sent to them.
    let arrive_at_cluster = || {
        if variant.has_receive_buffer() {
            k.arrive_cluster_relaxed();
        }
    };
    let lead = || {
        init_by_leader();
        arrive_at_cluster();
        k.arrive(BLOCK_BARRIER, threads);
    };
    let wait = || {
        arrive_at_cluster();
        k.sync_named(BLOCK_BARRIER, threads);
    };
    k.if_else(is_initialising_warp, lead, wait);
}
