//! Kernels that attack memory safety. Results must match the CPU device; accesses must stay in
//! bounds, and each kernel ends after cancellation.

use scry_ptx::Target;

use super::run::{How, Outcome, Work, run};

/// Extreme numbers for indices, counters and bounds.
const WILD: [u32; 16] = [
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
    @group(0) @binding(1) var<storage, read_write> four: array<u32, 8>;
    @group(0) @binding(2) var<storage, read_write> tail: array<array<u32, 3>>;
    @group(0) @binding(3) var<storage, read_write> counter: atomic<u32>;
    var<workgroup> ours: array<u32, 8>;
    var<private> mine: array<u32, 8>;
    fn next() -> u32 { return atomicAdd(&counter, 1u); }
    fn use_all() { _ = wild[0]; _ = four[0]; _ = tail[0][0]; _ = atomicLoad(&counter); }
";

/// A kernel of one invocation with these statements, and its data.
fn work(body: &str) -> Work {
    let source =
        format!("{BINDINGS} @compute @workgroup_size(1) fn main() {{ use_all(); {body} }}");
    let wild = WILD.iter().flat_map(|word| word.to_le_bytes()).collect();
    let buffers = vec![wild, vec![0; 32], vec![0; 60], vec![0; 4]];
    Work { source, buffers, immediates: Vec::new(), groups: [1, 1, 1] }
}

#[track_caller]
fn ends(expected: Outcome, body: &str) {
    for target in [Target::SM_75, Target::SM_90] {
        let outcome = run(&work(body), &How::on(target));
        match outcome {
            Ok(outcome) => assert_eq!(outcome, expected, "{body}"),
            Err(problem) => panic!("{problem}\n{body}"),
        }
    }
}

#[track_caller]
fn is_right(body: &str) {
    ends(Outcome::Same, body);
}

/// The loop counts from a stale copy of the counter.
#[test]
fn a_stale_copy_counts_no_loop() {
    is_right(
        "var i = 5u;
         while i <= 7u {
             let saved = i; i = 0u;
             while i <= 5u { four[i] = 7u; i = saved + 1u; }
             i = saved + 1u;
         }",
    );
    is_right(
        "var i = 5u;
         while i <= 7u {
             let saved = i; i = 0u;
             while i <= 5u { ours[i] = 7u; i = saved + 1u; }
             i = saved + 1u;
         }
         for (var j = 0u; j < 8u; j++) { four[j] = ours[j]; }",
    );
}

#[test]
fn stale_user_data_counts_no_loop() {
    is_right(
        "for (var k = 0u; k < 16u; k++) {
             var i = wild[k]; let saved = i; i = 0u;
             while i <= 5u {
                 four[i] = k; i = saved + 1u;
                 if saved < 5u || saved == 0xffffffffu { break; }
             }
         }",
    );
    is_right(
        "var i = wild[12]; let saved = i; i = 0u; var n = 0u;
         while i <= 5u { four[i] = 7u; i = saved + 1u; n++; if n > 9u { break; } }",
    );
}

#[test]
fn a_stale_test_ends_no_loop() {
    ends(
        Outcome::Stopped,
        "var i = 5u; let saved = i; i = 0u;
         while saved <= 5u { four[i] = 7u; i = i + 1u; }",
    );
    is_right(
        "var i = 3u; let saved = i; i = 0u;
         while saved <= 5u { four[i] = 7u; i = i + 1u; if i > 20u { break; } }",
    );
}

/// Effects before the test of a loop happen once more than those after it.
#[test]
fn effects_before_exit_test_run_again() {
    is_right(
        "var i = 1u;
         loop {
             let x = atomicAdd(&counter, 1u);
             if i < 5u {} else { break; }
             four[i] = x; i += 1u;
         }",
    );
    is_right("var i = 0u; loop { next(); if i >= 3u { break; } i++; } four[0] = next();");
    is_right("var i = 0u; loop { four[i] = next(); if i >= 3u { break; } i++; }");
    is_right(
        "var i = 0u; var x = 9u;
         loop { x = wild[i]; if i < 3u {} else { break; } i++; } four[1] = x;",
    );
}

#[test]
fn wild_indices_stay_within_their_arrays() {
    is_right(
        "for (var k = 0u; k < 16u; k++) {
             let w = wild[k];
             four[w] = k; ours[w] = k + 1u; mine[w] = k + 2u;
             four[i32(w)] += ours[i32(w)] + mine[i32(w)];
             tail[w][w] = k; tail[k][w] += tail[w][k];
         }
         four[7] += ours[7] + mine[7];",
    );
    is_right(
        "var v = vec4u(1u, 2u, 3u, 4u); var m = mat4x4f();
         for (var k = 0u; k < 16u; k++) {
             v[wild[k] & 3u] += 1u; m[wild[k] & 3u][k & 3u] += 1.0;
             four[v[wild[k] % 4u]] ^= u32(m[k & 3u][wild[k] & 3u]);
         }",
    );
}

#[test]
fn computed_indices_stay_within_their_arrays() {
    is_right(
        "for (var k = 0u; k < 16u; k++) {
             let w = wild[k];
             four[w * 4u] = k; four[w << 3u] += 1u; four[w - 1u] ^= k; four[~w] += 2u;
             four[(w + 0x80000000u) / 3u] = 5u; tail[w >> 30u][w % 5u] = w;
             for (var i = w; i - w < 3u; i++) { four[i] += 1u; ours[i] = i; mine[7u - i] = i; }
         }
         for (var i = 0u; i < 8u; i++) { four[i] += ours[i] + mine[i]; }",
    );
}

/// An assignment in one branch implies nothing for the other.
#[test]
fn branch_assigned_indices_stay_in_bounds() {
    is_right(
        "for (var k = 0u; k < 16u; k++) {
             var i = wild[k]; var j = wild[15u - k];
             if (wild[k] & 3u) == 1u { i = k & 3u; four[0] += next(); }
             if (wild[k] & 2u) == 0u { four[1] ^= next(); } else { j = k & 1u; four[2] = next(); }
             four[i] += k; ours[i] = k; mine[j] = i; tail[j][i] ^= ours[j];
         }
         for (var i = 0u; i < 8u; i++) { four[i] += ours[i] + mine[i]; }",
    );
}

#[test]
fn changing_loop_bounds_bound_nothing() {
    is_right(
        "var n = 4u; var rounds = 0u;
         for (var i = 0u; i < n; i++) {
             four[i] = i; n += 2u; rounds++; if rounds > 20u { break; }
         }",
    );
    is_right(
        "four[0] = 5u; var rounds = 0u;
         for (var i = 0u; i < four[0]; i++) {
             four[i] = wild[i]; tail[i][i] = i; rounds++; if rounds > 30u { break; }
         }",
    );
    is_right(
        "var i = 0u; var rounds = 0u;
         while i < 8u { four[i] = i; i = wild[i + rounds]; rounds++; if rounds > 9u { break; } }",
    );
}

/// Counters that wrap, and steps that jump over the end.
#[test]
fn endless_counters_are_stopped() {
    let endless = |body| ends(Outcome::Stopped, body);
    endless("for (var i = 10u; i >= 0u; i--) { four[i] = i; }");
    endless("for (var i = 0u; i != 7u; i += 2u) { four[i] = i; }");
    endless("for (var i = 3; i < 0x7fffffff; i *= 0) { four[i] = 1u; }");
    endless("var i = 0u; while i < 8u { four[i] = 1u; i = wild[i & 1u]; }");
    endless("loop { four[next() & 1u] += 1u; if four[0] == 7u && false { break; } }");
    endless("var i = 0u; loop { i += 1u; if i == 5u { i = 0u; continue; } if i > 6u { break; } }");
}

#[test]
fn wrapping_counters_stay_in_bounds() {
    is_right("var n = 0u; for (var i = 0xfffffffau; i > 5u; i++) { four[i] = i; }");
    is_right("var n = 0; for (var i = 0x7ffffffa; i > 5; i++) { four[i] = u32(n); n++; }");
    is_right("for (var i = 7; i >= 0; i -= 3) { four[i] = u32(i); }");
    is_right("for (var i = -3; i <= 3; i++) { four[i] += 1u; four[i + 5] += 2u; }");
    is_right("for (var i = 0u; i < 100u; i += 0x40000001u) { four[i] += 1u; }");
}
