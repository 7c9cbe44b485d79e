//! Tests of termination proofs: loops that must be proven to end, and loops that must not.

mod counter;
mod random;
mod strip_mining;

use crate::Program;
use crate::kir::{Kir, KirOptions, Stmt, for_each_stmt, unoptimised};

/// Returns whether each loop of a kernel's body is proven to end, outer loops first. The body can
/// use the unknown numbers `n` and `m` and the storage buffer `data`.
fn proofs(body: &str) -> Vec<bool> {
    let source = format!(
        "struct Ids {{ @builtin(workgroup_id) group: vec3u }}
        struct Params {{ n: u32, k: i32 }}
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @group(0) @binding(1) var<uniform> params: Params;
        @group(0) @binding(2) var<storage, read_write> wide: array<vec4<f32>>;
        fn touch(p: ptr<function, u32>) {{ *p += 1u; }}
        @group(0) @binding(3) var<storage, read_write> counters: array<atomic<u32>>;
        var<workgroup> chosen: u32;
        fn look(v: u32) -> u32 {{ return v + 1u; }}
        fn next() -> u32 {{ return atomicAdd(&counters[0], 1u); }}
        @compute @workgroup_size(64)
        fn main(
            @builtin(local_invocation_index) m: u32,
            @builtin(num_workgroups) groups: vec3u,
            ids: Ids,
        ) {{
            let n = params.n;
            {body}
        }}"
    );
    let kir = kir(&source);
    let mut found = Vec::new();
    for_each_stmt(&kir.body, &mut |stmt| {
        if let Stmt::Loop { finite, .. } = stmt {
            found.push(*finite);
        }
    });
    found
}

/// Lowers a kernel, without optimisation.
fn kir(source: &str) -> Kir {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    unoptimised(program.content(), &KirOptions { checked: true }).unwrap()
}

/// Asserts that the only loop of a kernel's body is proven to end.
#[track_caller]
fn proven(body: &str) {
    assert_eq!(proofs(body), [true], "{body}");
}

/// Asserts that the only loop of a kernel's body is not proven to end.
#[track_caller]
fn unproven(body: &str) {
    assert_eq!(proofs(body), [false], "{body}");
}

#[test]
fn counting_up() {
    proven("for (var i = 0u; i < 10u; i++) { data[i] = i; }");
    proven("for (var i = 0u; i < n; i++) { data[i] = i; }");
    proven("for (var i = m; n > i; i += 1u) { data[i] = i; }");
    proven("for (var i = 0; i < params.k; i++) { data[i] = 1u; }");
    proven("for (var i = 0u; i < n; i = 1u + i) { data[i] = i; }");
    proven("for (var i = 0u; i <= 100u; i += 1u) { data[i] = i; }");
    proven("for (var i = -5; i <= 5; i += 3) { data[i] = 1u; }");
    proven("for (var i = 0u; i != n; i++) { data[i] = i; }");
    proven("for (var i = 0lu; i < 9lu; i++) { data[u32(i)] = 1u; }");
    proven("const END = 40u; for (var i = m; i < END; i += 32u) { data[i] = i; }");
}

#[test]
fn counting_up_may_wrap() {
    unproven("for (var i = 0u; i <= 0xffffffffu; i++) { data[i] = i; }");
    unproven("for (var i = 0u; i <= n; i++) { data[i] = i; }");
    unproven("for (var i = 0u; i < n; i += 3u) { data[i] = i; }");
    unproven("for (var i = 0u; i < 0xfffffffeu; i += 4u) { data[i] = i; }");
    unproven("for (var i = 0; i < params.k; i += 2) { data[i] = 1u; }");
    unproven("for (var i = 0u; i != n; i += 2u) { data[i] = i; }");
    unproven("for (var i = 0u; i != data[0]; i++) { data[i] = i; }");
    unproven("for (var i = 0; i <= 2147483647; i++) { data[i] = 1u; }");
}

#[test]
fn bounds_known_to_be_small() {
    proven("for (var i = m; i < arrayLength(&data); i += 4096u) { data[i] = i; }");
    proven("for (var i = i32(m); i < i32(arrayLength(&data)); i += 64) { data[i] = 1u; }");
    proven("for (var i = m; i < min(n, 1000u); i += 64u) { data[i] = i; }");
    proven("for (var i = m; i < n / 4u; i += 64u) { data[i] = i; }");
    proven("for (var i = m; i < (n >> 8u); i += 64u) { data[i] = i; }");
    proven("for (var i = m; i < (n & 0xffu) + 1u; i += 64u) { data[i] = i; }");
    proven("for (var i = m; i <= n % 100u; i += 64u) { data[i] = i; }");
    unproven("for (var i = m; i < max(n, 1000u); i += 64u) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += 0xf0000000u) { data[i] = i; }");
    unproven("for (var i = m; i < (n & 0xffu) - 1u; i += 64u) { data[i] = i; }");
}

#[test]
fn counting_down() {
    proven("for (var i = n; i > 0u; i--) { data[i] = i; }");
    proven("for (var i = i32(n); i >= 0; i--) { data[i] = 1u; }");
    proven("for (var i = n; i != 0u; i -= 1u) { data[i] = i; }");
    proven("for (var i = n; i >= 16u; i -= 16u) { data[i] = i; }");
    proven("for (var i = 9; i > -9; i += -2) { data[i] = 1u; }");
    unproven("for (var i = n; i >= 0u; i--) { data[i] = i; }");
    unproven("for (var i = n; i > 0u; i -= 2u) { data[i] = i; }");
    unproven("for (var i = n; i > 0u; i++) { data[i] = i; }");
    unproven("for (var i = 0u; i < n; i--) { data[i] = i; }");
    unproven("for (var i = 7; i >= params.k; i--) { data[i] = 1u; }");
}

#[test]
fn shrinking() {
    proven("for (var s = 128u; s > 0u; s >>= 1u) { data[s] = s; }");
    proven("for (var s = 64u; s != 0u; s >>= 1u) { data[s] = s; }");
    proven("for (var s = n; s > m; s /= 2u) { data[s] = s; }");
    proven("for (var s = params.k; s >= 1; s = s / 3) { data[s] = 1u; }");
    proven("for (var s = params.k; s > 0; s >>= 1u) { data[s] = 1u; }");
    unproven("for (var s = 64u; s >= 0u; s >>= 1u) { data[s] = s; }");
    unproven("for (var s = params.k; s != 0; s >>= 1u) { data[s] = 1u; }");
    unproven("for (var s = n; s > 0u; s /= 1u) { data[s] = s; }");
    unproven("for (var s = n; s > 0u; s /= m) { data[s] = s; }");
    unproven("for (var s = n; s < 8u; s /= 2u) { data[s] = s; }");
}

#[test]
fn growing_by_factors() {
    proven("for (var s = 1u; s < 256u; s <<= 1u) { data[s] = s; }");
    proven("for (var s = 1u; s < 256u; s *= 2u) { data[s] = s; }");
    proven("for (var s = 3; s <= 1000; s = 3 * s) { data[s] = 1u; }");
    proven("var s = 1u; while (s < 64u) { s *= 4u; }");
    unproven("for (var s = 0u; s < 256u; s <<= 1u) { data[s] = s; }");
    unproven("for (var s = m; s < 256u; s *= 2u) { data[s] = s; }");
    unproven("for (var s = 1u; s < n; s <<= 1u) { data[s] = s; }");
    unproven("for (var s = 1u; s < 0xf0000000u; s *= 3u) { data[s] = s; }");
    unproven("for (var s = -1; s < 256; s *= 2) { data[s] = 1u; }");
    // The step before the first comparison results in zero.
    unproven("var s = 0x80000000u; loop { s *= 2u; if s >= 100u { break; } }");
    unproven("var s = 0x80000000u; loop { s <<= 1u; if s >= 100u { break; } }");
    proven("var s = 0x40000000u; loop { s *= 2u; if s >= 100u { break; } }");
    // In the second iteration s starts at the value that the first one left.
    assert_eq!(
        proofs("var s = 1u; for (var i = 0u; i < 4u; i++) { while (s < 9u) { s *= 2u; } s = 0u; }"),
        [true, false]
    );
}

#[test]
fn while_shapes() {
    proven("var i = 0u; while (i < n) { data[i] = i; i++; }");
    proven("var i = 0u; while (true) { if (i >= n) { break; } i++; }");
    proven("var i = 0u; loop { if (i >= n) { return; } data[i] = i; { i++; } }");
    proven("var i = 0u; loop { data[i] = i; continuing { i++; break if i >= n; } }");
    proven("var i = 0u; loop { if (!(i < n)) { break; } i++; if (data[i] > 3u) { continue; } }");
    proven("loop { data[0] = n; break; }");
    proven("loop { if (n > 3u) { data[0] = n; break; } else { return; } }");
    proven("for (var i = 0u; i < n; i++) { if (data[i] == 0u) { continue; } data[i] = 0u; }");
    proven(
        "for (var i = 0u; i < n; i++) { switch data[i] { case 0u: { continue; } default: {} } }",
    );
}

#[test]
fn exit_test_is_not_in_every_iteration() {
    unproven("loop { data[0] = n; if (data[1] == 1u) { break; } }");
    unproven("while (data[0] < n) { data[1] += 1u; }");
    unproven("var i = 0u; loop { if (data[0] > 1u) { if (i >= n) { break; } } i++; }");
    unproven("var i = 0u; loop { if (data[0] > 1u) { continue; } if (i >= n) { break; } i++; }");
    unproven("var i = 0u; loop { i++; switch i { case 9u: { break; } default: {} } }");
    unproven("loop { data[0] += 1u; }");
}

#[test]
fn counter_is_not_updated_in_every_iteration() {
    unproven("var i = 0u; while (i < n) { if (data[i] == 0u) { continue; } i++; }");
    unproven("var i = 0u; while (i < n) { if (data[i] == 0u) { i++; } }");
    unproven(
        "var i = 0u; while (i < n) { switch data[i] { case 0u: {continue;} default: {} } i++; }",
    );
    unproven("for (var i = 0u; i < n; ) { data[i] = i; }");
    unproven("var i = 0u; let old = i; loop { if (i >= n) { break; } i = old + 1u; }");
    unproven("var i = 0u; let old = i; loop { if (old >= n) { break; } i = i + 1u; }");
    unproven("var i = 0u; var j = 0u; while (i < n) { j++; }");
    unproven("var f = 0.0; while (f < 1.0) { f += 0.1; }");
}

#[test]
fn counters_written_elsewhere() {
    unproven("for (var i = 0u; i < n; i++) { if (data[i] == 0u) { i = 0u; } }");
    unproven("for (var i = 0u; i < n; i++) { i--; }");
    unproven("for (var i = 0u; i < n; i++) { touch(&i); }");
    unproven("for (var i = 0u; i < n; i++) { let p = &i; *p = 0u; }");
    unproven("var v = vec2u(); for (v.x = 0u; v.x < n; v.x++) { v = vec2u(); }");
    proven("for (var i = 0u; i < n; i++) { let p = &i; data[0] = *p; data[1] = look(i); }");
    assert_eq!(
        proofs("for (var i = 0u; i < n; i++) { for (var j = 0u; j < 3u; j++) { i = j; } }"),
        [false, true]
    );
}

#[test]
fn bounds_may_change() {
    // `i` only increases, and `i < bound` fails at the largest u32.
    proven("var end = n; for (var i = 0u; i < end; i++) { end += 2u; }");
    proven("for (var i = 0u; i < data[0]; i++) { data[0] += 1u; }");
    unproven("var end = 9u; for (var i = 0u; i <= end; i++) { end += 1u; }");
    unproven("var end = 9u; for (var i = 0u; i != end; i++) { end += 1u; }");
    unproven("var end = 9u; for (var i = 0u; i < end; i += 2u) { end += 2u; }");
}

#[test]
fn changing_results_are_not_invariant_bounds() {
    for bound in [
        "next()",
        "atomicAdd(&counters[1], 1u)",
        "atomicExchange(&counters[2], i)",
        "workgroupUniformLoad(&chosen)",
        "subgroupAdd(i)",
        "subgroupShuffle(i, 1u)",
        "subgroupBallot(i > 2u).x",
    ] {
        unproven(&format!(
            "var i = 0u; loop {{ let b = {bound}; if i == b {{ break; }} i += 1u; }}"
        ));
        unproven(&format!("for (var i = 0u; i != {bound}; i++) {{ data[i] = i; }}"));
        unproven(&format!("for (var i = 9u; i != {bound}; i--) {{ data[i] = i; }}"));
        proven(&format!("var i = 0u; let b = {bound}; while i != b {{ data[i] = i; i++; }}"));
    }
    unproven(
        "var i = 0u; loop {
            let b = atomicCompareExchangeWeak(&counters[0], i, 2u);
            if i == b.old_value { break; }
            i += 1u;
        }",
    );
}

#[test]
fn products_beyond_128_bits() {
    // From 1 to 3 << 62, and then always zero.
    let factor = "13835058055282163712lu";
    let max = "18446744073709551615lu";
    unproven(&format!("for (var s = 1lu; s < {max}; s *= {factor}) {{ data[0] = 1u; }}"));
    unproven(&format!("for (var s = 1lu; s <= {max}; s *= {max}) {{ data[0] = 1u; }}"));
    unproven("for (var s = 1lu; s < 0xf000000000000000lu; s *= 0xf000000000000000lu) {}");
    unproven("for (var s = 1li; s < 0x7000000000000000li; s *= 0x7000000000000000li) {}");
    proven("for (var s = 1lu; s < 2lu; s *= 13835058055282163712lu) { data[0] = 1u; }");
    proven("for (var s = 1lu; s <= 0x100000000lu; s *= 0xfffffffflu) { data[0] = 1u; }");
}

#[test]
fn conditions_of_several_parts() {
    proven("for (var i = 0u; i < n && data[i] > 0u; i++) { data[i] = i; }");
    proven("for (var i = 0u; data[i] > 0u && i < n; i++) { data[i] = i; }");
    proven("for (var i = 0u; i < n && data[i] > 0u && data[0] > 1u; i++) { data[i] = i; }");
    proven("var i = 0u; loop { if (i >= n || data[i] == 0u) { break; } i++; }");
    proven("var i = 0u; loop { if (data[i] == 0u || i >= n) { break; } i++; }");
    proven("var i = 0u; loop { if (!(i < n) || data[i] == 0u) { return; } i++; }");
    unproven("for (var i = 0u; i < n || data[i] > 0u; i++) { data[i] = i; }");
    unproven("var i = 0u; loop { if (i >= n && data[i] == 0u) { break; } i++; }");
}

#[test]
fn nested_loops_are_independent() {
    assert_eq!(
        proofs("for (var i = 0u; i < n; i++) { for (var j = i; j < n; j++) { data[j] = i; } }"),
        [true, true]
    );
    assert_eq!(
        proofs("for (var i = 0u; i < n; i++) { loop { if (data[i] == 1u) { break; } } }"),
        [true, false]
    );
    assert_eq!(
        proofs("loop { for (var i = 0u; i < n; i++) { if (i == 3u) { continue; } } }"),
        [false, true]
    );
}

#[test]
fn grid_strides() {
    proven("for (var i = m; i < arrayLength(&data); i += groups.x * 64u) { data[i] = i; }");
    proven("for (var i = m; i < n / 2u; i += 16u * groups.x) { data[i] = i; }");
    proven("let step = groups.x * 64u; for (var i = m; i <= n >> 1u; i += step) { data[i] = i; }");
    unproven("for (var i = m; i < n; i += groups.x * 64u) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += groups.x * 65u) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += groups.y * 64u) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += groups.x * n) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += ids.group.x * 64u) { data[i] = i; }");
    unproven("for (var i = m; i < arrayLength(&data); i += groups.x * 0u) { data[i] = i; }");
    unproven("for (var i = m; i > arrayLength(&data); i += groups.x * 64u) { data[i] = i; }");
}

#[test]
fn examined_conditions_are_limited() {
    let exits = "if data[1] == i { break; } ".repeat(3000);
    unproven(&format!("var i = 0u; loop {{ {exits} if i >= n {{ break; }} i++; }}"));
    proven(&format!("var i = 0u; loop {{ if i >= n {{ break; }} i++; {exits} }}"));
    let terms = "data[2] == i || ".repeat(1000);
    unproven(&format!("var i = 0u; loop {{ if i >= n || {terms} i > 7u {{ break; }} i += 0u; }}"));
}

/// Returns the bound for a kernel with a function `five`, which iterates five times.
fn iterations(body: &str) -> Option<u64> {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        fn five() {{ for (var i = 0u; i < 5u; i++) {{ data[i] = i; }} }}
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) m: u32) {{ let n = data[0]; {body} }}"
    );
    super::most_iterations(&kir(&source))
}

#[test]
fn iterations_of_known_ranges_are_bounded() {
    assert_eq!(iterations("data[1] = n;"), Some(0));
    // The last one only evaluates the exit condition.
    assert_eq!(iterations("five();"), Some(6));
    assert_eq!(iterations("five(); if n > 3u { five(); } else { five(); }"), Some(18));
    assert_eq!(iterations("for (var i = 3u; i <= 9u; i += 2u) { data[i] = i; }"), Some(5));
    assert_eq!(iterations("for (var i = 9; i > -1; i -= 3) { data[i] = 1u; }"), Some(5));
    assert_eq!(iterations("for (var i = 9; i >= 0; i--) { data[i] = 1u; }"), Some(11));
    assert_eq!(iterations("for (var i = m; i < 100u; i += 64u) { data[i] = 1u; }"), Some(3));
    assert_eq!(iterations("for (var i = 2u; i != 7u; i++) { data[i] = 1u; }"), Some(6));
    assert_eq!(iterations("for (var i = 0u; i < min(n, 10u); i++) { data[i] = 1u; }"), Some(11));
    assert_eq!(iterations("loop { data[1] = n; break; }"), Some(1));
    assert_eq!(iterations("for (var s = 128u; s > 0u; s >>= 1u) { data[s] = s; }"), Some(65));
    let nested = "for (var i = 0u; i < 10u; i++) { for (var j = 0u; j < 20u; j++) { five(); } }";
    assert_eq!(iterations(nested), Some(11 * (1 + 21 * (1 + 6))));
    // The smaller of two bounds.
    assert_eq!(iterations("for (var i = 0u; i < n && i < 8u; i++) { data[i] = i; }"), Some(9));
}

#[test]
fn iterations_without_a_known_bound() {
    for body in [
        "for (var i = 7u; i != 2u; i++) { data[i] = 1u; }",
        // The first step precedes the first comparison, so that the counter takes every value.
        "var c = 5u; loop { c += 1u; if c == 5u { break; } }",
        "var c = 5; loop { c -= 1; if c == 5 { break; } }",
        "loop { if data[1] == 7u { break; } }",
        "for (var i = 0u; i < 4u; i++) { while data[i] > 2u { data[i] -= 1u; } }",
    ] {
        assert_eq!(iterations(body), None, "{body}");
    }
    let full_range = iterations("for (var i = 0u; i < n; i++) { data[i] = i; }");
    assert_eq!(full_range, Some(1 << 32), "every u32 and the last comparison");
    let loops = "for (var i = 0u; i < 4u; i++) { data[i] = i; } ".repeat(300);
    assert_eq!(iterations(&loops), None, "more loops than are examined");
}
