//! Products of matrices against a reference in `f64`.

use proptest::prelude::*;
use scry_tensor::{DType, Tensor};
use scry_test_support::on_each_device;

use crate::support::{check, ok};

/// Returns integers as floats, whose products are exact, with the shape.
fn numbers(shape: &[usize], seed: u64) -> Vec<f32> {
    let count: usize = shape.iter().product();
    (0..count as u64).map(|n| ((n.wrapping_mul(seed | 1) >> 3) % 9) as f32 - 4.0).collect()
}

#[test]
fn products_agree_with_reference() {
    let sizes = (0..4usize, 0..6usize, 0..6usize, 0..6usize, any::<[bool; 3]>(), any::<u64>());
    check(60, sizes, |gpu, (batch, m, n, k, [a_is_t, b_is_t, is_broadcast], seed)| {
        let a_batch = if is_broadcast { 1 } else { batch };
        let (a, b) = (numbers(&[a_batch, m, k], seed), numbers(&[batch, k, n], seed ^ 77));
        let stored = |values: &[f32], [z, rows, columns]: [usize; 3], is_t: bool| {
            let x = ok(Tensor::from_slice(values, [z, rows, columns], gpu));
            // Stored by columns, and read through a transposed view.
            if is_t { ok(ok(ok(x.t()).contiguous()).t()) } else { x }
        };
        let x = stored(&a, [a_batch, m, k], a_is_t);
        let y = stored(&b, [batch, k, n], b_is_t);
        let found = ok(x.matmul(&y));
        assert_eq!(*found.shape(), [if is_broadcast { batch } else { a_batch }, m, n]);
        let found = ok(found.to_vec::<f32>());
        for (position, found) in found.iter().enumerate() {
            let (z, i, j) = (position / (m * n), position / n % m, position % n);
            let row = if is_broadcast { i } else { z * m + i };
            let wanted: f64 =
                (0..k).map(|l| f64::from(a[row * k + l]) * f64::from(b[(z * k + l) * n + j])).sum();
            assert_eq!(f64::from(*found), wanted);
        }
    });
}

#[test]
fn vectors_are_rows_and_columns() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], gpu));
        let (u, v) = (ok(Tensor::new([1.0f32, -1.0], gpu)), ok(Tensor::new([1.0f32; 3], gpu)));
        assert_eq!(ok(ok(u.matmul(&x)).to_vec::<f32>()), [-3.0; 3]);
        assert_eq!(ok(ok(x.matmul(&v)).to_vec::<f32>()), [6.0, 15.0]);
        let dot = ok(v.matmul(&v));
        assert_eq!((dot.rank(), ok(dot.item::<f32>())), (0, 3.0));
    });
}

#[test]
fn views_with_offsets_multiply() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(24, DType::F32, gpu)).reshape([4, 6]));
        let part = ok(x.i((1..3, 1..4)));
        let found = ok(part.matmul(ok(part.t())));
        assert_eq!(ok(found.to_vec::<f32>()), [194.0, 338.0, 338.0, 590.0]);
    });
}

#[test]
fn sums_of_one_operand_are_not_rounded() {
    on_each_device(|gpu| {
        // The sums 2 * 40000 are above every finite f16, and 2049 is between two of them.
        let x = ok(Tensor::new([[40000.0f32, 40000.0], [2048.0, 1.0]], gpu));
        let (x, y) = (ok(x.cast(DType::F16)), ok(Tensor::new([0.5f32, 0.25], gpu)));
        let y = ok(y.cast(DType::F16));
        let found = ok(ok(x.einsum("ij,i->i", &y)).cast(DType::F32));
        assert_eq!(ok(found.to_vec::<f32>()), [40000.0, 512.0]);
        let found = ok(ok(y.einsum("i,ij->", &x)).cast(DType::F32));
        assert_eq!(ok(found.item::<f32>()), 40512.0);
        assert_eq!(ok(x.einsum("ij,i->i", &y)).dtype(), DType::F16);
    });
}
