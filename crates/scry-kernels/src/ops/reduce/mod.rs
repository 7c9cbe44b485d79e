//! Reductions: of whole buffers, and of the rows or columns of a matrix.

mod host;
mod passes;
mod positions;
mod sums;

use scry_gpu::{Binding, DType, NativeBinding, Result};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS, NUMBERS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Variant, VariantInfo};
use crate::ordering;
use crate::plain;

/// What a reduction computes of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum. Integers wrap. The sum of no elements is 0.
    Sum,
    /// The product. Integers wrap. The product of no elements is 1.
    Product,
    /// The smallest element. NaN if an element is NaN; -0 is smaller than +0.
    Min,
    /// The largest element. NaN if an element is NaN; -0 is smaller than +0.
    Max,
    /// The index of the smallest element, as `u32`; the first one of equal elements, and of
    /// zeros of either sign. The index of the first NaN, if there is one.
    ArgMin,
    /// The index of the largest element, as `u32`; the first one of equal elements, and of
    /// zeros of either sign. The index of the first NaN, if there is one.
    ArgMax,
    /// The sum divided by the number of elements. Floats only.
    Mean,
    /// The sum of squared distances from the mean, divided by the number of elements minus
    /// `correction`: 0 for the variance of a population, 1 for the unbiased estimate from a sample.
    /// NaN if there are at most `correction` elements, or if one is NaN or infinite. Floats only.
    ///
    /// It is merged from the means and sums of squares of parts, so that a mean that is large in
    /// relation to the deviations does not cancel them.
    Variance {
        /// What is subtracted from the number of elements.
        correction: u32,
    },
    /// The Euclidean (L2) norm: the square root of the sum of squares, which is scaled so that it
    /// neither overflows nor underflows if the result does not. Floats only.
    Norm,
}

impl Reduction {
    /// Returns what errors call the result.
    fn noun(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Min | Self::ArgMin => "minimum",
            Self::Max | Self::ArgMax => "maximum",
            Self::Mean => "mean",
            Self::Variance { .. } => "variance",
            Self::Norm => "norm",
        }
    }

    /// Returns whether it has a result for no elements.
    fn allows_empty(self) -> bool {
        matches!(self, Self::Sum | Self::Product)
    }

    /// Returns the element types that it supports.
    fn types(self) -> &'static [DType] {
        match self {
            Self::Mean | Self::Variance { .. } | Self::Norm => &FLOATS,
            _ => &NUMBERS,
        }
    }

    /// Returns the element types of results for elements of a type.
    fn output_types(self, dtype: DType) -> &'static [DType] {
        match (self, dtype) {
            (Self::ArgMin | Self::ArgMax, _) | (_, DType::U32) => &[DType::U32],
            (_, DType::I32) => &[DType::I32],
            (_, DType::F16) => &[DType::F16, DType::F32],
            (_, DType::BF16) => &[DType::BF16, DType::F32],
            _ => &[DType::F32],
        }
    }

    /// Returns the WGSL definitions of its state: `State`, `neutral`, `lift`, `merge`,
    /// `merge_equal`, `finish`, `encode` and `decode`.
    fn state(self, dtype: DType) -> Vec<&'static str> {
        const ACCUMULATE: &str = include_str!("../../shaders/reduce/accumulate.wgsl");
        const SUM: &str = "const NEUTRAL = Computed(0);\n\
             fn combine(a: Computed, b: Computed) -> Computed { return a + b; }\n";
        const PRODUCT: &str = "const NEUTRAL = Computed(1);\n\
             fn combine(a: Computed, b: Computed) -> Computed { return a * b; }\n";
        const FINISH: &str = "fn finish(state: State) -> Output { return narrow_output(state); }\n";
        const DIVIDE: &str = "fn finish(state: State) -> Output {\n\
             return narrow_output(state / parameters.divisor);\n}\n";
        const SMALLEST: &str = "const LARGEST = false;\n";
        const LARGEST: &str = "const LARGEST = true;\n";
        const EXTREMUM: &str = include_str!("../../shaders/reduce/extremum.wgsl");
        const POSITION: &str = include_str!("../../shaders/reduce/position.wgsl");
        let ordering = ordering::prelude(dtype);
        match self {
            Self::Sum => vec![SUM, ACCUMULATE, FINISH],
            Self::Product => vec![PRODUCT, ACCUMULATE, FINISH],
            Self::Mean => vec![SUM, ACCUMULATE, DIVIDE],
            Self::Min => vec![ordering, SMALLEST, EXTREMUM],
            Self::Max => vec![ordering, LARGEST, EXTREMUM],
            Self::ArgMin => vec![ordering, SMALLEST, POSITION],
            Self::ArgMax => vec![ordering, LARGEST, POSITION],
            Self::Variance { .. } => vec![include_str!("../../shaders/reduce/variance.wgsl")],
            Self::Norm => vec![include_str!("../../shaders/reduce/norm.wgsl")],
        }
    }

    /// Returns what `finish` divides by.
    fn divisor(self, count: u64) -> f32 {
        match self {
            Self::Variance { correction } if count <= correction.into() => f32::NAN,
            Self::Variance { correction } => (count - u64::from(correction)) as f32,
            _ => count as f32,
        }
    }
}

/// Which elements a result is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    All,
    Row,
    Column,
}

/// A reduction of a matrix; of one row, if everything is reduced.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reduce {
    function: &'static str,
    reduction: Reduction,
    axis: Axis,
    rows: u64,
    columns: u64,
    dtype: DType,
    output: DType,
    /// Whether products of two buffers' elements are reduced.
    has_factors: bool,
}

/// Reductions.
impl Kernels {
    /// Prepares the reduction of all elements of `x` to one element, `out`. `x` has elements of
    /// `f32`, `f16`, `bf16`, `i32` or `u32`; `out` has those of `x`, but `u32` for indices, and
    /// optionally `f32` for 16-bit floats.
    ///
    /// Floats are computed in `f32`, by the variant `cpu` in `f64`, and rounded once. Sums are
    /// merged pairwise for the most part, in an order that depends only on the variant, the sizes
    /// and the device: the error of a sum of `n` elements is at most `(48 + n / 2^20) * 2^-24`
    /// times the sum of their absolute values.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Reduction};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, out) = (gpu.upload(&[3.0f32, -1.0, 7.0])?, gpu.alloc::<f32>(1)?);
    /// Kernels::new(&gpu)?.reduce(Reduction::Max, &x, &out)?.run()?;
    /// assert_eq!(out.download()?, [7.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap, and if there are no elements and the reduction is neither a
    /// sum nor a product; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device
    /// supports no variant for the type and the sizes.
    pub fn reduce(&self, reduction: Reduction, x: &dyn Binding, out: &dyn Binding) -> Result<Op> {
        self.reduce_named("Kernels::reduce", reduction, x, out)
    }

    /// Prepares the reduction of each row of `x`, a row-major matrix without padding, to an element
    /// of `out`. Types, rounding and order are those of [`Kernels::reduce`]; indices are columns,
    /// and the error of a sum is at most `(48 + columns / 2^15) * 2^-24` times the sum of absolute
    /// values. Buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Reduction};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1, 2, 3, 4, 5, 6])?;
    /// let out = gpu.alloc::<i32>(2)?;
    /// Kernels::new(&gpu)?.reduce_rows(Reduction::Sum, &x, &out, 2, 3)?.run()?;
    /// assert_eq!(out.download()?, [6, 15]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`].
    pub fn reduce_rows(
        &self,
        reduction: Reduction,
        x: &dyn Binding,
        out: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        let matrix = (Axis::Row, [rows, columns]);
        self.prepare_reduce("Kernels::reduce_rows", reduction, &[x, out], matrix)
    }

    /// Prepares the reduction of each column of `x`, a row-major matrix without padding, to an
    /// element of `out`. Types, rounding and order are those of [`Kernels::reduce`]; indices are
    /// rows, and the error of a sum is at most `(48 + rows / 2^9) * 2^-24` times the sum of
    /// absolute values. Buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Reduction};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1, 2, 3, 4, 5, 6])?;
    /// let out = gpu.alloc::<i32>(3)?;
    /// Kernels::new(&gpu)?.reduce_columns(Reduction::Sum, &x, &out, 2, 3)?.run()?;
    /// assert_eq!(out.download()?, [5, 7, 9]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`].
    pub fn reduce_columns(
        &self,
        reduction: Reduction,
        x: &dyn Binding,
        out: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        let matrix = (Axis::Column, [rows, columns]);
        self.prepare_reduce("Kernels::reduce_columns", reduction, &[x, out], matrix)
    }

    /// Prepares the inner product of `a` and `b`, which have the same length, to one element,
    /// `out`. Types, rounding and order are those of [`Kernels::reduce`] for sums; the products of
    /// floats are `f32`.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (a, b) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
    /// let out = gpu.alloc::<f32>(1)?;
    /// Kernels::new(&gpu)?.reduce_dot(&a, &b, &out)?.run()?;
    /// assert_eq!(out.download()?, [11.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`], and [`GpuError::Argument`](scry_gpu::GpuError::Argument) if `a` and
    /// `b` have different lengths.
    pub fn reduce_dot(&self, a: &dyn Binding, b: &dyn Binding, out: &dyn Binding) -> Result<Op> {
        self.reduce_dot_named("Kernels::reduce_dot", [a, b], out)
    }

    fn reduce_named(
        &self,
        function: &'static str,
        reduction: Reduction,
        x: &dyn Binding,
        out: &dyn Binding,
    ) -> Result<Op> {
        self.prepare_reduce(function, reduction, &[x, out], (Axis::All, [1, x.len()]))
    }

    fn reduce_dot_named(
        &self,
        function: &'static str,
        [a, b]: [&dyn Binding; 2],
        out: &dyn Binding,
    ) -> Result<Op> {
        if a.len() != b.len() {
            return Err(Call::new(function).argument_error(
                "buffer `b`",
                format!("has {} elements, but `a` has {}", b.len(), a.len()),
                "pass vectors of the same length",
            ));
        }
        let matrix = (Axis::All, [1, a.len()]);
        self.prepare_reduce(function, Reduction::Sum, &[a, b, out], matrix)
    }

    fn prepare_reduce(
        &self,
        function: &'static str,
        reduction: Reduction,
        buffers: &[&dyn Binding],
        (axis, [rows, columns]): (Axis, [usize; 2]),
    ) -> Result<Op> {
        let call = Call::new(function);
        let has_factors = buffers.len() == 3;
        let first = if has_factors { "a" } else { "x" };
        let dtype = call.dtype(first, buffers[0], reduction.types())?;
        let out = buffers[buffers.len() - 1];
        let output = call.dtype("out", out, reduction.output_types(dtype))?;
        let (rows, columns) = (rows as u64, columns as u64);
        call.product("the matrix", &[rows, columns])?;
        let it = Reduce { function, reduction, axis, rows, columns, dtype, output, has_factors };
        it.check_not_empty(&call)?;
        self.op(it, buffers)
    }
}

impl Reduce {
    /// Returns the number of results.
    fn results(&self) -> u64 {
        if self.axis == Axis::Column { self.columns } else { self.rows }
    }

    /// Returns the number of elements of which each result is computed.
    fn length(&self) -> u64 {
        if self.axis == Axis::Column { self.rows } else { self.columns }
    }

    /// Returns why no function of the host computes it; `None` if one does.
    fn host_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let is_of_rows = self.axis != Axis::Column || self.columns == 1;
        let is_supported = match self.reduction {
            Reduction::ArgMin | Reduction::ArgMax => true,
            Reduction::Sum | Reduction::Mean => self.dtype.size() == 4,
            _ => false,
        };
        if !is_of_rows || !is_supported {
            return Some(
                "computes only argmin, argmax, and sums of 32-bit elements, of rows".to_owned(),
            );
        }
        crate::host::obstacle(kernels)
    }

    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels)
            .or_else(|| elements::too_long(&[self.rows * self.columns, self.results()]))
    }

    fn check_not_empty(&self, call: &Call) -> Result<()> {
        if self.reduction.allows_empty() || self.length() > 0 || self.results() == 0 {
            return Ok(());
        }
        let undefined = format!("the {} of no elements is undefined", self.reduction.noun());
        Err(match self.axis {
            Axis::All => call.argument_error(
                "buffer `x`",
                format!("is empty, but {undefined}"),
                "pass at least one element",
            ),
            Axis::Row => call.argument_error(
                "`columns`",
                format!("is 0, but {undefined}"),
                "pass rows of at least one element",
            ),
            Axis::Column => call.argument_error(
                "`rows`",
                format!("is 0, but {undefined}"),
                "pass columns of at least one element",
            ),
        })
    }
}

impl Operation for Reduce {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        match self.axis {
            Axis::All => vec![("len", self.columns)],
            Axis::Row | Axis::Column => vec![("rows", self.rows), ("columns", self.columns)],
        }
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let len = self.rows * self.columns;
        let inputs: &[_] = if self.has_factors { &["a", "b"] } else { &["x"] };
        let inputs = inputs.iter().map(|name| arguments::read(name, self.dtype, len));
        inputs.chain([arguments::write("out", self.output, self.results())]).collect()
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: crate::host::INFO,
                obstacle: Self::host_obstacle,
                suits: |_, _| true,
                prepare: |it, preparation| match it.reduction {
                    Reduction::ArgMin | Reduction::ArgMax => positions::prepare(it, preparation),
                    _ => sums::prepare(it, preparation),
                },
            },
            Variant {
                info: plain::INFO,
                obstacle: Self::wgsl_obstacle,
                suits: |_, kernels| plain::is_software(kernels),
                prepare: passes::plain,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: Self::wgsl_obstacle,
                suits: |_, _| true,
                prepare: passes::prepare,
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.results() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.output)
    }
}
