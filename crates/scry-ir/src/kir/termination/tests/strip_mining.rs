//! Tests of strip mining: kernels compute the same, and poll often enough.

use scry_test_support::env_number;

use super::random;
use crate::Program;
use crate::kir::interpret::{Event, Interpreter};
use crate::kir::termination::mark_finite;
use crate::kir::termination::strip_mining::strip_mined;
use crate::kir::{
    Const, Definition, Inst, Kir, KirOptions, Stmt, Type, Value, for_each_stmt, for_each_stmt_mut,
    optimise, verify,
};

/// Iterations that suffice for every kernel of these tests.
const ITERATION_LIMIT: u64 = 1_000_000;

/// Returns the optimised kernel with a body; `n`, `k` and `m` are unknown numbers.
fn kernel(body: &str) -> Kir {
    let source = format!(
        "struct Params {{ n: u32, k: i32, m: u32 }}
        @group(0) @binding(0) var<storage, read_write> data: array<u32, 64>;
        @group(0) @binding(1) var<uniform> params: Params;
        @compute @workgroup_size(4)
        fn main(
            @builtin(local_invocation_index) lane: u32,
            @builtin(num_workgroups) groups: vec3u,
        ) {{
            let n = params.n; let k = params.k; let m = params.m;
            {body}
        }}"
    );
    let program = Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    program.to_kir(&KirOptions { checked: true }).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns whether each loop is marked as finite, outer loops first.
fn finite_loops(kir: &Kir) -> Vec<bool> {
    let mut found = Vec::new();
    for_each_stmt(&kir.body, &mut |stmt| {
        if let Stmt::Loop { finite, .. } = stmt {
            found.push(*finite);
        }
    });
    found
}

/// Runs two workgroups, and returns the buffer.
fn run(kir: &Kir, params: [u32; 3]) -> Vec<u8> {
    let params = params.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut interpreter = Interpreter::new(kir, vec![vec![7; 256], params]);
    interpreter.iteration_limit = ITERATION_LIMIT;
    interpreter.run([2, 1, 1]).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    interpreter.buffers.swap_remove(0)
}

/// Asserts that a kernel computes the same in strips of different lengths, and that its loops are
/// marked as finite as expected, in strips of 16 iterations.
#[track_caller]
fn mined(body: &str, expected: &[bool]) {
    let kir = kernel(body);
    assert_eq!(finite_loops(&strip_mined(&kir, 16)), expected, "{}", strip_mined(&kir, 16));
    for strip in [2, 3, 16, 1 << 12] {
        let mined = strip_mined(&kir, strip);
        verify(&mined).unwrap_or_else(|error| panic!("{error}\n{mined}"));
        for n in [0, 1, 2, 15, 16, 17, 50] {
            for k in [-20, -1, 0, 1, 33] {
                let params = [n, k as u32, n / 3];
                let results = (run(&kir, params), run(&mined, params));
                assert_eq!(results.0, results.1, "strips of {strip}, {params:?}\n{kir}\n{mined}");
            }
        }
    }
}

#[test]
fn long_counted_loops_become_strips() {
    let strips = &[false, true];
    mined("for (var i = 0u; i < n; i++) { data[lane] += i; }", strips);
    mined("for (var i = lane; n > i; i++) { data[lane] += i; }", strips);
    mined("for (var i = 0; i < k; i++) { data[lane] += u32(i); }", strips);
    mined("for (var i = -9; i <= min(k, 100); i += 3) { data[lane] += u32(i); }", strips);
    mined("for (var i = k; i > 0; i--) { data[lane] += u32(i); }", strips);
    mined("for (var i = min(n, 99u); i >= 7u; i -= 7u) { data[lane] += i; }", strips);
    mined("for (var i = 0u; i != n; i++) { data[lane] += i; }", strips);
    mined("for (var i = n; i != 0u; i--) { data[lane] += i; }", strips);
    mined("for (var i = 2147483600i; i < 2147483640; i++) { data[lane] += u32(i); }", strips);
    mined("for (var i = lane; i < n / 2u; i += groups.x * 4u) { data[lane] += i; }", strips);
}

#[test]
fn conditions_with_other_parts_are_kept() {
    let body = "var x = 1u; for (var i = 0u; i < n && x < 900u; i++) { x = x * 2u + lane; }
        data[lane] = x;";
    mined(body, &[false, true]);
    let body = "let x = data[lane + 4u];
        var i = 0u; while !(i >= n || (i + x) % 9u == 8u) { data[lane] += i; i++; }
        data[lane + 8u] = i;";
    mined(body, &[false, true]);
}

#[test]
fn exits_leave_both_loops() {
    let body = "for (var i = 0u; i < n; i++) {
            if i == 20u { break; }
            if i % 3u == 1u { continue; }
            if data[lane + 4u] > 400u { return; }
            data[lane + 4u] += i;
        }
        data[lane] = 5u;";
    mined(body, &[false, true]);
}

#[test]
fn loops_that_step_before_an_unequal_test_poll() {
    // 2^32 iterations. The scope of the `switch` keeps the step apart from the test.
    let body = "var c = 5u; loop {
            switch lane {
                default: {
                    c += 1u; data[lane] += c;
                    if data[lane] == 7u { break; }
                    data[lane] += 1u;
                }
            }
            if c == 5u { break; }
        }";
    let kir = kernel(body);
    assert_eq!(finite_loops(&kir), [true], "{kir}");
    assert_eq!(finite_loops(&kir.strip_mined()), [false], "{}", kir.strip_mined());
}

#[test]
fn strips_of_nested_loops_are_shorter() {
    let inner = "for (var j = 0u; j < 3u; j++) { data[lane] += i * j; }";
    mined(&format!("for (var i = 0u; i < n; i++) {{ {inner} }}"), &[false, true, true]);
    let inner = "for (var j = 0u; j < m; j++) { data[lane] += i * j; }";
    mined(&format!("for (var i = 0u; i < n; i++) {{ {inner} }}"), &[false, true, false, true]);
}

#[test]
fn short_loops_are_unchanged() {
    mined("for (var i = 0u; i < 15u; i++) { data[lane] += i; }", &[true]);
    mined("for (var i = n; i > 0u; i >>= 3u) { data[lane] += i; }", &[false]);
    let long = kernel("for (var i = 0u; i < 4000u; i++) { data[lane] += i; }");
    assert_eq!(*long.strip_mined(), long);
    let many = kernel(
        "for (var i = 0u; i < 90u; i++) { for (var j = 0u; j < 90u; j++) { data[lane] += j; } }",
    );
    assert_eq!(finite_loops(&many.strip_mined()), [false, true, true]);
}

#[test]
fn loops_with_workgroup_barriers_are_unchanged() {
    mined("for (var i = 0u; i < n; i++) { data[lane] += i; workgroupBarrier(); }", &[true]);
}

#[test]
fn long_loops_of_other_forms_poll_in_each_iteration() {
    mined("var i = 0u; loop { data[lane] += i; if i >= n { break; } i++; }", &[false]);
    mined("var i = 0u; loop { data[lane] += i; i++; if i > 99u { break; } }", &[false]);
    let body = "var i = 0u; while i < n && data[i] != 9u { data[lane] += i; i++; }";
    mined(body, &[false]);
}

/// Adds a constant to the start of each loop's body. Returns those of loops that are marked as
/// finite, and those of the others.
fn mark_iterations(kir: &mut Kir) -> [Vec<Value>; 2] {
    let Kir { values, body, .. } = kir;
    let mut marks = [Vec::new(), Vec::new()];
    for_each_stmt_mut(body, &mut |stmt| {
        if let Stmt::Loop { body, finite, .. } = stmt {
            let value = Value(values.len() as u32);
            let constant = Const::u32(0);
            values.push(Definition { ty: Type::U32, inst: Inst::Const(constant) });
            body.insert(0, Stmt::Let(value));
            marks[usize::from(!*finite)].push(value);
        }
    });
    marks
}

/// Runs a kernel of one invocation; returns the buffer, and the most iterations between two polls.
fn run_marked(kir: &Kir, bytes: Vec<u8>) -> (Vec<u8>, u64) {
    let mut kir = kir.clone();
    let [finite, polling] = mark_iterations(&mut kir);
    let mut interpreter = Interpreter::new(&kir, vec![bytes]);
    interpreter.iteration_limit = ITERATION_LIMIT;
    let (mut most, mut iterations) = (0, 0);
    let observed = interpreter.observe([1; 3], &mut |_, event| match event {
        Event::Computed(value, _) if polling.contains(&value) => iterations = 0,
        Event::Computed(value, _) if finite.contains(&value) => {
            iterations += 1;
            most = most.max(iterations);
        }
        _ => {}
    });
    observed.unwrap_or_else(|error| panic!("{error}\n{kir}"));
    (interpreter.buffers.swap_remove(0), most)
}

#[test]
fn random_loops_compute_the_same_and_poll() {
    let seeds = env_number("SCRY_FUZZ_SEEDS").unwrap_or(2000);
    let mut split = 0;
    for seed in 0..seeds {
        let (mut kir, bytes) = random::kernel(seed);
        mark_finite(&mut kir);
        if !kir.is_finite() {
            continue;
        }
        optimise(&mut kir);
        let expected = run_marked(&kir, bytes.clone()).0;
        for strip in [2, 5, 64] {
            let mined = strip_mined(&kir, strip);
            verify(&mined).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{mined}"));
            let loops = [&kir, &*mined].map(|kir| finite_loops(kir).len());
            split += u64::from(loops[0] < loops[1]);
            let (found, iterations) = run_marked(&mined, bytes.clone());
            assert_eq!(found, expected, "seed {seed}, strips of {strip}\n{kir}\n{mined}");
            // The iteration that only evaluates the exit test counts as well.
            assert!(
                iterations <= 2 * (strip + 1),
                "seed {seed}: {iterations} iterations without a poll, strips of {strip}\n{mined}"
            );
        }
    }
    assert!(split > seeds / 60, "only {split} kernels of {seeds} seeds have loops that are split");
}
