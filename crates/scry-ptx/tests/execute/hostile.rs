//! Tests with hand-written kernels that attack memory safety. Accesses must stay in bounds, results
//! must match the CPU device, and endless loops must end after cancellation.

use scry_ptx::Target;

use super::run::{Outcome, RunOptions, TestLaunch, run};

/// Extreme numbers for indices, counters and bounds.
const EXTREMES: [u32; 16] = [
    0,
    1,
    5,
    7,
    8,
    9,
    31,
    64,
    255,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fff0,
    0xffff_fffe,
    u32::MAX,
    0x4000_0002,
];

/// The bindings of every kernel.
const BINDINGS: &str = "
    @group(0) @binding(0) var<storage, read> wild: array<u32, 16>;
    @group(0) @binding(1) var<storage, read_write> data: array<u32, 8>;
    @group(0) @binding(2) var<storage, read_write> tail: array<array<u32, 3>>;
    @group(0) @binding(3) var<storage, read_write> counter: atomic<u32>;
    var<workgroup> ours: array<u32, 8>;
    var<private> mine: array<u32, 8>;
    fn next() -> u32 { return atomicAdd(&counter, 1u); }
    fn use_all() { _ = wild[0]; _ = data[0]; _ = tail[0][0]; _ = atomicLoad(&counter); }
";

/// Returns the launch of a kernel with one invocation, which executes these statements.
fn launch(body: &str) -> TestLaunch {
    let source =
        format!("{BINDINGS} @compute @workgroup_size(1) fn main() {{ use_all(); {body} }}");
    let wild = EXTREMES.iter().flat_map(|word| word.to_le_bytes()).collect();
    let buffers = vec![wild, vec![0; 32], vec![0; 60], vec![0; 4]];
    TestLaunch { source, buffers, immediates: Vec::new(), groups: [1, 1, 1] }
}

#[track_caller]
fn assert_outcome(expected: Outcome, body: &str) {
    for target in [Target::SM_75, Target::SM_90] {
        let outcome = run(&launch(body), &RunOptions::for_target(target));
        match outcome {
            Ok(outcome) => assert_eq!(outcome, expected, "{body}"),
            Err(problem) => panic!("{problem}\n{body}"),
        }
    }
}

#[track_caller]
fn assert_same(body: &str) {
    assert_outcome(Outcome::Same, body);
}

/// The step adds to a stale copy of the counter.
#[test]
fn stale_counter_copies_match_the_cpu() {
    assert_same(
        "var i = 5u;
         while i <= 7u {
             let saved = i; i = 0u;
             while i <= 5u { data[i] = 7u; i = saved + 1u; }
             i = saved + 1u;
         }",
    );
    assert_same(
        "var i = 5u;
         while i <= 7u {
             let saved = i; i = 0u;
             while i <= 5u { ours[i] = 7u; i = saved + 1u; }
             i = saved + 1u;
         }
         for (var j = 0u; j < 8u; j++) { data[j] = ours[j]; }",
    );
}

#[test]
fn stale_loaded_counters_match_the_cpu() {
    assert_same(
        "for (var k = 0u; k < 16u; k++) {
             var i = wild[k]; let saved = i; i = 0u;
             while i <= 5u {
                 data[i] = k; i = saved + 1u;
                 if saved < 5u || saved == 0xffffffffu { break; }
             }
         }",
    );
    assert_same(
        "var i = wild[12]; let saved = i; i = 0u; var n = 0u;
         while i <= 5u { data[i] = 7u; i = saved + 1u; n++; if n > 9u { break; } }",
    );
}

#[test]
fn stale_exit_tests_match_the_cpu() {
    assert_outcome(
        Outcome::Cancelled,
        "var i = 5u; let saved = i; i = 0u;
         while saved <= 5u { data[i] = 7u; i = i + 1u; }",
    );
    assert_same(
        "var i = 3u; let saved = i; i = 0u;
         while saved <= 5u { data[i] = 7u; i = i + 1u; if i > 20u { break; } }",
    );
}

/// Effects before the exit test of a loop happen once more than those after it.
#[test]
fn effects_before_exit_test_run_again() {
    assert_same(
        "var i = 1u;
         loop {
             let x = atomicAdd(&counter, 1u);
             if i < 5u {} else { break; }
             data[i] = x; i += 1u;
         }",
    );
    assert_same("var i = 0u; loop { next(); if i >= 3u { break; } i++; } data[0] = next();");
    assert_same("var i = 0u; loop { data[i] = next(); if i >= 3u { break; } i++; }");
    assert_same(
        "var i = 0u; var x = 9u;
         loop { x = wild[i]; if i < 3u {} else { break; } i++; } data[1] = x;",
    );
}

#[test]
fn wild_indices_stay_within_their_arrays() {
    assert_same(
        "for (var k = 0u; k < 16u; k++) {
             let w = wild[k];
             data[w] = k; ours[w] = k + 1u; mine[w] = k + 2u;
             data[i32(w)] += ours[i32(w)] + mine[i32(w)];
             tail[w][w] = k; tail[k][w] += tail[w][k];
         }
         data[7] += ours[7] + mine[7];",
    );
    assert_same(
        "var v = vec4u(1u, 2u, 3u, 4u); var m = mat4x4f();
         for (var k = 0u; k < 16u; k++) {
             v[wild[k] & 3u] += 1u; m[wild[k] & 3u][k & 3u] += 1.0;
             data[v[wild[k] % 4u]] ^= u32(m[k & 3u][wild[k] & 3u]);
         }",
    );
}

#[test]
fn computed_indices_stay_within_their_arrays() {
    assert_same(
        "for (var k = 0u; k < 16u; k++) {
             let w = wild[k];
             data[w * 4u] = k; data[w << 3u] += 1u; data[w - 1u] ^= k; data[~w] += 2u;
             data[(w + 0x80000000u) / 3u] = 5u; tail[w >> 30u][w % 5u] = w;
             for (var i = w; i - w < 3u; i++) { data[i] += 1u; ours[i] = i; mine[7u - i] = i; }
         }
         for (var i = 0u; i < 8u; i++) { data[i] += ours[i] + mine[i]; }",
    );
}

/// An assignment in one branch implies nothing for the other.
#[test]
fn branch_assigned_indices_stay_in_bounds() {
    assert_same(
        "for (var k = 0u; k < 16u; k++) {
             var i = wild[k]; var j = wild[15u - k];
             if (wild[k] & 3u) == 1u { i = k & 3u; data[0] += next(); }
             if (wild[k] & 2u) == 0u { data[1] ^= next(); } else { j = k & 1u; data[2] = next(); }
             data[i] += k; ours[i] = k; mine[j] = i; tail[j][i] ^= ours[j];
         }
         for (var i = 0u; i < 8u; i++) { data[i] += ours[i] + mine[i]; }",
    );
}

#[test]
fn indices_below_changing_bounds_stay_clamped() {
    assert_same(
        "var n = 4u; var rounds = 0u;
         for (var i = 0u; i < n; i++) {
             data[i] = i; n += 2u; rounds++; if rounds > 20u { break; }
         }",
    );
    assert_same(
        "data[0] = 5u; var rounds = 0u;
         for (var i = 0u; i < data[0]; i++) {
             data[i] = wild[i]; tail[i][i] = i; rounds++; if rounds > 30u { break; }
         }",
    );
    assert_same(
        "var i = 0u; var rounds = 0u;
         while i < 8u { data[i] = i; i = wild[i + rounds]; rounds++; if rounds > 9u { break; } }",
    );
}

/// Counters that wrap or are reset, and steps that skip the end.
#[test]
fn endless_counters_are_stopped() {
    let not_terminating = |body| assert_outcome(Outcome::Cancelled, body);
    not_terminating("for (var i = 10u; i >= 0u; i--) { data[i] = i; }");
    not_terminating("for (var i = 0u; i != 7u; i += 2u) { data[i] = i; }");
    not_terminating("for (var i = 3; i < 0x7fffffff; i *= 0) { data[i] = 1u; }");
    not_terminating("var i = 0u; while i < 8u { data[i] = 1u; i = wild[i & 1u]; }");
    not_terminating("loop { data[next() & 1u] += 1u; if data[0] == 7u && false { break; } }");
    not_terminating(
        "var i = 0u; loop { i += 1u; if i == 5u { i = 0u; continue; } if i > 6u { break; } }",
    );
}

#[test]
fn wrapping_counters_stay_in_bounds() {
    assert_same("var n = 0u; for (var i = 0xfffffffau; i > 5u; i++) { data[i] = i; }");
    assert_same("var n = 0; for (var i = 0x7ffffffa; i > 5; i++) { data[i] = u32(n); n++; }");
    assert_same("for (var i = 7; i >= 0; i -= 3) { data[i] = u32(i); }");
    assert_same("for (var i = -3; i <= 3; i++) { data[i] += 1u; data[i + 5] += 2u; }");
    assert_same("for (var i = 0u; i < 100u; i += 0x40000001u) { data[i] += 1u; }");
}
