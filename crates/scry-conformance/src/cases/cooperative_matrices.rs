//! Cooperative matrices: products, sums and multiples of matrices distributed over subgroups,
//! loaded and stored in row- and column-major layout at any offset in storage and workgroup memory.
//! Elements are small integers, so that all results are exact.

use scry_gpu::{BackendKind, DeviceInfo, Features, Launch, MatrixProducts};

use crate::Cases;
use crate::case::{Case, Data, Want};
use crate::guarded::guarded;
use crate::ty::Ty;

/// The feature that the error names on devices without cooperative matrices.
const NEEDS: Features = Features::COOPERATIVE_MATRIX.union(Features::F16);

/// The product of a size and of types.
pub(super) fn product_of(n: usize, factor: Ty, sum: Ty) -> MatrixProducts {
    match (n, factor, sum) {
        (8, Ty::F16, Ty::F16) => MatrixProducts::F16_8X8,
        (8, Ty::F16, _) => MatrixProducts::F16_F32_8X8,
        (8, ..) => MatrixProducts::F32_8X8,
        (_, Ty::F16, Ty::F16) => MatrixProducts::F16_16X16,
        (_, Ty::F16, _) => MatrixProducts::F16_F32_16X16,
        _ => MatrixProducts::F32_16X16,
    }
}

/// Every product with accumulators of a size and a type.
pub(super) fn products_to(n: usize, sum: Ty) -> MatrixProducts {
    TYPES
        .into_iter()
        .filter(|(_, to)| *to == sum)
        .map(|(factor, sum)| product_of(n, factor, sum))
        .collect()
}

/// The layout of consecutive matrices in memory.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Rows, and columns.
    n: usize,
    ty: Ty,
    /// Whether the layout is row-major.
    rows: bool,
    /// Offset of the first element, leading dimension, and distance between matrices, in elements.
    start: usize,
    stride: usize,
    step: usize,
}

impl Layout {
    fn at(&self, matrix: usize, row: usize, column: usize) -> usize {
        let (line, along) = if self.rows { (row, column) } else { (column, row) };
        self.start + matrix * self.step + line * self.stride + along
    }

    /// Returns the arguments `array[…], stride` of matrix number `which`, a WGSL expression.
    fn arguments(&self, array: &str, which: &str) -> String {
        format!("&{array}[{}u + ({which}) * {}u], {}u", self.start, self.step, self.stride)
    }

    fn suffix(&self) -> &'static str {
        if self.rows { "T" } else { "" }
    }

    fn load(&self, role: char, array: &str, which: &str) -> String {
        let (n, ty, arguments) = (self.n, self.ty.name(), self.arguments(array, which));
        format!("coopLoad{}<coop_mat{n}x{n}<{ty}, {role}>>({arguments})", self.suffix())
    }

    fn store(&self, value: &str, array: &str, which: &str) -> String {
        format!("coopStore{}({value}, {});", self.suffix(), self.arguments(array, which))
    }

    fn len(&self, matrices: usize) -> usize {
        self.at(matrices - 1, self.n - 1, self.n - 1) + 4
    }
}

/// The memory of matrices; the gaps contain small integers as well.
struct Matrices {
    layout: Layout,
    elements: Vec<f64>,
}

impl Matrices {
    fn new(layout: Layout, matrices: usize, seed: usize) -> Self {
        let elements = (0..layout.len(matrices)).map(|i| (i * i * 7 + i * 3 + seed) % 9);
        Self { layout, elements: elements.map(|element| element as f64 - 4.0).collect() }
    }

    fn get(&self, matrix: usize, row: usize, column: usize) -> f64 {
        self.elements[self.layout.at(matrix, row, column)]
    }

    fn data(&self) -> Data {
        let ty = self.layout.ty;
        let bits: Vec<u64> = self.elements.iter().map(|x| ty.nearest(*x)).collect();
        Data::values(ty, &bits)
    }
}

const DIRECTIVES: &str = "enable f16; enable wgpu_cooperative_matrix;";

fn declarations(factor: Ty, sum: Ty) -> String {
    format!(
        "{DIRECTIVES}
        @group(0) @binding(0) var<storage, read> left: array<{}>;
        @group(0) @binding(1) var<storage, read> right: array<{}>;
        @group(0) @binding(2) var<storage, read_write> sums: array<{}>;",
        factor.name(),
        factor.name(),
        sum.name()
    )
}

/// Types of operands and accumulators.
const TYPES: [(Ty, Ty); 3] = [(Ty::F16, Ty::F16), (Ty::F16, Ty::F32), (Ty::F32, Ty::F32)];

/// Workgroups of a launch, and subgroups of each.
const GROUPS: usize = 3;
const SUBGROUPS: usize = 2;

/// A kernel on the matrices, and the expected contents of the last ones.
fn case(name: String, source: String, data: [&Matrices; 3], want: &[f64]) -> Case {
    let wants = want.iter().map(|want| Want::Number(*want)).collect();
    data.into_iter()
        .fold(Case::new(name, source), |case, matrices| case.buffer(matrices.data()))
        .launch(Launch::workgroups([GROUPS as u32, 1, 1]))
        .needs_or_refused(NEEDS)
        .expect_wants(2, data[2].layout.ty, wants, |at| format!("element {at}"))
}

fn product_source(left: Layout, right: Layout, sums: Layout) -> String {
    format!(
        "{}
        @compute @workgroup_size(64)
        fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_id) s: u32) {{
            let at = g.x * {SUBGROUPS}u + s;
            let a = {};
            let b = {};
            let c = {};
            let d = coopMultiplyAdd(a, b, c);
            {}
        }}",
        declarations(left.ty, sums.ty),
        left.load('A', "left", "at"),
        right.load('B', "right", "at"),
        sums.load('C', "sums", "at"),
        sums.store("d", "sums", "at"),
    )
}

fn product(n: usize, (factor, sum): (Ty, Ty), rows: [bool; 3]) -> Case {
    let matrices = GROUPS * SUBGROUPS;
    let layout = |ty, rows, start, stride: usize| Layout {
        n,
        ty,
        rows,
        start,
        stride,
        step: n * stride + 5,
    };
    let data = [
        Matrices::new(layout(factor, rows[0], 3, n + 1), matrices, 1),
        Matrices::new(layout(factor, rows[1], 0, n), matrices, 2),
        Matrices::new(layout(sum, rows[2], 7, 2 * n + 3), matrices, 3),
    ];
    let [left, right, sums] = &data;
    let mut want = sums.elements.clone();
    for matrix in 0..matrices {
        for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let at = |k| left.get(matrix, row, k) * right.get(matrix, k, column);
            want[sums.layout.at(matrix, row, column)] += (0..n).map(at).sum::<f64>();
        }
    }
    let source = product_source(left.layout, right.layout, sums.layout);
    let name = format!("{n}x{n} of {factor:?} to {sum:?}, rows {rows:?}");
    case(name, source, [left, right, sums], &want).needs_product(product_of(n, factor, sum))
}

pub(crate) fn products_in_every_type_and_layout(_: &DeviceInfo) -> Cases {
    let kinds = [8, 16].into_iter().flat_map(|n| TYPES.map(|types| (n, types)));
    Cases::new(kinds.flat_map(|(n, types)| {
        let rows = |ways: u32| [ways & 1 != 0, ways & 2 != 0, ways & 4 != 0];
        (0..8).map(move |ways| product(n, types, rows(ways)))
    }))
}

/// Rows of large matrices multiplied tile by tile.
const LARGE: usize = 64;

/// Each workgroup multiplies 16 rows with all columns; each subgroup has two of these tiles.
const TILED: &str = "
    var<workgroup> shelf: array<FACTOR, 16 * 16>;
    alias Tile = coop_mat16x16<SUM, C>;

    fn multiply(a: coop_mat16x16<FACTOR, A>, k: u32, column: u32, sum: Tile) -> Tile {
        let b = coopLoad<coop_mat16x16<FACTOR, B>>(&right[column * 64u + k], 64u);
        return coopMultiplyAdd(a, b, sum);
    }

    @compute @workgroup_size(64)
    fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_id) s: u32,
            @builtin(local_invocation_index) i: u32) {
        var tiles: array<Tile, 2>;
        for (var k = 0u; k < 64u; k += 16u) {
            workgroupBarrier();
            for (var e = i; e < 256u; e += 64u) {
                shelf[e] = left[(g.x * 16u + e / 16u) * 64u + k + e % 16u];
            }
            workgroupBarrier();
            let a = coopLoadT<coop_mat16x16<FACTOR, A>>(&shelf[0]);
            for (var t = 0u; t < 2u; t++) {
                tiles[t] = multiply(a, k, (s * 2u + t) * 16u, tiles[t]);
            }
        }
        for (var t = 0u; t < 2u; t++) {
            coopStoreT(tiles[t], &sums[g.x * 1024u + (s * 2u + t) * 16u], 64u);
        }
    }";

fn tiled((factor, sum): (Ty, Ty)) -> Case {
    let layout =
        |ty, rows| Layout { n: LARGE, ty, rows, start: 0, stride: LARGE, step: LARGE * LARGE };
    let (left, right) =
        (Matrices::new(layout(factor, true), 1, 4), Matrices::new(layout(factor, false), 1, 5));
    let sums = Matrices::new(layout(sum, true), 1, 6);
    let mut want = sums.elements.clone();
    // Rows without a workgroup stay unchanged.
    for row in 0..16 * GROUPS {
        for column in 0..LARGE {
            let at = |k| left.get(0, row, k) * right.get(0, k, column);
            want[sums.layout.at(0, row, column)] = (0..LARGE).map(at).sum();
        }
    }
    let source = declarations(factor, sum) + TILED;
    let source = source.replace("FACTOR", &factor.name()).replace("SUM", &sum.name());
    let name = format!("{factor:?} to {sum:?}");
    case(name, source, [&left, &right, &sums], &want).needs_product(product_of(16, factor, sum))
}

pub(crate) fn tiles_of_large_matrices(_: &DeviceInfo) -> Vec<Case> {
    TYPES.map(tiled).into()
}

fn element_wise_source(n: usize, ty: Ty) -> String {
    let layout = Layout { n, ty, rows: true, start: 0, stride: n, step: n * n };
    format!(
        "{}
        alias Matrix = coop_mat{n}x{n}<{1}, C>;
        var<private> kept: Matrix;
        @compute @workgroup_size(64)
        fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_id) s: u32) {{
            let at = g.x * {SUBGROUPS}u + s;
            var a = {2};
            kept = {3} * {1}(2) - Matrix();
            if g.x > 1u {{ a = kept; }}
            let b = {1}(3) * {4} + a - kept;
            {5}
        }}",
        declarations(ty, ty),
        ty.name(),
        layout.load('C', "left", "at"),
        layout.load('C', "right", "at"),
        layout.load('C', "sums", "at"),
        layout.store("b", "sums", "at"),
    )
}

fn element_wise((n, ty): (usize, Ty)) -> Case {
    let layout = Layout { n, ty, rows: true, start: 0, stride: n, step: n * n };
    let matrices = GROUPS * SUBGROUPS;
    let [left, right, sums] = [7, 8, 9].map(|seed| Matrices::new(layout, matrices, seed));
    let mut want = sums.elements.clone();
    for (at, want) in want.iter_mut().enumerate().take(matrices * n * n) {
        let kept = 2.0 * right.elements[at];
        let group = at / (n * n * SUBGROUPS);
        let a = if group > 1 { kept } else { left.elements[at] };
        *want = 3.0 * *want + a - kept;
    }
    let name = format!("{n}x{n} of {ty:?}");
    case(name, element_wise_source(n, ty), [&left, &right, &sums], &want)
        .needs_product(products_to(n, ty))
}

pub(crate) fn sums_and_multiples_of_elements(_: &DeviceInfo) -> Vec<Case> {
    [(8, Ty::F16), (8, Ty::F32), (16, Ty::F16), (16, Ty::F32)].map(element_wise).into()
}

/// A product in workgroups whose size is not a multiple of the subgroup's.
fn few_lanes_source(size: usize, ty: Ty) -> String {
    let layout = |ty| Layout { n: 16, ty, rows: true, start: 0, stride: 16, step: 256 };
    product_source(layout(ty), layout(ty), layout(Ty::F32)).replace("(64)", &format!("({size})"))
}

/// Elements of missing lanes count as zero, and are not stored. The kernel IR defines this; Vulkan
/// does not.
fn few_lanes(size: usize, ty: Ty) -> Case {
    let layout = |ty| Layout { n: 16, ty, rows: true, start: 0, stride: 16, step: 256 };
    let matrices = GROUPS * SUBGROUPS;
    let (left, right) =
        (Matrices::new(layout(ty), matrices, 1), Matrices::new(layout(ty), matrices, 2));
    let sums = Matrices::new(layout(Ty::F32), matrices, 3);
    let mut want = sums.elements.clone();
    for (matrix, row) in (0..matrices).flat_map(|m| (0..16).map(move |row| (m, row))) {
        let lanes = size.saturating_sub(matrix % SUBGROUPS * 32).min(32);
        // Four lanes hold a row of the left operand and a column of the right one, and those eight
        // further on.
        let held = |line: usize| line % 8 < lanes / 4;
        for column in (0..16).filter(|_| held(row)) {
            let at = |k| left.get(matrix, row, k) * right.get(matrix, k, column);
            let sum: f64 = (0..16).map(at).sum();
            want[sums.layout.at(matrix, row, column)] += if held(column) { sum } else { 0.0 };
        }
    }
    let source = few_lanes_source(size, ty);
    case(format!("{size} lanes, {ty:?}"), source, [&left, &right, &sums], &want)
}

pub(crate) fn missing_lanes_count_as_zero(gpu: &DeviceInfo) -> Vec<Case> {
    if gpu.backend == BackendKind::Vulkan {
        return vec![Case::skipped("", "Vulkan leaves this open")];
    }
    let cases = |ty| [4, 20, 32, 48, 60].map(move |size| few_lanes(size, ty));
    [Ty::F16, Ty::F32].into_iter().flat_map(cases).collect()
}

pub(crate) fn out_of_bounds_matrices_stay_inside(gpu: &DeviceInfo) -> Case {
    let source = format!(
        "{}
        @compute @workgroup_size(32) fn main() {{
            let a = coopLoad<coop_mat16x16<f32, A>>(&left[u32(left[0])], u32(left[1]));
            let b = coopLoadT<coop_mat16x16<f32, B>>(&right[4000000000u], 7u);
            let c = coopLoad<coop_mat16x16<f32, C>>(&sums[u32(left[2])], u32(left[3]));
            let d = coopMultiplyAdd(a, b, c);
            coopStore(d, &sums[u32(left[4])], u32(left[5]));
            coopStoreT(d, &sums[17], 3000000000u);
        }}",
        declarations(Ty::F32, Ty::F32)
    );
    let left = [5f32, 33.0, 4e9, 2e9, 90.0, 3.9e9].map(f32::to_bits);
    let one = vec![1f32.to_bits(); 100];
    guarded(gpu, String::new(), &source, &[&left, &one, &one])
        .needs_or_refused(NEEDS)
        .needs_product(MatrixProducts::F32_16X16)
}

pub(crate) fn rejects_invalid_matrix_products(_: &DeviceInfo) -> Vec<Case> {
    let source = |statements: &str| {
        format!(
            "{}
            var<workgroup> shelf: array<f32, 256>;
            @compute @workgroup_size(32) fn main() {{ {statements} }}",
            declarations(Ty::F16, Ty::F32)
        )
    };
    let product = |a: &str, b: &str| {
        source(&format!(
            "let d = coopMultiplyAdd({a}, {b}, coopLoad<coop_mat8x8<f32, C>>(&sums[0]));
            coopStore(d, &sums[0]);"
        ))
    };
    let a = "coopLoad<coop_mat8x8<f16, A>>(&left[0])";
    let sizes = product(a, "coopLoad<coop_mat16x16<f16, B>>(&right[0])");
    let types = product(a, "coopLoad<coop_mat8x8<f32, B>>(&shelf[0])");
    let own = source(
        "var own: array<f32, 64>; own[0] = sums[0];
        coopStore(coopLoad<coop_mat8x8<f32, C>>(&own[0]), &sums[0]);",
    );
    let shared = source("shared_one = coopLoad<coop_mat8x8<f32, C>>(&sums[0]);");
    let shared = shared + "var<workgroup> shared_one: coop_mat8x8<f32, C>;";
    let case = |name: &str, source: String, says: &str| {
        Case::new(name, source).needs_or_refused(NEEDS).refused(&[says])
    };
    vec![
        case("sizes", sizes, "one size"),
        case("types", types, "f16 and f32 to f32"),
        case("a variable's elements", own, "workgroup memory"),
        case("a shared matrix", shared, "workgroup memory"),
    ]
}
