//! Tests of Rust structures with WGSL's memory layouts.

use scry_gpu::{Element, Launch};
use scry_test_support::{on_each_device, succeed};

use crate::harness::{assert_contains, expect_error};

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
    let expected: Vec<Particle> = before.iter().rev().map(after).collect();
    on_each_device(|gpu| {
        let input = succeed(gpu.upload(&before));
        let output = succeed(gpu.alloc::<Particle>(before.len()));
        succeed(gpu.dispatch(PARTICLES, &[&input, &output], before.len()));
        assert_eq!(succeed(output.download()), expected);
        assert_eq!(succeed(input.download()), before);
    });
}

/// Without WGSL's padding after a vec3: `velocity` is at byte 12 instead of 16.
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
        let text = expect_error(gpu.dispatch(source, &[&bodies], 1));
        assert_contains(&text, &["bodies", "velocity", "12", "16"]);
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
        let text = expect_error(gpu.dispatch(source, &[&words, &words], 1));
        assert_contains(&text, &["input", "u32", "f32"]);
        let text = expect_error(gpu.dispatch(source, &[&floats, &floats], 1));
        assert_contains(&text, &["output", "f32", "u32"]);
        let text = expect_error(gpu.dispatch(source, &[&floats, &signed], 1));
        assert_contains(&text, &["output", "i32", "u32"]);
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
        let expected: Vec<[f32; 4]> = (0..3).map(|i| [2.0 * i as f32, 2.0, 4.0, 77.0]).collect();
        // The fourth word is padding: a store of a vec3 preserves it.
        assert_eq!(succeed(buffer.download()), expected);
        let packed = succeed(gpu.upload(&[[1.0f32; 3]; 4]));
        assert_contains(&expect_error(gpu.dispatch(source, &[&packed], 1)), &["`v`", "12", "16"]);
    });
}
