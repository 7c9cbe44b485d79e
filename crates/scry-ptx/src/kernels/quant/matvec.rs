//! Quantised matrices times few columns: what is computed, and by which kernels.

use super::activations::Digits;
use super::dot::{self, Dot};
use super::format::BlockFormat;
use super::quantize_activations::Prepare;
use super::stream::Stream;
use crate::kernels::{
    BufferAccess, BufferParameter, GpuSpec, Place, Plan, PlanError, PtxKernel, Step,
};
use crate::target::Target;
use crate::types::PtxType;

/// Most columns of a launch: those of a tensor core's tile.
pub(super) const MOST_COLUMNS: u32 = 8;
/// Up to so many activations of a column, one digit each is told from two: what one large value
/// costs the precision of its neighbours, others do not make up for.
const SHORT: u64 = 2048;
/// Bytes of activations up to which each block makes their digits for itself.
const SMALL: u64 = 80 << 10;

/// A product: `y[c, i] = sum(weights[i, l] * x[c, l])`, of `rows` times `k` quantised weights,
/// row by row, and `columns` columns of `k` activations, one after the other; `y` is binary32, one
/// column of `rows` after the other.
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
}

impl MatVec {
    /// Weights, activations, results.
    pub(super) fn buffers(&self) -> [BufferParameter; 3] {
        let columns = u64::from(self.columns);
        let bytes = self.rows * self.k / self.format.block_len() as u64;
        let weights = bytes * self.format.block_bytes() as u64;
        let buffer = |name, access, element, len| BufferParameter { name, access, element, len };
        [
            buffer("weights", BufferAccess::Read, PtxType::B8, weights),
            buffer("x", BufferAccess::Read, self.activations, self.k * columns),
            buffer("y", BufferAccess::Write, PtxType::F32, self.rows * columns),
        ]
    }

    fn checked(&self) -> Result<(), PlanError> {
        let block = self.format.block_len() as u64;
        if !self.k.is_multiple_of(block) {
            let problem = format!("{}, no multiple of {block}", self.k);
            return Err(refusal("matvec", "k", problem, "rows are made of whole blocks"));
        }
        if self.rows.max(self.k) >= 1 << 31 {
            let problem = format!("{} by {}", self.rows, self.k);
            return Err(refusal(
                "matvec",
                "size",
                problem,
                "each side has to be below 2^31: take parts",
            ));
        }
        if self.k * u64::from(self.columns) > 1 << 30 {
            let problem = format!("{} columns of {}", self.columns, self.k);
            return Err(refusal(
                "matvec",
                "x",
                problem,
                "at most 2^30 activations: take fewer columns",
            ));
        }
        if self.columns > MOST_COLUMNS {
            let help = "take at most 8 columns, or a product of matrices";
            return Err(refusal("matvec", "columns", self.columns.to_string(), help));
        }
        if !matches!(self.activations, PtxType::F32 | PtxType::F16 | PtxType::Bf16) {
            let problem = self.activations.name().to_owned();
            return Err(refusal("matvec", "activations", problem, "they are f32, f16 or bf16"));
        }
        Ok(())
    }

    /// The kernels, for a device.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size does not fit or a type is none that activations have.
    pub fn plan(&self, machine: GpuSpec) -> Result<Plan, PlanError> {
        self.checked()?;
        let hopper = machine.target.runs(Target::SM_90);
        let parts = if hopper { self.parts(machine) } else { None };
        let Some(parts) = parts else { return self.portable_plan() };
        let mut plan = Plan { arguments: self.buffers().to_vec(), ..Plan::default() };
        if self.rows == 0 {
            return Ok(plan);
        }
        for part in parts {
            let stream = Stream::new(*self, part, machine).expect("parts are chosen to fit");
            match stream.prepared() {
                Some(digits) => plan.add_prepared(*self, part, digits, Box::new(stream)),
                None => plan.add(Box::new(stream), Place::Argument(1)),
            }
        }
        Ok(plan)
    }

    /// The columns of each launch: as many as there is room for. With more than 4 there is one
    /// digit for each value, which short columns would tell from two.
    fn parts(&self, machine: GpuSpec) -> Option<Vec<Columns>> {
        let widest = if self.k > SHORT { MOST_COLUMNS } else { MOST_COLUMNS / 2 };
        let fits = |count: &u32| {
            let count = (*count).min(self.columns);
            Stream::new(*self, Columns { first: 0, count }, machine).is_some()
        };
        let width = [8, 4, 2, 1].into_iter().filter(|width| *width <= widest).find(fits)?;
        let firsts = (0..self.columns).step_by(width as usize);
        Some(
            firsts.map(|first| Columns { first, count: width.min(self.columns - first) }).collect(),
        )
    }

    /// The kernels of the portable plan, for any device.
    ///
    /// # Errors
    /// As [`MatVec::plan`].
    pub fn portable_plan(&self) -> Result<Plan, PlanError> {
        self.checked()?;
        let mut plan = Plan { arguments: self.buffers().to_vec(), ..Plan::default() };
        let all = Columns { first: 0, count: self.columns };
        if self.rows > 0 && self.columns > 0 {
            plan.add_prepared(*self, all, dot::layout(self.columns), Box::new(Dot::new(*self)));
        }
        Ok(plan)
    }
}

/// The columns of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Columns {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Columns {
    /// Whether each block makes the digits of these activations for itself.
    pub(super) fn are_small(self, product: &MatVec) -> bool {
        product.k * u64::from(self.count * product.activations.size()) <= SMALL
    }
}

impl Plan {
    /// Adds a product with what is at a place.
    fn add(&mut self, product: Box<dyn PtxKernel>, activations: Place) {
        let buffers = vec![Place::Argument(0), activations, Place::Argument(2)];
        self.steps.push(Step { kernel: product, buffers });
    }

    /// Adds digits of some columns, and a product with them. All digits are in the same memory.
    fn add_prepared(
        &mut self,
        product: MatVec,
        columns: Columns,
        digits: Digits,
        kernel: Box<dyn PtxKernel>,
    ) {
        let bytes = digits.bytes(product.k);
        match self.scratch.first_mut() {
            Some(scratch) => *scratch = bytes.max(*scratch),
            None => self.scratch.push(bytes),
        }
        let prepare = Prepare::new(digits, product, columns);
        let buffers = vec![Place::Argument(1), Place::Scratch(0)];
        self.steps.push(Step { kernel: Box::new(prepare), buffers });
        self.add(kernel, Place::Scratch(0));
    }
}

pub(super) fn refusal(
    kernel: &str,
    argument: &'static str,
    problem: String,
    help: &'static str,
) -> PlanError {
    PlanError::Argument { kernel: kernel.to_owned(), argument, problem, help }
}
