//! Dequantises blocks on the GPU.

use super::format::{BlockFormat, SPAN};
use super::lane_weights::LaneWeights;
use super::matvec_shape::argument_error;
use super::to_u64;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, Plan, PlanError,
    PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Bf16x2, F16x2, Global, KernelBuilder, Ptr, Val, pack};
use crate::types::PtxType;

/// Warps per block; each dequantises a span of 256 weights.
const WARPS: u32 = 8;

/// The kernel: each lane dequantises 8 of 256 weights, and stores them as vectors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DequantizeWeights {
    format: BlockFormat,
    element: PtxType,
    count: u64,
}

/// Returns the launch that dequantises `count` weights of a buffer of blocks to `F16`, `Bf16` or
/// `F32`: the same values as [`super::dequantize`], rounded to that type.
///
/// # Errors
/// [`PlanError::Argument`] if `count` is not a multiple of the block size, the grid would be too
/// large, or the type is not supported.
pub fn dequantize_plan(
    format: BlockFormat,
    element: PtxType,
    count: u64,
) -> Result<Plan, PlanError> {
    let block = format.block_len() as u64;
    if !count.is_multiple_of(block) {
        let problem = format!("{count}, not a multiple of {block}");
        return Err(argument_error("dequantize", "count", problem, "pass whole blocks"));
    }
    if count.div_ceil(u64::from(WARPS * SPAN)) >= 1 << 31 {
        return Err(argument_error(
            "dequantize",
            "count",
            format!("{count}, above the limit of a launch"),
            "split the weights over several calls",
        ));
    }
    if !matches!(element, PtxType::F32 | PtxType::F16 | PtxType::Bf16) {
        return Err(argument_error(
            "dequantize",
            "element",
            element.name().to_owned(),
            "use f32, f16 or bf16",
        ));
    }
    let kernel = DequantizeWeights { format, element, count };
    if count == 0 {
        return Ok(Plan { arguments: kernel.interface().buffers, ..Plan::default() });
    }
    Ok(Plan::single(Box::new(kernel)))
}

impl DequantizeWeights {
    fn body(&self, k: &KernelBuilder) {
        let (blocks, y) = (k.pointer_param::<u8>("blocks"), k.pointer_param::<u32>("y"));
        let count = k.scalar_param::<u64>("count");
        let lane = k.lane();
        let span = to_u64(k.block_id(0)) * u64::from(WARPS) + to_u64(k.thread_id() >> 5);
        let first = span * u64::from(SPAN) + to_u64(lane * 8);
        k.if_then(first.lt(count), || {
            let at = blocks.at_wide(span * u64::from(self.format.span_bytes()));
            let weights = LaneWeights::load(k, self.format, at, lane).weights();
            self.store(y, first, weights);
        });
    }

    fn store<'k>(&self, y: Ptr<'k, Global, u32>, first: Val<'k, u64>, weights: [Val<'k, f32>; 8]) {
        let at = y.cast::<u16>();
        let pairs = |pack: fn(Val<'k, f32>, Val<'k, f32>) -> Val<'k, u32>| {
            std::array::from_fn::<_, 4, _>(|nth| pack(weights[2 * nth], weights[2 * nth + 1]))
        };
        match self.element {
            PtxType::F16 => {
                let pairs = pairs(|low, high| pack::<F16x2>(low, high).cast());
                at.at_wide(first).cast::<u32>().store_vector(pairs);
            }
            PtxType::Bf16 => {
                let pairs = pairs(|low, high| pack::<Bf16x2>(low, high).cast());
                at.at_wide(first).cast::<u32>().store_vector(pairs);
            }
            _ => {
                let [a, b, c, d, e, f, g, h] = weights;
                let at = y.cast::<f32>().at_wide(first);
                at.store_vector([a, b, c, d]);
                at.at(4).store_vector([e, f, g, h]);
            }
        }
    }
}

impl PtxKernel for DequantizeWeights {
    fn name(&self) -> String {
        Name::new("dequantize").with(self.format.name()).with(self.element.name()).build()
    }

    fn default_target(&self) -> Target {
        // Packing two 16-bit floats is an instruction of `sm_80`.
        if self.element == PtxType::F32 { Target::SM_75 } else { Target::SM_80 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [WARPS * 32, 1, 1], |k| self.body(k))
    }

    fn launch(&self) -> LaunchShape {
        let blocks = self.count.div_ceil(u64::from(WARPS * SPAN));
        LaunchShape { grid: [blocks as u32, 1, 1], block: [WARPS * 32, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let blocks = self.count / self.format.block_len() as u64;
        let bytes = blocks * self.format.block_bytes() as u64;
        let (read, write) = (BufferAccess::Read, BufferAccess::Write);
        KernelInterface {
            buffers: vec![
                BufferParameter { name: "blocks", access: read, element: PtxType::B8, len: bytes },
                BufferParameter {
                    name: "y",
                    access: write,
                    element: self.element,
                    len: self.count,
                },
            ],
            parameters: vec![
                Parameter::Pointer(0),
                Parameter::Pointer(1),
                Parameter::U64(self.count),
            ],
        }
    }
}
