//! WGSL's memory layouts, and Rust structures with the same layout.

use scry_gpu::{Element, Launch};

use crate::harness::{assert_says, on_each_device, one_workgroup, refused, run_words, succeed};

/// Runs a kernel that copies from a structure to words; the structure's words are 0, 1, 2, ...
fn words_at(types: &str, ty: &str, words: u32, expressions: &[(&str, u32)]) {
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
    let want: Vec<u32> = expressions.iter().map(|(_, place)| *place).collect();
    let input: Vec<u32> = (0..words).collect();
    on_each_device(|gpu| {
        let got = run_words(gpu, &source, &[&input], want.len(), one_workgroup());
        assert_eq!(got, want, "{expressions:?}");
    });
}

#[test]
fn vec3_is_aligned_like_vec4() {
    let types = "struct S { a: u32, v: vec3<u32>, b: u32, w: vec3<u32>, p: vec2<u32>, c: u32 }";
    let places = [
        ("s.a", 0),
        ("s.v.x", 4),
        ("s.v.z", 6),
        ("s.b", 7),
        ("s.w.x", 8),
        ("s.p.x", 12),
        ("s.p.y", 13),
        ("s.c", 14),
    ];
    words_at(types, "S", 16, &places);
    let places = [("s[0].z", 2), ("s[1].x", 4), ("s[3].y", 13), ("arrayLength(&s)", 4)];
    words_at("", "array<vec3<u32>>", 16, &places);
}

#[test]
fn nested_arrays_and_structures() {
    let types = "
        struct Inner { x: u32, y: vec2<u32> }
        struct Outer {
            head: u32, inner: array<Inner, 2>, grid: array<array<vec3<u32>, 2>, 2>, tail: u32,
        }";
    let places = [
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
    words_at(types, "Outer", 32, &places);
    let places = [("s[1].inner[1].y.y", 41), ("s[1].tail", 60), ("arrayLength(&s)", 2)];
    words_at(types, "array<Outer>", 64, &places);
}

#[test]
fn attributes_move_members() {
    let types = "struct S {
        a: u32, @align(32) b: u32, @size(24) c: u32, d: u32,
        @align(16) @size(16) e: vec2<u32>, f: u32,
    }";
    let places = [("s.a", 0), ("s.b", 8), ("s.c", 9), ("s.d", 15), ("s.e.x", 16), ("s.f", 20)];
    words_at(types, "S", 24, &places);
}

/// WGSL: the alignment of a structure is the largest of its members', attributes included. A
/// compiler must apply it to nested structures, too, or reject the program.
#[test]
fn member_alignment_aligns_the_structure() {
    let source = "
        struct Inner { @align(64) x: u32 }
        struct S { x: u32, y: Inner }
        @group(0) @binding(0) var<storage, read> s: S;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() { out[0] = s.y.x; }";
    let input: Vec<u32> = (0..32).collect();
    on_each_device(|gpu| match gpu.compile(source) {
        Err(error) => assert_says(&error.to_string(), &["align", "64"]),
        Ok(_) => assert_eq!(run_words(gpu, source, &[&input], 1, one_workgroup()), [16]),
    });
}

#[test]
fn matrix_columns_have_vector_stride() {
    let types = "fn w(x: f32) -> u32 { return bitcast<u32>(x); }
        struct S { a: mat3x3<f32>, b: mat2x3<f32>, c: mat4x2<f32>, d: mat2x4<f32>, e: f32 }";
    let places = [
        ("w(s.a[0].x)", 0),
        ("w(s.a[1].x)", 4),
        ("w(s.a[2][1])", 9),
        ("w(s.b[1].z)", 18),
        ("w(s.c[1].x)", 22),
        ("w(s.c[3].y)", 27),
        ("w(s.d[1].w)", 35),
        ("w(s.e)", 36),
    ];
    // The words are small integers, that is, subnormal floats: loads and bitcasts preserve them.
    words_at(types, "S", 40, &places);
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
    velocity: [f32; 3],
    kind: u32,
    cells: [[i32; 2]; 2],
}

const PARTICLES: &str = "
    struct Particle {
        position: vec3<f32>,
        mass: f32,
        velocity: vec3<f32>,
        kind: u32,
        cells: array<vec2<i32>, 2>,
    }
    @group(0) @binding(0) var<storage, read> input: array<Particle>;
    @group(0) @binding(1) var<storage, read_write> output: array<Particle>;

    @compute @workgroup_size(4)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let n = arrayLength(&input);
        if id.x >= n { return; }
        var p = input[id.x];
        p.position += p.velocity * p.mass;
        p.kind += 100u;
        p.cells[1].x = -p.cells[0].y;
        output[n - 1u - id.x] = p;
    }";

fn particle(i: i32) -> Particle {
    let f = i as f32;
    Particle {
        position: [f, f + 0.25, f + 0.5],
        mass: 2.0,
        velocity: [1.0, 2.0, 3.0],
        kind: i as u32,
        cells: [[i, 2 * i], [3 * i, 4 * i]],
    }
}

#[test]
fn derived_structures_round_trip() {
    let before: Vec<Particle> = (0..11).map(particle).collect();
    let after = |p: &Particle| {
        let [x, y, z] = p.position;
        let [[a, b], [_, d]] = p.cells;
        Particle {
            position: [x + 2.0, y + 4.0, z + 6.0],
            kind: p.kind + 100,
            cells: [[a, b], [-b, d]],
            ..*p
        }
    };
    let want: Vec<Particle> = before.iter().rev().map(after).collect();
    on_each_device(|gpu| {
        let input = succeed(gpu.upload(&before));
        let output = succeed(gpu.alloc::<Particle>(before.len()));
        succeed(gpu.dispatch(PARTICLES, &[&input, &output], before.len()));
        assert_eq!(succeed(output.download()), want);
        assert_eq!(succeed(input.download()), before);
    });
}

/// Lacks WGSL's padding after a vec3: twelve bytes instead of sixteen.
#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Packed {
    position: [f32; 3],
    velocity: [f32; 3],
}

#[test]
fn missing_padding_error_names_field() {
    let source = "
        struct Body { position: vec3<f32>, velocity: vec3<f32> }
        @group(0) @binding(0) var<storage, read_write> bodies: array<Body>;
        @compute @workgroup_size(1)
        fn main() { bodies[0].velocity.x = 1.0; }";
    on_each_device(|gpu| {
        let body = Packed { position: [0.0; 3], velocity: [0.0; 3] };
        let bodies = succeed(gpu.upload(&[body; 4]));
        let text = refused(gpu.dispatch(source, &[&bodies], 1));
        assert_says(&text, &["bodies", "velocity", "12", "16"]);
    });
}

#[test]
fn scalars_bind_to_their_vectors_only() {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
        @group(0) @binding(1) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(1)
        fn main() { output[0] = u32(input[1].z); }";
    on_each_device(|gpu| {
        let floats = succeed(gpu.upload(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        let fours = succeed(gpu.upload(&[[0.0f32, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]));
        let words = succeed(gpu.upload(&[9u32; 8]));
        let signed = succeed(gpu.upload(&[9i32; 8]));
        for input in [&floats as &dyn scry_gpu::Binding, &fours] {
            succeed(gpu.dispatch(source, &[input, &words], 1));
            assert_eq!(succeed(words.download())[0], 6);
            succeed(words.fill(9));
        }
        let text = refused(gpu.dispatch(source, &[&words, &words], 1));
        assert_says(&text, &["input", "u32", "f32"]);
        let text = refused(gpu.dispatch(source, &[&floats, &floats], 1));
        assert_says(&text, &["output", "f32", "u32"]);
        let text = refused(gpu.dispatch(source, &[&floats, &signed], 1));
        assert_says(&text, &["output", "i32", "u32"]);
        assert_eq!(succeed(words.download()), [9; 8]);
    });
}

#[test]
fn vec3_arrays_need_padded_elements() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> v: array<vec3<f32>>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { v[id.x] = 2.0 * v[id.x]; }";
    on_each_device(|gpu| {
        let padded: Vec<[f32; 4]> = (0..3).map(|i| [i as f32, 1.0, 2.0, 77.0]).collect();
        let buffer = succeed(gpu.upload(&padded));
        succeed(gpu.run(&succeed(gpu.compile(source)), &[&buffer], Launch::workgroups([3, 1, 1])));
        let want: Vec<[f32; 4]> = (0..3).map(|i| [2.0 * i as f32, 2.0, 4.0, 77.0]).collect();
        // The fourth word is padding: a store of a vec3 preserves it.
        assert_eq!(succeed(buffer.download()), want);
        let packed = succeed(gpu.upload(&[[1.0f32; 3]; 4]));
        assert_says(&refused(gpu.dispatch(source, &[&packed], 1)), &["`v`", "12", "16"]);
    });
}
