//! Products of a matrix and a vector.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// A product of a matrix and a vector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gemv {
    rows: u64,
    columns: u64,
    is_transposed: bool,
    dtype: DType,
}

/// Workgroups per multiprocessor that are enough for the bandwidth of the memory.
const WORKGROUPS: u64 = 4;

/// Loads of an invocation below which a sum is not split.
const MIN_LOADS: u64 = 8;

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
    pub fn gemv(
        &self,
        a: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        self.prepare_gemv([a, x, y], [rows, columns], false)
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
        self.prepare_gemv([a, x, y], [rows, columns], true)
    }

    fn prepare_gemv(
        &self,
        [a, x, y]: [&dyn Binding; 3],
        [rows, columns]: [usize; 2],
        is_transposed: bool,
    ) -> Result<Op> {
        let function = function(is_transposed);
        let dtype = Call::new(function).dtype("a", a, &FLOATS)?;
        let it = Gemv { rows: rows as u64, columns: columns as u64, is_transposed, dtype };
        let call = Call { function: function.into(), sizes: it.sizes() };
        call.product("`a`", &[it.rows, it.columns])?;
        self.op(it, &[a, x, y])
    }
}

fn function(is_transposed: bool) -> &'static str {
    match is_transposed {
        true => "Kernels::gemv_transposed",
        false => "Kernels::gemv",
    }
}

impl Operation for Gemv {
    fn function(&self) -> &'static str {
        function(self.is_transposed)
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows), ("columns", self.columns)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [x, y] = self.lens();
        vec![
            arguments::read("a", self.dtype, self.rows * self.columns),
            arguments::read("x", self.dtype, x),
            arguments::write("y", self.dtype, y),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[Variant {
            info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
            obstacle: |it, kernels| {
                let elements = [it.rows * it.columns, it.rows, it.columns];
                elements::obstacle(it.dtype, kernels).or_else(|| elements::too_long(&elements))
            },
            suits: |_, _| true,
            prepare: |it, preparation| match it.is_transposed {
                true => by_columns(it, preparation),
                false => by_rows(it, preparation),
            },
        }]
    }

    fn is_empty(&self) -> bool {
        self.lens()[1] == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl Gemv {
    /// Returns the elements of `x` and `y`.
    fn lens(&self) -> [u64; 2] {
        match self.is_transposed {
            true => [self.rows, self.columns],
            false => [self.columns, self.rows],
        }
    }

    /// Returns the splits of sums that occupy the device if each needs this many workgroups, and
    /// has this many loads of an invocation.
    fn splits(kernels: &Kernels, workgroups: u64, loads: u64) -> u64 {
        let multiprocessors = kernels.device().info().multiprocessors.unwrap_or(8);
        let wanted = (u64::from(multiprocessors) * WORKGROUPS).div_ceil(workgroups.max(1));
        wanted.min(loads / MIN_LOADS).max(1)
    }
}

/// Where a kernel stores its sums: in `y`, or, if sums are split, in scratch memory.
struct Output {
    buffer: UntypedBuffer,
    /// The declaration of the binding and of `store`.
    declaration: String,
    /// What `store` adds to positions for each split.
    stride: u32,
}

/// Returns where to store sums; with `quads`, four at a time.
fn output(
    it: &Gemv,
    preparation: &Preparation<'_>,
    splits: u64,
    has_quads: bool,
) -> Result<Output> {
    let len = it.lens()[1];
    let (buffer, element, value, stride) = match (splits, has_quads) {
        (1, false) => (preparation.buffers[2].clone(), "Stored", "narrow(sum)", 0),
        (1, true) => (preparation.quads(2, len)?, "Quad", "narrow_quad(sum)", 0),
        _ => {
            let partial = preparation.kernels.scratch_of(0, DType::F32, splits * len)?;
            match has_quads {
                true => (partial, "vec4<f32>", "sum", len / 4),
                false => (partial, "f32", "sum", len),
            }
        }
    };
    let sum = if has_quads { "vec4<f32>" } else { "f32" };
    let declaration = format!(
        "@group(0) @binding(2) var<storage, read_write> y: array<{element}>;\n\
         fn store(nth: u32, split: u32, sum: {sum}) {{\n    \
         y[split * shape.stride + nth] = {value};\n}}\n\n"
    );
    Ok(Output { buffer, declaration, stride: stride as u32 })
}

/// Prepares the addition of splits.
fn add_splits(it: &Gemv, preparation: &Preparation<'_>, splits: u64) -> Result<PreparedLaunch> {
    let len = it.lens()[1];
    let partial = preparation.kernels.scratch_of(0, DType::F32, splits * len)?;
    let threads = (splits / 8).next_power_of_two().min(32);
    preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            &format!("const THREADS = {threads}u;\n"),
            include_str!("../shaders/gemv_splits.wgsl"),
        ],
        buffers: &[&partial, &preparation.buffers[2]],
        immediates: Immediates::default().u32(len as u32).u32(splits as u32),
        workgroups: [len.div_ceil(256 / threads) as u32, 1, 1],
    })
}

/// Prepares the product of each row.
fn by_rows(it: &Gemv, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let per_chunk = 16 / it.dtype.size() as u64;
    let has_words = it.columns.is_multiple_of(per_chunk);
    let chunks = if has_words { it.columns / per_chunk } else { it.columns };
    let threads = chunks.div_ceil(4).next_power_of_two().min(256);
    let workgroups = it.rows.div_ceil(256 / threads);
    let splits = Gemv::splits(preparation.kernels, workgroups, chunks / threads);
    // Parts are whole rounds of four loads, unless there is one.
    let part = match splits {
        1 => chunks,
        _ => chunks.div_ceil(splits).next_multiple_of(4 * threads),
    };
    let splits = chunks.div_ceil(part.max(1)).max(1);
    let (chunk, buffers) = if has_words {
        let source = match it.dtype {
            DType::F16 => include_str!("../shaders/gemv_words_f16.wgsl"),
            DType::BF16 => include_str!("../shaders/gemv_words_bf16.wgsl"),
            _ => include_str!("../shaders/gemv_words_f32.wgsl"),
        };
        let a = preparation.words(0, it.rows * it.columns)?;
        (source, [a, preparation.words(1, it.columns)?])
    } else {
        let source = "alias Chunk = Stored;\n\
                      fn add_products(sum: f32, a: Stored, x: Stored) -> f32 {\n    \
                      return fma(widen(a), widen(x), sum);\n}\n\n";
        (source, [0, 1].map(|nth| preparation.buffers[nth].clone()))
    };
    let output = output(it, preparation, splits, false)?;
    // Without columns, the matrix and `x` have no elements.
    let buffers = preparation.without_empty(&[&buffers[0], &buffers[1], &output.buffer])?;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            chunk,
            &format!("const THREADS = {threads}u;\n"),
            &output.declaration,
            include_str!("../shaders/gemv_rows.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default()
            .u32(it.rows as u32)
            .u32(chunks as u32)
            .u32(part as u32)
            .u32(output.stride),
        workgroups: [workgroups as u32, splits as u32, 1],
    })?;
    finish(it, preparation, launch, splits)
}

/// Prepares the product of each column.
fn by_columns(it: &Gemv, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let has_quads = it.columns.is_multiple_of(4);
    let parts = if has_quads { it.columns / 4 } else { it.columns };
    let lanes = parts.next_power_of_two().min(if has_quads { 32 } else { 64 });
    let rows_at_once = 256 / lanes;
    let workgroups = parts.div_ceil(lanes);
    let splits = Gemv::splits(preparation.kernels, workgroups, it.rows / rows_at_once);
    let height = match splits {
        1 => it.rows,
        _ => it.rows.div_ceil(splits).next_multiple_of(4 * rows_at_once),
    };
    let splits = it.rows.div_ceil(height.max(1)).max(1);
    let (part, a) = match has_quads {
        true => (
            "alias Part = Quad;\nalias Sum = vec4<f32>;\n\
             fn widen_part(part: Part) -> Sum { return widen_quad(part); }\n",
            preparation.quads(0, it.rows * it.columns)?,
        ),
        false => (
            "alias Part = Stored;\nalias Sum = f32;\n\
             fn widen_part(part: Part) -> Sum { return widen(part); }\n",
            preparation.buffers[0].clone(),
        ),
    };
    let output = output(it, preparation, splits, has_quads)?;
    // Without rows, the matrix and `x` have no elements.
    let buffers = preparation.without_empty(&[&a, &preparation.buffers[1], &output.buffer])?;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            if has_quads { elements::quads(it.dtype) } else { "" },
            part,
            &format!("const LANES = {lanes}u;\n"),
            &output.declaration,
            include_str!("../shaders/gemv_columns.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default()
            .u32(it.rows as u32)
            .u32(parts as u32)
            .u32(height as u32)
            .u32(output.stride),
        workgroups: [workgroups as u32, splits as u32, 1],
    })?;
    finish(it, preparation, launch, splits)
}

/// Returns the launches: the sums of splits are added by another one.
fn finish(
    it: &Gemv,
    preparation: &Preparation<'_>,
    launch: PreparedLaunch,
    splits: u64,
) -> Result<Vec<PreparedLaunch>> {
    match splits {
        1 => Ok(vec![launch]),
        _ => Ok(vec![launch, add_splits(it, preparation, splits)?]),
    }
}
