//! Histograms, and compaction of selected elements.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use super::cpu;
use super::plain_chunks::{self, PlainChunks};
use super::rows::RowMatrix;
use super::scan;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, NUMBERS};
use crate::host;
use crate::kernels::Kernels;
use crate::occupancy::resident_workgroups;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// Counts of bins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    len: u64,
    bins: u64,
}

/// Copies of selected elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compact {
    dtype: DType,
    len: u64,
}

const HISTOGRAM: &str = "Kernels::histogram";
const COMPACT: &str = "Kernels::compact";

/// Histograms, and compaction of selected elements.
impl Kernels {
    /// Prepares a histogram: counts how often each value occurs in `x`; `counts[i]` becomes the
    /// number of elements that are `i`. Both are of `u32`. Elements that are not smaller than the
    /// length of `counts` are ignored.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, counts) = (gpu.upload(&[2u32, 0, 2, 3, 900])?, gpu.alloc::<u32>(4)?);
    /// Kernels::new(&gpu)?.histogram(&x, &counts)?.run()?;
    /// assert_eq!(counts.download()?, [1, 0, 2, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers of other types, or that
    /// overlap; [`GpuError::Capability`](scry_gpu::GpuError::Capability) for buffers of more than
    /// 2^32 - 1 elements.
    #[doc(alias = "bincount")]
    pub fn histogram(&self, x: &dyn Binding, counts: &dyn Binding) -> Result<Op> {
        self.op(Histogram { len: x.len() as u64, bins: counts.len() as u64 }, &[x, counts])
    }

    /// Prepares stream compaction: copies the elements of `x` whose flag is not 0 to the start of
    /// `y`, in order, and writes their number to `count`. Elements of `y` after them do not change.
    /// `x` and `y` have elements of `f32`, `f16`, `bf16`, `i32` or `u32`, and the same length,
    /// since all may be copied; `y` may be longer. `flags`, one per element of `x`, and `count`,
    /// one element, are of `u32`.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, flags) = (gpu.upload(&[5.0f32, 6.0, 7.0])?, gpu.upload(&[1u32, 0, 9])?);
    /// let (y, count) = (gpu.alloc::<f32>(3)?, gpu.alloc::<u32>(1)?);
    /// Kernels::new(&gpu)?.compact(&x, &flags, &y, &count)?.run()?;
    /// assert_eq!(count.download()?, [2]);
    /// assert_eq!(y.download()?, [5.0, 7.0, 0.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if
    /// the device supports no variant for the type and the sizes.
    #[doc(alias("stream_compaction", "partition", "nonzero"))]
    pub fn compact(
        &self,
        x: &dyn Binding,
        flags: &dyn Binding,
        y: &dyn Binding,
        count: &dyn Binding,
    ) -> Result<Op> {
        let dtype = Call::new(COMPACT).dtype("x", x, &NUMBERS)?;
        self.op(Compact { dtype, len: x.len() as u64 }, &[x, flags, y, count])
    }
}

impl Operation for Histogram {
    fn function(&self) -> &'static str {
        HISTOGRAM
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("len", self.len), ("bins", self.bins)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            arguments::read("x", DType::U32, self.len),
            arguments::write("counts", DType::U32, self.bins),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: plain::INFO,
                obstacle: |it, _| elements::too_long(&[it.len, it.bins]),
                suits: |_, kernels| plain::is_software(kernels),
                prepare: histogram_plain,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, _| elements::too_long(&[it.len, it.bins]),
                suits: |_, _| true,
                prepare: histogram_launches,
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.bins == 0
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

/// Counters in workgroup memory, at most.
const MAX_COUNTERS: u64 = 4096;

/// Copies of a counter in workgroup memory, at most.
const MAX_COPIES: u64 = 8;

/// Elements that a workgroup counts at once.
const HISTOGRAM_TILE: u64 = 4096;

/// Clears the counts, then counts all elements.
fn histogram_launches(
    it: &Histogram,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let [x, counts] = [0, 1].map(|nth| &preparation.buffers[nth]);
    let immediates = || Immediates::default().u32(it.len as u32).u32(it.bins as u32);
    let mut launches = vec![preparation.wgsl(&WgslLaunch {
        source: &[include_str!("../shaders/histogram/clear.wgsl")],
        buffers: &[counts],
        immediates: immediates(),
        workgroups: [it.bins.div_ceil(1024) as u32, 1, 1],
    })?];
    if it.len == 0 {
        return Ok(launches);
    }
    let counters = it.bins.next_power_of_two();
    let copies = (MAX_COUNTERS / counters).min(MAX_COPIES);
    let constants =
        format!("const COPIES = {copies}u;\nconst COUNTERS = {}u;\n", counters * copies);
    let counting = match copies {
        0 => [include_str!("../shaders/histogram/global.wgsl"), ""],
        _ => [constants.as_str(), include_str!("../shaders/histogram/local.wgsl")],
    };
    let tiles = it.len.div_ceil(HISTOGRAM_TILE);
    let workgroups = resident_workgroups(preparation.kernels, 8).min(tiles);
    launches.push(preparation.wgsl(&WgslLaunch {
        source: &[counting[0], counting[1], include_str!("../shaders/histogram/count.wgsl")],
        buffers: &[x, counts],
        immediates: immediates(),
        workgroups: [workgroups as u32, 1, 1],
    })?);
    Ok(launches)
}

impl Compact {
    /// Returns why WGSL cannot compute it; `None` if it can.
    fn obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&[self.len]))
    }
}

impl Operation for Compact {
    fn function(&self) -> &'static str {
        COMPACT
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("len", self.len)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            arguments::read("x", self.dtype, self.len),
            arguments::read("flags", DType::U32, self.len),
            arguments::write("y", self.dtype, self.len),
            arguments::write("count", DType::U32, 1),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                host::variant(|it, preparation| {
                    cpu::compact(preparation, (it.arguments(), it.dtype), it.len)
                }),
                Variant {
                    info: plain::INFO,
                    obstacle: Compact::obstacle,
                    suits: |_, kernels| plain::is_software(kernels),
                    prepare: compact_plain,
                },
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: Compact::obstacle,
                    suits: |_, _| true,
                    prepare: compact_launches,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

/// Counts the flags of chunks, then copies the elements of each.
fn compact_launches(it: &Compact, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let buffers: Vec<_> = preparation.buffers.iter().collect();
    let buffers = preparation.without_empty(&buffers)?;
    let [x, flags, y, count] = [0, 1, 2, 3].map(|nth| &buffers[nth]);
    let matrix = RowMatrix { rows: 1, columns: it.len, dtype: DType::U32 };
    let chunks = scan::Chunks::new(&matrix, preparation.kernels);
    let load_flags = match it.len.is_multiple_of(4) && it.len > 0 {
        true => include_str!("../shaders/compact/flag_vectors.wgsl"),
        false => include_str!("../shaders/compact/flags.wgsl"),
    };
    let launch = |parts: &[&str], buffers: &[&UntypedBuffer]| {
        preparation.wgsl(&WgslLaunch {
            source: parts,
            buffers,
            immediates: chunks.immediates(&matrix, 0),
            workgroups: [chunks.count as u32, 1, 1],
        })
    };
    let prelude = elements::prelude(it.dtype);
    let compact = include_str!("../shaders/compact/compact_chunks.wgsl");
    const SUM: &str = "alias Sum = u32;\n";
    if chunks.count == 1 {
        let parts = [prelude, scan::PARAMETERS, load_flags, SUM, scan::NO_CHUNKS, compact];
        return Ok(vec![launch(&parts, &[x, flags, y, count])?]);
    }
    let sums = preparation.kernels.scratch_of(0, DType::U32, chunks.count)?;
    let count_chunks = include_str!("../shaders/compact/count_chunks.wgsl");
    let parts = [prelude, scan::PARAMETERS, load_flags, SUM, scan::SUM_BEFORE, compact];
    Ok(vec![
        launch(&[scan::PARAMETERS, load_flags, count_chunks], &[flags, &sums])?,
        launch(&parts, &[x, flags, y, count, &sums])?,
    ])
}

/// Elements that one workgroup counts, at most.
const MAX_WORKGROUP_LEN: u64 = 1 << 14;

/// Prepares plain kernels: clears the counts, then counts all elements by atomics.
fn histogram_plain(it: &Histogram, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let [x, counts] = [0, 1].map(|nth| &preparation.buffers[nth]);
    let immediates = || Immediates::default().u32(it.len as u32).u32(it.bins as u32);
    if it.len <= MAX_WORKGROUP_LEN && it.bins <= MAX_COUNTERS {
        let constants = format!("const COUNTERS = {}u;\n", it.bins.next_power_of_two());
        let workgroup = include_str!("../shaders/plain/histogram_workgroup.wgsl");
        let buffers = preparation.without_empty(&[x, counts])?;
        return Ok(vec![preparation.wgsl(&WgslLaunch {
            source: &[&constants, workgroup],
            buffers: &[&buffers[0], &buffers[1]],
            immediates: immediates(),
            workgroups: [1; 3],
        })?]);
    }
    let clear = include_str!("../shaders/histogram/clear.wgsl");
    let mut launches = vec![preparation.wgsl(&WgslLaunch {
        source: &[clear],
        buffers: &[counts],
        immediates: immediates(),
        workgroups: [it.bins.div_ceil(1024) as u32, 1, 1],
    })?];
    if it.len > 0 {
        let count = include_str!("../shaders/plain/histogram.wgsl");
        launches.push(preparation.plain(&[count], &[x, counts], immediates(), it.len)?);
    }
    Ok(launches)
}

/// Prepares plain kernels: counts the flags of chunks, if there are several, and then copies the
/// elements of each.
fn compact_plain(it: &Compact, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let buffers: Vec<_> = preparation.buffers.iter().collect();
    let buffers = preparation.without_empty(&buffers)?;
    let [x, flags, y, count] = [0, 1, 2, 3].map(|nth| &buffers[nth]);
    let chunks = PlainChunks::new(&RowMatrix { rows: 1, columns: it.len, dtype: DType::U32 });
    let launch = |source: &[&str], buffers: &[&UntypedBuffer]| {
        preparation.plain(source, buffers, chunks.immediates(), chunks.count)
    };
    let (prelude, shape) = (elements::prelude(it.dtype), plain_chunks::SHAPE);
    let kernel = include_str!("../shaders/plain/compact.wgsl");
    if chunks.count == 1 {
        const NO_SUMS: &str = "fn sum_before(chunk: u32) -> u32 { return 0u; }\n";
        let source = [prelude, shape, NO_SUMS, kernel];
        return Ok(vec![launch(&source, &[x, flags, y, count])?]);
    }
    let sums = preparation.kernels.scratch_of(0, DType::U32, chunks.count)?;
    let sum_before = ["alias Sum = u32;\n", plain_chunks::SUM_BEFORE].concat();
    Ok(vec![
        launch(&[shape, include_str!("../shaders/plain/count_flags.wgsl")], &[flags, &sums])?,
        launch(&[prelude, shape, &sum_before, kernel], &[x, flags, &sums, y, count])?,
    ])
}
