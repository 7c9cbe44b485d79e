//! Cooperative matrices: products, sums and multiples of matrices distributed over subgroups,
//! loaded and stored in row- and column-major layout at any offset in storage and workgroup memory.
//! Elements are small integers, so that all results are exact.

use scry_gpu::{BackendKind, DeviceInfo, Features, Launch, MatrixProducts};

use crate::Cases;
use crate::case::{Case, Data, ExpectedValue};
use crate::guarded::guarded;
use crate::ty::Ty;

/// The features of every kernel here; errors on devices without them name those that are missing.
const NEEDS: Features = Features::COOPERATIVE_MATRIX.union(Features::F16);

/// Returns the kind of product of `n`×`n` matrices with these types of operands and accumulators.
pub(super) fn product_kind(n: usize, operand: Ty, accumulator: Ty) -> MatrixProducts {
    match (n, operand, accumulator) {
        (8, Ty::F16, Ty::F16) => MatrixProducts::F16_8X8,
        (8, Ty::F16, _) => MatrixProducts::F16_F32_8X8,
        (8, ..) => MatrixProducts::F32_8X8,
        (_, Ty::F16, Ty::F16) => MatrixProducts::F16_16X16,
        (_, Ty::F16, _) => MatrixProducts::F16_F32_16X16,
        _ => MatrixProducts::F32_16X16,
    }
}

/// Returns all kinds of products of `n`×`n` matrices with this type of accumulators.
pub(super) fn product_kinds_with_accumulator(n: usize, accumulator: Ty) -> MatrixProducts {
    TYPES
        .into_iter()
        .filter(|(_, ty)| *ty == accumulator)
        .map(|(operand, accumulator)| product_kind(n, operand, accumulator))
        .collect()
}

/// The layout of consecutive matrices in memory.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Number of rows, and of columns.
    n: usize,
    ty: Ty,
    /// Whether the layout is row-major.
    row_major: bool,
    /// Index of the first element.
    start: usize,
    /// Leading dimension, in elements.
    stride: usize,
    /// Elements from the start of one matrix to that of the next.
    matrix_stride: usize,
}

impl Layout {
    /// Returns the index of an element of a matrix.
    fn index(&self, matrix: usize, row: usize, column: usize) -> usize {
        let (line, offset) = if self.row_major { (row, column) } else { (column, row) };
        self.start + matrix * self.matrix_stride + line * self.stride + offset
    }

    /// Returns the arguments `&array[…], stride` for the matrix whose number is the WGSL expression
    /// `which`.
    fn arguments(&self, array: &str, which: &str) -> String {
        format!("&{array}[{}u + ({which}) * {}u], {}u", self.start, self.matrix_stride, self.stride)
    }

    /// Returns the suffix of the row-major variants of WGSL's functions.
    fn suffix(&self) -> &'static str {
        if self.row_major { "T" } else { "" }
    }

    fn load(&self, role: char, array: &str, which: &str) -> String {
        let (n, ty, arguments) = (self.n, self.ty.name(), self.arguments(array, which));
        format!("coopLoad{}<coop_mat{n}x{n}<{ty}, {role}>>({arguments})", self.suffix())
    }

    fn store(&self, value: &str, array: &str, which: &str) -> String {
        format!("coopStore{}({value}, {});", self.suffix(), self.arguments(array, which))
    }

    /// Returns the length of an array of this many matrices, with three elements after them, which
    /// must stay unchanged.
    fn len(&self, matrices: usize) -> usize {
        let last = self.index(matrices - 1, self.n - 1, self.n - 1);
        last + 1 + 3
    }
}

/// Consecutive matrices in memory. The gaps around them contain small integers as well, which must
/// stay unchanged.
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
        self.elements[self.layout.index(matrix, row, column)]
    }

    fn data(&self) -> Data {
        let ty = self.layout.ty;
        let bits: Vec<u64> = self.elements.iter().map(|x| ty.nearest(*x)).collect();
        Data::values(ty, &bits)
    }
}

const DIRECTIVES: &str = "enable f16; enable wgpu_cooperative_matrix;";

fn declarations(operand: Ty, accumulator: Ty) -> String {
    format!(
        "{DIRECTIVES}
        @group(0) @binding(0) var<storage, read> left: array<{}>;
        @group(0) @binding(1) var<storage, read> right: array<{}>;
        @group(0) @binding(2) var<storage, read_write> accumulators: array<{}>;",
        operand.name(),
        operand.name(),
        accumulator.name()
    )
}

/// Types of operands and accumulators.
const TYPES: [(Ty, Ty); 3] = [(Ty::F16, Ty::F16), (Ty::F16, Ty::F32), (Ty::F32, Ty::F32)];

/// The binding of `accumulators` in [`declarations`].
const ACCUMULATORS_BINDING: usize = 2;

/// Number of workgroups in a launch, and of subgroups in each.
const GROUPS: usize = 3;
const SUBGROUPS: usize = 2;

/// Creates a case of a kernel on left and right operands and accumulators, with the expected
/// contents of the accumulators.
fn case(name: String, source: String, data: [&Matrices; 3], want: &[f64]) -> Case {
    let expected = want.iter().map(|want| ExpectedValue::Number(*want)).collect();
    data.into_iter()
        .fold(Case::new(name, source), |case, matrices| case.buffer(matrices.data()))
        .launch(Launch::workgroups([GROUPS as u32, 1, 1]))
        .rejected_without(NEEDS)
        .expect_approx(ACCUMULATORS_BINDING, data[2].layout.ty, expected, |at| {
            format!("element {at}")
        })
}

/// Returns a kernel in which each subgroup multiplies two matrices and adds a third.
fn product_source(left: Layout, right: Layout, accumulators: Layout) -> String {
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
        declarations(left.ty, accumulators.ty),
        left.load('A', "left", "at"),
        right.load('B', "right", "at"),
        accumulators.load('C', "accumulators", "at"),
        accumulators.store("d", "accumulators", "at"),
    )
}

fn product(n: usize, (operand, accumulator): (Ty, Ty), row_major: [bool; 3]) -> Case {
    let matrices = GROUPS * SUBGROUPS;
    let layout = |ty, row_major, start, stride: usize| Layout {
        n,
        ty,
        row_major,
        start,
        stride,
        matrix_stride: n * stride + 5,
    };
    let data = [
        Matrices::new(layout(operand, row_major[0], 3, n + 1), matrices, 1),
        Matrices::new(layout(operand, row_major[1], 0, n), matrices, 2),
        Matrices::new(layout(accumulator, row_major[2], 7, 2 * n + 3), matrices, 3),
    ];
    let [left, right, accumulators] = &data;
    let mut want = accumulators.elements.clone();
    for matrix in 0..matrices {
        for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let at = |k| left.get(matrix, row, k) * right.get(matrix, k, column);
            want[accumulators.layout.index(matrix, row, column)] += (0..n).map(at).sum::<f64>();
        }
    }
    let source = product_source(left.layout, right.layout, accumulators.layout);
    let name = format!("{n}x{n} of {operand:?} to {accumulator:?}, row-major {row_major:?}");
    case(name, source, [left, right, accumulators], &want).rejected_without_product(product_kind(
        n,
        operand,
        accumulator,
    ))
}

pub(crate) fn products_in_every_type_and_layout(_: &DeviceInfo) -> Cases {
    let kinds = [8, 16].into_iter().flat_map(|n| TYPES.map(|types| (n, types)));
    Cases::new(kinds.flat_map(|(n, types)| {
        let row_major = |bits: u32| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
        (0..8).map(move |bits| product(n, types, row_major(bits)))
    }))
}

/// Number of rows and columns of the matrices that are multiplied tile by tile.
const LARGE: usize = 64;

/// Each workgroup computes 16 rows of the product, which are four tiles; each subgroup computes two
/// of them.
const TILED: &str = "
    var<workgroup> workgroup_data: array<OPERAND, 16 * 16>;
    alias Tile = coop_mat16x16<ACCUMULATOR, C>;

    fn multiply(a: coop_mat16x16<OPERAND, A>, k: u32, column: u32, sum: Tile) -> Tile {
        let b = coopLoad<coop_mat16x16<OPERAND, B>>(&right[column * 64u + k], 64u);
        return coopMultiplyAdd(a, b, sum);
    }

    @compute @workgroup_size(64)
    fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_id) s: u32,
            @builtin(local_invocation_index) i: u32) {
        var tiles: array<Tile, 2>;
        for (var k = 0u; k < 64u; k += 16u) {
            workgroupBarrier();
            for (var e = i; e < 256u; e += 64u) {
                workgroup_data[e] = left[(g.x * 16u + e / 16u) * 64u + k + e % 16u];
            }
            workgroupBarrier();
            let a = coopLoadT<coop_mat16x16<OPERAND, A>>(&workgroup_data[0]);
            for (var t = 0u; t < 2u; t++) {
                tiles[t] = multiply(a, k, (s * 2u + t) * 16u, tiles[t]);
            }
        }
        for (var t = 0u; t < 2u; t++) {
            coopStoreT(tiles[t], &accumulators[g.x * 1024u + (s * 2u + t) * 16u], 64u);
        }
    }";

fn tiled((operand, accumulator): (Ty, Ty)) -> Case {
    let layout = |ty, row_major| Layout {
        n: LARGE,
        ty,
        row_major,
        start: 0,
        stride: LARGE,
        matrix_stride: LARGE * LARGE,
    };
    let (left, right) =
        (Matrices::new(layout(operand, true), 1, 4), Matrices::new(layout(operand, false), 1, 5));
    let accumulators = Matrices::new(layout(accumulator, true), 1, 6);
    let mut want = accumulators.elements.clone();
    // Rows without a workgroup stay unchanged.
    for row in 0..16 * GROUPS {
        for column in 0..LARGE {
            let at = |k| left.get(0, row, k) * right.get(0, k, column);
            want[accumulators.layout.index(0, row, column)] = (0..LARGE).map(at).sum();
        }
    }
    let source = declarations(operand, accumulator) + TILED;
    let source =
        source.replace("OPERAND", &operand.name()).replace("ACCUMULATOR", &accumulator.name());
    let name = format!("{operand:?} to {accumulator:?}");
    case(name, source, [&left, &right, &accumulators], &want)
        .rejected_without_product(product_kind(16, operand, accumulator))
}

pub(crate) fn tiles_of_large_matrices(_: &DeviceInfo) -> Vec<Case> {
    TYPES.map(tiled).into()
}

/// Returns a kernel that computes `3 * accumulators + a - 2 * right` per component, where `a` is
/// `left`, or `2 * right` in the last workgroup.
fn component_wise_source(n: usize, ty: Ty) -> String {
    let layout = Layout { n, ty, row_major: true, start: 0, stride: n, matrix_stride: n * n };
    let load = |array: &str| layout.load('C', array, "at");
    let (left, right, accumulators) = (load("left"), load("right"), load("accumulators"));
    let (declarations, store) = (declarations(ty, ty), layout.store("b", "accumulators", "at"));
    let ty = ty.name();
    format!(
        "{declarations}
        alias Matrix = coop_mat{n}x{n}<{ty}, C>;
        var<private> doubled: Matrix;
        @compute @workgroup_size(64)
        fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_id) s: u32) {{
            let at = g.x * {SUBGROUPS}u + s;
            var a = {left};
            doubled = {right} * {ty}(2) - Matrix();
            if g.x > 1u {{ a = doubled; }}
            let b = {ty}(3) * {accumulators} + a - doubled;
            {store}
        }}"
    )
}

fn component_wise((n, ty): (usize, Ty)) -> Case {
    let layout = Layout { n, ty, row_major: true, start: 0, stride: n, matrix_stride: n * n };
    let matrices = GROUPS * SUBGROUPS;
    let [left, right, accumulators] = [7, 8, 9].map(|seed| Matrices::new(layout, matrices, seed));
    let mut want = accumulators.elements.clone();
    for (at, want) in want.iter_mut().enumerate().take(matrices * n * n) {
        let doubled = 2.0 * right.elements[at];
        let group = at / (n * n * SUBGROUPS);
        let a = if group > 1 { doubled } else { left.elements[at] };
        *want = 3.0 * *want + a - doubled;
    }
    let name = format!("{n}x{n} of {ty:?}");
    case(name, component_wise_source(n, ty), [&left, &right, &accumulators], &want)
        .rejected_without_product(product_kinds_with_accumulator(n, ty))
}

pub(crate) fn component_wise_arithmetic(_: &DeviceInfo) -> Vec<Case> {
    [(8, Ty::F16), (8, Ty::F32), (16, Ty::F16), (16, Ty::F32)].map(component_wise).into()
}

/// Returns a product in workgroups of `size` invocations: too few for [`SUBGROUPS`] full subgroups.
fn few_lanes_source(size: usize, ty: Ty) -> String {
    let layout =
        |ty| Layout { n: 16, ty, row_major: true, start: 0, stride: 16, matrix_stride: 256 };
    product_source(layout(ty), layout(ty), layout(Ty::F32)).replace("(64)", &format!("({size})"))
}

/// Elements that missing lanes would hold are zero, and are not stored. The kernel IR defines this;
/// Vulkan does not.
fn few_lanes(size: usize, ty: Ty) -> Case {
    let layout =
        |ty| Layout { n: 16, ty, row_major: true, start: 0, stride: 16, matrix_stride: 256 };
    let matrices = GROUPS * SUBGROUPS;
    let (left, right) =
        (Matrices::new(layout(ty), matrices, 1), Matrices::new(layout(ty), matrices, 2));
    let accumulators = Matrices::new(layout(Ty::F32), matrices, 3);
    let mut want = accumulators.elements.clone();
    for matrix in 0..matrices {
        let lanes = size.saturating_sub(matrix % SUBGROUPS * 32).min(32);
        // Four lanes hold each row of the left operand and each column of the right one; the same
        // four hold lines `i` and `i + 8`.
        let is_held = |line: usize| line % 8 < lanes / 4;
        for (row, column) in (0..16).flat_map(|row| (0..16).map(move |column| (row, column))) {
            if is_held(row) && is_held(column) {
                let at = |k| left.get(matrix, row, k) * right.get(matrix, k, column);
                want[accumulators.layout.index(matrix, row, column)] +=
                    (0..16).map(at).sum::<f64>();
            }
        }
    }
    let source = few_lanes_source(size, ty);
    case(format!("{size} lanes, {ty:?}"), source, [&left, &right, &accumulators], &want)
}

pub(crate) fn missing_lanes_count_as_zero(gpu: &DeviceInfo) -> Vec<Case> {
    if gpu.backend == BackendKind::Vulkan {
        return vec![Case::skipped("", "Vulkan leaves this open")];
    }
    let cases = |ty| [4, 20, 32, 48, 60].map(move |size| few_lanes(size, ty));
    [Ty::F16, Ty::F32].into_iter().flat_map(cases).collect()
}

pub(crate) fn out_of_bounds_accesses_stay_in_buffers(gpu: &DeviceInfo) -> Case {
    let source = format!(
        "{}
        @compute @workgroup_size(32) fn main() {{
            let a = coopLoad<coop_mat16x16<f32, A>>(&left[u32(left[0])], u32(left[1]));
            let b = coopLoadT<coop_mat16x16<f32, B>>(&right[4000000000u], 7u);
            let c = coopLoad<coop_mat16x16<f32, C>>(&accumulators[u32(left[2])], u32(left[3]));
            let d = coopMultiplyAdd(a, b, c);
            coopStore(d, &accumulators[u32(left[4])], u32(left[5]));
            coopStoreT(d, &accumulators[17], 3000000000u);
        }}",
        declarations(Ty::F32, Ty::F32)
    );
    let left = [5f32, 33.0, 4e9, 2e9, 90.0, 3.9e9].map(f32::to_bits);
    let one = vec![1f32.to_bits(); 100];
    guarded(gpu, String::new(), &source, &[&left, &one, &one])
        .rejected_without(NEEDS)
        .rejected_without_product(MatrixProducts::F32_16X16)
}

pub(crate) fn rejects_invalid_matrix_products(_: &DeviceInfo) -> Vec<Case> {
    let source = |statements: &str| {
        format!(
            "{}
            var<workgroup> workgroup_data: array<f32, 256>;
            @compute @workgroup_size(32) fn main() {{ {statements} }}",
            declarations(Ty::F16, Ty::F32)
        )
    };
    let product = |a: &str, b: &str| {
        source(&format!(
            "let d = coopMultiplyAdd({a}, {b}, coopLoad<coop_mat8x8<f32, C>>(&accumulators[0]));
            coopStore(d, &accumulators[0]);"
        ))
    };
    let a = "coopLoad<coop_mat8x8<f16, A>>(&left[0])";
    let sizes = product(a, "coopLoad<coop_mat16x16<f16, B>>(&right[0])");
    let types = product(a, "coopLoad<coop_mat8x8<f32, B>>(&workgroup_data[0])");
    let local = source(
        "var local: array<f32, 64>; local[0] = accumulators[0];
        coopStore(coopLoad<coop_mat8x8<f32, C>>(&local[0]), &accumulators[0]);",
    );
    let shared = source("shared_one = coopLoad<coop_mat8x8<f32, C>>(&accumulators[0]);");
    let shared = shared + "var<workgroup> shared_one: coop_mat8x8<f32, C>;";
    let case = |name: &str, source: String, part: &str| {
        Case::new(name, source).rejected_without(NEEDS).expect_error(&[part])
    };
    vec![
        case("sizes", sizes, "the same size"),
        case("types", types, "(f16, f32, f32)"),
        case("a variable's elements", local, "workgroup memory"),
        case("a shared matrix", shared, "workgroup memory"),
    ]
}
