//! A matrix of rows.

use super::format::Format;
use super::op::RowOp;
use crate::kernels::PlanError;
use crate::types::PtxType;

/// A row-major matrix without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Number of rows.
    pub count: u64,
    /// Elements per row: 1 to 2^31 - 2^16.
    pub length: u64,
    /// Type of the elements: `F32`, `F16` or `Bf16`.
    pub element: PtxType,
}

/// Maximum length of a row: columns and slices are 32-bit integers.
const MAX_LENGTH: u64 = (1 << 31) - (1 << 16);

impl Rows {
    /// Returns the total number of elements.
    pub(super) fn elements(&self, op: &dyn RowOp) -> Result<u64, PlanError> {
        let problem = || format!("{} rows of {} elements", self.count, self.length);
        let help = "split the matrix over several calls, of less than 2^60 elements each";
        let elements = self.count.checked_mul(self.length).filter(|elements| *elements < 1 << 60);
        elements.ok_or_else(|| argument_error(op, "count", problem(), help))
    }

    /// Returns the alignment that all rows have, in elements: at most a vector.
    pub(super) fn unit(&self, format: Format) -> u32 {
        let vector = format.per_vector();
        1 << self.length.trailing_zeros().min(vector.ilog2())
    }

    /// Whether all rows are aligned to vectors.
    pub(super) fn aligned(&self, format: Format) -> bool {
        self.unit(format) == format.per_vector()
    }

    /// Returns the format of the elements.
    pub(super) fn format(&self, op: &dyn RowOp) -> Result<Format, PlanError> {
        let help = "use F32, F16 or Bf16";
        let problem = || format!("{:?}", self.element);
        Format::from_type(self.element)
            .ok_or_else(|| argument_error(op, "element", problem(), help))
    }

    pub(super) fn check(&self, op: &dyn RowOp) -> Result<(), PlanError> {
        self.format(op)?;
        self.elements(op)?;
        if self.length == 0 || self.length > MAX_LENGTH {
            let help = "use rows of 1 to 2^31 - 2^16 elements";
            return Err(argument_error(op, "length", self.length.to_string(), help));
        }
        Ok(())
    }
}

/// Returns the error for an unsupported argument. `problem` completes the sentence
/// "`argument` is".
pub(super) fn argument_error(
    op: &dyn RowOp,
    argument: &'static str,
    problem: String,
    help: &'static str,
) -> PlanError {
    PlanError::Argument {
        kernel: op.name().to_owned(),
        argument,
        problem: format!("is {problem}"),
        help,
    }
}
