//! Tests of the emitted text of small kernels.

use std::path::Path;

use crate::support::{check_with_tint, emit, parse, round_trip};
use scry_test_support::golden;

#[test]
fn emitted_text_matches_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let names = ["saxpy", "reduce", "histogram", "f16", "subgroups"];
    let texts = names.map(|name| {
        let source = std::fs::read_to_string(folder.join(format!("{name}.wgsl"))).unwrap();
        (format!("{name}.wgsl"), emit(&source).unwrap_or_else(|error| panic!("{error}")))
    });
    golden::compare_all(&folder.join("out"), "wgsl", &texts);
}

/// Emits a kernel, and checks that the text is valid.
fn emit_valid(source: &str) -> String {
    let (text, _) = round_trip(&parse(source), source);
    check_with_tint(&text);
    text
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

fn assert_lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "`{part}` is in\n{text}");
}

#[test]
fn names_are_kept_or_made_valid() {
    let text = emit_valid(
        "@group(1) @binding(3) var<storage> größe: array<u32>;
         @group(0) @binding(7) var<storage, read_write> max_: array<u32>;
         @compute @workgroup_size(4) fn x1(@builtin(local_invocation_index) i: u32) {
             max_[i] = größe[i];
         }",
    );
    assert_contains(&text, &["@group(1) @binding(3) var<storage, read> gr__e: array<u32>;"]);
    assert_contains(
        &text,
        &["@group(0) @binding(7) var<storage, read_write> max_: array<u32>;", "fn x1("],
    );
    assert_contains(&text, &["let x_"]);
}

#[test]
fn uniforms_keep_their_fields() {
    let text = emit_valid(
        "struct Params { n: u32, color: vec3<f32>, m: mat2x2<f32>, last: i32 }
         @group(0) @binding(0) var<uniform> params: Params;
         @group(0) @binding(1) var<uniform> factor: f32;
         @group(0) @binding(2) var<uniform> table: array<vec4<f32>, 3>;
         @group(0) @binding(3) var<storage, read_write> out: array<f32>;
         var<immediate> shift: vec2<f32>;
         @compute @workgroup_size(1) fn main() {
             out[0] = params.color.y * factor + params.m[1].x + f32(params.last) + shift.y;
             out[1] = table[params.n].z;
         }",
    );
    assert_contains(
        &text,
        &["struct Params {", "@size(16) n: u32,", "@size(16) color: vec3<f32>,"],
    );
    assert_contains(
        &text,
        &["m_0: vec2<f32>,", "@size(16) last: i32,", "params.color.y", "params.m_1.x"],
    );
    assert_contains(&text, &["var<uniform> factor: f32;", "var<immediate> shift: vec2<f32>;"]);
    assert_contains(&text, &["var<uniform> table: array<vec4<f32>, 3>;", ".z;"]);
}

#[test]
fn indexed_uniforms_are_copied_to_locals() {
    let text = emit_valid(
        "@group(0) @binding(0) var<uniform> m: mat3x2<f32>;
         @group(0) @binding(1) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(1) fn main() { out[0] = m[u32(out[1])].y; }",
    );
    assert_contains(&text, &["word5: u32,", "var m_words = array<u32, 6>(m.word0,"]);
}

#[test]
fn indexed_immediates_are_copied() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> out: array<f32>;
         var<immediate> weights: array<f32, 4>;
         @compute @workgroup_size(1) fn main() { out[0] = weights[u32(out[1])]; }",
    );
    assert_contains(&text, &["struct weights_fields {", "var<immediate> weights: weights_fields;"]);
    assert_contains(&text, &["bitcast<f32>(weights_words["]);
}

#[test]
fn unused_bindings_stay_in_interface() {
    let text = emit_valid(
        "struct S { a: u32, b: array<f32> }
         @group(0) @binding(0) var<storage> unused: S;
         @group(0) @binding(1) var<uniform> also: vec4<f32>;
         @group(0) @binding(2) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(1) fn main() { _ = unused.a; _ = also.x; out[0] = 1.0; }",
    );
    assert_contains(&text, &["_ = arrayLength(&unused);", "_ = also;"]);
}

#[test]
fn whole_vector_stores_make_vector_arrays() {
    let kernel = |store: &str| {
        emit_valid(&format!(
            "@group(0) @binding(0) var<storage> a: array<vec4<f32>>;
             @group(0) @binding(1) var<storage, read_write> b: array<vec4<f32>>;
             var<workgroup> tile: array<vec2<f32>, 64>;
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 tile[id.x % 64u] = a[id.x].xy;
                 workgroupBarrier();
                 let i = id.x;
                 b[i] = a[i] + tile[(i + 1u) % 64u].xyxy;
                 {store}
             }}"
        ))
    };
    let whole_stores = kernel("");
    assert_contains(
        &whole_stores,
        &["a: array<vec4<f32>>;", "b: array<vec4<f32>>;", "array<vec2<f32>, 64>;"],
    );
    let partial_stores = kernel("b[i].y = a[i][i & 3u];");
    assert_contains(
        &partial_stores,
        &["a: array<vec4<f32>>;", "b: array<f32>; // at least 16 bytes"],
    );
}

#[test]
fn only_bindings_with_atomics_are_atomic() {
    let text = emit_valid(
        "struct S { count: atomic<u32>, least: atomic<i32>, data: array<f32> }
         @group(0) @binding(0) var<storage, read_write> s: S;
         @group(0) @binding(1) var<storage, read_write> other: array<u32>;
         var<workgroup> sum: atomic<i32>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             atomicAdd(&s.count, 2u);
             atomicMin(&s.least, -1i);
             atomicMax(&s.count, 1u);
             s.data[i] = f32(atomicAdd(&sum, 1i)) + s.data[i + 1u];
             other[i] = atomicCompareExchangeWeak(&s.count, 1u, 5u).old_value;
         }",
    );
    assert_contains(&text, &["s: array<atomic<u32>>; // at least 12 bytes", "other: array<u32>;"]);
    assert_contains(&text, &["workgroup0: array<atomic<i32>, 1>;", "atomicStore(&s["]);
    assert_contains(&text, &["bitcast<u32>(min(bitcast<i32>(", "bitcast<f32>(atomicLoad(&s["]);
}

#[test]
fn minimum_decides_sign_of_atomics() {
    let text = emit_valid(
        "struct S { count: atomic<u32>, least: atomic<i32> }
         @group(0) @binding(0) var<storage, read_write> s: S;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             if atomicAdd(&s.count, 2u) > 7u { atomicMin(&s.least, i32(i) - 9i); }
         }",
    );
    assert_contains(&text, &["s: array<atomic<i32>, 2>;", "atomicMin(&s[1u],"]);
    assert_contains(&text, &["bitcast<u32>(atomicAdd(&s[0u], bitcast<i32>(2u)))"]);
}

#[test]
fn f16_stores_into_words_are_atomic() {
    let text = emit_valid(
        "enable f16;
         struct S { a: f32, b: array<f16> }
         @group(0) @binding(0) var<storage, read_write> s: S;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             s.b[i] = s.b[i + 1u] * 2.0h;
         }",
    );
    assert_contains(
        &text,
        &["s: array<atomic<u32>>; // at least 8 bytes", "atomicCompareExchangeWeak(&s["],
    );
}

#[test]
fn packing_needs_no_f16() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(1) fn main() {
             x[0] = pack2x16float(unpack2x16float(x[1]) * 2.0);
         }",
    );
    assert_lacks(&text, "enable f16");
}

#[test]
fn infinity_is_made_from_bits() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main() {
             let infinity = bitcast<f32>(y[0] * 0u + 0x7f800000u);
             x[0] = select(x[1], infinity, x[2] > 1.0);
         }",
    );
    assert_contains(&text, &["= 0x7f800000u;", "bitcast<f32>(t"]);
}

#[test]
fn continue_needs_no_flags() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(1) fn main() {
             var sum = 0u;
             for (var i = 0u; i < 10u; i++) {
                 if x[i] == 3u { continue; }
                 if x[i] == 4u { break; }
                 sum += x[i];
             }
             x[0] = sum;
         }",
    );
    assert_contains(&text, &["continuing {", "continue;", "break;"]);
    assert_lacks(&text, "leave");
}

#[test]
fn loops_stay_uniform_after_early_returns() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         fn look(i: u32) { if x[i] == 3u { return; } x[i] = 3u; }
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             for (var n = 0u; n < 4u; n++) { look(i + n); workgroupBarrier(); }
         }",
    );
    assert_lacks(&text, "continue");
}

#[test]
fn exits_from_nested_loops_set_flags() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         fn find(n: u32) -> u32 {
             for (var i = 0u; i < n; i++) {
                 for (var j = 0u; j < n; j++) { if x[i * n + j] == 3u { return i; } }
             }
             return 7u;
         }
         @compute @workgroup_size(1) fn main() { x[0] = find(10u); }",
    );
    assert_contains(&text, &["switch 0u { default {", "= false;", "= true;", "{ break; }"]);
}

#[test]
fn uniform_loads_are_emitted_as_such() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         var<workgroup> end: u32;
         var<workgroup> ends: array<atomic<u32>, 4>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             if i == 0u { end = x[0]; }
             var first = 0u;
             loop {
                 let last = workgroupUniformLoad(&end);
                 if first >= last { break; }
                 first += 1u + workgroupUniformLoad(&ends[last & 3u]);
                 workgroupBarrier();
                 if i == 1u { end -= 1u; }
             }
             x[i] = first;
         }",
    );
    assert_contains(
        &text,
        &["workgroupUniformLoad(&workgroup0[0u])", "workgroupUniformLoad(&workgroup1["],
    );
}

#[test]
fn storage_barriers_only_between_storage_accesses() {
    let kernel = |before: &str, barrier: &str| {
        emit_valid(&format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             var<workgroup> tile: array<u32, 64>;
             @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
                 tile[i] = i;
                 {before}
                 {barrier}();
                 x[i] = tile[63u - i];
             }}"
        ))
    };
    assert_lacks(&kernel("", "storageBarrier"), "storageBarrier");
    assert_contains(
        &kernel("x[64u + i] = 1u;", "storageBarrier"),
        &["    storageBarrier();\n    workgroupBarrier();\n"],
    );
    // The source does not ask for an order of storage.
    assert_lacks(&kernel("x[64u + i] = 1u;", "workgroupBarrier"), "storageBarrier");
}

#[test]
fn nan_is_unequal_and_converts_to_zero() {
    let text = emit_valid(
        "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
         @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
             let x = data[i];
             data[i] = f32(i32(x)) + f32(u32(f32(i))) + select(0.0, 1.0, x != data[i + 4u]);
         }",
    );
    let is_nan = "(bitcast<u32>(x8) & 0x7fffffffu) > 0x7f800000u";
    assert_contains(&text, &["!(x8 == ", &format!("= select(i32(x8), 0i, {is_nan});")]);
    assert_lacks(&text, "0u, (bitcast");
}
