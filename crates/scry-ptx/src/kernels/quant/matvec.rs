//! Quantised matrices times few columns: the choice of kernels.

use super::activations::Limbs;
use super::dot::{self, Dot};
use super::matvec_shape::{Columns, MAX_COLUMNS, MatVec};
use super::quantize_activations::QuantizeActivations;
use super::stream::Stream;
use crate::kernels::{BufferSlot, GpuSpec, Plan, PlanError, PtxKernel, Step};
use crate::target::Target;

/// Up to this K, one int8 limb is measurably less precise than two: a large value reduces the
/// precision of its neighbours, which short columns do not average out.
const MAX_SHORT_K: u64 = 2048;

impl MatVec {
    /// Returns the launches for a GPU.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size is out of range or a type not supported.
    pub fn plan(&self, gpu: GpuSpec) -> Result<Plan, PlanError> {
        self.check()?;
        let streams = self.format.is_streamed() && gpu.target.supports(Target::SM_90);
        let launches = if streams { self.launch_columns(gpu) } else { None };
        let Some(launches) = launches else { return self.portable_plan() };
        let mut plan = Plan { arguments: self.buffers().to_vec(), ..Plan::default() };
        if self.rows == 0 {
            return Ok(plan);
        }
        for columns in launches {
            let stream = Stream::new(*self, columns, gpu).expect("the columns are chosen to fit");
            match stream.prepared_limbs() {
                Some(limbs) => plan.add_with_limbs(*self, columns, limbs, Box::new(stream)),
                None => plan.add_product(Box::new(stream), BufferSlot::Argument(1)),
            }
        }
        Ok(plan)
    }

    /// Returns the columns of each launch, as many as fit; `None` if not even one fits. With more
    /// than 4 columns there is one limb per value, which is too imprecise for short columns.
    fn launch_columns(&self, gpu: GpuSpec) -> Option<Vec<Columns>> {
        let max_width = if self.k > MAX_SHORT_K { MAX_COLUMNS } else { MAX_COLUMNS / 2 };
        let fits = |count: &u32| {
            let count = (*count).min(self.columns);
            Stream::new(*self, Columns { first: 0, count }, gpu).is_some()
        };
        let width = [8, 4, 2, 1].into_iter().filter(|width| *width <= max_width).find(fits)?;
        let firsts = (0..self.columns).step_by(width as usize);
        Some(
            firsts.map(|first| Columns { first, count: width.min(self.columns - first) }).collect(),
        )
    }

    /// Returns the launches of the portable kernels, for any GPU.
    ///
    /// # Errors
    /// As [`MatVec::plan`].
    pub fn portable_plan(&self) -> Result<Plan, PlanError> {
        self.check()?;
        let mut plan = Plan { arguments: self.buffers().to_vec(), ..Plan::default() };
        let all = Columns { first: 0, count: self.columns };
        if self.rows > 0 && self.columns > 0 {
            let kernel = Box::new(Dot::new(*self));
            match kernel.quantises_activations() {
                true => plan.add_product(kernel, BufferSlot::Argument(1)),
                false => plan.add_with_limbs(*self, all, dot::layout(self.columns), kernel),
            }
        }
        Ok(plan)
    }
}

impl Plan {
    /// Adds the step of a product with the activations in a buffer.
    fn add_product(&mut self, product: Box<dyn PtxKernel>, activations: BufferSlot) {
        let buffers = vec![BufferSlot::Argument(0), activations, BufferSlot::Argument(2)];
        self.steps.push(Step { kernel: product, buffers });
    }

    /// Adds the steps that quantise some columns, and compute a product with them. All steps share
    /// the same scratch memory for limbs.
    fn add_with_limbs(
        &mut self,
        product: MatVec,
        columns: Columns,
        limbs: Limbs,
        kernel: Box<dyn PtxKernel>,
    ) {
        let bytes = limbs.bytes(product.k);
        match self.scratch.first_mut() {
            Some(scratch) => *scratch = bytes.max(*scratch),
            None => self.scratch.push(bytes),
        }
        let prepare = QuantizeActivations::new(limbs, product, columns);
        let buffers = vec![BufferSlot::Argument(1), BufferSlot::Scratch(0)];
        self.steps.push(Step { kernel: Box::new(prepare), buffers });
        self.add_product(kernel, BufferSlot::Scratch(0));
    }
}
