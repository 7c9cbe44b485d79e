//! A launch, as data.

use std::time::Duration;

use crate::{Code, Span};

/// A launch.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The kernel.
    pub code: &'a Code,
    /// The memory of each binding.
    pub bindings: &'a [Span],
    /// Workgroups along x, y and z.
    pub groups: [u32; 3],
    /// The immediate block.
    pub immediates: &'a [u8],
}

impl Job<'_> {
    /// Number of workgroups; none if it has more than 64 bits.
    #[must_use]
    pub fn workgroups(&self) -> Option<u64> {
        let [x, y, z] = self.groups.map(u64::from);
        // The first product fits; with a zero among the three so does the whole.
        (x * y).checked_mul(z)
    }

    /// Estimates the duration on one thread; `None` if it depends on data.
    #[must_use]
    pub fn cost(&self) -> Option<Duration> {
        let total = self.workgroups()?.checked_mul(self.code.cost()?)?;
        Some(Duration::from_nanos(total))
    }
}
