//! FlashAttention: scores never leave the registers.
//!
//! On Hopper a block computes 64 rows per consumer warpgroup, from tiles of keys and values that
//! one thread of the producer warpgroup loads by TMA into two rings in shared memory. Consumers use
//! `wgmma`, whose second product reads the weights from registers. The softmax of one consumer
//! overlaps with the MMAs of another; and each issues the scores of the next tile before the values
//! of the current one. On Ampere (`sm80`) a block has four warps of 16 rows each, which load their
//! own tiles with `cp.async`.
//!
//! Blocks are persistent, so that the first tiles of a task are loaded during the epilogue of the
//! previous one. Tiles are processed from the last one on, so that those with masked keys come
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
pub use variant::FlashTile;
use variant::{Engine, Form, Output, Variant};

use super::shape::Attention;
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code};
use layout::Layout;
use params::{Operands, Params};
use schedule::Schedule;

/// A variant, with the problem that it is launched for.
#[derive(Debug)]
pub(super) struct Flash {
    of: Attention,
    variant: Variant,
    schedule: Schedule,
}

impl Flash {
    /// Creates the kernel for operands that [`tensor_maps`] supports.
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

/// Writes a block on Hopper: its first warpgroups are consumers, the last one is the producer.
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
        maps.iter().for_each(|map| k.prefetch_tensor_map(*map));
        shared.prepare(k);
    });
    k.sync();
    k.either(
        group.lt(variant.tile.consumers),
        || consumer::compute(k, variant, &params, &shared, group),
        || producer::copy(k, variant, &params, maps, &shared),
    );
}
