//! Tests of values: indexing, constants, built-in values, atomics and subgroup operations.

use super::count_insts;
use super::{bytes, count_statements, kernel, lower_checked, run, words};
use crate::kir::interpret::Interpreter;
use crate::kir::{AddressSpace, AtomicOp, Barrier, Builtin, Inst, Stmt};

#[test]
fn values_are_indexed_like_variables() {
    let declarations = "
        struct Pair { a: u32, b: vec2u }
        fn nth(v: vec3u, i: u32) -> u32 { return v[i]; }";
    let body = "
        let i = data[0]; let j = data[1];
        let short = array(i, j, i + j);
        let long = array(i, j, i + j, i * j, 7u, 8u);
        let pairs = array(Pair(i, vec2(1u, 2u)), Pair(j, vec2(3u, 4u)));
        let m = mat2x3f(1.0, 2.0, 3.0, 4.0, 5.0, f32(i));
        out[0] = short[i] * 100u + short[j] * 10u + nth(vec3(4u, 5u, 6u), j);
        out[1] = long[i] * 1000u + long[j + 3u] * 100u + long[5];
        out[2] = pairs[j].b.x * 100u + pairs[j].b[j] * 10u + pairs[0].a;
        out[3] = u32(m[j].z * 10.0 + m[j][j] + m[0].x);";
    assert_eq!(run(declarations, body, &[2, 1]), [315, 3708, 342, 26]);
}

#[test]
fn tables_are_filled_once() {
    let declarations = "const SQUARES = array(0u, 1u, 4u, 9u, 16u, 25u, 36u);";
    let body = "for (var i = 0u; i < 6u; i++) { out[i] = SQUARES[data[i]] + SQUARES[6]; }";
    let kir = lower_checked(&kernel(declarations, body));
    let to_local = |stmt: &Stmt| match stmt {
        Stmt::Store { place, .. } => matches!(place.space, AddressSpace::Local(_)),
        _ => false,
    };
    assert_eq!(kir.body.iter().filter(|stmt| to_local(stmt)).count(), 7);
    assert_eq!(count_statements(&kir.body, &to_local), 7);
    assert_eq!(run(declarations, body, &[0, 1, 2, 3, 4, 5]), [36, 37, 40, 45, 52, 61]);
}

#[test]
fn large_constants_are_indexed_and_copied() {
    let numbers: Vec<_> = (0..400u32).map(|n| format!("{n}u")).collect();
    let declarations = format!(
        "struct S {{ v: vec2f, m: mat2x2f }}
        const LARGE = array({});
        const S1 = S(vec2f(1.5), mat2x2f(1.0, 2.0, 3.0, 4.0));",
        numbers.join(", ")
    );
    let body = "
        out[0] = LARGE[data[0]] + LARGE[399];
        var s = S1; s.m[1].x += s.v.y;
        out[1] = u32(s.m[1].x * 10.0);
        var large = LARGE; large[data[0]] = 0u; out[2] = large[17] + large[18];";
    assert_eq!(run(&declarations, body, &[17]), [416, 45, 18]);
}

#[test]
fn overrides_are_constants() {
    let declarations = "
        override N = 3u;
        override FLAG = true;
        const TWICE = vec2(2u) * 2u;
        var<private> sizes = array(N, N * 2u, TWICE.y);
        var<workgroup> shared_array: array<u32, N * 4u>;";
    let body = "
        var local = vec3(N, TWICE);
        shared_array[data[0]] = 5u;
        out[0] = sizes[1] * 100u + local.x * 10u + local.z;
        out[1] = shared_array[N * 4u - 1u] + u32(FLAG);";
    assert_eq!(run(declarations, body, &[11]), [634, 6]);
}

#[test]
fn builtins_are_computed_from_ids() {
    let source = "
        struct Ids {
            @builtin(local_invocation_id) local: vec3u,
            @builtin(workgroup_id) group: vec3u,
        }
        @group(0) @binding(0) var<storage, read_write> out: array<array<u32, 6>>;
        @compute @workgroup_size(2, 1, 3)
        fn main(@builtin(global_invocation_id) id: vec3u, ids: Ids,
            @builtin(local_invocation_index) index: u32, @builtin(num_workgroups) groups: vec3u) {
            let at = (ids.group.x + groups.x * ids.group.y) * 6u + index;
            out[at] = array(id.x, id.y, id.z, index, ids.local.z, groups.y);
        }";
    let kir = lower_checked(source);
    // The workgroup has one invocation along y, so no id is needed.
    let reads = |builtin| count_insts(&kir, |inst| *inst == Inst::Builtin(builtin));
    assert_eq!(reads(Builtin::LocalId(1)), 0);
    let mut interpreter = Interpreter::new(&kir, vec![vec![0; 2 * 3 * 6 * 24]]);
    interpreter.run([2, 3, 1]).unwrap_or_else(|error| panic!("{error}"));
    let mut expected = Vec::new();
    for (group_y, group_x) in (0..3).flat_map(|y| (0..2).map(move |x| (y, x))) {
        for (z, x) in (0..3).flat_map(|z| (0..2).map(move |x| (z, x))) {
            expected.extend([group_x * 2 + x, group_y, z, x + 2 * z, z, 3]);
        }
    }
    assert_eq!(words(&interpreter.buffers[0]), expected);
}

#[test]
fn atomics_return_old_values() {
    let declarations = "
        struct A { n: atomic<u32>, s: array<atomic<i32>, 3> }
        @group(0) @binding(2) var<storage, read_write> a: A;
        var<workgroup> w: atomic<u32>;";
    let body = "
        let first = atomicCompareExchangeWeak(&a.n, 5u, 7u);
        let second = atomicCompareExchangeWeak(&a.n, 5u, 9u);
        out[0] = first.old_value * 100u + u32(first.exchanged) * 10u + second.old_value;
        out[1] = u32(second.exchanged) + 10u * u32(atomicMax(&a.s[data[0]], 4));
        atomicSub(&a.s[1], 1);
        out[2] = atomicAdd(&w, 3u) + atomicExchange(&w, 6u) * 10u + atomicLoad(&w) * 100u;
        atomicStore(&a.s[0], 8);";
    let kir = lower_checked(&kernel(declarations, body));
    let buffers = vec![bytes(&[0; 3]), bytes(&[2]), bytes(&[5, 1, 2, 3])];
    let mut interpreter = Interpreter::new(&kir, buffers);
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(words(&interpreter.buffers[0]), [517, 30, 630]);
    assert_eq!(words(&interpreter.buffers[2]), [7, 8, 1, 4]);
    let atomics =
        |op| count_insts(&kir, |inst| matches!(inst, Inst::Atomic { op: o, .. } if *o == op));
    assert_eq!((atomics(AtomicOp::Store), atomics(AtomicOp::Load)), (1, 1));
}

#[test]
fn uniform_loads_are_vectorised() {
    let declarations = "struct Pair { low: vec2<u32>, flag: u32, count: atomic<u32> }
        var<workgroup> w: Pair;";
    let body = "w.low = vec2(data[0], 5u); w.flag = 7u; atomicStore(&w.count, 4u);
        let low = workgroupUniformLoad(&w.low);
        let count = workgroupUniformLoad(&w.count);
        out[0] = low.x + 10u * low.y + 100u * count + workgroupUniformLoad(&w.flag) * 1000u;
        storageBarrier(); subgroupBarrier();";
    let kir = lower_checked(&kernel(declarations, body));
    let loads: Vec<_> = kir
        .values
        .iter()
        .filter_map(|definition| match definition.inst {
            Inst::WorkgroupUniformLoad { count, .. } => Some(count),
            _ => None,
        })
        .collect();
    assert_eq!(loads, [2, 1, 1]);
    let barriers: Vec<_> = kir
        .body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Barrier(barrier, _) => Some(*barrier),
            _ => None,
        })
        .collect();
    assert_eq!(barriers, [Barrier::Workgroup, Barrier::Subgroup]);
    assert_eq!(run(declarations, body, &[3]), [7453]);
}

#[test]
fn large_uniform_loads_have_two_barriers() {
    let declarations = "var<workgroup> w: array<u32, 300>;";
    let body = "w[299] = data[0]; let all = workgroupUniformLoad(&w); out[0] = all[299];";
    let kir = lower_checked(&kernel(declarations, body));
    let barriers = kir.body.iter().filter(|stmt| matches!(stmt, Stmt::Barrier(..))).count();
    assert_eq!(barriers, 2);
    assert_eq!(run(declarations, body, &[3]), [3]);
}

#[test]
fn subgroup_operations_are_component_wise() {
    let body = "
        let sum = subgroupAdd(vec2(data[0], 3u));
        let up = subgroupShuffleUp(vec3(data[0]), 1u);
        let swapped = quadSwapDiagonal(data[0]);
        let ballot = subgroupBallot(data[0] == 2u);
        out[0] = sum.y + ballot.x * 10u + up.z * 100u + swapped * 1000u;
        out[1] = u32(subgroupAll(true)) + subgroupExclusiveMul(1u) + subgroupBroadcastFirst(5u);";
    let kir = lower_checked(&kernel("", body));
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::Subgroup(_))), 2 + 3 + 1 + 4 + 3);
    assert_eq!(run("", body, &[2]), [2213, 7]);
}
