//! Cooperative matrices partly or wholly outside of their arrays: elements outside read as zero and
//! are not stored, also where the product of row and stride, or the sum with the offset, exceeds
//! 32 bits. Elements are small integers, so that all results are exact.

use scry_gpu::{DeviceInfo, Features, Launch};

use super::cooperative_matrices::{product_of, products_to};
use crate::Cases;
use crate::case::{Case, Data};
use crate::ty::Ty;

const NEEDS: Features = Features::COOPERATIVE_MATRIX.union(Features::F16);

/// Where a matrix begins in an array, and its stride, in elements.
#[derive(Debug, Clone, Copy)]
struct Edge {
    name: &'static str,
    start: u32,
    stride: u32,
}

/// The memory of an array.
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
    /// Rows, and columns.
    n: u32,
    ty: Ty,
    row_major: bool,
    memory: Memory,
    /// Whether start and stride are literals.
    literal: bool,
}

impl Shape {
    /// Elements of the array.
    fn len(self) -> u32 {
        self.n * (self.n + 2)
    }

    fn edges(self) -> Vec<Edge> {
        let (n, len) = (self.n, self.len());
        let exact = len - ((n - 1) * (n + 2) + n);
        let edges = [
            ("inside", 0, n),
            ("last element inside", exact, n + 2),
            ("corner", exact + 1, n + 2),
            ("bottom", len - 3 * n - 1, n),
            ("bottom line", n + 3, n + 1),
            ("first element alone", len - 1, n),
            ("entirely outside", len, n),
            ("far outside", 0x7fff_ffff, n),
            ("offset overflow", u32::MAX - n / 2, n),
            ("line overflow", u32::MAX - 2 * n, n),
            ("stride overflow", 2, 0x8000_0000),
            ("negative stride", n, u32::MAX),
            ("right", len - n, 1),
            ("stride of zero", 3, 0),
        ];
        let edges = edges.map(|(name, start, stride)| Edge { name, start, stride });
        // A literal index outside of an array of known length is an error of the shader.
        let known = self.memory != Memory::Storage;
        let refused = |edge: &Edge| self.literal && known && edge.start >= len;
        edges.into_iter().filter(|edge| !refused(edge)).collect()
    }

    /// Returns the position of an element in the array if it is inside.
    fn position(self, edge: Edge, row: u32, column: u32) -> Option<usize> {
        let (line, along) = if self.row_major { (row, column) } else { (column, row) };
        let at =
            u64::from(edge.start) + u64::from(line) * u64::from(edge.stride) + u64::from(along);
        (at < u64::from(self.len())).then_some(at as usize)
    }

    /// Returns `array[start], stride` of the matrix at an edge.
    fn arguments(self, edge: Edge) -> String {
        let array = match self.memory {
            Memory::Workgroup => "shelf",
            Memory::Storage | Memory::FixedStorage => "elements",
        };
        match self.literal {
            true => format!("&{array}[{}u], {}u", edge.start, edge.stride),
            false => format!("&{array}[edge.x], edge.y"),
        }
    }

    fn suffix(self) -> &'static str {
        if self.row_major { "T" } else { "" }
    }

    /// Returns a kernel with these statements between copies to and from workgroup memory.
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
        let back = if access == "read" { String::new() } else { copy("elements", "shelf") };
        format!(
            "enable f16; enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, {access}> elements: array<{ty}{fixed}>;
            @group(0) @binding(1) var<storage, read_write> matrices: array<{ty}>;
            @group(0) @binding(2) var<storage, read> edges: array<vec2<u32>>;
            @group(0) @binding(3) var<storage, read> identity: array<{ty}>;
            var<workgroup> shelf: array<{ty}, {len}>;
            alias Sums = coop_mat{n}x{n}<{ty}, C>;
            @compute @workgroup_size(32)
            fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) i: u32) {{
                let edge = edges[g.x] + vec2(u32(identity[1]), u32(shelf[0]));
                {}
                {statements}
                {back}
            }}",
            copy("shelf", "elements")
        )
    }

    fn case(self, name: &str, source: String, edges: &[Edge]) -> Case {
        let Self { n, ty, row_major, memory, literal } = self;
        let rows = if row_major { "row" } else { "column" };
        let space = match memory {
            Memory::Storage => "storage",
            Memory::FixedStorage => "fixed storage",
            Memory::Workgroup => "workgroup",
        };
        let known = if literal { "literal" } else { "computed" };
        let name = format!("{name}, {n}x{n} of {ty:?}, {rows}-major, {space}, {known}");
        let words: Vec<u32> = edges.iter().flat_map(|edge| [edge.start, edge.stride]).collect();
        let identity = (0..n * n).map(|at| u32::from(at % (n + 1) == 0));
        let matrices = vec![ty.whole(77); edges.len() * (n * n) as usize];
        let matrices = if edges.len() == 1 { self.values(n * n, 5) } else { matrices };
        Case::new(name, source)
            .buffer(Data::values(ty, &self.values(self.len(), 0)))
            .buffer(Data::values(ty, &matrices))
            .buffer(Data::words(&words))
            .buffer(Data::values(ty, &identity.map(|x| ty.whole(x)).collect::<Vec<_>>()))
            .launch(Launch::workgroups([edges.len() as u32, 1, 1]))
            .needs_or_refused(NEEDS)
            .needs_product(products_to(n as usize, ty))
    }

    /// Returns small integers, none of which is zero.
    fn values(self, len: u32, seed: u32) -> Vec<u64> {
        (0..len).map(|at| self.ty.whole((at * 7 + seed) % 13 + 1)).collect()
    }
}

/// Loads a matrix at each edge, one a workgroup, and stores it as a whole.
fn load(shape: Shape, role: char, edges: &[Edge]) -> Case {
    let Shape { n, ty, .. } = shape;
    let name = ty.name();
    let whole = |role| format!("coopLoadT<coop_mat{n}x{n}<{name}, {role}>>(&identity[0], {n}u)");
    let sums = match role {
        'A' => format!("coopMultiplyAdd(m, {}, Sums())", whole('B')),
        'B' => format!("coopMultiplyAdd({}, m, Sums())", whole('A')),
        _ => "m".to_owned(),
    };
    let statements = format!(
        "let m = coopLoad{}<coop_mat{n}x{n}<{name}, {role}>>({});
        coopStoreT({sums}, &matrices[g.x * {}u], {n}u);",
        shape.suffix(),
        shape.arguments(edges[0]),
        n * n
    );
    let elements = shape.values(shape.len(), 0);
    let mut want = Vec::new();
    for (edge, row) in edges.iter().flat_map(|edge| (0..n).map(move |row| (*edge, row))) {
        want.extend((0..n).map(|column| {
            shape.position(edge, row, column).map_or(ty.whole(0), |at| elements[at])
        }));
    }
    let name = if edges.len() == 1 { edges[0].name } else { "all edges" };
    let case = shape
        .case(&format!("{name}, {role}"), shape.kernel("read", &statements), edges)
        .expect_values(1, ty, &want);
    match role {
        'C' => case,
        _ => case.needs_product(product_of(n as usize, ty, ty)),
    }
}

/// Stores a matrix at an edge.
fn store(shape: Shape, edge: Edge) -> Case {
    let Shape { n, ty, .. } = shape;
    let statements = format!(
        "let m = coopLoadT<Sums>(&matrices[0], {n}u);
        coopStore{}(m, {});",
        shape.suffix(),
        shape.arguments(edge)
    );
    let matrix = shape.values(n * n, 5);
    let mut want = shape.values(shape.len(), 0);
    for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
        if let Some(at) = shape.position(edge, row, column) {
            want[at] = matrix[(row * n + column) as usize];
        }
    }
    shape
        .case(edge.name, shape.kernel("read_write", &statements), &[edge])
        .expect_values(0, ty, &want)
}

/// Every shape with literals or with computed starts.
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

pub(crate) fn matrix_elements_outside_read_zero(_: &DeviceInfo) -> Cases {
    let computed = shapes(false).flat_map(|shape| {
        ['A', 'B', 'C'].into_iter().map(move |role| load(shape, role, &shape.edges()))
    });
    let literal = shapes(true).filter(|shape| shape.row_major == (shape.n == 8) || shape.n == 16);
    let literal = literal
        .flat_map(|shape| shape.edges().into_iter().map(move |edge| load(shape, 'C', &[edge])));
    Cases::new(computed.chain(literal))
}

pub(crate) fn matrix_elements_outside_stay(_: &DeviceInfo) -> Cases {
    let shapes = [false, true].into_iter().flat_map(shapes);
    // Only half of the shapes, in which each choice meets each other one.
    let shapes = shapes.filter(|shape| {
        let is_workgroup = shape.memory == Memory::Workgroup;
        let bits = [shape.row_major, is_workgroup, shape.literal, shape.n == 8];
        bits.into_iter().filter(|bit| *bit).count() % 2 == usize::from(shape.ty == Ty::F16)
    });
    Cases::new(shapes.flat_map(|shape| {
        // Where elements overlap, any of them may be stored last.
        let edges = shape.edges().into_iter().filter(move |edge| edge.stride >= shape.n);
        edges.map(move |edge| store(shape, edge))
    }))
}
