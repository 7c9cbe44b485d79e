//! Plans GEMMs whose number of rows varies with few kernels.

use std::iter;
use std::ops::RangeInclusive;

use super::Product;
use super::portable::{MAX_SMALL_K, is_portable};
use crate::kernels::gemm::hopper::Choice;
use crate::kernels::gemm::{Gemm, Layout, MAX_SIZE};
use crate::kernels::{GpuSpec, Plan, PlanError, PtxKernel};

/// Few kernels for a GEMM with any number of rows (`m`): at most 3.
///
/// The best kernel depends on all sizes. A program whose number of rows varies, such as with the
/// length of a text, would compile a dozen kernels. By the cost model, a GEMM with one of a
/// portfolio needs 1.1 times the cycles of the best kernel on average, and 1.35 times at worst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portfolio {
    choices: Vec<Choice>,
}

impl Gemm {
    /// Returns the portfolio for any number of rows of the GEMM; `None` if its kernels do not
    /// vary, or the GPU or the GEMM does not support one: it needs `wgmma`, row-major 16-bit `a`
    /// and `out`, rows of operands that are 16-byte aligned, a K above 64, and a batch of one.
    ///
    /// ```
    /// use scry_ptx::kernels::GpuSpec;
    /// use scry_ptx::kernels::gemm::Gemm;
    /// use scry_ptx::{PtxType, Target};
    ///
    /// let h200 =
    ///     GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 * 1024 };
    /// let gemm = |m| Gemm::new(m, 384, 1536, PtxType::F16);
    /// let portfolio = gemm(1).portfolio(h200).expect("the GPU has `wgmma`");
    /// assert_eq!(gemm(5000).portfolio(h200).as_ref(), Some(&portfolio));
    /// assert!(gemm(5000).portfolio_kernels(h200, &portfolio, 1..=5000)?.len() <= 3);
    /// assert_eq!(gemm(5000).plan_among(h200, &portfolio)?.steps.len(), 1);
    /// # Ok::<(), scry_ptx::kernels::PlanError>(())
    /// ```
    #[must_use]
    pub fn portfolio(&self, gpu: GpuSpec) -> Option<Portfolio> {
        let row_major = [self.a, self.out].iter().all(|it| it.order == Layout::RowMajor);
        // With many rows, so that the answer does not depend on them.
        let any = Gemm { m: self.m.max(1024), ..*self };
        let is_supported = gpu.is_hopper()
            && self.batch == 1
            && self.element.size() == 2
            && self.k > MAX_SMALL_K
            && row_major
            && !self.is_empty()
            && any.buffers().is_ok()
            && Product::new(&any).is_aligned()
            && !is_portable(&any, gpu);
        is_supported.then(|| Portfolio { choices: Product::new(&any).problem(gpu).portfolio() })
    }

    /// Returns the launches, with a kernel of a portfolio.
    ///
    /// # Errors
    /// As [`Gemm::plan`].
    pub fn plan_among(&self, gpu: GpuSpec, portfolio: &Portfolio) -> Result<Plan, PlanError> {
        if self.is_empty() {
            return self.plan(gpu);
        }
        let product = Product { has_any_rows: true, ..Product::new(self) };
        match product.problem(gpu).choose_among(&portfolio.choices) {
            Some(choice) => self.planned_with(gpu, product, &choice),
            None => self.plan(gpu),
        }
    }

    /// Returns the kernels of a portfolio that compute the GEMM with these numbers of rows, to
    /// compile them. Numbers of rows that a GEMM cannot have are left out.
    ///
    /// # Errors
    /// As [`Gemm::plan`].
    pub fn portfolio_kernels(
        &self,
        gpu: GpuSpec,
        portfolio: &Portfolio,
        rows: RangeInclusive<u64>,
    ) -> Result<Vec<Box<dyn PtxKernel>>, PlanError> {
        let product = |m| Product { has_any_rows: true, ..Product::new(&Self { m, ..*self }) };
        let chosen = samples(rows);
        let chosen = chosen.map(|m| product(m).problem(gpu).choose_among(&portfolio.choices));
        let chosen: Vec<Choice> = chosen.flatten().collect();
        let mut kernels = Vec::new();
        for choice in portfolio.choices.iter().filter(|choice| chosen.contains(choice)) {
            let plan = self.planned_with(gpu, product(self.m), choice)?;
            kernels.extend(plan.steps.into_iter().map(|step| step.kernel));
        }
        Ok(kernels)
    }

    fn planned_with(
        &self,
        gpu: GpuSpec,
        product: Product,
        choice: &Choice,
    ) -> Result<Plan, PlanError> {
        let plan = Plan { arguments: self.buffers()?, ..Plan::default() };
        product.launch(plan, gpu, choice)?.checked_for(gpu.target)
    }
}

/// Returns numbers of rows from the first to the last one that a GEMM may have, close enough to
/// each other that each kernel is chosen for one of them.
fn samples(rows: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
    let (first, last) = ((*rows.start()).max(1), (*rows.end()).min(MAX_SIZE));
    let next = move |m: &u64| (*m < last).then(|| (m + m / 32 + 1).min(last));
    iter::successors((first <= last).then_some(first), next)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kernels::gemm::Activation;
    use crate::target::Target;
    use crate::types::PtxType;

    const H200: GpuSpec =
        GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 * 1024 };
    /// K, N, and the factor of the previous content of the output.
    const SIZES: [(u64, u64, f32); 8] = [
        (384, 1152, 0.0),
        (384, 384, 1.0),
        (384, 1536, 0.0),
        (1536, 384, 1.0),
        (768, 768, 0.0),
        (4096, 4096, 0.0),
        (4096, 11008, 0.0),
        (128, 32000, 0.0),
    ];

    /// Returns a linear layer.
    fn linear(m: u64, (k, n, beta): (u64, u64, f32)) -> Gemm {
        let mut gemm = Gemm::new(m, n, k, PtxType::F16);
        gemm = gemm.with_layouts(Layout::RowMajor, Layout::ColMajor);
        gemm.epilogue.bias = true;
        gemm.epilogue.beta = beta;
        gemm.epilogue.activation = Activation::GeluErf;
        gemm
    }

    /// Numbers of rows between and beyond those that portfolios are chosen for.
    fn rows() -> impl Iterator<Item = u64> {
        [1, 2, 9, 17]
            .into_iter()
            .chain((15..=80).map(|it| 2f64.powf(f64::from(it) / 4.0) as u64 + 3))
    }

    #[test]
    fn portfolio_is_close_to_best() {
        for size in SIZES {
            let portfolio = linear(1, size).portfolio(H200).unwrap();
            let ratios: Vec<f64> = rows()
                .map(|m| {
                    let problem = Product::new(&linear(m, size)).problem(H200);
                    let choice = problem.choose_among(&portfolio.choices).unwrap();
                    let [cycles, best] = problem.cycles_of([choice, problem.choose()]);
                    cycles as f64 / best as f64
                })
                .collect();
            let worst = ratios.iter().copied().fold(0.0, f64::max);
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            assert!(worst <= 1.35, "{size:?}: {worst}");
            assert!(mean <= 1.15, "{size:?}: {mean}");
            assert!(portfolio.choices.len() <= 3, "{size:?}");
        }
    }

    #[test]
    fn rows_need_no_other_kernel() {
        let name = |kernel: &dyn PtxKernel| (kernel.name(), kernel.launch().dynamic_shared);
        for size in SIZES {
            let gemm = linear(9, size);
            let portfolio = gemm.portfolio(H200).unwrap();
            let kernels = gemm.portfolio_kernels(H200, &portfolio, 0..=u64::MAX).unwrap();
            let all: BTreeSet<_> = kernels.iter().map(|kernel| name(&**kernel)).collect();
            let mut used = BTreeSet::new();
            for m in rows() {
                let gemm = linear(m, size);
                assert_eq!(gemm.portfolio(H200).as_ref(), Some(&portfolio), "{m} rows");
                let plan = gemm.plan_among(H200, &portfolio).unwrap();
                used.extend(plan.steps.iter().map(|step| name(&*step.kernel)));
            }
            assert_eq!(used, all, "{size:?}");
        }
    }

    #[test]
    fn ranges_of_rows_have_their_kernels() {
        for (size, [first, last]) in SIZES.into_iter().flat_map(|size| {
            [[1, 1], [8, 500], [16, 4000], [1770, 3000], [5000, 5100]].map(|rows| (size, rows))
        }) {
            let gemm = linear(9, size);
            let portfolio = gemm.portfolio(H200).unwrap();
            let kernels = gemm.portfolio_kernels(H200, &portfolio, first..=last).unwrap();
            let names: BTreeSet<_> = kernels.iter().map(|kernel| kernel.name()).collect();
            let chosen = (first..=last).flat_map(|m| {
                let plan = linear(m, size).plan_among(H200, &portfolio).unwrap();
                plan.steps.into_iter().map(|step| step.kernel.name())
            });
            assert_eq!(chosen.collect::<BTreeSet<_>>(), names, "{size:?}, {first} to {last} rows");
        }
    }

    #[test]
    fn other_products_have_no_portfolio() {
        let valid = linear(100, SIZES[0]);
        let has_one = |gemm: Gemm| gemm.portfolio(H200).is_some();
        assert!(has_one(valid));
        let ampere = GpuSpec { target: Target::SM_80, ..H200 };
        assert_eq!(valid.portfolio(ampere), None);
        assert!(!has_one(linear(100, (387, 1152, 0.0))));
        assert!(!has_one(linear(100, (64, 1152, 0.0))));
        assert!(!has_one(Gemm { element: PtxType::F32, output: PtxType::F32, ..valid }));
        assert!(!has_one(Gemm { m: 0, ..valid }));
        // What is empty has no launches, and no kernels.
        let portfolio = valid.portfolio(H200).unwrap();
        let empty = Gemm { m: 0, ..valid };
        assert_eq!(empty.plan_among(H200, &portfolio).unwrap().steps.len(), 0);
        for rows in [0..=0, MAX_SIZE + 1..=u64::MAX] {
            assert!(valid.portfolio_kernels(H200, &portfolio, rows).unwrap().is_empty());
        }
    }
}
