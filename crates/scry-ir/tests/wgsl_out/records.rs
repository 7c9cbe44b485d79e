//! Tests of storage buffers whose elements are structures, and of local arrays, as emitted.

use crate::support::{Launch, emitted_matches_source, parse, round_trip};

const PARTICLES: &str = "
    struct Particle { position: vec3<f32>, mass: f32, velocity: vec3<f32>, tag: u32 }
    @group(0) @binding(0) var<storage, read_write> particles: array<Particle>;";

/// Emits a kernel with this body, which may use `particles` and its index `i`.
fn emit(body: &str) -> String {
    emit_source(&format!(
        "{PARTICLES}
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let i = id.x;
             {body}
         }}"
    ))
}

/// Emits a kernel, and checks that the text computes what the source does.
fn emit_source(source: &str) -> String {
    let program = parse(source);
    let words = (0..1024u32).flat_map(|word| (word % 7).to_le_bytes());
    let launch = Launch {
        source: source.to_owned(),
        buffers: vec![words.collect(); program.interface().bindings.len()],
        immediates: Vec::new(),
        groups: [2, 1, 1],
        subgroup_size: 4,
    };
    assert!(emitted_matches_source(&launch));
    round_trip(&program, source).0
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn structures_with_vectors_are_kept() {
    let text = emit(
        "if i >= arrayLength(&particles) { return; }
         var p = particles[i];
         p.position += p.velocity * p.mass;
         p.tag += 1u;
         particles[i] = p;",
    );
    let types = ["struct Particle {", "    position: vec3<f32>,", "particles: array<Particle>;"];
    assert_contains(&text, &types);
    assert_contains(&text, &[" = arrayLength(&particles);", "].velocity;", "].tag;"]);
    assert_eq!(text.matches("].position = vec3<f32>(").count(), 1, "{text}");
    assert!(!text.contains("bitcast"), "{text}");
}

#[test]
fn vectors_stored_in_parts_are_split() {
    let text = emit("particles[i].velocity.y = particles[i].position.x;");
    assert_contains(&text, &["position: vec3<f32>,", "velocity_x: f32,", "velocity_z: f32,"]);
    assert_contains(&text, &["].velocity_y = "]);
    let all_split = emit("particles[i].velocity.y = 1.0; particles[i].position.x = 2.0;");
    assert_contains(&all_split, &["particles: array<u32>; // at least 32 bytes"]);
}

#[test]
fn fixed_elements_of_records_are_direct() {
    let text = emit("particles[2].position = particles[0].velocity;");
    assert_contains(&text, &["].position = vec3<f32>(", "particles[", "].velocity;"]);
}

#[test]
fn indexed_parts_of_records_are_flat() {
    let text = emit_source(
        "struct S { v: vec3<f32>, w: array<f32, 4> }
         @group(0) @binding(0) var<storage, read_write> s: array<S>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             s[id.x].v = vec3<f32>(s[id.x].w[id.x & 3u]);
         }",
    );
    assert_contains(&text, &["s: array<f32>; // at least 32 bytes"]);
}

#[test]
fn atomics_in_records_are_flat() {
    let text = emit_source(
        "struct S { v: vec3<f32>, count: atomic<u32> }
         @group(0) @binding(0) var<storage, read_write> s: array<S>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             s[id.x].v = vec3<f32>(f32(atomicAdd(&s[0].count, 1u)));
         }",
    );
    assert_contains(&text, &["s: array<atomic<u32>>; // at least 16 bytes"]);
}

#[test]
fn three_component_vectors_are_elements() {
    let text = emit_source(
        "@group(0) @binding(0) var<storage> a: array<vec3<f32>>;
         @group(0) @binding(1) var<storage, read_write> b: array<vec3<u32>>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             b[id.x] = vec3<u32>(a[id.x].zxy) + bitcast<vec3<u32>>(a[1]);
         }",
    );
    assert_contains(&text, &["a: array<vec3<f32>>;", "b: array<vec3<u32>>;", "vec3<u32>("]);
}

#[test]
fn padding_and_matrices_keep_offsets() {
    let text = emit_source(
        "struct S { a: f32, m: mat3x3<f32>, b: vec2<u32>, @size(24) c: u32, d: vec2<f32> }
         @group(0) @binding(0) var<storage, read_write> s: array<S>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             s[id.x].d = s[id.x].m[1].xy + vec2<f32>(s[id.x].b) * s[id.x].a;
             s[id.x].m = transpose(s[id.x].m);
             s[id.x].c += 1u;
         }",
    );
    assert_contains(&text, &["@size(16) a: f32,", "m_1: vec3<f32>,", "@size(24) c: u32,"]);
}

#[test]
fn initial_zeros_of_locals_are_not_stored() {
    let kernel = |before: &str| {
        emit_source(&format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {{
                 {before} {{
                     var words: array<u32, 4>;
                     words[x[0] & 3u] = x[1];
                     x[id.x] = words[x[2] & 3u];
                 }}
             }}"
        ))
    };
    let once = kernel("");
    assert!(!once.contains("local0[3u] = 0u;"), "{once}");
    let repeated = kernel("for (var i = 0u; i < x[3]; i++)");
    assert_contains(&repeated, &["local0[3u] = 0u;"]);
}
