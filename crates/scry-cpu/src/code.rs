//! Compiled kernels.

use scry_ir::kir::Kir;

/// A kernel, compiled.
#[derive(Debug)]
pub struct Code;

/// Why a kernel cannot run on this machine: what it needs, and the limit that it is above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What there is too much of, such as `bytes of private memory in an invocation`.
    pub what: String,
    /// How much of it the kernel has.
    pub needed: u64,
    /// How much it may have.
    pub limit: u64,
}

impl Code {
    /// Compiles a kernel.
    ///
    /// # Errors
    /// A [`Refusal`] if the kernel needs more memory for each invocation than the machine gives.
    pub fn compile(kir: &Kir) -> Result<Self, Refusal> {
        let _ = kir;
        Ok(Self)
    }

    /// Roughly how long one workgroup takes, in nanoseconds; none if that depends on data.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        None
    }
}
