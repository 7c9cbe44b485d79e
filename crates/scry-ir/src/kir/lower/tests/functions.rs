//! Tests of calls, and of the variables of functions.

use super::{count_statements, kernel, lower_checked, run};
use crate::kir::Stmt;

#[test]
fn functions_return_early() {
    let declarations = "
        fn find(wanted: u32) -> u32 {
            for (var i = 0u; i < 5u; i++) {
                if data[i] == wanted { return i; }
                if data[i] == 0u { break; }
            }
            return 99u;
        }
        fn both(a: u32) -> u32 { if a > 1u { return a * 2u; } else { return a + 7u; } }
        fn nothing(a: u32) { if a > 1u { return; } out[3] = a; }
        struct Pair { first: u32, second: vec2u }
        fn pair(a: u32) -> Pair {
            if a == 3u { return Pair(1u, vec2(2u)); }
            return Pair(a, vec2(a, 5u));
        }";
    let body = "
        out[0] = find(3u) * 100u + find(8u);
        out[1] = both(1u) * 100u + both(both(4u));
        nothing(7u); nothing(1u); nothing(2u);
        let p = pair(3u); let q = pair(4u);
        out[2] = p.first + 10u * p.second.y + 100u * q.first + 1000u * q.second.y;";
    let data = [5, 4, 3, 2, 0];
    assert_eq!(run(declarations, body, &data), [299, 816, 5421, 1]);
}

#[test]
fn final_return_needs_no_scope() {
    let declarations = "
        fn plain(a: u32) -> u32 { var b = a; if a > 3u { b = 1u; } return b; }
        fn both_blocks(a: u32) -> u32 { if a > 3u { return 1u; } else { return a; } }";
    let kir =
        lower_checked(&kernel(declarations, "out[0] = plain(data[0]) + both_blocks(data[1]);"));
    let jumps = |stmt: &Stmt| matches!(stmt, Stmt::Scope { .. } | Stmt::Break(_));
    assert_eq!(count_statements(&kir.body, &jumps), 0);
}

#[test]
fn locals_reset_per_call_and_iteration() {
    let declarations = "
        fn count() -> u32 { var n: u32; var five = 5u; n++; five++; return n * 10u + five; }
        fn sum(i: u32) -> u32 { var a: array<u32, 4>; a[i & 3u] += 1u; return a[0] + a[1] * 2u; }";
    let body = "
        for (var i = 0u; i < 2u; i++) { var fresh: u32; fresh += 1u + i; out[0] += fresh; }
        out[1] = count() + count();
        for (var i = 0u; i < 2u; i++) { out[2] = out[2] * 10u + sum(data[0]) + sum(data[1]); }";
    assert_eq!(run(declarations, body, &[0, 1]), [3, 32, 33]);
}

#[test]
fn pointer_arguments_access_caller_variables() {
    let declarations = "
        struct S { n: u32, v: vec3u, a: array<u32, 3> }
        var<private> counter: array<u32, 2> = array(40u, 50u);
        fn bump(p: ptr<function, u32>) -> u32 { *p += 1u; return *p; }
        fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }
        fn nth(p: ptr<function, array<u32, 3>>, i: u32) -> u32 { (*p)[i] += 1u; return (*p)[i]; }
        fn through(p: ptr<function, S>, i: u32) -> u32 {
            return bump(&(*p).n) + nth(&(*p).a, i) + bump(&(*p).a[1]);
        }
        fn private_one(p: ptr<private, u32>) { *p += 2u; }";
    let body = "
        var s = S(1u, vec3(2u, 3u, 4u), array(5u, 6u, 7u));
        out[0] = through(&s, data[0]);
        swap(&s.n, &s.a[0]);
        private_one(&counter[data[0] - 1u]);
        let p = &s.v; (*p).y += bump(&s.n);
        out[1] = s.n + 10u * s.a[0] + 100u * s.a[1] + 1000u * s.a[2] + 10000u * s.v.y;
        out[2] = counter[0] * 100u + counter[1];";
    // through: n 2, a[2] 8, a[1] 7; then n and a[0] are swapped, and n is incremented from 5 to 6.
    assert_eq!(run(declarations, body, &[2]), [17, 98_726, 4052]);
}

#[test]
fn private_variables_are_initialised() {
    let declarations = "
        const SIZES = array(3u, 1u, 4u, 1u, 5u);
        var<private> sizes = SIZES;
        var<private> zero: vec4u;
        var<private> one = vec2(7u, 8u);";
    let body = "sizes[data[0]] += one.y; zero.z += one.x; out[0] = sizes[2] * 100u + sizes[3];
        out[1] = zero.z + zero.x;";
    assert_eq!(run(declarations, body, &[2]), [1201, 7]);
}
