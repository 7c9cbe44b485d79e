//! WGSL's memory layouts.

use scry_gpu::DeviceInfo;

use crate::case::{Case, Failure};

/// Creates a case that evaluates expressions over `s`, a buffer of type `ty` whose word `i` is `i`.
/// So the expected value of a member is its offset in words.
fn member_offsets(types: &str, ty: &str, words: u32, expressions: &[(&str, u32)]) -> Case {
    let stores: Vec<String> = expressions
        .iter()
        .enumerate()
        .map(|(i, (expression, _))| format!("out[{i}] = {expression};"))
        .collect();
    let source = format!(
        "{types}
        @group(0) @binding(0) var<storage, read> s: {ty};
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {{ {} }}",
        stores.join("\n")
    );
    let want: Vec<u32> = expressions.iter().map(|(_, word)| *word).collect();
    let input: Vec<u32> = (0..words).collect();
    Case::new(ty, source).words(&[&input]).output(want).one_workgroup()
}

pub(crate) fn vec3_is_aligned_like_vec4(_: &DeviceInfo) -> Vec<Case> {
    let types = "struct S { a: u32, v: vec3<u32>, b: u32, w: vec3<u32>, p: vec2<u32>, c: u32 }";
    let members = [
        ("s.a", 0),
        ("s.v.x", 4),
        ("s.v.z", 6),
        ("s.b", 7),
        ("s.w.x", 8),
        ("s.p.x", 12),
        ("s.p.y", 13),
        ("s.c", 14),
    ];
    let first = member_offsets(types, "S", 16, &members);
    let members = [("s[0].z", 2), ("s[1].x", 4), ("s[3].y", 13), ("arrayLength(&s)", 4)];
    vec![first, member_offsets("", "array<vec3<u32>>", 16, &members)]
}

pub(crate) fn nested_arrays_and_structures(_: &DeviceInfo) -> Vec<Case> {
    let types = "
        struct Inner { x: u32, y: vec2<u32> }
        struct Outer {
            head: u32, inner: array<Inner, 2>, grid: array<array<vec3<u32>, 2>, 2>, tail: u32,
        }";
    let members = [
        ("s.head", 0),
        ("s.inner[0].x", 2),
        ("s.inner[0].y.x", 4),
        ("s.inner[1].x", 6),
        ("s.inner[1].y.y", 9),
        ("s.grid[0][0].x", 12),
        ("s.grid[0][1].z", 18),
        ("s.grid[1][0].y", 21),
        ("s.grid[1][1].x", 24),
        ("s.tail", 28),
    ];
    let first = member_offsets(types, "Outer", 32, &members);
    let members = [("s[1].inner[1].y.y", 41), ("s[1].tail", 60), ("arrayLength(&s)", 2)];
    vec![first, member_offsets(types, "array<Outer>", 64, &members)]
}

pub(crate) fn attributes_move_members(_: &DeviceInfo) -> Case {
    let types = "struct S {
        a: u32, @align(32) b: u32, @size(24) c: u32, d: u32,
        @align(16) @size(16) e: vec2<u32>, f: u32,
    }";
    let members = [("s.a", 0), ("s.b", 8), ("s.c", 9), ("s.d", 15), ("s.e.x", 16), ("s.f", 20)];
    member_offsets(types, "S", 24, &members)
}

/// WGSL: a structure is aligned as its most strictly aligned member, `@align` included. A compiler
/// must apply this to nested structures, too, or reject the program.
pub(crate) fn member_alignment_aligns_the_structure(_: &DeviceInfo) -> Case {
    let source = "
        struct Inner { @align(64) x: u32 }
        struct S { x: u32, y: Inner }
        @group(0) @binding(0) var<storage, read> s: S;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() { out[0] = s.y.x; }";
    let input: Vec<u32> = (0..32).collect();
    let mut case = Case::new("", source).words(&[&input]).output(vec![16]).one_workgroup();
    case.failure = Failure::Allowed(["align", "64"].map(str::to_owned).into());
    case
}

pub(crate) fn matrix_columns_have_vector_stride(_: &DeviceInfo) -> Case {
    let types = "fn w(x: f32) -> u32 { return bitcast<u32>(x); }
        struct S { a: mat3x3<f32>, b: mat2x3<f32>, c: mat4x2<f32>, d: mat2x4<f32>, e: f32 }";
    let members = [
        ("w(s.a[0].x)", 0),
        ("w(s.a[1].x)", 4),
        ("w(s.a[2][1])", 9),
        ("w(s.b[1].z)", 18),
        ("w(s.c[1].x)", 22),
        ("w(s.c[3].y)", 27),
        ("w(s.d[1].w)", 35),
        ("w(s.e)", 36),
    ];
    // The words are small integers, which as floats are subnormal. Loads and bitcasts preserve
    // them.
    member_offsets(types, "S", 40, &members)
}
