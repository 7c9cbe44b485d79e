//! Tests of the uniformity of whole kernels, and of the time of the analysis.

use super::support::{exit_at_ten, increment, kernel, set, store_var};
use crate::Access;
use crate::kir::uniformity::VarUniformity;
use crate::kir::uniformity::Variability::{Affine, Uniform, Varying};
use crate::kir::{BinaryOp, Builder, Builtin, Const, Place, Type};

const LOCAL_Y: Builtin = Builtin::LocalId(1);

#[test]
fn mandelbrot_count_is_partial_after_loop() {
    let mut b = Builder::new("mandelbrot", [16, 16, 1]);
    b.buffer(Access::ReadWrite);
    let local = b.builtin(LOCAL_Y);
    let c = b.convert(Type::F32, local);
    let [zx, zy] = [0; 2].map(|_| b.var(Type::F32));
    let count = b.var(Type::U32);
    let zero = b.constant(Const::f32(0.0));
    b.set(zx, zero);
    b.set(zy, zero);
    set(&mut b, count, 0);
    b.finite_loop(|b, label| {
        exit_at_ten(b, count, label);
        let (x, y) = (b.get(zx), b.get(zy));
        let (xx, yy) = (b.binary(BinaryOp::Mul, x, x), b.binary(BinaryOp::Mul, y, y));
        let (norm, four) = (b.binary(BinaryOp::Add, xx, yy), b.constant(Const::f32(4.0)));
        let outside = b.binary(BinaryOp::Gt, norm, four);
        b.if_then(outside, |b| b.break_to(label));
        let real = b.binary(BinaryOp::Sub, xx, yy);
        let (real, imaginary) = (b.binary(BinaryOp::Add, real, c), b.fma(x, y, c));
        b.set(zx, real);
        b.set(zy, imaginary);
        increment(b, count);
    });
    store_var(&mut b, count);
    let uniformity = b.finish().uniformity();
    for z in [zx, zy] {
        assert_eq!(
            uniformity.var(z),
            VarUniformity { variability: Varying, partially_assigned: false }
        );
    }
    assert_eq!(
        uniformity.var(count),
        VarUniformity { variability: Varying, partially_assigned: true }
    );
}

#[test]
fn tiled_gemm_has_uniform_loops() {
    let mut k = kernel();
    let tile = k.b.workgroup_array(Type::F32, 64);
    let (x, y) = (k.b.builtin(Builtin::LocalId(0)), k.b.builtin(LOCAL_Y));
    let (accumulator, inner) = (k.b.var(Type::F32), k.b.var(Type::U32));
    let (source, outer) = (k.buffer, k.x);
    let mut indices = Vec::new();
    k.b.finite_loop(|b, label| {
        exit_at_ten(b, outer, label);
        let width = b.u32(8);
        let row = b.binary(BinaryOp::Mul, y, width);
        let at = b.binary(BinaryOp::Add, row, x);
        let loaded = b.load(Type::F32, Place::new(source, Some(at), 4, 0), 1);
        b.store(Place::new(tile, Some(at), 4, 0), loaded);
        set(b, inner, 0);
        b.finite_loop(|b, label| {
            exit_at_ten(b, inner, label);
            let i = b.get(inner);
            let left = b.binary(BinaryOp::Add, row, i);
            indices.extend([at, left]);
            let (a, old) =
                (b.load(Type::F32, Place::new(tile, Some(left), 4, 0), 1), b.get(accumulator));
            let new = b.fma(a[0], a[0], old);
            b.set(accumulator, new);
            increment(b, inner);
        });
        increment(b, outer);
    });
    let total = k.b.get(accumulator);
    k.b.store(Place::new(source, Some(x), 4, 0), vec![total]);
    let kir = k.b.finish();
    let uniformity = kir.uniformity();
    assert!(indices.iter().all(|index| uniformity.value(*index) == Affine));
    for counter in [inner, outer] {
        assert_eq!(
            uniformity.var(counter),
            VarUniformity { variability: Uniform, partially_assigned: false }
        );
    }
    assert_eq!(
        uniformity.var(accumulator),
        VarUniformity { variability: Varying, partially_assigned: false }
    );
}

#[test]
fn long_kernels_are_analysed_quickly() {
    let mut k = kernel();
    let vars: Vec<_> = (0..500).map(|_| k.b.var(Type::U32)).collect();
    let counter = k.x;
    // In a loop, each variable is assigned from the next one, so that variability propagates
    // against the program order.
    k.b.finite_loop(|b, label| {
        exit_at_ten(b, counter, label);
        increment(b, counter);
        for at in 0..50_000 {
            let value = b.get(vars[(at + 1) % vars.len()]);
            b.set(vars[at % vars.len()], value);
            if at % 10 == 0 {
                let (zero, value) = (b.u32(0), b.get(vars[at % vars.len()]));
                let condition = b.binary(BinaryOp::Eq, value, zero);
                b.if_then(condition, |b| set(b, vars[(at + 7) % vars.len()], 1));
            }
        }
        let local = b.builtin(LOCAL_Y);
        b.set(vars[0], local);
    });
    let kir = k.b.finish();
    let start = std::time::Instant::now();
    let uniformity = kir.uniformity();
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert!(vars.iter().all(|var| uniformity.var(*var).variability == Varying));
}

#[test]
fn long_branch_chains_are_analysed_quickly() {
    let mut k = kernel();
    let vars: Vec<_> = (0..20_000).map(|_| k.b.var(Type::U32)).collect();
    k.b.if_then(k.varying, |b| set(b, vars[0], 1));
    for pair in vars.windows(2) {
        let (value, zero) = (k.b.get(pair[0]), k.b.u32(0));
        let condition = k.b.binary(BinaryOp::Ne, value, zero);
        k.b.if_then(condition, |b| set(b, pair[1], 1));
    }
    let last = vars[vars.len() - 1];
    store_var(&mut k.b, last);
    let kir = k.b.finish();
    let start = std::time::Instant::now();
    assert_eq!(
        kir.uniformity().var(last),
        VarUniformity { variability: Varying, partially_assigned: true }
    );
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
