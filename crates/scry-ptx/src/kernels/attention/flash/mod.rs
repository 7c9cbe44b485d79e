//! The flash form, for Hopper: scores never leave the registers.
//!
//! A block computes 64 rows for each of its consumer warpgroups, from tiles of keys and values that
//! one thread of a further warpgroup, the producer, has copied into two rings of shared memory.
//! Consumers multiply by tensor cores, whose second product takes the weights straight from
//! registers. While one consumer weighs scores, another one's products run; and each starts the
//! scores of the next tile before the values of the last one.
//!
//! Tiles are taken from the last one on, so that those with hidden keys come first.

mod consumer;
mod epilogue;
mod layout;
mod maps;
mod params;
mod producer;
mod softmax;
mod variant;

pub(super) use maps::{plan, plan_with};
pub use variant::Tile;
use variant::{Form, Output, Variant};

use super::shape::{Attention, refusal};
use crate::kernels::{Interface, Kernel, KernelError, LaunchShape};
use crate::module::PtxKernel;
use crate::target::Target;
use crate::typed::{self, Code};
use layout::Layout;
use params::Params;

/// Bytes of keys and values that blocks which run at the same time should share.
const NEAR: u64 = 24 << 20;

/// A variant, with the sizes that it is launched for.
#[derive(Debug)]
pub(super) struct Flash {
    of: Attention,
    variant: Variant,
    /// Tiles of rows of a head, or parts that its keys are split in.
    pieces: u32,
    /// Heads whose blocks are launched alternately.
    section: u32,
    blocks: u32,
}

impl Flash {
    /// A kernel for operands that [`maps::suits`].
    pub(super) fn new(of: Attention, variant: Variant, pieces: u32) -> Result<Self, KernelError> {
        let heads = if variant.packed() { of.kv_heads } else { of.heads };
        let all = u64::from(of.batch) * u64::from(heads);
        let blocks = u32::try_from(all * u64::from(pieces)).ok().filter(|n| *n < 1 << 31);
        let too_many = || refusal("queries", format!("{} in all", of.queries), "split the batch");
        let bytes = 4 * u64::from(of.keys) * u64::from(variant.width * variant.parts);
        let section = if variant.causal { (NEAR / bytes).clamp(1, all) as u32 } else { 1 };
        Ok(Self { of, variant, pieces, section, blocks: blocks.ok_or_else(too_many)? })
    }

    fn layout(&self) -> Layout {
        Layout::new(&self.variant)
    }
}

impl Kernel for Flash {
    fn name(&self) -> String {
        self.variant.name()
    }

    fn default_target(&self) -> Target {
        Target::SM_90A
    }

    fn write(&self, target: Target) -> PtxKernel {
        let threads = self.variant.threads();
        let write = |k: &Code| block(k, &self.variant);
        let mut kernel = typed::kernel(&self.name(), target, [threads, 1, 1], write);
        kernel.min_blocks = Some(self.variant.resident());
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let block = [self.variant.threads(), 1, 1];
        let dynamic_shared = self.layout().bytes();
        LaunchShape { grid: [self.blocks, 1, 1], block, dynamic_shared }
    }

    fn interface(&self) -> Interface {
        params::interface(self)
    }
}

/// What a block does: its first warpgroup copies, the others compute.
fn block(k: &Code, variant: &Variant) {
    let params = Params::new(k, variant);
    let layout = Layout::new(variant);
    let shared = layout.place(k);
    let thread = k.thread_id();
    let group = k.warp() >> 2;
    k.when(thread.equals(0), || shared.prepare(k));
    k.sync();
    let task = params.task(k, variant);
    k.either(
        group.equals(0),
        || producer::copy(k, variant, &params, &shared, &task),
        || consumer::compute(k, variant, &params, &shared, &task, group - 1),
    );
}
