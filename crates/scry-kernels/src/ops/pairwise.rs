//! Distances between points, and nearest points.

use std::fmt::Write as _;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// The distance between two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The sum of the squares of the differences. Differences are squared, not expanded to
    /// products: distances of close points lose no precision, and those of equal points are 0.
    SquaredEuclidean,
    /// 1 minus the cosine of the angle between the points as vectors, from 0 to 2; 1 if one of them
    /// is zero. The squares of their lengths must not exceed the largest `f32`.
    Cosine,
    /// The sum of the absolute differences.
    L1,
}

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

/// Two sets of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PointSets {
    metric: Metric,
    queries: u64,
    points: u64,
    dim: u64,
    dtype: DType,
}

/// All distances of two sets of points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairwise {
    sets: PointSets,
}

/// Nearest points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NearestPoints {
    sets: PointSets,
    k: u64,
    /// The type of the indices.
    index: DType,
}

/// Most nearest points: they are in registers.
const MAX_K: usize = 64;

/// Queries, and points, of a tile.
const TILE: u64 = 64;

/// Most slices of the points, each of which yields four lists per query.
const MAX_SLICES: u64 = 512;

/// Distances between points.
impl Kernels {
    /// Prepares the distances between all points of two sets: `out[i][j]` is the distance between
    /// row i of `a` and row j of `b`. `a` is a row-major matrix of m × dim and `b` one of n × dim,
    /// of `f32`, `f16` or `bf16`, computed in `f32`; `out` is m × n, of `f32`. Without coordinates
    /// distances are 0, or 1 by cosine. Buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Metric};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let a = gpu.upload(&[0.0f32, 0.0, 1.0, 1.0])?; // two points
    /// let b = gpu.upload(&[3.0f32, 4.0])?; // one point
    /// let out = gpu.alloc::<f32>(2)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// kernels.pairwise_distances(Metric::SquaredEuclidean, &a, &b, &out, 2, 1, 2)?.run()?;
    /// assert_eq!(out.download()?, [25.0, 13.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap with `out`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks the element
    /// type, or if a matrix has more than 2^32 - 1 elements.
    #[expect(clippy::too_many_arguments, reason = "two sets of points have these")]
    pub fn pairwise_distances(
        &self,
        metric: Metric,
        a: &dyn Binding,
        b: &dyn Binding,
        out: &dyn Binding,
        m: usize,
        n: usize,
        dim: usize,
    ) -> Result<Op> {
        let [m, n, dim] = [m, n, dim].map(|size| size as u64);
        let call = Call {
            function: "Kernels::pairwise_distances".into(),
            sizes: vec![("m", m), ("n", n), ("dim", dim)],
        };
        let dtype = call.dtype("a", a, &FLOATS)?;
        let sets = PointSets { metric, queries: m, points: n, dim, dtype };
        sets.check(&call, ["`a`", "`b`"])?;
        call.product("`out`", &[m, n])?;
        self.op(Pairwise { sets }, &[a, b, out])
    }

    /// Prepares the search for the `k` nearest points of each query. `points` and `queries` are
    /// row-major matrices with a point per row, of `f32`, `f16` or `bf16`, computed in `f32`.
    /// `indices`, of `u32` or `i32`, and `distances`, of `f32`, are queries × k: the nearest points
    /// by increasing distance, and of points with equal distances the first ones. A distance that
    /// is NaN is larger than all others. Buffers may be longer.
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
        let sets = PointSets { metric, queries: q, points: p, dim: d, dtype };
        sets.check(&call, ["`queries`", "`points`"])?;
        call.product("`indices`", &[q, k as u64])?;
        let it = NearestPoints { sets, k: k as u64, index };
        self.op(it, &[points, queries, indices, distances])
    }
}

impl PointSets {
    fn check(&self, call: &Call, [queries, points]: [&str; 2]) -> Result<()> {
        call.product(queries, &[self.queries, self.dim])?;
        call.product(points, &[self.points, self.dim])?;
        Ok(())
    }

    /// Returns the elements of the queries and of the points.
    fn lens(&self) -> [u64; 2] {
        [self.queries * self.dim, self.points * self.dim]
    }

    /// Returns why WGSL cannot compute distances, of which there are tables of these lengths.
    fn obstacle(&self, kernels: &Kernels, others: &[u64]) -> Option<String> {
        let [queries, points] = self.lens();
        // Tiles may begin at most this far from the end of 32 bits.
        let counts = [self.queries.saturating_add(TILE), self.points.saturating_add(TILE)];
        elements::obstacle(self.dtype, kernels)
            .or_else(|| elements::too_long(&[queries, points]))
            .or_else(|| elements::too_long(&counts))
            .or_else(|| elements::too_long(others))
    }

    fn has_quads(&self) -> bool {
        self.dim.is_multiple_of(4)
    }

    /// Returns the declarations that precede `point_tiles.wgsl`, with this one; `memory` is in
    /// quads.
    fn sources(&self, memory: u32, fields: &str) -> String {
        let metric = match self.metric {
            Metric::SquaredEuclidean => 0,
            Metric::Cosine => 1,
            Metric::L1 => 2,
        };
        let (quads, loads) = match self.has_quads() {
            true => (elements::quads(self.dtype), include_str!("../shaders/point_quads.wgsl")),
            false => ("", include_str!("../shaders/point_elements.wgsl")),
        };
        [
            elements::prelude(self.dtype),
            quads,
            &format!(
                "const METRIC = {metric}u;\nconst MEMORY = {memory}u;\n\
                 struct Shape {{ queries: u32, points: u32, dimensions: u32, {fields} }}\n\n"
            ),
            loads,
            include_str!("../shaders/point_tiles.wgsl"),
        ]
        .concat()
    }

    /// Returns the buffers of queries and points, which are these ones of the call.
    fn bindings(
        &self,
        preparation: &Preparation<'_>,
        [queries, points]: [usize; 2],
    ) -> Result<Vec<UntypedBuffer>> {
        let buffers = match self.has_quads() {
            true => [
                preparation.quads(queries, self.lens()[0])?,
                preparation.quads(points, self.lens()[1])?,
            ],
            false => [queries, points].map(|nth| preparation.buffers[nth].clone()),
        };
        // Without coordinates, there are no elements.
        preparation.without_empty(&buffers.each_ref())
    }

    fn immediates(&self) -> Immediates {
        Immediates::default().u32(self.queries as u32).u32(self.points as u32).u32(self.dim as u32)
    }
}

impl Operation for Pairwise {
    fn function(&self) -> &'static str {
        "Kernels::pairwise_distances"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("m", self.sets.queries), ("n", self.sets.points), ("dim", self.sets.dim)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [a, b] = self.sets.lens();
        vec![
            arguments::read("a", self.sets.dtype, a),
            arguments::read("b", self.sets.dtype, b),
            arguments::write("out", DType::F32, self.len()),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[Variant {
            info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
            obstacle: |it, kernels| it.sets.obstacle(kernels, &[it.len()]),
            suits: |_, _| true,
            prepare: pairwise,
        }]
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(DType::F32)
    }
}

impl Pairwise {
    fn len(&self) -> u64 {
        self.sets.queries * self.sets.points
    }
}

fn pairwise(it: &Pairwise, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let sets = &it.sets;
    let points = sets.bindings(preparation, [0, 1])?;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[&sets.sources(640, ""), include_str!("../shaders/pairwise.wgsl")],
        buffers: &[&points[0], &points[1], &preparation.buffers[2]],
        immediates: sets.immediates(),
        workgroups: [sets.points.div_ceil(TILE) as u32, sets.queries.div_ceil(TILE) as u32, 1],
    })?;
    Ok(vec![launch])
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
        &[Variant {
            info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
            obstacle: |it, kernels| {
                let exceeds = 8 * it.list_len(it.slices(kernels)[0]) > u64::from(u32::MAX);
                let limit = "needs more than 4 GiB of scratch memory for this many queries";
                let obstacle = it.sets.obstacle(kernels, &[it.len()]);
                obstacle.or_else(|| exceeds.then(|| limit.to_owned()))
            },
            suits: |_, _| true,
            prepare: nearest,
        }]
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(DType::F32)
    }
}

impl NearestPoints {
    fn len(&self) -> u64 {
        self.sets.queries * self.k
    }

    /// Returns the number of slices of the points, and their tiles: slices occupy the device if
    /// there are few queries.
    fn slices(&self, kernels: &Kernels) -> [u64; 2] {
        let multiprocessors = kernels.device().info().multiprocessors.unwrap_or(8);
        let wanted = u64::from(multiprocessors) * 4;
        let tiles = self.sets.points.div_ceil(TILE).max(1);
        let slices = wanted.div_ceil(self.sets.queries.div_ceil(TILE).max(1));
        let per_slice = tiles.div_ceil(slices.min(MAX_SLICES));
        [tiles.div_ceil(per_slice), per_slice]
    }

    /// Returns the entries of the lists of all queries.
    fn list_len(&self, slices: u64) -> u64 {
        // The results have 64-bit sizes, and there are at most 2048 lists of a query.
        self.sets.queries.min(1 << 32) * 4 * slices * self.k
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
            include_str!("../shaders/nearest_slices.wgsl"),
        ],
        buffers: &[&points[0], &points[1], &lists],
        immediates: sets.immediates().u32(slices as u32).u32(tiles as u32),
        workgroups: [sets.queries.div_ceil(TILE) as u32, slices as u32, 1],
    })?;
    let merge = preparation.wgsl(&WgslLaunch {
        source: &[
            "struct Shape { lists_per_query: u32 }\n\n",
            &it.list(true),
            include_str!("../shaders/nearest_merge.wgsl"),
        ],
        buffers: &[&lists, &preparation.words(2, it.len())?, &preparation.buffers[3]],
        immediates: Immediates::default().u32(4 * slices as u32),
        workgroups: [sets.queries as u32, 1, 1],
    })?;
    Ok(vec![search, merge])
}
