//! Products of a matrix and a vector.

mod host;
mod passes;

use scry_gpu::{Binding, DType, NativeBinding, Result};
use scry_ptx::kernels::gemm::{Layout, MatrixLayout};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Variant, VariantInfo};
use crate::plain;

/// A batch of products of a matrix and a vector: for each `z`, `y[z, i] = sum(a[z, i, l] * x[z,
/// l])`.
///
/// ```
/// use scry_kernels::{Gemv, Layout};
///
/// // Eight products of 3 × 5 matrices, each transposed from its rows: 5 × 3 in memory.
/// let gemv = Gemv::new(3, 5).with_layout(Layout::ColMajor).batched(8);
/// assert_eq!((gemv.a.ld, gemv.a.stride, gemv.x_stride, gemv.y_stride), (3, 15, 5, 3));
/// // All with the same vector:
/// let gemv = Gemv { x_stride: 0, ..gemv };
/// # assert_eq!(gemv.batch, 8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gemv {
    /// Rows of a matrix, and results of a product.
    pub rows: u64,
    /// Columns of a matrix, and elements of `x` of a product.
    pub columns: u64,
    /// Number of products.
    pub batch: u64,
    /// Layout of the matrices, rows × columns.
    pub a: MatrixLayout,
    /// The stride from one `x` to the next, in elements; 0 if all products use the same one.
    pub x_stride: u64,
    /// The stride from one `y` to the next, in elements.
    pub y_stride: u64,
}

impl Gemv {
    /// Returns one product of a row-major matrix without gaps.
    #[must_use]
    pub const fn new(rows: u64, columns: u64) -> Self {
        let a = MatrixLayout::packed(Layout::RowMajor, rows, columns);
        Self { rows, columns, batch: 1, a, x_stride: columns, y_stride: rows }
    }

    /// Returns the same products with matrices in this layout, without gaps. The rows of a matrix
    /// in memory are the columns of [`Layout::ColMajor`]: a product with the transposed matrix.
    #[must_use]
    pub const fn with_layout(mut self, a: Layout) -> Self {
        self.a = MatrixLayout::packed(a, self.rows, self.columns);
        self
    }

    /// Returns a batch of this many products.
    #[must_use]
    pub const fn batched(mut self, batch: u64) -> Self {
        self.batch = batch;
        self
    }
}

/// Products of a matrix and a vector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Product {
    function: &'static str,
    gemv: Gemv,
    dtype: DType,
    /// The elements of `a`, `x` and `y`.
    lens: [u64; 3],
}

/// Products of a matrix and a vector.
impl Kernels {
    /// Prepares `y = a × x` (GEMV): `a` is a row-major matrix of rows × columns without gaps, `x`
    /// has `columns` and `y` has `rows` elements, of `f32`, `f16` or `bf16`. Accumulators are
    /// `f32`, rounded once at the end. Without columns, `y` becomes 0. Buffers may be longer.
    ///
    /// Rows that are a multiple of 16 bytes long are the fastest. A few long rows are split over
    /// the device, and their parts added in a fixed order.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 × 3
    /// let (x, y) = (gpu.upload(&[1.0f32, 0.0, 10.0])?, gpu.alloc::<f32>(2)?);
    /// Kernels::new(&gpu)?.gemv(&a, &x, &y, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [31.0, 64.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap with `y`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks the element
    /// type, or if the matrix has more than 2^32 - 1 elements.
    #[doc(alias = "sgemv")]
    pub fn gemv(
        &self,
        a: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        let gemv = Gemv::new(rows as u64, columns as u64);
        self.prepare_gemv("Kernels::gemv", gemv, [a, x, y])
    }

    /// Prepares `y = aᵀ × x`: `a` is rows × columns as that of [`Kernels::gemv`], `x` has `rows`
    /// and `y` has `columns` elements. Without rows, `y` becomes 0.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 × 3
    /// let (x, y) = (gpu.upload(&[1.0f32, 10.0])?, gpu.alloc::<f32>(3)?);
    /// Kernels::new(&gpu)?.gemv_transposed(&a, &x, &y, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [41.0, 52.0, 63.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemv`].
    pub fn gemv_transposed(
        &self,
        a: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        let gemv = Gemv::new(columns as u64, rows as u64).with_layout(Layout::ColMajor);
        self.prepare_gemv("Kernels::gemv_transposed", gemv, [a, x, y])
    }

    /// Prepares a batch of products `y = a × x`, see [`Gemv`]: batched and strided, with row- or
    /// column-major matrices. `a`, `x` and `y` are of `f32`, `f16` or `bf16`, as in
    /// [`Kernels::gemv`]; elements of `y` between the results are not written.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Gemv, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?; // 2 matrices of 2 × 2
    /// let (x, y) = (gpu.upload(&[1.0f32, 10.0])?, gpu.alloc::<f32>(4)?);
    /// let gemv = Gemv { x_stride: 0, ..Gemv::new(2, 2).batched(2) };
    /// Kernels::new(&gpu)?.gemv_batch(&gemv, &a, &x, &y)?.run()?;
    /// assert_eq!(y.download()?, [21.0, 43.0, 65.0, 87.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemv`], and [`GpuError::Argument`](scry_gpu::GpuError::Argument) for a leading
    /// dimension that is less than a row (or column), and for results that overlap.
    pub fn gemv_batch(
        &self,
        gemv: &Gemv,
        a: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
    ) -> Result<Op> {
        self.prepare_gemv("Kernels::gemv_batch", *gemv, [a, x, y])
    }

    fn prepare_gemv(
        &self,
        function: &'static str,
        gemv: Gemv,
        [a, x, y]: [&dyn Binding; 3],
    ) -> Result<Op> {
        let dtype = Call::new(function).dtype("a", a, &FLOATS)?;
        let lens = gemv.lens(&Call { function: function.into(), sizes: sizes(function, &gemv) })?;
        self.op(Product { function, gemv, dtype, lens }, &[a, x, y])
    }
}

/// Returns the sizes as the program passed them.
fn sizes(function: &str, gemv: &Gemv) -> Vec<(&'static str, u64)> {
    let Gemv { rows, columns, batch, .. } = *gemv;
    match function {
        "Kernels::gemv_transposed" => vec![("rows", columns), ("columns", rows)],
        "Kernels::gemv" => vec![("rows", rows), ("columns", columns)],
        _ => vec![("rows", rows), ("columns", columns), ("batch", batch)],
    }
}

impl Gemv {
    /// Returns the elements of `a`, `x` and `y`, from the first to the last one that is accessed.
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for lines or results that overlap, and
    /// for more elements than 64 bits count.
    fn lens(&self, call: &Call) -> Result<[u64; 3]> {
        let Self { rows, columns, batch, a, x_stride, y_stride } = *self;
        let (line, lines) = a.lines(rows, columns);
        if a.ld < line && lines > 1 {
            let problem = format!("is {}, less than the {line} elements of a row or column", a.ld);
            return Err(call.argument_error("`a.ld`", problem, "pass at least that"));
        }
        if y_stride < rows && batch > 1 {
            let problem = format!("is {y_stride}, less than the {rows} results of a product");
            return Err(call.argument_error("`y_stride`", problem, "pass at least that"));
        }
        let lens = [
            extent(&[(batch, a.stride), (lines, a.ld), (line, 1)]),
            extent(&[(batch, x_stride), (columns, 1)]),
            extent(&[(batch, y_stride), (rows, 1)]),
        ];
        let checked = |(name, len): (&str, Option<u64>)| {
            let problem = format!("has more than 2^64 - 1 elements with {}", call.list_sizes());
            len.ok_or_else(|| call.argument_error(name, problem, "pass smaller sizes or strides"))
        };
        let [a, x, y] = lens;
        Ok([checked(("`a`", a))?, checked(("`x`", x))?, checked(("`y`", y))?])
    }
}

/// Returns the elements from the first to the last one of counts with strides; `None` beyond 64
/// bits.
fn extent(axes: &[(u64, u64)]) -> Option<u64> {
    if axes.iter().any(|(count, _)| *count == 0) {
        return Some(0);
    }
    axes.iter()
        .try_fold(1u64, |len, (count, stride)| (count - 1).checked_mul(*stride)?.checked_add(len))
}

impl Product {
    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&self.lens))
    }
}

impl Operation for Product {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        sizes(self.function, &self.gemv)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [a, x, y] = self.lens;
        vec![
            arguments::read("a", self.dtype, a),
            arguments::read("x", self.dtype, x),
            arguments::write("y", self.dtype, y),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: crate::host::INFO,
                obstacle: |it, kernels| {
                    let Gemv { a, x_stride, y_stride, .. } = it.gemv;
                    // No larger one separates elements of a buffer.
                    let are_strides = [a.ld, a.stride, x_stride, y_stride]
                        .iter()
                        .all(|stride| *stride <= u64::from(u32::MAX));
                    let is_supported = it.dtype == DType::F32 && are_strides;
                    let other = "multiplies f32, with strides of 32 bits".to_owned();
                    (!is_supported).then_some(other).or_else(|| crate::host::obstacle(kernels))
                },
                suits: |_, _| true,
                prepare: host::prepare,
            },
            Variant {
                info: plain::INFO,
                obstacle: passes::plain_obstacle,
                suits: passes::suits_plain,
                prepare: passes::plain,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: Self::wgsl_obstacle,
                suits: |_, _| true,
                prepare: |it, preparation| match it.gemv.a.order {
                    Layout::RowMajor => passes::by_rows(it, preparation),
                    Layout::ColMajor => passes::by_columns(it, preparation),
                },
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.gemv.rows == 0 || self.gemv.batch == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}
