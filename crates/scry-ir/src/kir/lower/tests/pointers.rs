//! Tests of addresses in memory, and of bounds checks.

use super::{bytes, count_statements, kernel, lower_checked, lower_unchecked, run, words};
use super::{count_clamps, count_insts};
use crate::kir::interpret::Interpreter;
use crate::kir::{AddressSpace, Inst, Place, Stmt};

#[test]
fn nested_indices_address_elements() {
    let declarations = "
        struct Odd { a: array<array<u32, 3>, 2>, b: u32 }
        struct Even { v: array<vec3u, 2>, w: array<vec2u, 3>, t: u32 }
        @group(0) @binding(2) var<storage, read_write> odd: array<Odd>;
        @group(0) @binding(3) var<storage, read_write> even: array<Even, 3>;";
    let body = "
        let i = data[0]; let j = data[1]; let k = data[2];
        odd[i].a[j][k] = 1u; odd[i].b = 2u; odd[1].a[j][0] = 3u; odd[j].a[0] = array(4u, 5u, 6u);
        even[k].v[j] = vec3(7u, 8u, 9u); even[i].v[1][k] = 10u; even[i].w[k].y = 11u;
        even[k].w[i][j] = 12u; even[0].t = even[k].v[j].y;";
    let kir = lower_checked(&kernel(declarations, body));
    let buffers = [bytes(&[0]), bytes(&[0, 1, 2]), vec![0; 3 * 28], vec![0; 3 * 64]];
    let mut interpreter = Interpreter::new(&kir, buffers.into());
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));

    let mut odd = [[0; 7]; 3];
    (odd[0][3 + 2], odd[0][6], odd[1][3]) = (1, 2, 3);
    (odd[1][0], odd[1][1], odd[1][2]) = (4, 5, 6);
    let mut even = [[0; 16]; 3];
    (even[2][4], even[2][5], even[2][6]) = (7, 8, 9);
    (even[0][4 + 2], even[0][8 + 2 * 2 + 1], even[2][8 + 1], even[0][14]) = (10, 11, 12, 8);
    assert_eq!(words(&interpreter.buffers[2]), odd.as_flattened());
    assert_eq!(words(&interpreter.buffers[3]), even.as_flattened());
}

#[test]
fn arrays_of_structures_are_split() {
    let declarations = "
        struct Part { f: bool, m: mat2x3f, a: array<u32, 2> }
        struct Whole { parts: array<Part, 3>, n: u32 }
        var<workgroup> shared_one: Whole;
        var<private> own: Whole;";
    let body = "
        let i = data[0]; let j = data[1];
        own.parts[i].m[j] = vec3(1.0, 2.0, 3.0);
        own.parts[i].m[1][i] = 5.0;
        own.parts[i].a[j] = 7u;
        own.parts[j] = own.parts[i];
        own.parts[j].f = true;
        own.n = 9u;
        shared_one = own;
        shared_one.parts[i].a[i - 1u] += 1u;
        let copy = shared_one;
        out[0] = u32(copy.parts[1].m[1].y + copy.parts[1].m[1].z * 10.0 + copy.parts[2].m[j].x);
        out[1] = copy.parts[2].a[1] * 10u + copy.parts[1].a[1];
        out[2] = u32(copy.parts[1].f) + 10u * u32(copy.parts[2].f) + 100u * copy.n;";
    assert_eq!(run(declarations, body, &[2, 1]), [53, 87, 901]);
    let kir = lower_checked(&kernel(declarations, body));
    let sizes: Vec<_> = kir.workgroup.iter().map(|array| (array.ty.name(), array.len)).collect();
    assert_eq!(sizes, [("bool", 3), ("f32", 18), ("u32", 6), ("u32", 1)]);
}

#[test]
fn computed_indices_are_clamped() {
    let declarations = "
        struct Tail { n: vec4u, rest: array<vec2u> }
        @group(0) @binding(2) var<storage, read_write> tail: Tail;
        @group(0) @binding(3) var<uniform> table: array<vec4u, 4>;
        var<workgroup> flags: array<atomic<u32>, 5>;";
    let body = "
        let i = data[0]; let j = bitcast<i32>(i);
        var a = array(1u, 2u, 3u); var v = vec3(4u, 5u, 6u);
        out[0] = a[i] * 10u + v[j];
        out[1] = table[i][j];
        tail.rest[j].y = 8u;
        tail.rest[7] = vec2(tail.rest[i].y, 3u);
        atomicStore(&flags[i], 9u);
        out[2] = atomicLoad(&flags[4]);
        out[i] = data[i];";
    let source = kernel(declarations, body);
    for data in [[7, 0, 44], [u32::MAX, 0, 44], [2, 0, 44]] {
        let kir = lower_checked(&source);
        let mut table = vec![0; 16];
        (table[15], table[2 * 4 + 2]) = (77, 66);
        let buffers = vec![bytes(&[0; 4]), bytes(&data), vec![0; 24], bytes(&table)];
        let mut interpreter = Interpreter::new(&kir, buffers);
        interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
        let out = words(&interpreter.buffers[0]);
        if data[0] == 2 {
            assert_eq!(out, [36, 66, 44, 0]);
        } else {
            assert_eq!(out, [36, 77, 9, 44]);
        }
        // `rest` has one element, to which every index is clamped.
        assert_eq!(words(&interpreter.buffers[2]), [0, 0, 0, 0, 8, 3]);
    }
    assert_eq!(count_clamps(&lower_unchecked(&source)), 0);
}

#[test]
fn in_bounds_indices_are_not_clamped() {
    let declarations = "@group(0) @binding(2) var<storage, read_write> one: array<array<u32, 1>>;";
    let body = "out[0] = data[0]; var a = array(1u, 2u); a[1] = 3u; out[0] += a[data[0] & 1u];
        one[0][data[0]] = 1u;";
    assert_eq!(count_clamps(&lower_checked(&kernel(declarations, body))), 1);
}

#[test]
fn lengths_are_computed_once_at_entry() {
    let body = "for (var i = 0u; i < arrayLength(&out); i++) { out[i] = data[i] + data[i + 1u]; }";
    let kir = lower_checked(&kernel("", body));
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::ArrayLength { .. })), 2);
    let at_top = kir.body.iter().filter(
        |stmt| matches!(stmt, Stmt::Let(v) if matches!(kir.inst(*v), Inst::ArrayLength { .. })),
    );
    assert_eq!(at_top.count(), 2);
    assert_eq!(run("", body, &[1, 2, 3, 4]), [3, 5, 7]);
}

#[test]
fn vectors_and_columns_are_one_access() {
    let declarations = "
        @group(0) @binding(2) var<storage, read_write> v: array<vec3f>;
        @group(0) @binding(3) var<storage, read_write> m: mat3x3f;";
    let kir = lower_checked(&kernel(declarations, "v[1] = v[0]; m = m;"));
    let loads: Vec<_> = kir
        .values
        .iter()
        .filter_map(|value| match value.inst {
            Inst::Load { place, count } => Some((place, count)),
            _ => None,
        })
        .filter(|(place, _)| matches!(place.space, AddressSpace::Binding(2 | 3)))
        .collect();
    let at = |binding, offset| Place::new(AddressSpace::Binding(binding), None, 0, offset);
    assert_eq!(loads, [(at(2, 0), 3), (at(3, 0), 3), (at(3, 16), 3), (at(3, 32), 3)]);
    let stores = count_statements(
        &kir.body,
        &|s| matches!(s, Stmt::Store { values, .. } if values.len() == 3),
    );
    assert_eq!(stores, 4);
}

#[test]
fn large_values_are_copied_in_loops() {
    let declarations = "
        struct Big { n: u32, a: array<array<u32, 50>, 40>, s: array<vec2u, 300> }
        @group(0) @binding(2) var<storage, read_write> big: array<Big, 3>;
        var<private> own: Big;
        fn same_or_zero(b: Big) -> Big { if b.n == 1u { return b; } return Big(); }
        fn sum(b: Big, i: u32) -> u32 { return b.a[i][3] + b.s[i].y; }";
    let body = "
        own.a[7][3] = 5u; own.s[7].y = 6u; own.n = 1u;
        let before = own;
        big[1] = same_or_zero(own);
        own = Big();
        own.n = 2u;
        big[2] = big[1];
        big[0] = same_or_zero(own);
        out[0] = before.a[7][3] * 10u + sum(before, data[0]);
        out[1] = own.a[7][3] + own.n;
        out[2] = sum(big[2], data[0]) * 100u + sum(big[0], data[0]);";
    let kir = lower_checked(&kernel(declarations, body));
    assert!(kir.values.len() < 1000, "{} values", kir.values.len());
    let size = 8 + 4 * 2000 + 8 * 300;
    let buffers = vec![bytes(&[0; 3]), bytes(&[7]), vec![1; 3 * size]];
    let mut interpreter = Interpreter::new(&kir, buffers);
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(words(&interpreter.buffers[0]), [61, 2, 1100]);
    let big = words(&interpreter.buffers[2]);
    assert_eq!(big[0], 0);
    assert_eq!(big[size / 4 + 1 + 7 * 50 + 3], 5);
}

#[test]
fn immediates_and_uniforms_are_loaded() {
    let source = "
        struct Params { n: u32, scale: vec2f, m: mat2x2f }
        var<immediate> immediates: Params;
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(1) fn main() {
            out[0] = immediates.scale.y; out[1] = params.m[1].x;
            out[2] = immediates.m[immediates.n].y;
        }";
    let kir = lower_checked(source);
    assert_eq!(kir.immediates, 32);
    let params = |factor: f32| {
        let words = [1, 0, 1, 2, 3, 4, 5, 6].map(|x| (x as f32 * factor).to_bits());
        bytes(&[&[1], &words[1..]].concat())
    };
    let mut interpreter = Interpreter::new(&kir, vec![params(10.0), bytes(&[0; 3])]);
    interpreter.immediates = params(1.0);
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
    let out: Vec<_> = words(&interpreter.buffers[1]).into_iter().map(f32::from_bits).collect();
    assert_eq!(out, [2.0, 50.0, 6.0]);
}
