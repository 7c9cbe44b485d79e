//! A launch, as data.

use std::time::Duration;

use crate::{Code, MemoryRange};

/// A launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub code: &'a Code,
    /// The memory of each buffer of the kernel, in the order of `Kir::buffers`.
    pub bindings: &'a [MemoryRange],
    /// Workgroups along x, y and z.
    pub groups: [u32; 3],
    /// The immediate block.
    pub immediates: &'a [u8],
}

impl Launch<'_> {
    /// Returns the number of workgroups; `None` if it does not fit in 64 bits.
    #[must_use]
    pub fn workgroups(&self) -> Option<u64> {
        let [x, y, z] = self.groups.map(u64::from);
        // `x * y` fits in 64 bits. If a factor is zero, the product is zero and fits as well.
        (x * y).checked_mul(z)
    }

    /// Estimates the duration on one thread; `None` if the kernel has loops, or for more than
    /// `u64::MAX` nanoseconds.
    #[must_use]
    pub fn cost(&self) -> Option<Duration> {
        let total = self.workgroups()?.checked_mul(self.code.cost()?)?;
        Some(Duration::from_nanos(total))
    }
}
