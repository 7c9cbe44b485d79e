//! Attention: `out = softmax(scale * q * k^T + bias) * v` for each head of a batch.
//!
//! Queries are `queries` rows of `head_dim` columns, keys and values `keys` such rows. `heads`
//! heads of queries share `kv_heads` heads of keys and values (grouped-query attention):
//! consecutive `heads / kv_heads` heads share one. With a causal mask row `i` sees the keys
//! `0 ..= i` (aligned at the top left). A row that sees no key, or none whose bias is above minus
//! infinity, is 0. *Weights* are the exponentials of scores.
//!
//! | kernel | used for | bound by |
//! | --- | --- | --- |
//! | `flash` on Hopper | 16-bit floats, 16-byte-aligned rows | tensor cores, exponentials |
//! | the same with split-KV, then `combine` | few queries, many keys: decoding | memory |
//! | the same, after `bf16x3` | `f32`: six products of `bf16` | tensor cores |
//! | `decode`: a block computes a row | few rows of 16-bit floats, few keys | latency |
//! | `flash` on Ampere | `f16`, `bf16`, as above | tensor cores |
//! | `naive` | everything else: a warp computes a row | loads |

mod bf16x3;
mod combine;
mod decode;
mod flash;
mod naive;
mod scalar;
mod shape;

pub use flash::{FlashPipeline, FlashTile};
pub use shape::{Attention, AttentionBias, Strides};

use super::{GpuSpec, Plan, PlanError};

impl Attention {
    /// Returns the launches that compute it, with the kernel for its sizes and the GPU. Buffers are
    /// those of [`Attention::buffers`].
    ///
    /// # Errors
    /// [`PlanError::Argument`] if an argument is invalid, or the grid would be too large;
    /// [`PlanError::Target`] before `sm_80`.
    pub fn plan(&self, gpu: GpuSpec) -> Result<Plan, PlanError> {
        let arguments = self.buffers()?;
        if self.is_empty() {
            return Ok(Plan { arguments, ..Plan::default() });
        }
        // FlashAttention computes with powers of two: it needs `scale * log2(e)` as an `f32`.
        let fits_powers_of_two = (self.scale * std::f32::consts::LOG2_E).is_finite();
        let flash = if fits_powers_of_two { flash::plan(self, gpu)? } else { None };
        let plan = match flash {
            Some(plan) => plan,
            None => self.naive()?,
        };
        plan.checked_for(gpu.target)
    }

    /// Returns the FlashAttention launches with a given tile and pipeline, for measurements. `f32`
    /// and split-KV are always sequential.
    #[doc(hidden)]
    pub fn flash_with(
        &self,
        tile: FlashTile,
        pipeline: FlashPipeline,
        gpu: GpuSpec,
    ) -> Result<Plan, PlanError> {
        flash::plan_with(self, tile, pipeline, gpu)
    }

    /// Returns the launch of the naive kernel: slow, for any type and alignment, from `sm_80` on.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if an argument is invalid, or the grid would be too large.
    pub fn naive(&self) -> Result<Plan, PlanError> {
        let arguments = self.buffers()?;
        if self.is_empty() {
            return Ok(Plan { arguments, ..Plan::default() });
        }
        Ok(Plan::single(Box::new(naive::Naive::new(*self)?)))
    }
}
