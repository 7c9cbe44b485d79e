//! Random WGSL kernels that are valid but attack memory safety.
//!
//! [`crate::kernel`] generates well-defined kernels; these kernels defeat proofs that a compiler
//! may attempt about indices and loops: stale copies of counters, updates in branches and through
//! pointers, effects before the condition of a loop, bounds that the loop changes, indices from
//! buffers, strides that wrap. On no device may such a kernel change a byte outside of its
//! bindings, and every kernel must end, by itself or by the time limit.
//!
//! [`Comparable`] defines which devices must agree on its results.
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
    /// Generates loops that may not terminate, in one kernel of eight. Must be `false` for devices
    /// without cancellation.
    pub endless: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { endless: true }
    }
}

/// The devices that must compute the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparable {
    /// None: invocations race, or the kernel may not terminate.
    Nothing,
    /// Those that execute the kernel IR, which are all but Vulkan devices with SPIR-V that naga
    /// writes: no data races, but accesses out of bounds, whose effect the compiler chooses.
    SameIr,
    /// All: a single invocation, every index in bounds.
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
    /// Maximum total number of iterations of an invocation, in loops that use fuel.
    fuel: u32,
    comparable: Comparable,
    endless: bool,
}

/// Generates the hostile kernel of a seed.
#[must_use]
pub fn kernel(seed: u64, features: Features, rules: Rules) -> HostileKernel {
    draw::kernel(seed, features, rules)
}

impl HostileKernel {
    /// Returns the kernel as text, with its data. Buffer sizes are unusual, down to the smallest
    /// legal one.
    #[must_use]
    pub fn case(&self) -> Case {
        let source = print::source(self);
        let used =
            print::used_globals(self, &source).filter(|global| print::is_bound(global.space));
        let buffers = used.map(|global| global.content.clone()).collect();
        Case { seed: self.seed, source, buffers, immediates: None, groups: self.groups }
    }

    /// Returns which devices must agree on the content of its buffers.
    #[must_use]
    pub fn comparable(&self) -> Comparable {
        self.comparable
    }

    /// Returns whether it has a loop that may not terminate: then a timeout is a valid result.
    #[must_use]
    pub fn may_not_terminate(&self) -> bool {
        self.endless
    }
}
