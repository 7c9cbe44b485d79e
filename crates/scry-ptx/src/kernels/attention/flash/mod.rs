//! FlashAttention: scores never leave the registers.
//!
//! On Hopper a block computes 64 rows per consumer warpgroup. One producer thread loads tiles of
//! keys and of values by TMA into two rings in shared memory. Consumers multiply with `wgmma`:
//! queries by keys (the *score MMAs*) from shared memory, and weights by values (the *value MMAs*)
//! with the weights in registers. The softmax of one consumer overlaps with the MMAs of another;
//! and each consumer issues the score MMAs of the next tile before the value MMAs of the current
//! one. On Ampere (`sm80`) a block has four warps of 16 rows each, which load the tiles that they
//! share with `cp.async`.
//!
//! Blocks are persistent, so that the first tiles of a task are loaded during the epilogue of the
//! previous one. Tiles of keys are processed from the last one to the first, so that those with
//! masked keys come first.

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
use variant::{Engine, Output, Variant};
pub use variant::{FlashPipeline, FlashTile};

use super::shape::Attention;
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, KernelBuilder};
use layout::Layout;
use params::{Operands, Params};
use schedule::Schedule;

/// A variant, with the problem that it is launched for.
#[derive(Debug)]
pub(super) struct Flash {
    attention: Attention,
    variant: Variant,
    schedule: Schedule,
}

impl Flash {
    /// Creates the kernel for operands that [`tensor_maps`] supports, with this many tasks per
    /// head: tiles of its rows, or slices of its keys.
    pub(super) fn new(
        attention: Attention,
        variant: Variant,
        tasks_per_head: u32,
        gpu: GpuSpec,
    ) -> Result<Self, PlanError> {
        let schedule = Schedule::new(&attention, &variant, tasks_per_head, gpu)?;
        Ok(Self { attention, variant, schedule })
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
        let write = |k: &KernelBuilder| write_body(k, &self.variant);
        let mut kernel = typed::kernel(&self.name(), target, [threads, 1, 1], write);
        kernel.min_blocks = Some(self.variant.tile.resident);
        kernel
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
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
        tensor_maps::interface(&self.attention, &self.variant, &self.schedule)
    }
}

/// Writes the kernel's body. On Hopper the first warpgroups of a block are the consumers, and the
/// warps after them the producer.
fn write_body(k: &KernelBuilder, variant: &Variant) {
    let params = Params::new(k, variant);
    let maps = match &params.operands {
        Operands::Maps(maps) => *maps,
        Operands::Rows(operands) => {
            k.pdl_wait();
            k.pdl_launch_dependents();
            return sm80::write(k, variant, &params, operands);
        }
    };
    let layout = Layout::new(variant);
    let shared = layout.allocate(k);
    let group = k.warp() >> 2;
    k.if_then(k.thread_id().eq(0), || {
        maps.iter().for_each(|map| k.prefetch_tensor_map(*map));
        shared.init_barriers(k);
    });
    k.sync();
    k.pdl_wait();
    k.pdl_launch_dependents();
    k.if_else(
        group.lt(variant.tile.consumers),
        || consumer::write(k, variant, &params, &shared, group),
        || producer::write(k, variant, &params, maps, &shared),
    );
}
