//! Transposes and other permutations of axes.

mod host;

use std::fmt::Write as _;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, NUMBERS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// A permutation of axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Permute {
    function: &'static str,
    dtype: DType,
    /// The sizes that the program passed.
    sizes: Vec<(&'static str, u64)>,
    axes: Axes,
}

/// Axes of a row-major array and their order in the result. Adjacent axes that stay adjacent are
/// one axis, and there is no axis of size 1, unless it is the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axes {
    /// Sizes in the order of the input.
    dims: Vec<u64>,
    /// The axis of the input that each axis of the result is.
    order: Vec<usize>,
}

/// Most axes after merging: their sizes and strides fit in the immediates.
const MAX_AXES: usize = 6;

/// Names of the sizes in errors.
const DIMS: [&str; 8] =
    ["dims[0]", "dims[1]", "dims[2]", "dims[3]", "dims[4]", "dims[5]", "dims[6]", "dims[7]"];

/// Transposes and permutations of axes.
impl Kernels {
    /// Prepares the transpose of a row-major matrix: `x` is rows × columns, `y` columns × rows.
    /// Elements are `f32`, `f16`, `bf16`, `i32` or `u32`, and copied bit by bit. Buffers may be
    /// longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6])?; // 2 × 3
    /// let y = gpu.alloc::<u32>(6)?;
    /// Kernels::new(&gpu)?.transpose(&x, &y, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if
    /// the matrix has more than 2^32 - 1 elements, or if the device lacks 16-bit elements that the
    /// sizes need.
    pub fn transpose(
        &self,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::transpose";
        let sizes = vec![("rows", rows as u64), ("columns", columns as u64)];
        self.prepare_permute(FUNCTION, sizes, [x, y], &[rows, columns], &[1, 0])
    }

    /// Prepares the transposes of several matrices that follow each other: those of `x` are
    /// rows × columns, those of `y` columns × rows. Otherwise as [`Kernels::transpose`].
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6, 7, 8])?; // two matrices of 2 × 2
    /// let y = gpu.alloc::<u32>(8)?;
    /// Kernels::new(&gpu)?.transpose_batch(&x, &y, 2, 2, 2)?.run()?;
    /// assert_eq!(y.download()?, [1, 3, 2, 4, 5, 7, 6, 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::transpose`].
    pub fn transpose_batch(
        &self,
        x: &dyn Binding,
        y: &dyn Binding,
        batch: usize,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::transpose_batch";
        let sizes =
            vec![("batch", batch as u64), ("rows", rows as u64), ("columns", columns as u64)];
        self.prepare_permute(FUNCTION, sizes, [x, y], &[batch, rows, columns], &[0, 2, 1])
    }

    /// Prepares a permutation of the axes of a row-major array: `x` has the sizes `dims`, and axis
    /// i of `y` is axis `axes[i]` of `x`. Elements are those of [`Kernels::transpose`].
    ///
    /// There may be any number of axes, of which at most 6 remain after those of size 1 are dropped
    /// and axes that are adjacent in `x` and in `y` are merged. Without axes, the array is one
    /// element.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// // Images of height × width × channels become channels × height × width.
    /// let (height, width, channels) = (1, 2, 3);
    /// let x = gpu.upload(&[10u32, 20, 30, 11, 21, 31])?;
    /// let y = gpu.alloc::<u32>(6)?;
    /// Kernels::new(&gpu)?.permute(&x, &y, &[height, width, channels], &[2, 0, 1])?.run()?;
    /// assert_eq!(y.download()?, [10, 11, 20, 21, 30, 31]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::transpose`], and [`GpuError::Argument`](scry_gpu::GpuError::Argument) if
    /// `axes` is not a permutation of the axes, or if more than 6 remain.
    pub fn permute(
        &self,
        x: &dyn Binding,
        y: &dyn Binding,
        dims: &[usize],
        axes: &[usize],
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::permute";
        let sizes = DIMS.into_iter().zip(dims.iter().map(|size| *size as u64)).collect();
        self.prepare_permute(FUNCTION, sizes, [x, y], dims, axes)
    }

    fn prepare_permute(
        &self,
        function: &'static str,
        sizes: Vec<(&'static str, u64)>,
        [x, y]: [&dyn Binding; 2],
        dims: &[usize],
        axes: &[usize],
    ) -> Result<Op> {
        let call = Call { function: function.into(), sizes: sizes.clone() };
        let dtype = call.dtype("x", x, &NUMBERS)?;
        let dims: Vec<_> = dims.iter().map(|size| *size as u64).collect();
        call.product("`x`", &dims)?;
        check_axes(&call, dims.len(), axes)?;
        let merged = Axes::merged(&dims, axes);
        if merged.dims.len() > MAX_AXES {
            return Err(call.argument_error(
                "`axes`",
                format!(
                    "leaves {} axes after merging, but at most {MAX_AXES} are supported",
                    merged.dims.len()
                ),
                "permute in two steps",
            ));
        }
        self.op(Permute { function, dtype, sizes, axes: merged }, &[x, y])
    }
}

fn check_axes(call: &Call, count: usize, axes: &[usize]) -> Result<()> {
    let is_permutation = axes.len() == count && (0..count).all(|axis| axes.contains(&axis));
    if is_permutation {
        return Ok(());
    }
    Err(call.argument_error(
        "`axes`",
        format!("is {axes:?}, which is not a permutation of the {count} axes of `x`"),
        "list each axis of `x` once, from 0 on, in the order of `y`",
    ))
}

impl Axes {
    /// Drops axes of size 1, and merges axes that are adjacent in both orders.
    fn merged(dims: &[u64], order: &[usize]) -> Self {
        // Positions among the axes that are kept.
        let position = |axis: usize| dims[..axis].iter().filter(|size| **size != 1).count();
        let kept = order.iter().filter(|axis| dims[**axis] != 1);
        let mut groups: Vec<(usize, usize, u64)> = Vec::new();
        for axis in kept {
            let (at, size) = (position(*axis), dims[*axis]);
            match groups.last_mut() {
                Some((first, count, product)) if *first + *count == at => {
                    (*count, *product) = (*count + 1, *product * size);
                }
                _ => groups.push((at, 1, size)),
            }
        }
        if groups.is_empty() {
            return Self { dims: vec![1], order: vec![0] };
        }
        let rank = |first: usize| groups.iter().filter(|group| group.0 < first).count();
        let order: Vec<_> = groups.iter().map(|group| rank(group.0)).collect();
        let mut dims = vec![0; groups.len()];
        for (axis, group) in order.iter().zip(&groups) {
            dims[*axis] = group.2;
        }
        Self { dims, order }
    }

    fn len(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Returns the distance between neighbours along an axis of the input, in elements.
    fn x_stride(&self, axis: usize) -> u64 {
        self.dims[axis + 1..].iter().product()
    }

    /// Returns the distance between neighbours along an axis of the result, in elements.
    fn y_stride(&self, nth: usize) -> u64 {
        self.order[nth + 1..].iter().map(|axis| self.dims[*axis]).product()
    }

    /// Returns the size of the axis of the input that is contiguous in the result, and of the last
    /// axis of the input: rows and columns of the matrices that are transposed. `None` if they are
    /// the same axis.
    fn matrix(&self) -> Option<[u64; 2]> {
        let (rows, columns) = (*self.order.last()?, self.dims.len() - 1);
        (rows != columns).then(|| [self.dims[rows], self.dims[columns]])
    }
}

/// How elements are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Blocks of 4 × 4 elements in tiles of 64 × 64.
    Blocks,
    /// Tiles of any shape.
    Tiles { rows: u32, columns: u32 },
    /// One by one, in granules of this many bytes.
    Elements { granule: u64 },
}

/// Most elements of a tile: 16 KiB if they have 32 bits.
const MAX_TILE: u64 = 4096;

impl Permute {
    fn method(&self) -> Method {
        let size = self.dtype.size() as u64;
        let Some([rows, columns]) = self.axes.matrix() else {
            let bytes = self.axes.dims[self.axes.dims.len() - 1] * size;
            let granule = [16, 8, 4].into_iter().find(|granule| bytes.is_multiple_of(*granule));
            return Method::Elements { granule: granule.unwrap_or(size) };
        };
        let is_divisible = rows.is_multiple_of(4) && columns.is_multiple_of(4);
        if is_divisible && rows.min(columns) >= 48 {
            return Method::Blocks;
        }
        // The smaller side of a tile is that of the matrix, and the other one is longer.
        let side = |size: u64| size.min(64).next_power_of_two();
        let (mut tile_rows, mut tile_columns) = (side(rows), side(columns));
        if tile_rows < tile_columns {
            tile_columns = columns.next_power_of_two().min(MAX_TILE / tile_rows);
        } else {
            tile_rows = rows.next_power_of_two().min(MAX_TILE / tile_columns);
        }
        match tile_rows * tile_columns {
            ..256 => Method::Elements { granule: size },
            _ => Method::Tiles { rows: tile_rows as u32, columns: tile_columns as u32 },
        }
    }

    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let moves_elements = match self.method() {
            Method::Blocks => false,
            Method::Tiles { .. } => true,
            Method::Elements { granule } => granule < 4,
        };
        let missing = moves_elements.then(|| elements::obstacle(self.dtype, kernels)).flatten();
        missing.or_else(|| elements::too_long(&[self.axes.len()]))
    }
}

impl Operation for Permute {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.sizes.clone()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let len = self.axes.len();
        vec![arguments::read("x", self.dtype, len), arguments::write("y", self.dtype, len)]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                crate::host::variant(host::prepare),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: |it, kernels| it.wgsl_obstacle(kernels),
                    suits: |_, _| true,
                    prepare: |it, preparation| {
                        let launch = match it.method() {
                            Method::Blocks => blocks(it, preparation),
                            Method::Tiles { rows, columns } => {
                                tiles(it, preparation, [rows, columns])
                            }
                            Method::Elements { granule } => {
                                permute_elements(it, preparation, granule)
                            }
                        };
                        Ok(vec![launch?])
                    },
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.axes.len() == 0
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

/// The batch of matrices that `transpose_outer.wgsl` describes.
struct Matrices {
    rows: u32,
    columns: u32,
    immediates: Immediates,
    /// The constant that precedes it.
    declaration: String,
    count: u32,
}

impl Permute {
    fn matrices(&self) -> Matrices {
        let axes = &self.axes;
        let last = axes.dims.len() - 1;
        let (row_axis, column_at) =
            (axes.order[last], axes.order.iter().position(|it| *it == last));
        let column_at = column_at.unwrap_or(last);
        let mut outer = [[0u64, 0, 1]; MAX_AXES - 2];
        let others = (0..last).filter(|nth| *nth != column_at);
        let others: Vec<_> = others
            .map(|nth| {
                let axis = axes.order[nth];
                [axes.x_stride(axis), axes.y_stride(nth), axes.dims[axis]]
            })
            .collect();
        let first = outer.len() - others.len();
        outer[first..].copy_from_slice(&others);
        let [rows, columns] = [axes.dims[row_axis], axes.dims[last]];
        let mut immediates = Immediates::default().u32(rows as u32).u32(columns as u32);
        immediates =
            immediates.u32(axes.x_stride(row_axis) as u32).u32(axes.y_stride(column_at) as u32);
        for part in 0..3 {
            immediates = outer.iter().fold(immediates, |all, axis| all.u32(axis[part] as u32));
        }
        Matrices {
            rows: rows as u32,
            columns: columns as u32,
            immediates,
            declaration: format!("const OUTER = {}u;\n", others.len()),
            count: others.iter().map(|axis| axis[2]).product::<u64>() as u32,
        }
    }
}

/// Prepares the transpose by blocks of 4 × 4 elements, as 32-bit words.
fn blocks(it: &Permute, preparation: &Preparation<'_>) -> Result<PreparedLaunch> {
    let Matrices { rows, columns, immediates, declaration, count } = it.matrices();
    let [x, y] = words(it, preparation)?;
    let quads = match it.dtype.size() {
        2 => include_str!("../../shaders/transpose_quads16.wgsl"),
        _ => include_str!("../../shaders/transpose_quads32.wgsl"),
    };
    preparation.wgsl(&WgslLaunch {
        source: &[
            quads,
            &declaration,
            include_str!("../../shaders/transpose_outer.wgsl"),
            include_str!("../../shaders/transpose_blocks.wgsl"),
        ],
        buffers: &[&x, &y],
        immediates,
        workgroups: [columns.div_ceil(64), rows.div_ceil(64), count],
    })
}

/// Prepares the transpose by tiles of any shape.
fn tiles(it: &Permute, preparation: &Preparation<'_>, tile: [u32; 2]) -> Result<PreparedLaunch> {
    let Matrices { rows, columns, immediates, mut declaration, count } = it.matrices();
    let [tile_rows, tile_columns] = tile;
    // A row of the tile is this many banks of workgroup memory, of which there are 32.
    let unit = if it.dtype.size() == 2 { 1 } else { 0 };
    let banks = (tile_columns >> unit).clamp(1, 32);
    let batch = (tile_rows * tile_columns / 256).min(8);
    declaration += &format!(
        "const ROWS = {tile_rows}u;\nconst COLUMNS = {tile_columns}u;\nconst BATCH = {batch}u;\n\
         const SHIFT = {}u;\nconst MASK = {}u;\nconst UNIT = {unit}u;\n",
        (32 / banks).ilog2(),
        banks - 1,
    );
    let (prelude, [x, y]) = elements_or_words(it, preparation)?;
    preparation.wgsl(&WgslLaunch {
        source: &[
            prelude,
            &declaration,
            include_str!("../../shaders/transpose_outer.wgsl"),
            include_str!("../../shaders/transpose_tiles.wgsl"),
        ],
        buffers: &[&x, &y],
        immediates,
        workgroups: [columns.div_ceil(tile_columns), rows.div_ceil(tile_rows), count],
    })
}

/// Prepares the copy of elements one by one, or of granules of several elements.
fn permute_elements(
    it: &Permute,
    preparation: &Preparation<'_>,
    granule: u64,
) -> Result<PreparedLaunch> {
    let axes = &it.axes;
    let per_granule = granule / it.dtype.size() as u64;
    let last = axes.dims.len() - 1;
    // Sizes and strides in granules; only the last axis is divided.
    let size =
        |axis: usize| if axis == last { axes.dims[axis] / per_granule } else { axes.dims[axis] };
    let stride = |axis: usize| match axis == last {
        true => 1,
        false => axes.x_stride(axis) / per_granule,
    };
    let granules = axes.len() / per_granule;
    let mut immediates = Immediates::default().u32(granules as u32);
    let mut fields = String::from("struct Shape {\n    granules: u32,\n");
    let mut steps = String::new();
    for (nth, axis) in axes.order.iter().enumerate().rev() {
        immediates = immediates.u32(stride(*axis) as u32);
        fields += &format!("    stride{nth}: u32,\n");
        if nth == 0 {
            steps += "    return at + rest * shape.stride0;\n";
            continue;
        }
        immediates = immediates.u32(size(*axis) as u32);
        let _ = writeln!(fields, "    size{nth}: u32,");
        let _ = write!(
            steps,
            "    at += rest % shape.size{nth} * shape.stride{nth};\n    rest /= shape.size{nth};\n"
        );
    }
    let position = format!(
        "{fields}}}\n\nfn x_position(granule: u32) -> u32 {{\n    var rest = granule;\n    \
         var at = 0u;\n{steps}}}\n"
    );
    let alias = match granule {
        16 => "alias Granule = vec4<u32>;\n",
        8 => "alias Granule = vec2<u32>;\n",
        4 => "alias Granule = u32;\n",
        _ => "alias Granule = Stored;\n",
    };
    let (prelude, [x, y]) = match granule {
        4.. => ("", words(it, preparation)?),
        _ => elements_or_words(it, preparation)?,
    };
    preparation.wgsl(&WgslLaunch {
        source: &[prelude, alias, &position, include_str!("../../shaders/permute_elements.wgsl")],
        buffers: &[&x, &y],
        immediates,
        workgroups: [granules.div_ceil(1024) as u32, 1, 1],
    })
}

/// Returns the definitions of elements that have the same size, and the buffers of them: 32-bit
/// elements are words.
fn elements_or_words(
    it: &Permute,
    preparation: &Preparation<'_>,
) -> Result<(&'static str, [UntypedBuffer; 2])> {
    if it.dtype.size() == 4 {
        return Ok((elements::prelude(DType::U32), words(it, preparation)?));
    }
    let [x, y] = [0, 1].map(|nth| preparation.buffers[nth].clone());
    Ok((elements::prelude(it.dtype), [x, y]))
}

/// Returns the buffers as 32-bit words.
fn words(it: &Permute, preparation: &Preparation<'_>) -> Result<[UntypedBuffer; 2]> {
    let len = it.axes.len();
    Ok([preparation.words(0, len)?, preparation.words(1, len)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(dims: &[u64], order: &[usize]) -> (Vec<u64>, Vec<usize>) {
        let Axes { dims, order } = Axes::merged(dims, order);
        (dims, order)
    }

    #[test]
    fn adjacent_axes_are_merged() {
        assert_eq!(merged(&[], &[]), (vec![1], vec![0]));
        assert_eq!(merged(&[1, 1], &[1, 0]), (vec![1], vec![0]));
        assert_eq!(merged(&[2, 3, 4], &[0, 1, 2]), (vec![24], vec![0]));
        assert_eq!(merged(&[2, 3, 4], &[1, 2, 0]), (vec![2, 12], vec![1, 0]));
        assert_eq!(merged(&[2, 3, 4], &[2, 0, 1]), (vec![6, 4], vec![1, 0]));
        assert_eq!(merged(&[2, 3, 4], &[0, 2, 1]), (vec![2, 3, 4], vec![0, 2, 1]));
        assert_eq!(merged(&[2, 1, 4, 5], &[2, 1, 0, 3]), (vec![2, 4, 5], vec![1, 0, 2]));
        assert_eq!(merged(&[3, 1, 4], &[0, 2, 1]), (vec![12], vec![0]));
    }

    fn method(dtype: DType, dims: &[u64], order: &[usize]) -> Method {
        let axes = Axes::merged(dims, order);
        Permute { function: "", dtype, sizes: Vec::new(), axes }.method()
    }

    #[test]
    fn methods_suit_sizes() {
        let tiles = |rows, columns| Method::Tiles { rows, columns };
        assert_eq!(method(DType::F32, &[64, 48], &[1, 0]), Method::Blocks);
        assert_eq!(method(DType::F32, &[65, 48], &[1, 0]), tiles(64, 64));
        assert_eq!(method(DType::F32, &[10_000, 3], &[1, 0]), tiles(1024, 4));
        assert_eq!(method(DType::F32, &[3, 10_000], &[1, 0]), tiles(4, 1024));
        assert_eq!(method(DType::F32, &[3, 65], &[1, 0]), tiles(4, 128));
        let elements = |granule| Method::Elements { granule };
        assert_eq!(method(DType::F32, &[3, 5], &[1, 0]), elements(4));
        assert_eq!(method(DType::F16, &[3, 5], &[1, 0]), elements(2));
        assert_eq!(method(DType::F16, &[3, 5, 6], &[1, 0, 2]), elements(4));
        assert_eq!(method(DType::F32, &[3, 5, 6], &[1, 0, 2]), elements(8));
        assert_eq!(method(DType::BF16, &[3, 5, 7], &[1, 0, 2]), elements(2));
        assert_eq!(method(DType::U32, &[3, 5, 8], &[0, 1, 2]), elements(16));
    }
}
