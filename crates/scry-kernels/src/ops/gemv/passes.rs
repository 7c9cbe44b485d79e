//! The kernels of products of a matrix and a vector.

use scry_gpu::{DType, PreparedLaunch, Result, UntypedBuffer};

use super::{Gemv, Product};
use crate::elements;
use crate::host;
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::ops::Layout;
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// Workgroups per multiprocessor that are enough for the bandwidth of the memory.
const WORKGROUPS: u64 = 4;

/// Loads of an invocation below which a sum is not split.
const MIN_LOADS: u64 = 8;

/// Returns the splits of sums that occupy the device if each needs this many workgroups, and has
/// this many loads of an invocation.
fn splits(kernels: &Kernels, workgroups: u64, loads: u64) -> u64 {
    let multiprocessors = kernels.device().info().multiprocessors.unwrap_or(8);
    let wanted = (u64::from(multiprocessors) * WORKGROUPS).div_ceil(workgroups.max(1));
    wanted.min(loads / MIN_LOADS).max(1)
}

/// Where a kernel stores its sums: in `y`, or, if sums are split, in scratch memory.
struct Output {
    buffer: UntypedBuffer,
    /// The declaration of the binding and of `store`.
    declaration: String,
    /// What `store` adds to positions for each split, and for each product of the batch.
    strides: [u32; 2],
}

/// Returns where to store sums; with `quads`, four at a time.
fn output(
    it: &Product,
    preparation: &Preparation<'_>,
    splits: u64,
    has_quads: bool,
) -> Result<Output> {
    let Gemv { rows, batch, y_stride, .. } = it.gemv;
    let (buffer, element, value, strides) = match (splits, has_quads) {
        (1, false) => (preparation.buffers[2].clone(), "Stored", "narrow(sum)", [0, y_stride]),
        (1, true) => {
            (preparation.quads(2, it.lens[2])?, "Quad", "narrow_quad(sum)", [0, y_stride / 4])
        }
        _ => {
            let partial = preparation.kernels.scratch_of(0, DType::F32, batch * splits * rows)?;
            let len = if has_quads { rows / 4 } else { rows };
            let element = if has_quads { "vec4<f32>" } else { "f32" };
            (partial, element, "sum", [len, splits * len])
        }
    };
    let sum = if has_quads { "vec4<f32>" } else { "f32" };
    let declaration = format!(
        "@group(0) @binding(2) var<storage, read_write> y: array<{element}>;\n\
         fn store(nth: u32, split: u32, product: u32, sum: {sum}) {{\n    \
         y[product * shape.y_stride + split * shape.stride + nth] = {value};\n}}\n\n"
    );
    // With one product its stride is not used, and may be anything.
    let strides = if batch > 1 { strides } else { [strides[0], 0] };
    Ok(Output { buffer, declaration, strides: strides.map(|stride| stride as u32) })
}

/// Prepares the addition of splits.
fn add_splits(it: &Product, preparation: &Preparation<'_>, splits: u64) -> Result<PreparedLaunch> {
    let Gemv { rows, batch, y_stride, .. } = it.gemv;
    let partial = preparation.kernels.scratch_of(0, DType::F32, batch * splits * rows)?;
    let threads = (splits / 8).next_power_of_two().min(32);
    let y_stride = if batch > 1 { y_stride } else { 0 };
    preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            &format!("const THREADS = {threads}u;\n"),
            include_str!("../../shaders/gemv_splits.wgsl"),
        ],
        buffers: &[&partial, &preparation.buffers[2]],
        immediates: Immediates::default().u32(rows as u32).u32(splits as u32).u32(y_stride as u32),
        workgroups: [rows.div_ceil(256 / threads) as u32, 1, batch as u32],
    })
}

/// The strides of operands in granules of several elements, which `ld`, the strides of a batch of
/// more than one, and the length of a line are multiples of.
struct Granules {
    elements: u64,
    ld: u32,
    a_stride: u32,
    x_stride: u32,
}

impl Granules {
    /// Returns granules of this many elements if the matrices allow it, and `x` as well if it is
    /// loaded by granules; otherwise of one.
    fn new(gemv: &Gemv, elements: u64, has_x: bool) -> Self {
        let (line, lines) = gemv.a.lines(gemv.rows, gemv.columns);
        // Strides of one line or product are not used, and may be anything.
        let used = |count: u64, stride: u64| if count > 1 { stride } else { 0 };
        let (ld, a_stride) = (used(lines, gemv.a.ld), used(gemv.batch, gemv.a.stride));
        let x_stride = used(gemv.batch, gemv.x_stride);
        let x = if has_x { x_stride } else { 0 };
        let fits = [line, ld, a_stride, x].iter().all(|it| it.is_multiple_of(elements));
        let elements = if fits { elements } else { 1 };
        let x_elements = if has_x { elements } else { 1 };
        Self {
            elements,
            ld: (ld / elements) as u32,
            a_stride: (a_stride / elements) as u32,
            x_stride: (x_stride / x_elements) as u32,
        }
    }

    /// Returns the immediates of the strides.
    fn append_to(&self, immediates: Immediates) -> Immediates {
        immediates.u32(self.ld).u32(self.a_stride).u32(self.x_stride)
    }
}

/// The most products of a sum of a plain kernel, which adds them in order.
const MAX_PLAIN_COLUMNS: u64 = 1 << 14;

/// Returns why a plain kernel cannot be used; `None` if it can.
pub(super) fn plain_obstacle(it: &Product, kernels: &Kernels) -> Option<String> {
    let is_long = it.gemv.columns > MAX_PLAIN_COLUMNS;
    let reason = || format!("adds at most {MAX_PLAIN_COLUMNS} products in order");
    is_long.then(reason).or_else(|| it.wgsl_obstacle(kernels))
}

/// Returns whether a plain kernel is expected to be the fastest: of many results, with short sums.
pub(super) fn suits_plain(it: &Product, kernels: &Kernels) -> bool {
    let longest = match it.gemv.a.order {
        Layout::ColMajor if !host::is_cpu(kernels) => 64,
        _ => MAX_PLAIN_COLUMNS,
    };
    plain::is_software(kernels) && it.gemv.rows >= 64 && it.gemv.columns <= longest
}

/// Prepares a plain kernel: a result by each invocation.
pub(super) fn plain(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let Gemv { rows, columns, batch, a, .. } = it.gemv;
    let granules = Granules::new(&it.gemv, 1, true);
    let output = output(it, preparation, 1, false)?;
    let [a_buffer, x] = [0, 1].map(|nth| &preparation.buffers[nth]);
    // Without columns, the matrix and `x` have no elements.
    let buffers = preparation.without_empty(&[a_buffer, x, &output.buffer])?;
    let immediates = Immediates::default().u32(rows as u32).u32(columns as u32).u32(0);
    let immediates = granules.append_to(immediates);
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            &format!("const OF_COLUMNS = {};\n", a.order == Layout::ColMajor),
            &output.declaration,
            include_str!("../../shaders/plain/gemv.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: immediates.u32(output.strides[0]).u32(output.strides[1]),
        workgroups: [rows.div_ceil(64) as u32, 1, batch as u32],
    })?;
    Ok(vec![launch])
}

/// Prepares the product of each row.
pub(super) fn by_rows(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let Gemv { rows, columns, batch, .. } = it.gemv;
    let granules = Granules::new(&it.gemv, 16 / it.dtype.size() as u64, true);
    let chunks = columns / granules.elements;
    let threads = chunks.div_ceil(4).next_power_of_two().min(256);
    let workgroups = rows.div_ceil(256 / threads);
    let splits = splits(preparation.kernels, workgroups * batch, chunks / threads);
    // Parts are whole rounds of four loads, unless there is one.
    let part = match splits {
        1 => chunks,
        _ => chunks.div_ceil(splits).next_multiple_of(4 * threads),
    };
    let splits = chunks.div_ceil(part.max(1)).max(1);
    let (chunk, buffers) = if granules.elements > 1 {
        let source = match it.dtype {
            DType::F16 => include_str!("../../shaders/gemv_words_f16.wgsl"),
            DType::BF16 => include_str!("../../shaders/gemv_words_bf16.wgsl"),
            _ => include_str!("../../shaders/gemv_words_f32.wgsl"),
        };
        (source, [preparation.words(0, it.lens[0])?, preparation.words(1, it.lens[1])?])
    } else {
        let source = "alias Chunk = Stored;\n\
                      fn add_products(sum: f32, a: Stored, x: Stored) -> f32 {\n    \
                      return fma(widen(a), widen(x), sum);\n}\n\n";
        (source, [0, 1].map(|nth| preparation.buffers[nth].clone()))
    };
    let output = output(it, preparation, splits, false)?;
    // Without columns, the matrix and `x` have no elements.
    let buffers = preparation.without_empty(&[&buffers[0], &buffers[1], &output.buffer])?;
    let immediates = Immediates::default().u32(rows as u32).u32(chunks as u32).u32(part as u32);
    let immediates = granules.append_to(immediates);
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            chunk,
            &format!("const THREADS = {threads}u;\n"),
            &output.declaration,
            include_str!("../../shaders/gemv_rows.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: immediates.u32(output.strides[0]).u32(output.strides[1]),
        workgroups: [workgroups as u32, splits as u32, batch as u32],
    })?;
    finish(it, preparation, launch, splits)
}

/// Prepares the product of each row of column-major matrices.
pub(super) fn by_columns(
    it: &Product,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let Gemv { rows, columns, batch, y_stride, .. } = it.gemv;
    let has_y_quads = batch <= 1 || y_stride.is_multiple_of(4);
    let granules = Granules::new(&it.gemv, if has_y_quads { 4 } else { 1 }, false);
    let has_quads = granules.elements == 4;
    let parts = rows / granules.elements;
    let lanes = parts.next_power_of_two().min(if has_quads { 32 } else { 64 });
    let columns_at_once = 256 / lanes;
    let workgroups = parts.div_ceil(lanes);
    let splits = splits(preparation.kernels, workgroups * batch, columns / columns_at_once);
    let height = match splits {
        1 => columns,
        _ => columns.div_ceil(splits).next_multiple_of(4 * columns_at_once),
    };
    let splits = columns.div_ceil(height.max(1)).max(1);
    let (part, a) = match has_quads {
        true => (
            "alias Part = Quad;\nalias Sum = vec4<f32>;\n\
             fn widen_part(part: Part) -> Sum { return widen_quad(part); }\n",
            preparation.quads(0, it.lens[0])?,
        ),
        false => (
            "alias Part = Stored;\nalias Sum = f32;\n\
             fn widen_part(part: Part) -> Sum { return widen(part); }\n",
            preparation.buffers[0].clone(),
        ),
    };
    let output = output(it, preparation, splits, has_quads)?;
    // Without columns, the matrix and `x` have no elements.
    let buffers = preparation.without_empty(&[&a, &preparation.buffers[1], &output.buffer])?;
    let immediates = Immediates::default().u32(columns as u32).u32(parts as u32).u32(height as u32);
    let immediates = granules.append_to(immediates);
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            if has_quads { elements::quads(it.dtype) } else { "" },
            part,
            &format!("const LANES = {lanes}u;\n"),
            &output.declaration,
            include_str!("../../shaders/gemv_columns.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: immediates.u32(output.strides[0]).u32(output.strides[1]),
        workgroups: [workgroups as u32, splits as u32, batch as u32],
    })?;
    finish(it, preparation, launch, splits)
}

/// Returns the launches: the sums of splits are added by another one.
fn finish(
    it: &Product,
    preparation: &Preparation<'_>,
    launch: PreparedLaunch,
    splits: u64,
) -> Result<Vec<PreparedLaunch>> {
    match splits {
        1 => Ok(vec![launch]),
        _ => Ok(vec![launch, add_splits(it, preparation, splits)?]),
    }
}
