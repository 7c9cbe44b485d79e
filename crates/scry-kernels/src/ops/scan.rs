//! Prefix sums.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::call::Call;
use crate::elements::{self, NUMBERS};
use crate::host;
use crate::kernels::Kernels;
use crate::lookback;
use crate::occupancy::{power_of_4, resident_workgroups};
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

use super::cpu;
use super::plain_chunks;
use super::rows::RowMatrix;

/// Which elements a prefix sum contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanKind {
    /// The elements up to the position of the sum, with the one there.
    Inclusive,
    /// The elements before the position of the sum. The first sum is 0.
    Exclusive,
}

/// Prefix sums of rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scan {
    function: &'static str,
    pub(super) kind: ScanKind,
    pub(super) matrix: RowMatrix,
}

/// Prefix sums.
impl Kernels {
    /// Prepares the prefix sums (scan) of all elements of `x`: each element of `y` is the sum of
    /// the elements of `x` up to it (inclusive), or before it (exclusive). Both have elements of
    /// `f32`, `f16`, `bf16`, `i32` or `u32`; `y` may be longer.
    ///
    /// Integers wrap. Floats are summed in `f32`, by the variant `cpu` in `f64`, and rounded once,
    /// in an order that depends only on the variant, the sizes and the device. A sum that contains
    /// NaN, or infinities of both signs, is NaN; those before it are not.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, ScanKind};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let (x, y) = (gpu.upload(&[3u32, 1, 4, 1])?, gpu.alloc::<u32>(4)?);
    /// kernels.scan(ScanKind::Inclusive, &x, &y)?.run()?;
    /// assert_eq!(y.download()?, [3, 4, 8, 9]);
    /// kernels.scan(ScanKind::Exclusive, &x, &y)?.run()?;
    /// assert_eq!(y.download()?, [0, 3, 4, 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if
    /// the device supports no variant for the type and the sizes.
    #[doc(alias("cumsum", "prefix_sum"))]
    pub fn scan(&self, kind: ScanKind, x: &dyn Binding, y: &dyn Binding) -> Result<Op> {
        self.prepare_scan("Kernels::scan", kind, [x, y], [1, x.len()])
    }

    /// Prepares the prefix sums of each row of `x`, see [`Kernels::scan`]. `x` and `y` are
    /// row-major matrices without padding; buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, ScanKind};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[1.0f32; 6])?, gpu.alloc::<f32>(6)?);
    /// Kernels::new(&gpu)?.scan_rows(ScanKind::Inclusive, &x, &y, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::scan`].
    pub fn scan_rows(
        &self,
        kind: ScanKind,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        self.prepare_scan("Kernels::scan_rows", kind, [x, y], [rows, columns])
    }

    fn prepare_scan(
        &self,
        function: &'static str,
        kind: ScanKind,
        [x, y]: [&dyn Binding; 2],
        [rows, columns]: [usize; 2],
    ) -> Result<Op> {
        let call = Call::new(function);
        let dtype = call.dtype("x", x, &NUMBERS)?;
        let matrix = RowMatrix { rows: rows as u64, columns: columns as u64, dtype };
        call.product("the matrix", &[matrix.rows, matrix.columns])?;
        self.op(Scan { function, kind, matrix }, &[x, y])
    }
}

impl Operation for Scan {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        match self.function {
            "Kernels::scan" => vec![("len", self.matrix.columns)],
            _ => self.matrix.sizes(),
        }
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![self.matrix.read("x"), self.matrix.write("y")]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                host::variant(|it, preparation| {
                    let RowMatrix { rows, columns, dtype } = it.matrix;
                    let is_exclusive = it.kind == ScanKind::Exclusive;
                    let declared = (it.arguments(), dtype);
                    cpu::scan(preparation, declared, is_exclusive, [rows, columns])
                }),
                Variant {
                    info: VariantInfo {
                        name: "wgsl-lookback",
                        needs: lookback::NEEDS,
                        deterministic: true,
                    },
                    obstacle: |it, kernels| {
                        lookback::obstacle(kernels).or_else(|| it.matrix.wgsl_obstacle(kernels))
                    },
                    suits: |it, kernels| Chunks::new(&it.matrix, kernels).count > 1,
                    prepare: lookback_launches,
                },
                Variant {
                    info: plain::INFO,
                    obstacle: |it, kernels| {
                        let is_exact = matches!(it.matrix.dtype, DType::I32 | DType::U32);
                        let rounds = "adds long chunks one by one, which only integers may be";
                        let inexact = (!is_exact).then(|| rounds.to_owned());
                        inexact.or_else(|| it.matrix.wgsl_obstacle(kernels))
                    },
                    suits: |it, kernels| {
                        plain::is_software(kernels) && plain_chunks::PlainChunks::suits(&it.matrix)
                    },
                    prepare: plain_chunks::scan,
                },
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: |it, kernels| it.matrix.wgsl_obstacle(kernels),
                    suits: |_, _| true,
                    prepare: chunk_launches,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.matrix.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.matrix.dtype)
    }
}

/// Invocations of a workgroup.
const WORKGROUP: u64 = 256;

/// Vectors of four elements per invocation in a tile of a chunk.
const VECTORS: u64 = 4;

/// Vectors per invocation in a tile of the look-back, for few and for many tiles. Large tiles keep
/// more of the matrix in flight.
const LOOKBACK_VECTORS: [u64; 2] = [8, 16];

/// The fewest tiles of a row for which it is split into chunks, which takes a second launch.
const MIN_TILES: u64 = 8;

/// The sizes of a kernel that scans chunks, as immediates.
pub(super) const PARAMETERS: &str = include_str!("../shaders/scan/parameters.wgsl");

/// How a kernel sums the chunks before its own, which have the type `Sum`.
pub(super) const SUM_BEFORE: &str = include_str!("../shaders/scan/sum_before.wgsl");

/// The same for rows of one chunk.
pub(super) const NO_CHUNKS: &str =
    "fn sum_before(row: u32, chunk: u32, local_index: u32) -> Sum { return Sum(0); }\n";

/// How rows are split into chunks, each scanned by one workgroup.
pub(super) struct Chunks {
    /// Invocations of a row.
    threads: u64,
    /// Tiles of a row.
    tiles: u64,
    /// Chunks of a row.
    pub(super) count: u64,
    /// Tiles of a chunk.
    tiles_each: u64,
}

impl Chunks {
    pub(super) fn new(matrix: &RowMatrix, kernels: &Kernels) -> Self {
        let vectors = matrix.columns.div_ceil(4);
        let threads = match matrix.rows {
            1 => WORKGROUP,
            _ => power_of_4(vectors.div_ceil(VECTORS)).min(WORKGROUP),
        };
        let tiles = vectors.div_ceil(VECTORS * threads);
        let groups = matrix.rows.div_ceil(WORKGROUP / threads).max(1);
        let wanted = match tiles >= MIN_TILES {
            true => (resident_workgroups(kernels, 5) / groups).clamp(1, tiles),
            false => 1,
        };
        let tiles_each = tiles.div_ceil(wanted);
        let count = tiles.div_ceil(tiles_each.max(1)).max(1);
        Self { threads, tiles, count, tiles_each }
    }

    /// Returns the immediates of a kernel that accesses `body` vectors of a row as such.
    pub(super) fn immediates(&self, matrix: &RowMatrix, body: u64) -> Immediates {
        let sizes = [matrix.rows, matrix.columns, matrix.columns.div_ceil(4), body];
        let sizes = sizes.into_iter().chain([self.tiles, self.count, self.tiles_each]);
        sizes.fold(Immediates::default(), |immediates, size| immediates.u32(size as u32))
    }
}

/// How a kernel accesses the matrix.
struct Access {
    /// `x` and `y`; then the elements after their last whole vectors, if there are any.
    buffers: Vec<UntypedBuffer>,
    /// Vectors of a row that are accessed as such.
    body: u64,
    source: &'static str,
    tail: &'static str,
}

impl Access {
    fn new(matrix: &RowMatrix, preparation: &Preparation<'_>) -> Result<Self> {
        const VECTORS: &str = include_str!("../shaders/scan/vectors.wgsl");
        const TAIL: &str = include_str!("../shaders/scan/tail.wgsl");
        const NO_TAIL: &str = "fn load_tail(column: u32) -> Computed { return Computed(0); }\n\
             fn store_tail(column: u32, value: Computed) {}\n";
        let (x, y) = (&preparation.buffers[0], &preparation.buffers[1]);
        let columns = matrix.columns;
        if columns.is_multiple_of(4) {
            let buffers = vec![x.clone(), y.clone()];
            return Ok(Self { buffers, body: columns / 4, source: VECTORS, tail: NO_TAIL });
        }
        // A slice must be aligned, for any device and type.
        let body = columns / 128 * 128;
        if matrix.rows > 1 || body == 0 {
            let source = include_str!("../shaders/scan/elements.wgsl");
            return Ok(Self { buffers: vec![x.clone(), y.clone()], body: 0, source, tail: "" });
        }
        let (start, end) = (body as usize, columns as usize);
        let buffers =
            vec![x.slice(..start)?, y.slice(..start)?, x.slice(start..end)?, y.slice(start..end)?];
        Ok(Self { buffers, body: body / 4, source: VECTORS, tail: TAIL })
    }

    /// Returns the access of a kernel that only reads.
    fn reading(&self) -> Self {
        let buffers = self.buffers.iter().step_by(2).cloned().collect();
        Self { buffers, ..*self }
    }

    /// Prepares a kernel that accesses the matrix.
    fn launch(
        &self,
        it: &Scan,
        preparation: &Preparation<'_>,
        [enabled, constants, kernel]: [&str; 3],
        chunks: &Chunks,
        (scratch, workgroups): (Option<&UntypedBuffer>, [u64; 2]),
    ) -> Result<PreparedLaunch> {
        let matrix = &it.matrix;
        let exclusive = match it.kind {
            ScanKind::Inclusive => "const EXCLUSIVE = false;\n",
            ScanKind::Exclusive => "const EXCLUSIVE = true;\n",
        };
        preparation.wgsl(&WgslLaunch {
            source: &[
                enabled,
                elements::prelude(matrix.dtype),
                PARAMETERS,
                self.tail,
                self.source,
                exclusive,
                constants,
                include_str!("../shaders/scan/tiles.wgsl"),
                kernel,
            ],
            buffers: &self.buffers.iter().chain(scratch).collect::<Vec<_>>(),
            immediates: chunks.immediates(matrix, self.body),
            workgroups: [workgroups[0] as u32, workgroups[1] as u32, 1],
        })
    }
}

/// Reduces the chunks of rows, then scans each with the sum of those before it.
fn chunk_launches(it: &Scan, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let matrix = &it.matrix;
    let chunks = Chunks::new(matrix, preparation.kernels);
    let access = Access::new(matrix, preparation)?;
    let sum_before = if chunks.count == 1 { NO_CHUNKS } else { SUM_BEFORE };
    let constants = format!(
        "const LOADS = {VECTORS}u;\nconst THREADS = {}u;\nalias Sum = Computed;\n{sum_before}",
        chunks.threads
    );
    let scan = ["", constants.as_str(), include_str!("../shaders/scan/scan_chunks.wgsl")];
    let rows = matrix.rows.div_ceil(WORKGROUP / chunks.threads);
    if chunks.count == 1 {
        return Ok(vec![access.launch(it, preparation, scan, &chunks, (None, [1, rows]))?]);
    }
    let computed = match matrix.dtype {
        dtype @ (DType::I32 | DType::U32) => dtype,
        _ => DType::F32,
    };
    let sums = preparation.kernels.scratch_of(0, computed, matrix.rows * chunks.count)?;
    let on = (Some(&sums), [chunks.count, rows]);
    let loads = format!("const LOADS = {VECTORS}u;\n");
    let sum = ["", loads.as_str(), include_str!("../shaders/scan/sum_chunks.wgsl")];
    Ok(vec![
        access.reading().launch(it, preparation, sum, &chunks, on)?,
        access.launch(it, preparation, scan, &chunks, on)?,
    ])
}

/// Clears the states of tiles, then scans in one pass.
fn lookback_launches(it: &Scan, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let matrix = &it.matrix;
    let access = Access::new(matrix, preparation)?;
    let large_tiles = matrix.rows * (matrix.columns / (4 * LOOKBACK_VECTORS[1] * WORKGROUP));
    let is_large = large_tiles >= resident_workgroups(preparation.kernels, 8);
    let vectors = LOOKBACK_VECTORS[usize::from(is_large)];
    let tiles = matrix.columns.div_ceil(4 * vectors * WORKGROUP);
    let chunks = Chunks { threads: WORKGROUP, tiles, count: 1, tiles_each: tiles };
    let groups = tiles.div_ceil(32);
    let states = 1 + matrix.rows * (tiles + groups + groups.div_ceil(32));
    let states = preparation.kernels.scratch_of(0, DType::U64, states.next_multiple_of(2))?;
    let clear = preparation.clear(&states)?;
    let constants = format!("const LOADS = {vectors}u;\n");
    let kernel = include_str!("../shaders/scan/lookback.wgsl");
    let scan = ["enable subgroups;\n", constants.as_str(), kernel];
    let on = (Some(&states), [matrix.rows * tiles, 1]);
    Ok(vec![clear, access.launch(it, preparation, scan, &chunks, on)?])
}

/// Prepares the exclusive prefix sums of `len` elements of `u32`, with the first scratch buffer.
pub(super) fn exclusive(
    preparation: &Preparation<'_>,
    [x, y]: [&UntypedBuffer; 2],
    len: u64,
) -> Result<Vec<PreparedLaunch>> {
    let matrix = RowMatrix { rows: 1, columns: len, dtype: DType::U32 };
    let scan = Scan { function: "Kernels::scan", kind: ScanKind::Exclusive, matrix };
    let buffers = [x.clone(), y.clone()];
    chunk_launches(&scan, &Preparation { buffers: &buffers, ..*preparation })
}
