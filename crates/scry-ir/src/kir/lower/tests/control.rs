//! Tests of control flow.

use super::{count_statements, kernel, lower_checked, lower_unchecked, run};
use crate::kir::{Kir, Label, Stmt};

#[test]
fn loops_continue_and_break() {
    // 1 + 3 + 5 + 7; `break` at 9.
    let body = "
        var sum = 0u;
        for (var i = 0u; i < 100u; i++) {
            if i % 2u == 0u { continue; }
            if i == 9u { break; }
            sum += i;
        }
        out[0] = sum;
        var n = 0u;
        loop {
            if n == data[0] { continue; }
            out[1] += 10u;
            continuing { n++; break if n >= data[1]; }
        }
        while n > 2u { n--; for (var j = 0u; j < 3u; j++) { out[2]++; } }
        out[3] = n;";
    assert_eq!(run("", body, &[2, 5]), [16, 40, 9, 2]);
}

#[test]
fn continuing_block_sees_body_values() {
    let body = "
        var i = 0u;
        loop {
            let step = data[i] + 1u;
            let pointer = &out[i & 3u];
            if step == 2u { continue; }
            out[3] += 1u;
            continuing {
                *pointer = step;
                i += step;
                break if i + step > 6u;
            }
        }
        out[2] = i;";
    // i: 0 → step 2, continues → 2 → step 3 → 5, and 5 + 3 > 6.
    assert_eq!(run("", body, &[1, 0, 2, 0, 0, 0]), [2, 0, 5, 1]);
}

#[test]
fn switch_executes_selected_clause() {
    let declarations = "
        fn few_clauses(x: u32) -> u32 {
            var y = 7u;
            switch x {
                case 1u, 2u: { y = 10u; }
                case 3u, default: { if x == 9u { break; } y = 20u; }
                case 4u: { for (var i = 0u; i < 3u; i++) { switch i { case 1u: { continue; }
                    case default: { break; } } y += 100u; } }
                case 5u: { return 50u; }
            }
            return y;
        }
        fn many_clauses(x: i32) -> u32 {
            switch x {
                case -1: { return 1u; } case 0: { return 2u; } case 1: { return 3u; }
                case 2: { return 4u; } case 3, 4: { return 5u; } case 5: {} case 6: { return 6u; }
                case 7: { return 7u; } case 8: { return 8u; } case 9: { return 9u; }
                case 10: { return 10u; } default: { return 11u; }
            }
            return 12u;
        }";
    let body = "for (var i = 0u; i < 7u; i++) { out[i] = few_clauses(data[i]); }
        for (var i = 7u; i < 13u; i++) { out[i] = many_clauses(i32(data[i])); }";
    let data = [1, 2, 3, 4, 5, 6, 9, u32::MAX, 0, 4, 5, 10, 77];
    assert_eq!(run("", "", &[1]), [0; 1]);
    assert_eq!(run(declarations, body, &data), [10, 10, 20, 207, 50, 20, 7, 1, 2, 5, 12, 10, 11]);
}

#[test]
fn return_exits_nested_statements() {
    let body = "
        out[0] = 1u;
        for (var i = 0u; i < 5u; i++) {
            switch i { case 2u: { if data[0] == 1u { return; } } default: { out[1]++; } }
        }
        out[2] = 1u;";
    assert_eq!(run("", body, &[1]), [1, 2, 0]);
    assert_eq!(run("", body, &[0]), [1, 4, 1]);
}

#[test]
fn jumps_to_next_statement_are_removed() {
    let body = "
        for (var i = 0u; i < data[0]; i++) {
            if i > 3u { out[0]++; continue; } else { out[1]++; }
            switch i { case 1u: { out[2]++; break; } default: {} }
        }
        if data[0] > 3u { return; } else { out[3] = 1u; return; }";
    let kir = lower_checked(&kernel("", body));
    assert_eq!(count_statements(&kir.body, &|stmt| matches!(stmt, Stmt::Break(Label::KERNEL))), 0);
    // `continue` at the end of the `then` block is not at the end of the body.
    assert_eq!(count_statements(&kir.body, &|stmt| matches!(stmt, Stmt::Scope { .. })), 1);
    assert_eq!(run("", body, &[6]), [2, 4, 1, 0]);
}

#[test]
fn only_proven_loops_are_finite() {
    let body = "
        for (var i = 0u; i < 5u; i++) { out[i] = 1u; }
        loop { if data[0] == 0u { break; } for (var i = 0u; i < 5u; i++) { out[i] = 1u; } }
        var n = data[1];
        while n != 1u { n = select(n / 2u, 3u * n + 1u, n % 2u == 1u); }";
    // Counts the finite loops, and the others.
    let count_loops = |kir: &Kir| {
        let count = |expected| {
            count_statements(
                &kir.body,
                &|s| matches!(s, Stmt::Loop { finite, .. } if *finite == expected),
            )
        };
        (count(true), count(false))
    };
    let source = kernel("", body);
    assert_eq!(count_loops(&lower_checked(&source)), (2, 2));
    // Without checks, the source is trusted: its loops are claimed to terminate.
    assert_eq!(count_loops(&lower_unchecked(&source)), (4, 0));
}

#[test]
fn cheap_logical_operators_are_branchless() {
    let body = "
        let x = data[0]; let y = data[1];
        var i = 0u;
        while i < x && i < y && !(i == 5u || i + 1u == y) { i++; }
        out[0] = i;
        out[1] = u32(x > 3u || y > 3u && x == y);";
    let kir = lower_checked(&kernel("", body));
    // The exit of the loop is the only branch.
    assert_eq!(count_statements(&kir.body, &|stmt| matches!(stmt, Stmt::If { .. })), 1);
    for (x, y) in [(9, 9), (3, 9), (4, 2), (9, 6), (0, 0), (2, 2), (4, 4)] {
        let mut i = 0;
        while i < x && i < y && !(i == 5 || i + 1 == y) {
            i += 1;
        }
        let second = x > 3 || y > 3 && x == y;
        assert_eq!(run("", body, &[x, y]), [i, second.into()], "{x}, {y}");
    }
}

#[test]
fn logical_operators_short_circuit_effects() {
    let declarations = "
        var<private> calls = 0u;
        fn odd(x: u32) -> bool { calls++; return x % 2u == 1u; }";
    let body = "
        out[0] = u32(data[0] == 1u && odd(data[1]));
        out[1] = u32(data[0] == 1u || odd(data[1]));
        var y = 5u; var named = true;
        if data[0] == 1u { if data[1] == 3u { named = false; } y = 1u; }
        out[2] = calls; out[3] = y + u32(named);";
    assert_eq!(run(declarations, body, &[1, 3]), [1, 1, 1, 1]);
    assert_eq!(run(declarations, body, &[0, 3]), [0, 1, 1, 6]);
    assert_eq!(run(declarations, body, &[0, 2]), [0, 0, 1, 6]);
}

#[test]
fn bool_variables_keep_their_assignments() {
    let body = "
        var inner = true; var outer = true;
        let a = data[0] == 1u; let b = data[1] == 1u;
        if a { if b { inner = false; } else { inner = a; } outer = b; } else { outer = false; }
        out[0] = u32(inner); out[1] = u32(outer);";
    assert_eq!(run("", body, &[0, 1]), [1, 0]);
    assert_eq!(run("", body, &[1, 1]), [0, 1]);
}
