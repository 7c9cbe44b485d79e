//! Products on Hopper's tensor cores (`sm_90a`): halves, and f32 as TF32 or in two parts.
//!
//! A block has a warpgroup of which a thread for each operand has TMA bring tiles of it
//! into a ring of stages in shared memory, and one to three warpgroups that multiply 64 rows each
//! and write the results. Blocks stay, and compute one part of the product after the other: the
//! operands of the next part arrive while results are written. They begin while the launch before
//! ends; where one operand is most of what is read, its tiles are on their way before that is done.
//!
//! | what | when |
//! | --- | --- |
//! | large tiles, up to 128 × 256 and 192 × 192 | many results: tensor cores are the roof |
//! | clusters of two, in which each reads half of `b` for both | long products: the cache is busy |
//! | split-K clusters of 2 to 8 blocks for a tile | few tiles: memory is the roof |
//! | parts of the depth with sums in memory, which a second kernel adds up | fewer still |
//! | the transposed product | few rows, since instructions have 64 of them |
//!
//! Which of them takes the fewest cycles a model says ([`Choice`]). Results leave through TMA where
//! lines begin and end at multiples of 16 bytes, else as words of two halves, or one by one where
//! what was there is read.

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
pub(super) use choice::Task;
pub use variant::{Bias, Early, Finish, Major, Once, Store, Tile, Variant};

use pipeline::Ring;
pub use schedule::Cut;
use schedule::Schedule;
use split_k::Inbox;
use store::Results;

use crate::kernels::gemm::{Gemm, refusal};
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Ptr, Shared};

/// Registers of a thread that has operands copied, and of one that multiplies, by the number of
/// warpgroups that do.
const REGISTERS: [Option<(u32, u32)>; 4] = [None, None, Some((40, 232)), Some((32, 160))];

/// The barrier of all threads, beside that of those that multiply.
const BARRIER: u32 = 2;

/// A product, or parts of it, on Hopper's tensor cores.
#[derive(Debug, Clone)]
pub struct HopperGemm {
    /// What is computed; operands can be copied by tiles.
    pub gemm: Gemm,
    /// What is fixed in the text.
    pub variant: Variant,
    /// How the work is cut.
    pub cut: Cut,
}

/// Tiles of the result down the rows, in clusters, and along the columns.
fn tiles(gemm: &Gemm, tile: &Tile) -> (u32, u32) {
    let rows = gemm.m.div_ceil(u64::from(tile.rows() * tile.cluster));
    (rows as u32, gemm.n.div_ceil(tile.columns.into()) as u32)
}

impl HopperGemm {
    /// A product in this many parts of K.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if there are too many tiles to count.
    pub fn new(
        gemm: Gemm,
        mut variant: Variant,
        splits: u32,
        machine: GpuSpec,
    ) -> Result<Self, PlanError> {
        let Tile { columns, cluster, .. } = variant.tile;
        let rows = variant.tile.rows();
        // As many rows as columns are computed at the same time.
        let area = machine.multiprocessors * rows * columns;
        let band = f64::from(area).sqrt() as u32 / (rows * cluster);
        let (down, across) = tiles(&gemm, &variant.tile);
        let single = |stride| gemm.batch == 1 || stride != 0;
        variant.once =
            Once { a: across == 1 && single(gemm.a.stride), b: down == 1 && single(gemm.b.stride) };
        let parts = [down, across, splits, gemm.batch as u32].map(u64::from);
        let parts = parts.into_iter().try_fold(1u64, u64::checked_mul);
        match parts.filter(|parts| *parts < schedule::PARTS.into()) {
            None => {
                let problem = format!("{down} by {across} tiles in {splits} parts, too many");
                Err(refusal("out", problem, "compute the product in parts"))
            }
            Some(parts) => {
                let clusters = match variant.store {
                    Store::Team(_) => parts as u32,
                    _ => (machine.multiprocessors / cluster).clamp(1, parts as u32),
                };
                let band = band.clamp(1, down);
                let cut = Cut { splits, band, blocks: clusters * variant.tile.blocks() };
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

    fn reads_early(&self) -> Option<&'static [usize]> {
        match self.variant.early {
            Early::None => Some(&[]),
            Early::A => Some(&[0]),
            Early::B => Some(&[1]),
        }
    }

    fn interface(&self) -> KernelInterface {
        KernelInterface { buffers: self.buffers(), parameters: self.parameters() }
    }
}

/// Writes the kernel: who copies, who multiplies.
fn write(k: &Code, variant: Variant) {
    let schedule = Schedule::new(k, variant);
    let operands = producer::Operands::new(k);
    let memory = k.dynamic_shared::<u8>(1024);
    let results = Results::new(k, variant, memory);
    begin(k, variant, || {
        operands.prefetch(k);
        prepare(k, variant, memory);
    });
    let producer = k.warp().ge(4 * variant.tile.groups);
    let registers = REGISTERS[variant.tile.groups as usize];
    k.either(
        producer,
        || {
            registers.into_iter().for_each(|(left, _)| k.release_registers(left));
            let first = k.thread_id() - variant.tile.groups * variant::WARPGROUP;
            let producer = producer::Producer { k, variant, memory, schedule, operands };
            k.when(first.equals(0), || producer.bring_a());
            k.when(first.equals(32), || producer.bring_b());
            k.sync_warp();
            split_k::attend(k, variant);
        },
        || {
            registers.into_iter().for_each(|(_, wanted)| k.claim_registers(wanted));
            consumer::write(k, variant, memory, &schedule, &results);
        },
    );
    if variant.tile.cluster > 1 {
        // Before a block ends, others tell its barriers something.
        k.sync_warp();
        k.sync_cluster();
    }
}

/// Prepares all barriers; one thread does this.
fn prepare<'k>(k: &'k Code, variant: Variant, memory: Ptr<'k, Shared, u8>) {
    let inbox = variant.has_inbox().then(|| Inbox::new(k, variant, memory));
    Ring::init(variant, memory);
    inbox.iter().for_each(Inbox::init);
    k.fence_barriers();
    inbox.iter().for_each(Inbox::expect);
}

/// Has one thread prepare barriers, for which all wait that use them; but who prepared them goes
/// on, if no other block uses them.
fn begin(k: &Code, variant: Variant, prepare: impl FnOnce()) {
    let first = k.warp().equals(4 * variant.tile.groups);
    let prepare = || {
        k.when(k.lane().equals(0), prepare);
        k.sync_warp();
    };
    if variant.tile.cluster > 1 {
        k.when(first, prepare);
        k.appear_in_cluster();
        return k.wait_cluster();
    }
    let threads = variant.threads();
    // Those who are sent sums are waited for before any are.
    let appear = || {
        if variant.has_inbox() {
            k.appear_in_cluster();
        }
    };
    let go_on = || {
        prepare();
        appear();
        k.arrive(BARRIER, threads);
    };
    let wait = || {
        appear();
        k.sync_some(BARRIER, threads);
    };
    k.either(first, go_on, wait);
}
