//! Nearest points, without storing the distances of all.

use std::fmt::Write as _;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result};

use super::{Metric, PointSets, TILE, is_wide};
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// The sizes of a search for nearest points, see [`Kernels::nearest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    /// The distance.
    pub metric: Metric,
    /// Points.
    pub points: usize,
    /// Queries.
    pub queries: usize,
    /// Coordinates of a point.
    pub dim: usize,
    /// Nearest points of each query: at most 64, and at most the number of points.
    pub k: usize,
}

/// Nearest points.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct NearestPoints {
    sets: PointSets,
    k: u64,
    /// The type of the indices.
    index: DType,
}

/// Most nearest points: they are in registers.
const MAX_K: usize = 64;

/// Most slices of the points, each of which yields one or more lists per query.
const MAX_SLICES: u64 = 512;

/// Nearest points.
impl Kernels {
    /// Prepares the search for the `k` nearest neighbours (k-NN) of each query. `points` and
    /// `queries` are row-major matrices with a point per row, of `f32`, `f16` or `bf16`, computed
    /// in `f32`. `indices`, of `u32` or `i32`, and `distances`, of `f32`, are queries × k: the
    /// nearest points by increasing distance, and of points with equal distances the first ones. A
    /// distance that is NaN is larger than all others. Buffers may be longer.
    ///
    /// The distances are the same as those of [`Kernels::pairwise_distances`], but those of other
    /// points are not stored: the memory that is needed does not grow with the number of points.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Metric, Nearest};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let points = gpu.upload(&[10.0f32, 20.0, 30.0, 40.0])?; // four points on a line
    /// let queries = gpu.upload(&[22.0f32])?;
    /// let (indices, distances) = (gpu.alloc::<u32>(2)?, gpu.alloc::<f32>(2)?);
    /// let metric = Metric::SquaredEuclidean;
    /// let sizes = Nearest { metric, points: 4, queries: 1, dim: 1, k: 2 };
    /// let kernels = Kernels::new(&gpu)?;
    /// kernels.nearest(&points, &queries, &indices, &distances, &sizes)?.run()?;
    /// assert_eq!(indices.download()?, [1, 2]);
    /// assert_eq!(distances.download()?, [4.0, 64.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::pairwise_distances`], and
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) if `k` is more than 64 or than the
    /// number of points.
    #[doc(alias = "knn")]
    pub fn nearest(
        &self,
        points: &dyn Binding,
        queries: &dyn Binding,
        indices: &dyn Binding,
        distances: &dyn Binding,
        sizes: &Nearest,
    ) -> Result<Op> {
        let Nearest { metric, points: point_count, queries: query_count, dim, k } = *sizes;
        let [p, q, d] = [point_count, query_count, dim].map(|size| size as u64);
        let call = Call {
            function: "Kernels::nearest".into(),
            sizes: vec![("points", p), ("queries", q), ("dim", d), ("k", k as u64)],
        };
        let dtype = call.dtype("points", points, &FLOATS)?;
        let index = call.dtype("indices", indices, &[DType::U32, DType::I32])?;
        if k > MAX_K.min(point_count) {
            return Err(call.argument_error(
                "`Nearest::k`",
                format!("is {k}, but at most {} are supported", MAX_K.min(point_count)),
                "ask for at most 64 points, and no more than there are",
            ));
        }
        let is_wide = is_wide(self);
        let sets = PointSets { metric, queries: q, points: p, dim: d, dtype, is_wide };
        sets.check(&call, ["`queries`", "`points`"])?;
        call.product("`indices`", &[q, k as u64])?;
        let it = NearestPoints { sets, k: k as u64, index };
        self.op(it, &[points, queries, indices, distances])
    }
}

impl Operation for NearestPoints {
    fn function(&self) -> &'static str {
        "Kernels::nearest"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("points", self.sets.points),
            ("queries", self.sets.queries),
            ("dim", self.sets.dim),
            ("k", self.k),
        ]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [queries, points] = self.sets.lens();
        vec![
            arguments::read("points", self.sets.dtype, points),
            arguments::read("queries", self.sets.dtype, queries),
            arguments::write("indices", self.index, self.len()),
            arguments::write("distances", DType::F32, self.len()),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: plain::INFO,
                obstacle: |it, kernels| it.plain_obstacle(kernels),
                suits: |it, kernels| it.suits_plain(kernels),
                prepare: plain_nearest,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, kernels| {
                    let exceeds = 8 * it.list_len(it.slices(kernels)[0]) > u64::from(u32::MAX);
                    let limit = "needs more than 4 GiB of scratch memory for this many queries";
                    let obstacle = it.sets.obstacle(kernels, &[it.len()]);
                    obstacle.or_else(|| exceeds.then(|| limit.to_owned()))
                },
                suits: |_, _| true,
                prepare: nearest,
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(DType::F32)
    }
}

/// The most nearest points in the list of a plain kernel.
const MAX_LISTED: u64 = 16;

/// Prepares a plain kernel: a query by each invocation.
fn plain_nearest(it: &NearestPoints, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let sets = it.sets.elements(preparation, [1, 0])?;
    let list = format!("const K = {}u;\n", it.k);
    let kernel = include_str!("../../shaders/plain/nearest.wgsl");
    let source = [&*it.sets.plain_source(), &list, kernel];
    let indices = preparation.words(2, it.len())?;
    let buffers = [&sets[0], &sets[1], &indices, &preparation.buffers[3]];
    Ok(vec![preparation.plain(&source, &buffers, it.sets.immediates(), it.sets.queries)?])
}

impl NearestPoints {
    /// Returns why a plain kernel cannot be used; `None` if it can.
    fn plain_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let too_many = || format!("has a list of at most {MAX_LISTED} points");
        let obstacle = (self.k > MAX_LISTED).then(too_many);
        obstacle.or_else(|| self.sets.plain_obstacle(kernels, &[self.len()]))
    }

    /// Returns whether a plain kernel is expected to be the fastest: of few coordinates or points.
    fn suits_plain(&self, kernels: &Kernels) -> bool {
        let PointSets { queries, points, dim, .. } = self.sets;
        let iterations = points.saturating_mul(dim + self.k + 1);
        let is_small = dim <= 16 || points <= 512;
        plain::is_software(kernels)
            && is_small
            && queries >= 8
            && iterations <= plain::MAX_ITERATIONS
    }

    fn len(&self) -> u64 {
        self.sets.queries * self.k
    }

    /// Returns the number of slices of the points, and their tiles: slices occupy the device if
    /// there are few queries.
    fn slices(&self, kernels: &Kernels) -> [u64; 2] {
        let multiprocessors = kernels.device().info().multiprocessors.unwrap_or(8);
        let wanted = u64::from(multiprocessors) * 4;
        let tiles = self.sets.points.div_ceil(TILE).max(1);
        let slices = wanted.div_ceil(self.sets.query_tiles().max(1));
        let per_slice = tiles.div_ceil(slices.min(MAX_SLICES));
        [tiles.div_ceil(per_slice), per_slice]
    }

    /// Returns the lists of a query: one of each invocation that searches its distances.
    fn lists_per_query(&self, slices: u64) -> u64 {
        16 / self.sets.rows() * slices
    }

    /// Returns the entries of the lists of all queries.
    fn list_len(&self, slices: u64) -> u64 {
        // The results have 64-bit sizes, and there are at most 8192 lists of a query.
        self.sets.queries.min(1 << 32) * self.lists_per_query(slices) * self.k
    }

    /// Returns the function that keeps the rows of a phase.
    fn keep_rows(&self) -> String {
        let mut text =
            "fn keep_rows(row: u32, column: u32, sums: Distances, phase: u32) {\n".to_owned();
        for nth in 0..self.sets.rows().min(4) {
            let values = match self.sets.rows() {
                8 => format!("select(sums.row{nth}, sums.row{}, phase == 1u)", nth + 4),
                _ => format!("sums.row{nth}"),
            };
            let _ = writeln!(text, "    keep(row + {nth}u, column, {values});");
        }
        text + "}\n\n"
    }

    /// Returns the list of an invocation: private variables, so that they are registers.
    fn list(&self, has_ties: bool) -> String {
        let last = self.k - 1;
        let mut text = format!(
            "const K = {}u;\n\nfn precedes(key: u32, index: u32, other: u32, other_index: u32) -> \
             bool {{\n    return {};\n}}\n\n",
            self.k,
            match has_ties {
                true => "key < other || (key == other && index < other_index)",
                // Indices increase.
                false => "key < other",
            }
        );
        let [mut clear, mut insert, mut remove, mut store] = [const { String::new() }; 4];
        for nth in 0..self.k {
            let _ = write!(text, "var<private> key{nth}: u32;\nvar<private> index{nth}: u32;\n");
            let _ = writeln!(clear, "    key{nth} = 0xffffffffu;\n    index{nth} = 0xffffffffu;");
            let _ = writeln!(store, "    lists[at + {nth}u] = vec2<u32>(key{nth}, index{nth});");
            if nth < last {
                let next = nth + 1;
                let _ =
                    writeln!(remove, "    key{nth} = key{next};\n    index{nth} = index{next};");
            }
        }
        for nth in (0..self.k).rev() {
            let own = format!("precedes(key, index, key{nth}, index{nth})");
            let _ = match nth {
                0 => writeln!(
                    insert,
                    "    if {own} {{\n        key0 = key;\n        index0 = index;\n    }}"
                ),
                _ => {
                    let before = nth - 1;
                    writeln!(
                        insert,
                        "    if precedes(key, index, key{before}, index{before}) {{\n        \
                         key{nth} = key{before};\n        index{nth} = index{before};\n    \
                         }} else if {own} {{\n        key{nth} = key;\n        \
                         index{nth} = index;\n    }}"
                    )
                }
            };
        }
        format!(
            "{text}\nfn clear_list() {{\n{clear}}}\n\n\
             fn farthest() -> u32 {{\n    return key{last};\n}}\n\n\
             fn nearest() -> vec2<u32> {{\n    return vec2<u32>(key0, index0);\n}}\n\n\
             fn insert(key: u32, index: u32) {{\n{insert}}}\n\n\
             fn remove_nearest() {{\n{remove}    key{last} = 0xffffffffu;\n    \
             index{last} = 0xffffffffu;\n}}\n\n{}",
            match has_ties {
                true => String::new(),
                false => format!("fn store_list(at: u32) {{\n{store}}}\n\n"),
            }
        )
    }
}

/// Finds the nearest points in each slice, then merges them.
fn nearest(it: &NearestPoints, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let sets = &it.sets;
    let [slices, tiles] = it.slices(preparation.kernels);
    let points = sets.bindings(preparation, [1, 0])?;
    let lists = preparation.kernels.scratch_of(0, DType::U32, 2 * it.list_len(slices))?;
    let search = preparation.wgsl(&WgslLaunch {
        source: &[
            &sets.sources(1024, "slices: u32, tiles: u32"),
            &it.list(false),
            &it.keep_rows(),
            include_str!("../../shaders/nearest_slices.wgsl"),
        ],
        buffers: &[&points[0], &points[1], &lists],
        immediates: sets.immediates().u32(slices as u32).u32(tiles as u32),
        workgroups: [sets.query_tiles() as u32, slices as u32, 1],
    })?;
    let merge = preparation.wgsl(&WgslLaunch {
        source: &[
            "struct Shape { lists_per_query: u32 }\n\n",
            &it.list(true),
            include_str!("../../shaders/nearest_merge.wgsl"),
        ],
        buffers: &[&lists, &preparation.words(2, it.len())?, &preparation.buffers[3]],
        immediates: Immediates::default().u32(it.lists_per_query(slices) as u32),
        workgroups: [sets.queries as u32, 1, 1],
    })?;
    Ok(vec![search, merge])
}
