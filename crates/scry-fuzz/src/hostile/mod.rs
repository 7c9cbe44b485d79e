//! Random WGSL kernels that are valid but attack memory safety.
//!
//! Where [`crate::kernel`] draws well-defined kernels, this family draws near-misses of whatever a
//! compiler may prove of indices and loops: stale copies of counters, updates in branches and
//! behind pointers, effects before the test of a loop, bounds that the loop changes, indices from
//! buffers, strides that wrap. No such kernel may change a byte outside of its bindings, whatever
//! the device, and every one must end, by itself or by the time limit.
//!
//! A [`Comparable`] says what else may be expected of a kernel.
//!
//! ```
//! use scry_fuzz::{Features, hostile};
//!
//! let kernel = hostile::kernel(7, Features::default(), hostile::Rules::default());
//! assert!(kernel.case().source.contains("@compute"));
//! ```

mod draw;
mod print;
mod shrinking;
mod tree;

pub use shrinking::shrink;

use crate::types::Type;
use crate::{Case, Features};
use tree::{Block, Function, Global};

/// Options of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Loops that may never end, in one kernel of eight. Without it every loop ends: what a device
    /// cannot cancel must not be given any other.
    pub endless: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { endless: true }
    }
}

/// Which devices must compute the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparable {
    /// None: invocations race, or the kernel may not end.
    Nothing,
    /// Those that execute the kernel IR: nothing races, but indices are out of bounds, and what
    /// such an access does is the choice of the compiler.
    SameIr,
    /// All: one invocation, every index in bounds.
    Everywhere,
}

/// A hostile kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostileKernel {
    seed: u64,
    enables: String,
    structs: Vec<Vec<Type>>,
    globals: Vec<Global>,
    functions: Vec<Function>,
    body: Block,
    workgroup_size: [u32; 3],
    groups: [u32; 3],
    /// Iterations of loops that an invocation may use up in all.
    fuel: u32,
    comparable: Comparable,
    endless: bool,
}

/// Draws the hostile kernel of a seed.
#[must_use]
pub fn kernel(seed: u64, features: Features, rules: Rules) -> HostileKernel {
    draw::kernel(seed, features, rules)
}

impl HostileKernel {
    /// The kernel as text, with its data. Buffers have odd sizes, down to the smallest legal one.
    #[must_use]
    pub fn case(&self) -> Case {
        let source = print::source(self);
        let used = print::used(self, &source).filter(|global| print::is_bound(global.space));
        let buffers = used.map(|global| global.content.clone()).collect();
        Case { seed: self.seed, source, buffers, immediates: None, groups: self.groups }
    }

    /// Which devices must agree on the content of its buffers.
    #[must_use]
    pub fn comparable(&self) -> Comparable {
        self.comparable
    }

    /// Whether it has a loop that may never end: a timeout is a right result then.
    #[must_use]
    pub fn may_not_end(&self) -> bool {
        self.endless
    }
}
