//! The largest elements of rows.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use super::sort;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, NUMBERS};
use crate::kernels::Kernels;
use crate::lookback;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::ordering;
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// The largest elements of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TopK {
    dtype: DType,
    rows: u64,
    columns: u64,
    k: u64,
}

/// The most elements of the list of a plain kernel.
const MAX_LISTED: u64 = 16;

/// The most elements of a row that are selected without sorting the row.
const MAX_SELECTED: u64 = 1024;

/// The largest elements of rows.
impl Kernels {
    /// Prepares to find the `k` largest elements of each row of `x`, a row-major matrix without
    /// padding, in descending order: their values, and their columns as `u32`. `values` and
    /// `indices` are row-major matrices with `k` columns. `x` and `values` have elements of `f32`,
    /// `f16`, `bf16`, `i32` or `u32`; buffers may be longer.
    ///
    /// NaN is the largest value. Of equal elements, such as zeros of either sign, those in the
    /// first columns are taken, and come first.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3.0f32, 9.0, 7.0, -1.0, -1.0, f32::NAN])?;
    /// let (values, indices) = (gpu.alloc::<f32>(4)?, gpu.alloc::<u32>(4)?);
    /// Kernels::new(&gpu)?.top_k(&x, &values, &indices, 2, 3, 2)?.run()?;
    /// assert_eq!(indices.download()?, [1, 2, 2, 0]);
    /// assert_eq!(values.download()?[..2], [9.0, 7.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) if `k` is greater than `columns`, and
    /// for buffers that are too short, of another type, or that overlap;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the type and the sizes.
    pub fn top_k(
        &self,
        x: &dyn Binding,
        values: &dyn Binding,
        indices: &dyn Binding,
        rows: usize,
        columns: usize,
        k: usize,
    ) -> Result<Op> {
        let call = Call::new(FUNCTION);
        let dtype = call.dtype("x", x, &NUMBERS)?;
        if k > columns {
            return Err(call.argument_error(
                "`k`",
                format!("is {k}, but rows have {columns} elements"),
                "pass at most the number of columns",
            ));
        }
        let it = TopK { dtype, rows: rows as u64, columns: columns as u64, k: k as u64 };
        call.product("the matrix", &[it.rows, it.columns])?;
        self.op(it, &[x, values, indices])
    }
}

const FUNCTION: &str = "Kernels::top_k";

impl TopK {
    /// Returns why WGSL kernels cannot compute it; `None` if they can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels)
            .or_else(|| elements::too_long(&[self.rows * self.columns]))
    }

    /// Returns why a plain kernel cannot be used; `None` if it can.
    fn plain_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let has_list = self.k <= MAX_LISTED;
        let too_many = || format!("has a list of at most {MAX_LISTED} elements");
        (!has_list).then(too_many).or_else(|| self.wgsl_obstacle(kernels))
    }

    /// Returns whether a plain kernel is expected to be the fastest: each row is one invocation.
    fn suits_plain(&self, kernels: &Kernels) -> bool {
        let iterations = self.columns * (self.k + 1);
        let is_parallel = self.rows >= 8 || self.columns <= 2048;
        plain::is_software(kernels) && is_parallel && iterations <= plain::MAX_ITERATIONS
    }

    /// Returns why a sort with look-back cannot be used; `None` if it can.
    fn lookback_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let is_selected = self.k <= MAX_SELECTED;
        let too_few = || format!("sorts rows, for more than {MAX_SELECTED} elements of each");
        is_selected
            .then(too_few)
            .or_else(|| sort::lookback_obstacle(self.rows * self.columns, kernels))
            .or_else(|| self.wgsl_obstacle(kernels))
    }
}

impl Operation for TopK {
    fn function(&self) -> &'static str {
        FUNCTION
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows), ("columns", self.columns), ("k", self.k)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let results = self.rows * self.k;
        vec![
            arguments::read("x", self.dtype, self.rows * self.columns),
            arguments::write("values", self.dtype, results),
            arguments::write("indices", DType::U32, results),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: VariantInfo {
                    name: "wgsl-lookback",
                    needs: lookback::NEEDS,
                    deterministic: true,
                },
                obstacle: TopK::lookback_obstacle,
                suits: |_, _| true,
                prepare: |it, preparation| sort_rows(it, preparation, true),
            },
            Variant {
                info: plain::INFO,
                obstacle: TopK::plain_obstacle,
                suits: |it, kernels| it.suits_plain(kernels),
                prepare: plain_launch,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: TopK::wgsl_obstacle,
                suits: |_, _| true,
                prepare: |it, preparation| match it.k <= MAX_SELECTED {
                    true => select(it, preparation),
                    false => sort_rows(it, preparation, false),
                },
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.rows * self.k == 0
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

/// Selects the largest elements of a row by each invocation.
fn plain_launch(it: &TopK, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let source = [
        elements::prelude(it.dtype),
        ordering::prelude(it.dtype),
        &format!("const K = {}u;\n", it.k),
        include_str!("../shaders/plain/top_k.wgsl"),
    ];
    let buffers = [0, 1, 2].map(|nth| &preparation.buffers[nth]);
    let immediates = Immediates::default().u32(it.rows as u32).u32(it.columns as u32);
    Ok(vec![preparation.plain(&source, &buffers, immediates, it.rows)?])
}

/// Selects the largest elements of segments of rows, until a row is one segment.
fn select(it: &TopK, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let mut launches = Vec::new();
    let mut candidates: Option<UntypedBuffer> = None;
    let mut length = it.columns;
    loop {
        let items = if length <= 1024 { 4 } else { 16 };
        let segment = 256 * items;
        let segments = length.div_ceil(segment);
        let last = length - (segments - 1) * segment;
        let selected = (segments - 1) * it.k + last.min(it.k);
        let results = match segments {
            1 => None,
            _ => {
                // Two scratch buffers alternate.
                let nth = launches.len() % 2;
                Some(preparation.kernels.scratch_of(nth, DType::U32, it.rows * selected)?)
            }
        };
        let pass = SelectPass { items, segments, length, selected };
        launches.push(pass.launch(it, preparation, candidates.as_ref(), results.as_ref())?);
        if results.is_none() {
            return Ok(launches);
        }
        (candidates, length) = (results, selected);
    }
}

/// A launch of select.wgsl.
struct SelectPass {
    /// Candidates of an invocation.
    items: u64,
    /// Segments of a row.
    segments: u64,
    /// Candidates of a row.
    length: u64,
    /// Selected ones of a row.
    selected: u64,
}

impl SelectPass {
    /// Prepares the launch: from candidates, or all elements, to candidates or the results.
    fn launch(
        &self,
        it: &TopK,
        preparation: &Preparation<'_>,
        candidates: Option<&UntypedBuffer>,
        selected: Option<&UntypedBuffer>,
    ) -> Result<PreparedLaunch> {
        const ALL: &str = "fn position_of(row: u32, at: u32) -> u32 { return at; }\n";
        const CANDIDATES: &str = "\
            @group(0) @binding(1) var<storage, read> candidates: array<u32>;\n\
            fn position_of(row: u32, at: u32) -> u32 {\n\
                return candidates[row * parameters.length + at];\n\
            }\n";
        let [x, values, indices] = [0, 1, 2].map(|nth| &preparation.buffers[nth]);
        let mut buffers = vec![x];
        buffers.extend(candidates);
        let finish = match selected {
            Some(selected) => {
                buffers.push(selected);
                include_str!("../shaders/top_k/candidates.wgsl")
            }
            None => {
                buffers.extend([values, indices]);
                include_str!("../shaders/top_k/results.wgsl")
            }
        };
        let mut immediates = Immediates::default();
        for size in [it.columns, self.length, it.k, self.selected] {
            immediates = immediates.u32(size as u32);
        }
        preparation.wgsl(&WgslLaunch {
            source: &[
                elements::prelude(it.dtype),
                ordering::prelude(it.dtype),
                &format!("const ITEMS = {}u;\n", self.items),
                if candidates.is_some() { CANDIDATES } else { ALL },
                finish,
                include_str!("../shaders/sums_before.wgsl"),
                include_str!("../shaders/top_k/select.wgsl"),
            ],
            buffers: &buffers,
            immediates,
            workgroups: [self.segments as u32, it.rows as u32, 1],
        })
    }
}

/// Sorts all elements, then by rows, and takes the first ones of each.
fn sort_rows(
    it: &TopK,
    preparation: &Preparation<'_>,
    has_lookback: bool,
) -> Result<Vec<PreparedLaunch>> {
    let len = it.rows * it.columns;
    // The sort uses the scratch buffers before these.
    let scratch = |nth| preparation.kernels.scratch_of(sort::SCRATCH + nth, DType::U32, len);
    let sorted = [scratch(0)?, scratch(1)?];
    let [x, values, indices] = [0, 1, 2].map(|nth| &preparation.buffers[nth]);
    let launch = |source: &[&str], buffers: &[&UntypedBuffer], count: u64| {
        preparation.wgsl(&WgslLaunch {
            source,
            buffers,
            immediates: Immediates::default().u32(count as u32).u32(it.columns as u32),
            workgroups: [count.div_ceil(1024) as u32, 1, 1],
        })
    };
    let prelude = elements::prelude(it.dtype);
    let make_keys =
        [prelude, ordering::prelude(it.dtype), include_str!("../shaders/top_k/keys.wgsl")];
    let mut launches = vec![launch(&make_keys, &[x, &sorted[0]], len)?];
    launches.extend(sort::words(preparation, &sorted, sort::Sorted::Positions, has_lookback)?);
    if it.rows > 1 {
        let make_rows = include_str!("../shaders/top_k/rows.wgsl");
        launches.push(launch(&[make_rows], &[&sorted[1], &sorted[0]], len)?);
        let pairs = sort::Sorted::Pairs(DType::U32);
        launches.extend(sort::words(preparation, &sorted, pairs, has_lookback)?);
    }
    let results = it.rows * it.k;
    launches.push(preparation.wgsl(&WgslLaunch {
        source: &[prelude, include_str!("../shaders/top_k/take.wgsl")],
        buffers: &[x, &sorted[1], values, indices],
        immediates:
            Immediates::default().u32(results as u32).u32(it.columns as u32).u32(it.k as u32),
        workgroups: [results.div_ceil(1024) as u32, 1, 1],
    })?);
    Ok(launches)
}
