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
//! and end at multiples of 16 bytes, otherwise as words of two 16-bit floats, or one by one where
//! `out` is read.

mod choice;
mod consumer;
mod params;
mod pipeline;
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

use crate::kernels::gemm::{Gemm, refusal};
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Ptr, Shared};

/// Registers per thread of the producers and of the consumers (`setmaxnreg`), by the number of
/// consumer warpgroups.
const REGISTERS: [Option<(u32, u32)>; 4] = [None, None, Some((40, 232)), Some((32, 160))];

/// The named barrier of all threads; another one is that of the consumers.
const BARRIER: u32 = 2;

/// A GEMM, or its split-K slices, on Hopper's tensor cores.
#[derive(Debug, Clone)]
pub struct HopperGemm {
    /// The GEMM; TMA must be able to load its operands.
    pub gemm: Gemm,
    /// The compile-time parameters.
    pub variant: Variant,
    /// How the work is divided.
    pub cut: WorkDivision,
}

/// Returns the rows of clusters of tiles, and the columns of tiles, of the result.
fn tiles(gemm: &Gemm, tile: &HopperTile) -> (u32, u32) {
    let rows = gemm.m.div_ceil(u64::from(tile.rows() * tile.cluster));
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
        let HopperTile { columns, cluster, .. } = variant.tile;
        let rows = variant.tile.rows();
        // The resident tiles cover as many rows as columns.
        let area = gpu.multiprocessors * rows * columns;
        let band = f64::from(area).sqrt() as u32 / (rows * cluster);
        let (down, across) = tiles(&gemm, &variant.tile);
        let single = |stride| gemm.batch == 1 || stride != 0;
        variant.once = Streamed {
            a: across == 1 && single(gemm.a.stride),
            b: down == 1 && single(gemm.b.stride),
        };
        let items = [down, across, splits, gemm.batch as u32].map(u64::from);
        let items = items.into_iter().try_fold(1u64, u64::checked_mul);
        match items.filter(|items| *items < schedule::MAX_WORK_ITEMS.into()) {
            None => {
                let problem = format!("{down} by {across} tiles in {splits} parts, too many");
                Err(refusal("out", problem, "compute the product in parts"))
            }
            Some(items) => {
                let clusters = match variant.store {
                    Store::Cluster(_) => items as u32,
                    _ => (gpu.multiprocessors / cluster).clamp(1, items as u32),
                };
                let band = band.clamp(1, down);
                let cut = WorkDivision { splits, band, blocks: clusters * variant.tile.blocks() };
                Ok(Self { gemm, variant, cut })
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
        let mut kernel = typed::kernel(&self.name(), target, block, |k| write(k, variant));
        kernel.min_blocks = Some(1);
        let blocks = variant.tile.blocks();
        kernel.cluster = (blocks > 1).then_some([blocks, 1, 1]);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: [self.cut.blocks, 1, 1],
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
fn write(k: &Code, variant: Variant) {
    let schedule = Schedule::new(k, variant);
    let operands = producer::Operands::new(k);
    let memory = k.dynamic_shared::<u8>(1024);
    let results = Results::new(k, variant, memory);
    init_barriers(k, variant, || {
        operands.prefetch(k);
        init(k, variant, memory);
    });
    let producer = k.warp().ge(4 * variant.tile.groups);
    let registers = REGISTERS[variant.tile.groups as usize];
    k.either(
        producer,
        || {
            registers.into_iter().for_each(|(left, _)| k.release_registers(left));
            let first = k.thread_id() - variant.tile.groups * variant::WARPGROUP;
            let producer = producer::Producer { k, variant, memory, schedule, operands };
            k.when(first.equals(0), || producer.load_a());
            k.when(first.equals(32), || producer.load_b());
            k.sync_warp();
            split_k::wait_for_peers(k, variant);
        },
        || {
            registers.into_iter().for_each(|(_, wanted)| k.claim_registers(wanted));
            consumer::write(k, variant, memory, &schedule, &results);
        },
    );
    if variant.tile.cluster > 1 {
        // Before a block exits, other blocks may still arrive at its barriers.
        k.sync_warp();
        k.sync_cluster();
    }
}

/// Initialises all barriers; executed by one thread.
fn init<'k>(k: &'k Code, variant: Variant, memory: Ptr<'k, Shared, u8>) {
    let receive = variant.has_receive_buffer().then(|| ReceiveBuffer::new(k, variant, memory));
    Ring::init(variant, memory);
    receive.iter().for_each(ReceiveBuffer::init);
    k.fence_mbarrier_init();
    receive.iter().for_each(ReceiveBuffer::expect);
}

/// Lets one thread initialise the barriers; all threads that use them wait for it. Without a
/// cluster that thread's own warp does not wait.
fn init_barriers(k: &Code, variant: Variant, init: impl FnOnce()) {
    let first = k.warp().equals(4 * variant.tile.groups);
    let init_by_leader = || {
        k.when(k.lane().equals(0), init);
        k.sync_warp();
    };
    if variant.tile.cluster > 1 {
        k.when(first, init_by_leader);
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
        k.arrive(BARRIER, threads);
    };
    let wait = || {
        arrive_at_cluster();
        k.sync_named(BARRIER, threads);
    };
    k.either(first, lead, wait);
}
