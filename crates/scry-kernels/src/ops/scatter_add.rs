//! Rows added to rows that indices select.

use scry_gpu::{Binding, DType, Features, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use super::cpu;
use super::gather::IndexedRows;
use super::sort::{self, Method};
use crate::arguments;
use crate::call::Call;
use crate::elements;
use crate::host;
use crate::kernels::Kernels;
use crate::lookback;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// Rows that are added to rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScatterAdd {
    rows: IndexedRows,
    dtype: DType,
}

const FUNCTION: &str = "Kernels::scatter_add_rows";

/// Element types.
const TYPES: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// Indices of a chunk of sums, as in the WGSL sources.
const CHUNK: u64 = 64;

/// Rows added by index.
impl Kernels {
    /// Prepares the addition of rows to those that indices select: row `indices[i]` of `y`
    /// increases by row i of `x`, also if several indices are equal. `x` is a row-major matrix of
    /// count × columns, `y` one of rows × columns, of `f32`, `i32` or `u32`; `indices` are `u32` or
    /// `i32`. Integers wrap. Buffers may be longer.
    ///
    /// Rows whose index is negative, or at least `rows`, are dropped.
    ///
    /// With `f32`, the variant `wgsl-atomics` adds in any order, so that results differ between
    /// runs in their last places. The others add the rows of `x` with equal indices in a fixed
    /// order, the same one on every device;
    /// [`KernelOptions::deterministic`](crate::KernelOptions::deterministic) requests them.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0])?; // 3 × 2
    /// let indices = gpu.upload(&[1u32, 0, 1])?;
    /// let y = gpu.upload(&[0.5f32; 4])?;
    /// Kernels::new(&gpu)?.scatter_add_rows(&x, &indices, &y, 2, 2, 3)?.run()?;
    /// assert_eq!(y.download()?, [10.5, 20.5, 101.5, 202.5]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap with `y`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if a matrix has more than 2^32 - 1
    /// elements.
    #[doc(alias = "index_add")]
    pub fn scatter_add_rows(
        &self,
        x: &dyn Binding,
        indices: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> Result<Op> {
        let dtype = Call::new(FUNCTION).dtype("x", x, &TYPES)?;
        let rows = IndexedRows::new(FUNCTION, indices, [rows, columns, count])?;
        self.op(ScatterAdd { rows, dtype }, &[x, indices, y])
    }
}

impl Operation for ScatterAdd {
    fn function(&self) -> &'static str {
        FUNCTION
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.rows.sizes()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            arguments::read("x", self.dtype, self.rows.selected_len()),
            arguments::read("indices", self.rows.index, self.rows.count),
            arguments::write("y", self.dtype, self.rows.table_len()),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                host::variant(|it, preparation| {
                    let IndexedRows { rows, columns, count, .. } = it.rows;
                    let declared = (it.arguments(), it.dtype);
                    cpu::scatter_add(preparation, declared, [rows, columns, count])
                }),
                Variant {
                    info: VariantInfo {
                        name: "wgsl-atomics",
                        needs: "f32 atomics",
                        deterministic: false,
                    },
                    obstacle: |it, kernels| it.atomics_obstacle(kernels),
                    suits: |_, _| true,
                    prepare: atomics,
                },
                Variant {
                    info: VariantInfo {
                        name: "wgsl-lookback",
                        needs: lookback::NEEDS,
                        deterministic: true,
                    },
                    obstacle: |it, kernels| it.lookback_obstacle(kernels),
                    suits: |it, _| sort::suits_lookback(it.rows.count),
                    prepare: |it, preparation| sorted(it, preparation, Method::Lookback),
                },
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: |it, _| it.rows.too_long(),
                    suits: |_, _| true,
                    prepare: |it, preparation| match it.dtype {
                        DType::F32 => sorted(it, preparation, Method::Passes),
                        // Integers have one sum, in any order.
                        _ => atomics(it, preparation),
                    },
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.selected_len() == 0 || self.rows.rows == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl ScatterAdd {
    fn atomics_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let has_atomics = kernels.device().info().features.contains(Features::F32_ATOMICS);
        let missing = "needs f32 atomics, which the device lacks";
        self.not_floats()
            .or_else(|| (!has_atomics).then(|| missing.to_owned()))
            .or_else(|| self.rows.too_long())
    }

    fn lookback_obstacle(&self, kernels: &Kernels) -> Option<String> {
        self.not_floats()
            .or_else(|| sort::lookback_obstacle(self.rows.count, kernels))
            .or_else(|| self.rows.too_long())
    }

    /// Returns why a variant for floats is not needed; `None` if it is.
    fn not_floats(&self) -> Option<String> {
        let same = "is for f32: integers have the same sum in any order";
        (self.dtype != DType::F32).then(|| same.to_owned())
    }
}

fn atomics(it: &ScatterAdd, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let (slots, immediates, workgroups) = it.rows.slots(it.rows.columns);
    let (granule, [x, y]) = match it.dtype {
        DType::F32 => ("f32", [0, 2].map(|nth| preparation.buffers[nth].clone())),
        _ => (
            "u32",
            [
                preparation.words(0, it.rows.selected_len())?,
                preparation.words(2, it.rows.table_len())?,
            ],
        ),
    };
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            &format!("alias Granule = {granule};\n"),
            &slots,
            include_str!("../shaders/row_slots.wgsl"),
            include_str!("../shaders/scatter_add_atomics.wgsl"),
        ],
        buffers: &[&x, &preparation.words(1, it.rows.count)?, &y],
        immediates,
        workgroups,
    })?;
    Ok(vec![launch])
}

/// Sorts the indices, stably, then adds the rows with equal indices in that order.
fn sorted(
    it: &ScatterAdd,
    preparation: &Preparation<'_>,
    method: Method,
) -> Result<Vec<PreparedLaunch>> {
    let IndexedRows { rows, columns, count, .. } = it.rows;
    let (mut launches, [targets, sources]) = sort(it, preparation, method)?;
    let chunks = count.div_ceil(CHUNK);
    let heads = preparation.kernels.scratch_of(sort::SCRATCH + 2, DType::F32, chunks * columns)?;
    let [x, y] = [0, 2].map(|nth| preparation.buffers[nth].clone());
    let threads = columns.next_power_of_two().min(256);
    let constants = format!("const THREADS = {threads}u;\n");
    let add = |source: &str, buffers: &[&UntypedBuffer]| {
        preparation.wgsl(&WgslLaunch {
            source: &[&constants, include_str!("../shaders/scatter_add_chunks.wgsl"), source],
            buffers,
            immediates: Immediates::default()
                .u32(rows as u32)
                .u32(columns as u32)
                .u32(count as u32),
            workgroups: [
                chunks.div_ceil(256 / threads) as u32,
                columns.div_ceil(threads) as u32,
                1,
            ],
        })
    };
    let runs = include_str!("../shaders/scatter_add_runs.wgsl");
    launches.push(add(runs, &[&targets, &sources, &x, &y, &heads])?);
    if chunks > 1 {
        let continued = include_str!("../shaders/scatter_add_heads.wgsl");
        launches.push(add(continued, &[&targets, &heads, &y])?);
    }
    Ok(launches)
}

/// Sorts the indices with their positions; those out of range are the last. Returns the launches,
/// the sorted indices, and their positions.
fn sort(
    it: &ScatterAdd,
    preparation: &Preparation<'_>,
    method: Method,
) -> Result<(Vec<PreparedLaunch>, [UntypedBuffer; 2])> {
    let IndexedRows { rows, count, .. } = it.rows;
    let scratch = |nth| preparation.kernels.scratch_of(sort::SCRATCH + nth, DType::U32, count);
    let pairs = [scratch(0)?, scratch(1)?];
    let mut launches = vec![preparation.wgsl(&WgslLaunch {
        source: &[include_str!("../shaders/scatter_add_pairs.wgsl")],
        buffers: &[&preparation.words(1, count)?, &pairs[0], &pairs[1]],
        immediates: Immediates::default().u32(rows as u32).u32(count as u32),
        workgroups: [count.div_ceil(256) as u32, 1, 1],
    })?];
    // Indices out of range become `rows`.
    let bits = u64::BITS - rows.leading_zeros();
    let (passes, sorted) = sort::short_pairs(preparation, &pairs, bits, method)?;
    launches.extend(passes);
    Ok((launches, sorted))
}
