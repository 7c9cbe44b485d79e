//! Rows selected by indices: gathering (embedding lookup) and scattering.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, NUMBERS};
use crate::host;
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// Rows that are copied by index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MoveRows {
    function: &'static str,
    direction: Direction,
    rows: IndexedRows,
    dtype: DType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Gather,
    Scatter,
}

/// Rows of a table and indices that select them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedRows {
    /// Rows of the table.
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// Indices.
    pub(super) count: u64,
    /// The type of the indices.
    pub(super) index: DType,
}

/// Types of indices: negative ones are out of range, as large ones.
const INDICES: [DType; 2] = [DType::U32, DType::I32];

/// Rows selected by indices.
impl Kernels {
    /// Prepares the gathering of rows, such as the lookup of embeddings: row i of `y` is row
    /// `indices[i]` of `x`. `x` is a row-major matrix of rows × columns, `y` one of
    /// count × columns, of `f32`, `f16`, `bf16`, `i32` or `u32`, copied bit by bit; `indices` are
    /// `u32` or `i32`. Buffers may be longer.
    ///
    /// An index that is negative, or at least `rows`, selects a row of zeros.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[10.0f32, 11.0, 20.0, 21.0, 30.0, 31.0])?; // 3 × 2
    /// let indices = gpu.upload(&[2u32, 0, 9])?;
    /// let y = gpu.alloc::<f32>(6)?;
    /// Kernels::new(&gpu)?.gather_rows(&x, &indices, &y, 3, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [30.0, 31.0, 10.0, 11.0, 0.0, 0.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap with `y`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if a matrix has more than 2^32 - 1
    /// elements, or if the device lacks 16-bit elements that the sizes need.
    #[doc(alias("embedding", "index_select"))]
    pub fn gather_rows(
        &self,
        x: &dyn Binding,
        indices: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> Result<Op> {
        let sizes = [rows, columns, count];
        self.move_rows("Kernels::gather_rows", Direction::Gather, [x, indices, y], sizes)
    }

    /// Prepares the gathering of elements, `y[i] = x[indices[i]]`: [`Kernels::gather_rows`] of rows
    /// that have one element. `x` has `len` elements, `indices` and `y` have `count`.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, indices) = (gpu.upload(&[10i32, 20, 30])?, gpu.upload(&[2i32, 2, -1, 0])?);
    /// let y = gpu.alloc::<i32>(4)?;
    /// Kernels::new(&gpu)?.gather(&x, &indices, &y, 3, 4)?.run()?;
    /// assert_eq!(y.download()?, [30, 30, 0, 10]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gather_rows`].
    pub fn gather(
        &self,
        x: &dyn Binding,
        indices: &dyn Binding,
        y: &dyn Binding,
        len: usize,
        count: usize,
    ) -> Result<Op> {
        let sizes = [len, 1, count];
        self.move_rows("Kernels::gather", Direction::Gather, [x, indices, y], sizes)
    }

    /// Prepares the scattering of rows: row `indices[i]` of `y` becomes row i of `x`. `x` is a
    /// row-major matrix of count × columns, `y` one of rows × columns; types are those of
    /// [`Kernels::gather_rows`]. Rows of `y` that no index selects are not written.
    ///
    /// If several indices are equal, the last one wins. Rows whose index is negative, or at least
    /// `rows`, are dropped.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[10.0f32, 20.0, 30.0, 40.0])?; // 4 × 1
    /// let indices = gpu.upload(&[2u32, 0, 2, 9])?;
    /// let y = gpu.upload(&[1.0f32; 3])?;
    /// Kernels::new(&gpu)?.scatter_rows(&x, &indices, &y, 3, 1, 4)?.run()?;
    /// assert_eq!(y.download()?, [20.0, 1.0, 30.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gather_rows`].
    pub fn scatter_rows(
        &self,
        x: &dyn Binding,
        indices: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> Result<Op> {
        let sizes = [rows, columns, count];
        self.move_rows("Kernels::scatter_rows", Direction::Scatter, [x, indices, y], sizes)
    }

    fn move_rows(
        &self,
        function: &'static str,
        direction: Direction,
        [x, indices, y]: [&dyn Binding; 3],
        sizes: [usize; 3],
    ) -> Result<Op> {
        let dtype = Call::new(function).dtype("x", x, &NUMBERS)?;
        let rows = IndexedRows::new(function, indices, sizes)?;
        self.op(MoveRows { function, direction, rows, dtype }, &[x, indices, y])
    }
}

impl IndexedRows {
    /// Checks the type of the indices and the sizes.
    pub(super) fn new(
        function: &'static str,
        indices: &dyn Binding,
        [rows, columns, count]: [usize; 3],
    ) -> Result<Self> {
        let index = Call::new(function).dtype("indices", indices, &INDICES)?;
        let [rows, columns, count] = [rows, columns, count].map(|size| size as u64);
        let it = Self { rows, columns, count, index };
        let call = Call { function: function.into(), sizes: it.sizes() };
        call.product("the table", &[rows, columns])?;
        call.product("the selected matrix", &[count, columns])?;
        Ok(it)
    }

    pub(super) fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows), ("columns", self.columns), ("count", self.count)]
    }

    /// Returns the elements of the table.
    pub(super) fn table_len(&self) -> u64 {
        self.rows * self.columns
    }

    /// Returns the elements of the rows that the indices select.
    pub(super) fn selected_len(&self) -> u64 {
        self.count * self.columns
    }

    /// Returns why WGSL kernels cannot index the matrices; `None` if they can.
    pub(super) fn too_long(&self) -> Option<String> {
        elements::too_long(&[self.table_len(), self.selected_len(), self.rows, self.count])
    }

    /// Returns the launch of a kernel that `row_slots.wgsl` precedes: its declarations, immediates
    /// and workgroups. Rows have this many granules.
    pub(super) fn slots(&self, granules: u64) -> (String, Immediates, [u32; 3]) {
        // Short rows have an invocation per granule, and each invocation moves several rows; longer
        // ones have fewer, at least a subgroup's.
        let threads = match granules {
            ..=32 => granules.next_power_of_two(),
            _ => granules.div_ceil(4).next_power_of_two().clamp(32, 256),
        };
        let items = granules.div_ceil(threads).min(4);
        let rows = 4 / items;
        let declarations = format!(
            "const THREADS = {threads}u;\nconst ITEMS = {items}u;\nconst ROWS = {rows}u;\n"
        );
        let immediates =
            Immediates::default().u32(self.rows as u32).u32(granules as u32).u32(self.count as u32);
        let groups = [
            self.count.div_ceil(256 / threads * rows) as u32,
            granules.div_ceil(threads * items) as u32,
            1,
        ];
        (declarations, immediates, groups)
    }
}

impl Operation for MoveRows {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        match self.function {
            "Kernels::gather" => vec![("len", self.rows.rows), ("count", self.rows.count)],
            _ => self.rows.sizes(),
        }
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let (table, selected) = (self.rows.table_len(), self.rows.selected_len());
        let (x, y) = match self.direction {
            Direction::Gather => (table, selected),
            Direction::Scatter => (selected, table),
        };
        vec![
            arguments::read("x", self.dtype, x),
            arguments::read("indices", self.rows.index, self.rows.count),
            arguments::write("y", self.dtype, y),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: plain::INFO,
                obstacle: MoveRows::plain_obstacle,
                suits: |_, kernels| host::is_cpu(kernels),
                prepare: gather_plain,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, kernels| it.wgsl_obstacle(kernels),
                suits: |_, _| true,
                prepare: |it, preparation| match it.direction {
                    Direction::Gather => gather(it, preparation),
                    Direction::Scatter => scatter(it, preparation),
                },
            },
        ]
    }

    fn is_empty(&self) -> bool {
        let writes_nothing = self.direction == Direction::Scatter && self.rows.rows == 0;
        self.rows.selected_len() == 0 || writes_nothing
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

impl MoveRows {
    /// Returns the bytes that are moved together.
    fn granule(&self) -> u64 {
        let size = self.dtype.size() as u64;
        let bytes = self.rows.columns * size;
        let granule = [16, 8, 4].into_iter().find(|granule| bytes.is_multiple_of(*granule));
        granule.unwrap_or(size)
    }

    /// Returns the declaration of `Granule`, and the granules of a row.
    fn granules(&self) -> (String, u64) {
        let size = self.dtype.size() as u64;
        let granule = self.granule();
        let declaration = match granule {
            16 => "alias Granule = vec4<u32>;\n".to_owned(),
            8 => "alias Granule = vec2<u32>;\n".to_owned(),
            4 => "alias Granule = u32;\n".to_owned(),
            _ => format!("{}alias Granule = Stored;\n", elements::prelude(self.dtype)),
        };
        (declaration, self.rows.columns * size / granule)
    }

    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let missing = (self.granule() < 4).then(|| elements::obstacle(self.dtype, kernels));
        missing.flatten().or_else(|| self.rows.too_long())
    }

    /// Returns why a plain kernel cannot be used; `None` if it can.
    fn plain_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let is_of_elements = self.direction == Direction::Gather && self.rows.columns == 1;
        let other = "gathers single elements";
        (!is_of_elements).then(|| other.to_owned()).or_else(|| self.wgsl_obstacle(kernels))
    }

    /// Returns a buffer of granules.
    fn moved(&self, preparation: &Preparation<'_>, nth: usize, len: u64) -> Result<UntypedBuffer> {
        match (len, self.granule()) {
            // An empty table has no rows that could be read.
            (0, _) => preparation.kernels.device().alloc_untyped(None, 16),
            (_, 4..) => preparation.words(nth, len),
            _ => Ok(preparation.buffers[nth].clone()),
        }
    }
}

/// Gathers an element by each invocation.
fn gather_plain(it: &MoveRows, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let (granule, _) = it.granules();
    let x = it.moved(preparation, 0, it.rows.table_len())?;
    let indices = preparation.words(1, it.rows.count)?;
    let y = it.moved(preparation, 2, it.rows.selected_len())?;
    let source = [granule.as_str(), include_str!("../shaders/plain/gather.wgsl")];
    let immediates = Immediates::default().u32(it.rows.rows as u32).u32(it.rows.count as u32);
    Ok(vec![preparation.plain(&source, &[&x, &indices, &y], immediates, it.rows.count)?])
}

fn gather(it: &MoveRows, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let (granule, granules) = it.granules();
    let (slots, immediates, workgroups) = it.rows.slots(granules);
    let x = it.moved(preparation, 0, it.rows.table_len())?;
    let indices = preparation.words(1, it.rows.count)?;
    let y = it.moved(preparation, 2, it.rows.selected_len())?;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            &granule,
            &slots,
            include_str!("../shaders/row_slots.wgsl"),
            include_str!("../shaders/gather.wgsl"),
        ],
        buffers: &[&x, &indices, &y],
        immediates,
        workgroups,
    })?;
    Ok(vec![launch])
}

/// Finds the last index that selects each row, then copies.
fn scatter(it: &MoveRows, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let indices = preparation.words(1, it.rows.count)?;
    let winners = preparation.kernels.scratch_of(0, DType::U32, it.rows.rows)?;
    let mark = |is_clearing: bool| {
        preparation.wgsl(&WgslLaunch {
            source: &[
                &format!("const CLEAR = {is_clearing};\n"),
                include_str!("../shaders/scatter_winners.wgsl"),
            ],
            buffers: &[&indices, &winners],
            immediates: Immediates::default().u32(it.rows.rows as u32).u32(it.rows.count as u32),
            workgroups: [it.rows.count.div_ceil(256) as u32, 1, 1],
        })
    };
    let (granule, granules) = it.granules();
    let (slots, immediates, workgroups) = it.rows.slots(granules);
    let x = it.moved(preparation, 0, it.rows.selected_len())?;
    let y = it.moved(preparation, 2, it.rows.table_len())?;
    let copy = preparation.wgsl(&WgslLaunch {
        source: &[
            &granule,
            &slots,
            include_str!("../shaders/row_slots.wgsl"),
            include_str!("../shaders/scatter.wgsl"),
        ],
        buffers: &[&x, &indices, &y, &winners],
        immediates,
        workgroups,
    })?;
    Ok(vec![mark(true)?, mark(false)?, copy])
}
