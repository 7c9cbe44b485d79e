//! Quantised matrices times few columns: the problem description.

use super::format::BlockFormat;
use crate::kernels::name::Name;
use crate::kernels::{BufferAccess, BufferParameter, PlanError};
use crate::types::PtxType;

/// Maximum columns per launch: those of an MMA tile.
pub(super) const MAX_COLUMNS: u32 = 8;
/// Maximum bytes of activations that each block quantises itself.
const MAX_SELF_QUANTISED_BYTES: u64 = 80 << 10;

/// What a [`MatVec`] computes of its activations, before it quantises them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Prologue {
    /// Nothing.
    #[default]
    None,
    /// SwiGLU: a column has `k` activations of the gate and then `k` others, and becomes
    /// `silu(gate) * other`.
    SwiGlu,
}

impl Prologue {
    /// Returns how many elements become an activation.
    #[must_use]
    pub const fn inputs(self) -> u32 {
        match self {
            Self::None => 1,
            Self::SwiGlu => 2,
        }
    }
}

/// A product `y[c, i] = sum(weights[i, l] * x[c, l])` of a row-major `rows` × `k` matrix of
/// quantised weights, and `columns` contiguous columns of `k` activations; `y` is `f32`, with
/// `rows` contiguous results per column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatVec {
    /// Format of the weights.
    pub format: BlockFormat,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix, a multiple of the format's block.
    pub k: u64,
    /// Columns of activations, at most 8.
    pub columns: u32,
    /// Type of the activations: `F32`, `F16` or `Bf16`.
    pub activations: PtxType,
    /// What is computed of the activations first.
    pub prologue: Prologue,
}

impl MatVec {
    /// Returns the buffers: weights, activations, results.
    pub(super) fn buffers(&self) -> [BufferParameter; 3] {
        let [columns, inputs] = [self.columns, self.prologue.inputs()].map(u64::from);
        let bytes = self.rows * self.k / self.format.block_len() as u64;
        let weights = bytes * self.format.block_bytes() as u64;
        let buffer = |name, access, element, len| BufferParameter { name, access, element, len };
        [
            buffer("weights", BufferAccess::Read, PtxType::B8, weights),
            buffer("x", BufferAccess::Read, self.activations, self.k * inputs * columns),
            buffer("y", BufferAccess::Write, PtxType::F32, self.rows * columns),
        ]
    }

    /// Appends the source of the activations to the name of a kernel that quantises them.
    pub(super) fn append_source_to(&self, name: Name) -> Name {
        let name = name.with(self.activations.name());
        name.with_if(self.prologue == Prologue::SwiGlu, "swiglu")
    }

    pub(super) fn check(&self) -> Result<(), PlanError> {
        let block = self.format.block_len() as u64;
        if !self.k.is_multiple_of(block) {
            let problem = format!("{}, not a multiple of {block}", self.k);
            return Err(argument_error("matvec", "k", problem, "pass rows of whole blocks"));
        }
        if self.rows.max(self.k) >= 1 << 31 {
            let problem = format!("{} by {}", self.rows, self.k);
            return Err(argument_error(
                "matvec",
                "size",
                problem,
                "pass less than 2^31 rows, and a k below 2^31",
            ));
        }
        if self.k * u64::from(self.columns * self.prologue.inputs()) > 1 << 30 {
            let problem = format!("{} columns of {}", self.columns, self.k);
            return Err(argument_error(
                "matvec",
                "x",
                problem,
                "pass fewer columns: at most 2^30 activations",
            ));
        }
        if self.columns > MAX_COLUMNS {
            let help = "pass at most 8 columns, or use MatMul";
            return Err(argument_error("matvec", "columns", self.columns.to_string(), help));
        }
        if !matches!(self.activations, PtxType::F32 | PtxType::F16 | PtxType::Bf16) {
            let problem = self.activations.name().to_owned();
            return Err(argument_error("matvec", "activations", problem, "use f32, f16 or bf16"));
        }
        Ok(())
    }
}

/// The columns of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Columns {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Columns {
    /// Whether each block quantises these activations itself.
    pub(super) fn are_quantised_by_each_block(self, product: &MatVec) -> bool {
        let bytes = self.count * product.activations.size() * product.prologue.inputs();
        product.k * u64::from(bytes) <= MAX_SELF_QUANTISED_BYTES
    }
}

/// Returns the error for an unsupported argument. `problem` completes the
/// sentence "`argument` is".
pub(super) fn argument_error(
    kernel: &str,
    argument: &'static str,
    problem: String,
    help: &'static str,
) -> PlanError {
    PlanError::Argument {
        kernel: kernel.to_owned(),
        argument,
        problem: format!("is {problem}"),
        help,
    }
}
