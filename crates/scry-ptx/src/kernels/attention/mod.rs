//! Attention: `out = softmax(scale * q * k^T + bias) * v` for each head of a batch.
//!
//! Queries are `queries` rows of `head_dim` columns, keys and values `keys` such rows. `heads`
//! heads of queries share `kv_heads` heads of keys and values, this many neighbours each. Causal
//! attention lets row `i` see the keys `0 ..= i` (aligned at the top left). A row that sees no key,
//! or none whose bias is above minus infinity, is 0.
//!
//! | form | when | limited by |
//! | --- | --- | --- |
//! | `flash` on Hopper | halves, in rows of multiples of 16 bytes | tensor cores, exponentials |
//! | the same, split, and `combine` | few queries, many keys: decoding | memory |
//! | the same, after `split` | f32: six products of bfloat16 | tensor cores |
//! | `flash` on Ampere | halves, as above | tensor cores |
//! | `naive` | everything else: a warp computes a row from memory | loads |

mod bf16x3;
mod combine;
mod flash;
mod naive;
mod scalar;
mod shape;

pub use flash::Tile;
pub use shape::{Attention, Bias, Strides};

use super::{GpuSpec, Plan, PlanError};

impl Attention {
    /// The launches that compute it, in the form that suits its sizes and the device. Buffers are
    /// those of [`Attention::buffers`].
    ///
    /// # Errors
    /// [`PlanError::Argument`] if it is not well defined, or too large for a launch.
    pub fn plan(&self, machine: GpuSpec) -> Result<Plan, PlanError> {
        let arguments = self.buffers()?;
        if self.is_empty() {
            return Ok(Plan { arguments, ..Plan::default() });
        }
        match flash::plan(self, machine)? {
            Some(plan) => Ok(plan),
            None => self.naive(),
        }
    }

    /// The launches that compute it in the flash form, with a tile of one's own choice: for
    /// measurements.
    #[doc(hidden)]
    pub fn flash_with(&self, tile: Tile, plain: bool, machine: GpuSpec) -> Result<Plan, PlanError> {
        flash::plan_with(self, tile, plain, machine)
    }

    /// The launch that computes it in the simplest form: slow, for any type, on any device.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if it is not well defined, or too large for a launch.
    pub fn naive(&self) -> Result<Plan, PlanError> {
        let arguments = self.buffers()?;
        if self.is_empty() {
            return Ok(Plan { arguments, ..Plan::default() });
        }
        Ok(Plan::single(Box::new(naive::Naive::new(*self)?)))
    }
}
