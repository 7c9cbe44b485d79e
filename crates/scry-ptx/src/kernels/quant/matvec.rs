//! Quantised matrices times few columns: by which kernels.

use super::activations::Digits;
use super::dot::{self, Dot};
use super::matvec_shape::{Columns, MOST_COLUMNS, MatVec};
use super::quantize_activations::Prepare;
use super::stream::Stream;
use crate::kernels::{GpuSpec, Place, Plan, PlanError, PtxKernel, Step};
use crate::target::Target;

/// Up to this many activations of a column, one digit each is told from two: what one large value
/// costs the precision of its neighbours, others do not make up for.
const SHORT: u64 = 2048;

impl MatVec {
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
