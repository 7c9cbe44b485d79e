//! Distances between points.

mod nearest;

use std::fmt::Write as _;

use scry_gpu::{BackendKind, Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::host;
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

pub use nearest::Nearest;
pub(in crate::ops) use nearest::NearestPoints;

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

/// Two sets of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PointSets {
    metric: Metric,
    queries: u64,
    points: u64,
    dim: u64,
    dtype: DType,
    /// Whether an invocation may have many queries.
    is_wide: bool,
}

/// All distances of two sets of points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairwise {
    sets: PointSets,
}

/// Points of a tile.
const TILE: u64 = 64;

/// Most queries of a tile.
const MAX_QUERIES: u64 = 128;

/// Workgroups from which on a device is fully used by tiles with the most queries.
const MANY_TILES: u64 = 512;

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
    #[doc(alias = "cdist")]
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
        let is_wide = is_wide(self);
        let sets = PointSets { metric, queries: m, points: n, dim, dtype, is_wide };
        sets.check(&call, ["`a`", "`b`"])?;
        call.product("`out`", &[m, n])?;
        self.op(Pairwise { sets }, &[a, b, out])
    }
}

/// Returns whether an invocation may have many queries: with NVIDIA's Vulkan driver, registers are
/// too few for them.
fn is_wide(kernels: &Kernels) -> bool {
    kernels.device().info().backend != BackendKind::Vulkan
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
        let counts = [self.queries.saturating_add(MAX_QUERIES), self.points.saturating_add(TILE)];
        elements::obstacle(self.dtype, kernels)
            .or_else(|| elements::too_long(&[queries, points]))
            .or_else(|| elements::too_long(&counts))
            .or_else(|| elements::too_long(others))
    }

    /// Returns the queries of an invocation: as few as there are, else many, which share the loads
    /// of points.
    fn rows(&self) -> u64 {
        let most = self.queries.div_ceil(MAX_QUERIES) * self.points.div_ceil(TILE);
        match self.queries {
            0..=16 => 1,
            _ if most < MANY_TILES || !self.is_wide => 4,
            _ => 8,
        }
    }

    /// Returns the tiles of the queries.
    fn query_tiles(&self) -> u64 {
        self.queries.div_ceil(16 * self.rows())
    }

    fn has_quads(&self) -> bool {
        self.dim.is_multiple_of(4)
    }

    /// Returns the type of an invocation's distances, and the functions of its rows.
    fn rows_source(&self) -> String {
        let list = |element: &dyn Fn(u64) -> String| {
            (0..self.rows()).map(element).collect::<Vec<_>>().join(", ")
        };
        format!(
            "struct Distances {{ {} }}\n\n\
             fn add_rows(\n    sums: Distances, first: u32,\n    \
             p0: vec4<f32>, p1: vec4<f32>, p2: vec4<f32>, p3: vec4<f32>,\n) -> Distances {{\n    \
             return Distances({});\n}}\n\n\
             fn cosine_rows(\n    sums: Distances, first_row: u32, norms: vec4<f32>,\n\
             ) -> Distances {{\n    return Distances({});\n}}\n\n",
            list(&|nth| format!("row{nth}: vec4<f32>")),
            list(&|nth| format!(
                "accumulate(sums.row{nth}, memory[first + {nth}u * PITCH], p0, p1, p2, p3)"
            )),
            list(&|nth| format!(
                "cosine_distances(sums.row{nth}, norm(first_row + {nth}u).x * norms)"
            )),
        )
    }

    /// Returns the declarations that precede `point_tiles.wgsl`, with this one; `memory` is in
    /// quads.
    fn sources(&self, memory: u32, fields: &str) -> String {
        let metric = self.metric_number();
        let (quads, loads) = match self.has_quads() {
            true => (elements::quads(self.dtype), include_str!("../../shaders/point_quads.wgsl")),
            false => ("", include_str!("../../shaders/point_elements.wgsl")),
        };
        [
            elements::prelude(self.dtype),
            quads,
            &format!(
                "const METRIC = {metric}u;\nconst MEMORY = {memory}u;\nconst ROWS = {}u;\n\
                 struct Shape {{ queries: u32, points: u32, dimensions: u32, {fields} }}\n\n",
                self.rows()
            ),
            loads,
            &self.rows_source(),
            include_str!("../../shaders/point_tiles.wgsl"),
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

    /// Returns the buffers of queries and points by elements.
    fn elements(
        &self,
        preparation: &Preparation<'_>,
        [queries, points]: [usize; 2],
    ) -> Result<Vec<UntypedBuffer>> {
        let buffers = [queries, points].map(|nth| &preparation.buffers[nth]);
        preparation.without_empty(&buffers)
    }

    /// Returns what precedes a plain kernel.
    fn plain_source(&self) -> String {
        [
            elements::prelude(self.dtype),
            &format!(
                "const METRIC = {}u;\n\
                 struct Shape {{ queries: u32, points: u32, dimensions: u32 }}\n\n",
                self.metric_number()
            ),
            include_str!("../../shaders/plain/distances.wgsl"),
        ]
        .concat()
    }

    /// Returns why a plain kernel cannot compute distances; `None` if it can.
    fn plain_obstacle(&self, kernels: &Kernels, others: &[u64]) -> Option<String> {
        let is_cosine = self.metric == Metric::Cosine;
        let cosine = "would round cosines in another order than `wgsl`";
        is_cosine.then(|| cosine.to_owned()).or_else(|| self.obstacle(kernels, others))
    }

    /// Returns the number of the metric in WGSL.
    fn metric_number(&self) -> u32 {
        match self.metric {
            Metric::SquaredEuclidean => 0,
            Metric::Cosine => 1,
            Metric::L1 => 2,
        }
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
        &[
            Variant {
                info: plain::INFO,
                obstacle: |it, kernels| it.sets.plain_obstacle(kernels, &[it.len()]),
                suits: |it, kernels| it.suits_plain(kernels),
                prepare: plain_pairwise,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, kernels| it.sets.obstacle(kernels, &[it.len()]),
                suits: |_, _| true,
                prepare: pairwise,
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

impl Pairwise {
    /// Returns whether a plain kernel is expected to be the fastest: of few coordinates, or of few
    /// points.
    fn suits_plain(&self, kernels: &Kernels) -> bool {
        match self.sets.dim {
            ..=16 => plain::is_software(kernels),
            dim => host::is_cpu(kernels) && self.len() * dim <= 1 << 17,
        }
    }

    fn len(&self) -> u64 {
        self.sets.queries * self.sets.points
    }
}

/// Prepares a plain kernel: a distance by each invocation.
fn plain_pairwise(it: &Pairwise, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let sets = &it.sets;
    let points = sets.elements(preparation, [0, 1])?;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[&sets.plain_source(), include_str!("../../shaders/plain/pairwise.wgsl")],
        buffers: &[&points[0], &points[1], &preparation.buffers[2]],
        immediates: sets.immediates(),
        workgroups: [sets.points.div_ceil(16) as u32, sets.queries.div_ceil(16) as u32, 1],
    })?;
    Ok(vec![launch])
}

fn pairwise(it: &Pairwise, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let sets = &it.sets;
    let points = sets.bindings(preparation, [0, 1])?;
    let mut stores = "fn store_rows(row: u32, column: u32, sums: Distances) {\n".to_owned();
    for nth in 0..sets.rows() {
        let _ = writeln!(stores, "    store(row + {nth}u, column, sums.row{nth});");
    }
    stores += "}\n\n";
    // Quads of 16 coordinates and padding.
    let memory = 5 * (16 * sets.rows() + TILE) as u32;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[&sets.sources(memory, ""), &stores, include_str!("../../shaders/pairwise.wgsl")],
        buffers: &[&points[0], &points[1], &preparation.buffers[2]],
        immediates: sets.immediates(),
        workgroups: [sets.points.div_ceil(TILE) as u32, sets.query_tiles() as u32, 1],
    })?;
    Ok(vec![launch])
}
