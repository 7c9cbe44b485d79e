//! Tests of which loops are unrolled: only those whose exit test and step read the counter's
//! current value.

use scry_ir::kir::{Kir, KirOptions, Stmt, unrolled_loop};

/// Returns a kernel with two buffers and the statements of `body`.
fn kernel(body: &str) -> Kir {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32, 8>;
         @group(0) @binding(1) var<storage, read_write> counter: atomic<u32>;
         var<workgroup> shared_bound: array<u32, 8>;
         @compute @workgroup_size(1)
         fn main(@builtin(local_invocation_index) lane: u32) {{ {body} }}"
    );
    let program = scry_ir::Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let kir = program.to_kir(&KirOptions { checked: true });
    kir.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the trip count of each loop, in the order of the text; `None` if it is not unrolled.
fn trip_counts(body: &str) -> Vec<Option<u32>> {
    fn collect(kir: &Kir, block: &[Stmt], counts: &mut Vec<Option<u32>>) {
        for (nth, stmt) in block.iter().enumerate() {
            if let Stmt::Loop { label, body, .. } = stmt {
                counts.push(
                    unrolled_loop(kir, &block[..nth], *label, body)
                        .map(|unrolled| unrolled.trip_count),
                );
            }
            stmt.blocks().for_each(|block| collect(kir, block, counts));
        }
    }
    let kir = kernel(body);
    let mut counts = Vec::new();
    collect(&kir, &kir.body, &mut counts);
    counts
}

#[test]
fn plain_counters_are_unrolled() {
    assert_eq!(trip_counts("for (var i = 1u; i < 8u; i++) { data[i] = i; }"), [Some(7)]);
    assert_eq!(trip_counts("for (var i = 7i; i >= 0; i -= 2) { data[i] = 1u; }"), [Some(4)]);
    let nested = "for (var i = 2u; i < 6u; i++) {
        for (var j = 0u; j < 2u; j++) { data[i + j] = j; }
    }";
    assert_eq!(trip_counts(nested), [Some(4), Some(2)]);
    let until = "var i = 2u; loop { if i >= 8u { break; } data[i] = i; i += 1u; }";
    assert_eq!(trip_counts(until), [Some(6)]);
    let until_equal = "var i = 8u; loop { if i == 0u { break; } i -= 2u; data[i] = i; }";
    assert_eq!(trip_counts(until_equal), [Some(4)]);
}

/// An assignment of 0 before all others is removed: variables start at 0.
#[test]
fn counters_from_zero_are_unrolled() {
    assert_eq!(trip_counts("for (var i = 0u; i < 8u; i++) { data[i] = i; }"), [Some(8)]);
    assert_eq!(trip_counts("for (var i = 0i; i > -6; i -= 2) { data[-i] = 1u; }"), [Some(3)]);
    let in_branch = "if lane == 0u { for (var i = 0u; i < 4u; i++) { data[i] = i; } }";
    assert_eq!(trip_counts(in_branch), [Some(4)]);
    let two = "var i = 0u;
        for (; i < 4u; i++) { data[i] = i; }
        for (; i < 8u; i++) { data[i] = 1u; }";
    assert_eq!(trip_counts(two), [Some(4), None]);
}

/// The counter is not set in the block of the loop, but it may differ from 0.
#[test]
fn counters_that_were_set_before_are_not_unrolled() {
    let outer_branch = "var i = 0u;
        if data[0] == 1u { i = data[1]; }
        if lane == 0u { for (; i < 4u; i++) { data[i] = i; } }";
    assert_eq!(trip_counts(outer_branch), [None]);
    // The second iteration of the outer loop starts with 4.
    let outer_loop = "var i = 0u;
        for (var j = 0u; j < data[7]; j++) { for (; i < 4u; i++) { data[i] = j; } data[7]--; }";
    assert_eq!(trip_counts(outer_loop), [None, None]);
    let set_after = "var i = 0u;
        while data[0] > 1u { while i < 4u { data[i] = 7u; i++; } i = data[1]; }";
    assert_eq!(trip_counts(set_after), [None, None]);
}

/// The step is added to a stale value of the counter, so that the start and the bound do not
/// determine the trip count of the inner loop.
#[test]
fn stale_step_prevents_unrolling() {
    let inner = "var i = 5u;
        while i <= 7u {
            let saved = i;
            i = 0u;
            while i <= 5u { data[i] = 7u; i = saved + 1u; }
            i = saved + 1u;
        }";
    assert_eq!(trip_counts(inner), [None, None]);
    let from_data = "var i = 5u;
        loop {
            let saved = i;
            i = 0u;
            while i < 4u { data[i] = 7u; i = saved + 1u; }
            shared_bound[lane] = i;
            i = shared_bound[1];
            if i == 9u { break; }
        }";
    assert_eq!(trip_counts(from_data), [None, None]);
}

/// The exit test reads a stale value of the counter, so that its result does not change.
#[test]
fn stale_exit_test_prevents_unrolling() {
    let body = "var i = 5u;
        loop {
            let saved = i;
            i = 0u;
            loop {
                if saved < 4u {} else { break; }
                data[i] = 7u;
                i += 1u;
            }
            i = data[2];
            if i == 9u { break; }
        }";
    assert_eq!(trip_counts(body), [None, None]);
}

/// The exit test is evaluated once more than the rest of the body, and so are the effects before
/// it.
#[test]
fn effects_before_exit_test_prevent_unrolling() {
    let body = "var i = 1u;
        loop {
            let x = atomicAdd(&counter, 1u);
            if i < 5u {} else { break; }
            data[i] = x;
            i += 1u;
        }";
    assert_eq!(trip_counts(body), [None]);
}

#[test]
fn two_steps_prevent_unrolling() {
    let body = "for (var i = 0u; i < 8u; i++) { data[i] = 1u; if data[0] == 3u { i += 2u; } }";
    assert_eq!(trip_counts(body), [None]);
}
