//! The flash form: scores never leave the registers.
//!
//! On Hopper a block computes 64 rows for each of its consumer warpgroups, from tiles of keys and
//! values that one thread behind them, the producer, has copied into two rings of shared memory.
//! Consumers multiply by tensor cores, whose second product takes the weights straight from
//! registers. While one consumer weighs scores, another one's products run; and each starts the
//! scores of the next tile before the values of the last one. On Ampere (`warps`) a block is four
//! warps of 16 rows each, which copy what they multiply.
//!
//! Blocks stay, and take one task after the other, so that the first tiles of one are copied while
//! the last one ends. Tiles are taken from the last one on, so that those with hidden keys come
//! first.

mod bias;
mod choice;
mod consumer;
mod epilogue;
mod layout;
mod params;
mod producer;
mod schedule;
mod sm80;
mod softmax;
mod strip;
mod tensor_maps;
mod variant;

pub(super) use choice::{plan, plan_with};
pub use variant::Tile;
use variant::{Engine, Form, Output, Variant};

use super::shape::Attention;
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code};
use layout::Layout;
use params::{Operands, Params};
use schedule::Schedule;

/// A variant, with the sizes that it is launched for.
#[derive(Debug)]
pub(super) struct Flash {
    of: Attention,
    variant: Variant,
    schedule: Schedule,
}

impl Flash {
    /// A kernel for operands that [`tensor_maps::suits`].
    pub(super) fn new(
        of: Attention,
        variant: Variant,
        pieces: u32,
        machine: GpuSpec,
    ) -> Result<Self, PlanError> {
        let schedule = Schedule::new(&of, &variant, pieces, machine)?;
        Ok(Self { of, variant, schedule })
    }
}

impl PtxKernel for Flash {
    fn name(&self) -> String {
        self.variant.name()
    }

    fn default_target(&self) -> Target {
        match self.variant.engine {
            Engine::Hopper => Target::SM_90A,
            Engine::Ampere => Target::SM_80,
        }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let threads = self.variant.threads();
        let write = |k: &Code| block(k, &self.variant);
        let mut kernel = typed::kernel(&self.name(), target, [threads, 1, 1], write);
        kernel.min_blocks = Some(self.variant.tile.resident);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let block = [self.variant.threads(), 1, 1];
        let dynamic_shared = match self.variant.engine {
            Engine::Hopper => Layout::new(&self.variant).bytes(),
            Engine::Ampere => sm80::shared_bytes(&self.variant),
        };
        LaunchShape { grid: [self.schedule.blocks, 1, 1], block, dynamic_shared }
    }

    fn interface(&self) -> KernelInterface {
        tensor_maps::interface(&self.of, &self.variant, &self.schedule)
    }
}

/// What a block does on Hopper: its first warpgroups compute, the last one copies.
fn block(k: &Code, variant: &Variant) {
    let params = Params::new(k, variant);
    let maps = match &params.operands {
        Operands::Maps(maps) => *maps,
        Operands::Rows(operands) => return sm80::compute(k, variant, &params, operands),
    };
    let layout = Layout::new(variant);
    let shared = layout.place(k);
    let group = k.warp() >> 2;
    k.when(k.thread_id().equals(0), || {
        maps.iter().for_each(|map| k.prefetch_map(*map));
        shared.prepare(k);
    });
    k.sync();
    k.either(
        group.lt(variant.tile.consumers),
        || consumer::compute(k, variant, &params, &shared, group),
        || producer::copy(k, variant, &params, maps, &shared),
    );
}
