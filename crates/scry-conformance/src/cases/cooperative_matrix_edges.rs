//! Cooperative matrices partly or wholly outside of their arrays. Elements outside are loaded as
//! zero and not stored, also where `start + line * stride` exceeds 32 bits. Elements are small
//! integers, so that all results are exact.

use scry_gpu::{DeviceInfo, Features, Launch};

use super::cooperative_matrices::{product_kind, product_kinds_with_accumulator};
use crate::Cases;
use crate::case::{Case, Data};
use crate::ty::Ty;

const NEEDS: Features = Features::COOPERATIVE_MATRIX.union(Features::F16);

/// Where a matrix begins in an array, and the stride of its lines, in elements.
#[derive(Debug, Clone, Copy)]
struct Placement {
    name: &'static str,
    start: u32,
    stride: u32,
}

/// Where an array is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// A runtime-sized array.
    Storage,
    /// An array in a storage buffer whose length is known at compile time.
    FixedStorage,
    /// Workgroup memory, whose length is known too.
    Workgroup,
}

/// How a kernel accesses its matrices.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Number of rows, and of columns.
    n: u32,
    ty: Ty,
    row_major: bool,
    memory: Memory,
    /// Whether start and stride are literals.
    literal: bool,
}

impl Shape {
    /// Returns the number of elements in the array.
    fn len(self) -> u32 {
        self.n * (self.n + 2)
    }

    fn placements(self) -> Vec<Placement> {
        let (n, len) = (self.n, self.len());
        // The last start at which a matrix with a stride of `n + 2` is inside.
        let last_fitting = len - ((n - 1) * (n + 2) + n);
        let placements = [
            ("inside", 0, n),
            ("last element inside", last_fitting, n + 2),
            ("last element outside", last_fitting + 1, n + 2),
            ("last lines outside", len - 3 * n - 1, n),
            ("last line partly outside", n + 3, n + 1),
            ("only first element inside", len - 1, n),
            ("entirely outside", len, n),
            ("far outside", 0x7fff_ffff, n),
            ("offset overflow", u32::MAX - n / 2, n),
            ("line overflow", u32::MAX - 2 * n, n),
            ("stride overflow", 2, 0x8000_0000),
            ("negative stride", n, u32::MAX),
            ("overlapping lines past the end", len - n, 1),
            ("stride of zero", 3, 0),
        ];
        let placements = placements.map(|(name, start, stride)| Placement { name, start, stride });
        // A literal index outside of an array of fixed length is a shader error.
        let is_fixed = self.memory != Memory::Storage;
        let is_error = |placement: &Placement| self.literal && is_fixed && placement.start >= len;
        placements.into_iter().filter(|placement| !is_error(placement)).collect()
    }

    /// Returns the index of an element in the array, or `None` if it is outside.
    fn index(self, placement: Placement, row: u32, column: u32) -> Option<usize> {
        let (line, offset) = if self.row_major { (row, column) } else { (column, row) };
        let at = u64::from(placement.start)
            + u64::from(line) * u64::from(placement.stride)
            + u64::from(offset);
        (at < u64::from(self.len())).then_some(at as usize)
    }

    /// Returns the arguments `&array[start], stride` of a matrix.
    fn arguments(self, placement: Placement) -> String {
        let array = match self.memory {
            Memory::Workgroup => "workgroup_data",
            Memory::Storage | Memory::FixedStorage => "elements",
        };
        match self.literal {
            true => format!("&{array}[{}u], {}u", placement.start, placement.stride),
            false => format!("&{array}[placement.x], placement.y"),
        }
    }

    /// Returns the suffix of the row-major variants of WGSL's functions.
    fn suffix(self) -> &'static str {
        if self.row_major { "T" } else { "" }
    }

    /// Returns a kernel with these statements. If the array is in workgroup memory, it is filled
    /// before them, and copied back after them unless `access` is `read`.
    fn kernel(self, access: &str, statements: &str) -> String {
        let Self { n, ty, memory, .. } = self;
        let (ty, len) = (ty.name(), self.len());
        let fixed = if memory == Memory::FixedStorage { format!(", {len}") } else { String::new() };
        let copy = |to: &str, from: &str| match memory {
            Memory::Workgroup => format!(
                "workgroupBarrier();
                for (var e = i; e < {len}u; e += 32u) {{ {to}[e] = {from}[e]; }}
                workgroupBarrier();"
            ),
            Memory::Storage | Memory::FixedStorage => String::new(),
        };
        let back =
            if access == "read" { String::new() } else { copy("elements", "workgroup_data") };
        format!(
            "enable f16; enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, {access}> elements: array<{ty}{fixed}>;
            @group(0) @binding(1) var<storage, read_write> matrices: array<{ty}>;
            @group(0) @binding(2) var<storage, read> placements: array<vec2<u32>>;
            @group(0) @binding(3) var<storage, read> identity: array<{ty}>;
            var<workgroup> workgroup_data: array<{ty}, {len}>;
            alias Accumulators = coop_mat{n}x{n}<{ty}, C>;
            @compute @workgroup_size(32)
            fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) i: u32) {{
                // The added words are zero. They make every kernel use both variables.
                let placement = placements[g.x] + vec2(u32(identity[1]), u32(workgroup_data[0]));
                {}
                {statements}
                {back}
            }}",
            copy("workgroup_data", "elements")
        )
    }

    fn case(self, name: &str, source: String, placements: &[Placement]) -> Case {
        let Self { n, ty, row_major, memory, literal } = self;
        let rows = if row_major { "row" } else { "column" };
        let space = match memory {
            Memory::Storage => "storage",
            Memory::FixedStorage => "fixed storage",
            Memory::Workgroup => "workgroup",
        };
        let index_kind = if literal { "literal" } else { "computed" };
        let name = format!("{name}, {n}x{n} of {ty:?}, {rows}-major, {space}, {index_kind}");
        let words: Vec<u32> =
            placements.iter().flat_map(|placement| [placement.start, placement.stride]).collect();
        let identity = (0..n * n).map(|at| u32::from(at % (n + 1) == 0));
        // `load` overwrites the matrices; `store`, which has one placement, reads its matrix here.
        let matrices = vec![ty.integer_bits(77); placements.len() * (n * n) as usize];
        let matrices = if placements.len() == 1 { self.values(n * n, 5) } else { matrices };
        Case::new(name, source)
            .buffer(Data::values(ty, &self.values(self.len(), 0)))
            .buffer(Data::values(ty, &matrices))
            .buffer(Data::words(&words))
            .buffer(Data::values(ty, &identity.map(|x| ty.integer_bits(x)).collect::<Vec<_>>()))
            .launch(Launch::workgroups([placements.len() as u32, 1, 1]))
            .rejected_without(NEEDS)
            .rejected_without_product(product_kinds_with_accumulator(n as usize, ty))
    }

    /// Returns small integers, none of which is zero.
    fn values(self, len: u32, seed: u32) -> Vec<u64> {
        (0..len).map(|at| self.ty.integer_bits((at * 7 + seed) % 13 + 1)).collect()
    }
}

/// Returns a case that loads a matrix at each placement, one per workgroup, and stores the whole
/// matrix in `matrices`. Operands are multiplied by the identity to become accumulators.
fn load(shape: Shape, role: char, placements: &[Placement]) -> Case {
    let Shape { n, ty, .. } = shape;
    let name = ty.name();
    let identity = |role| format!("coopLoadT<coop_mat{n}x{n}<{name}, {role}>>(&identity[0], {n}u)");
    let accumulators = match role {
        'A' => format!("coopMultiplyAdd(m, {}, Accumulators())", identity('B')),
        'B' => format!("coopMultiplyAdd({}, m, Accumulators())", identity('A')),
        _ => "m".to_owned(),
    };
    let statements = format!(
        "let m = coopLoad{}<coop_mat{n}x{n}<{name}, {role}>>({});
        coopStoreT({accumulators}, &matrices[g.x * {}u], {n}u);",
        shape.suffix(),
        shape.arguments(placements[0]),
        n * n
    );
    let elements = shape.values(shape.len(), 0);
    let mut want = Vec::new();
    for (placement, row) in
        placements.iter().flat_map(|placement| (0..n).map(move |row| (*placement, row)))
    {
        want.extend((0..n).map(|column| {
            shape.index(placement, row, column).map_or(ty.integer_bits(0), |at| elements[at])
        }));
    }
    let name = if placements.len() == 1 { placements[0].name } else { "all placements" };
    let case = shape
        .case(&format!("{name}, {role}"), shape.kernel("read", &statements), placements)
        .expect_values(1, ty, &want);
    match role {
        'C' => case,
        _ => case.rejected_without_product(product_kind(n as usize, ty, ty)),
    }
}

/// Returns a case that stores a matrix at a placement.
fn store(shape: Shape, placement: Placement) -> Case {
    let Shape { n, ty, .. } = shape;
    let statements = format!(
        "let m = coopLoadT<Accumulators>(&matrices[0], {n}u);
        coopStore{}(m, {});",
        shape.suffix(),
        shape.arguments(placement)
    );
    let matrix = shape.values(n * n, 5);
    let mut want = shape.values(shape.len(), 0);
    for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
        if let Some(at) = shape.index(placement, row, column) {
            want[at] = matrix[(row * n + column) as usize];
        }
    }
    shape
        .case(placement.name, shape.kernel("read_write", &statements), &[placement])
        .expect_values(0, ty, &want)
}

/// Returns every shape, with literal or with computed start and stride.
fn shapes(literal: bool) -> impl Iterator<Item = Shape> {
    let choices = |bits: u32| {
        let ty = if bits & 1 == 0 { Ty::F16 } else { Ty::F32 };
        let n = if bits & 2 == 0 { 8 } else { 16 };
        let memory = [Memory::Storage, Memory::FixedStorage, Memory::Workgroup][bits as usize / 8];
        (n, ty, bits & 4 == 0, memory)
    };
    (0..24).map(choices).map(move |(n, ty, row_major, memory)| Shape {
        n,
        ty,
        row_major,
        memory,
        literal,
    })
}

pub(crate) fn out_of_bounds_matrix_elements_load_zero(_: &DeviceInfo) -> Cases {
    let computed = shapes(false).flat_map(|shape| {
        ['A', 'B', 'C'].into_iter().map(move |role| load(shape, role, &shape.placements()))
    });
    // Each literal placement is a kernel of its own. Of the 8x8 shapes only the row-major ones.
    let literal = shapes(true).filter(|shape| shape.row_major || shape.n == 16);
    let literal = literal.flat_map(|shape| {
        shape.placements().into_iter().map(move |placement| load(shape, 'C', &[placement]))
    });
    Cases::new(computed.chain(literal))
}

pub(crate) fn out_of_bounds_matrix_stores_are_dropped(_: &DeviceInfo) -> Cases {
    let shapes = [false, true].into_iter().flat_map(shapes);
    // Half of the shapes, selected by parity, so that all pairs of choices occur.
    let shapes = shapes.filter(|shape| {
        let is_workgroup = shape.memory == Memory::Workgroup;
        let bits = [shape.row_major, is_workgroup, shape.literal, shape.n == 8];
        bits.into_iter().filter(|bit| *bit).count() % 2 == usize::from(shape.ty == Ty::F16)
    });
    Cases::new(shapes.flat_map(|shape| {
        // Where elements overlap, any of them may be stored last.
        let placements =
            shape.placements().into_iter().filter(move |placement| placement.stride >= shape.n);
        placements.map(move |placement| store(shape, placement))
    }))
}
