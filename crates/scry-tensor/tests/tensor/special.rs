//! The special values that the guide lists: NaN, infinities, zeros of either sign, nothing.

use scry_tensor::{Attention, DType, Tensor};
use scry_test_support::on_each_device;

use crate::support::ok;

const NAN: f32 = f32::NAN;
const INFINITY: f32 = f32::INFINITY;

#[test]
fn nan_is_last_and_largest() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([0.0f32, NAN, -0.0, -INFINITY, 7.0, -NAN, INFINITY], gpu));
        let (sorted, positions) = ok(x.sort(0));
        assert_eq!(ok(positions.to_vec::<u32>()), [3, 0, 2, 4, 6, 1, 5]);
        let sorted = ok(sorted.to_vec::<f32>());
        assert_eq!(sorted[..5], [-INFINITY, 0.0, 0.0, 7.0, INFINITY]);
        assert!(sorted[1].is_sign_positive() && sorted[2].is_sign_negative());
        assert!(sorted[5].is_nan() && sorted[6].is_nan());
        let (_, positions) = ok(x.topk(5, -1));
        assert_eq!(ok(positions.to_vec::<u32>()), [1, 5, 6, 4, 0]);
        assert_eq!(ok(ok(x.argmax(..)).item::<u32>()), 1);
        assert_eq!(ok(ok(x.argmin(0)).item::<u32>()), 1);
        assert!(ok(ok(x.norm(0)).item::<f32>()).is_nan());
        let x = ok(Tensor::new([i32::MIN, 0, i32::MAX, -1], gpu));
        assert_eq!(ok(ok(x.argsort(0)).to_vec::<u32>()), [0, 3, 1, 2]);
        let x = ok(Tensor::new([u32::MAX, 0, 1 << 31], gpu));
        assert_eq!(ok(ok(x.topk(3, 0)).0.to_vec::<u32>()), [u32::MAX, 1 << 31, 0]);
    });
}

#[test]
fn rows_with_infinities_have_rules() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([[0.0, -INFINITY], [-INFINITY, -INFINITY], [0.0, INFINITY]], gpu));
        let y = ok(ok(x.softmax(1)).to_vec::<f32>());
        assert_eq!(y[..2], [1.0, 0.0]);
        assert!(y[2].is_nan() && y[3].is_nan() && y[5].is_nan());
        // No key is seen where the bias is minus infinity.
        let q = ok(Tensor::ones([1, 1, 2, 4], DType::F32, gpu));
        let bias = ok(Tensor::new([[0.0, 0.0], [-INFINITY, -INFINITY]], gpu));
        let options = Attention { bias: Some(&bias), ..Default::default() };
        let y = ok(ok(q.attention(&q, &q, &options)).to_vec::<f32>());
        assert_eq!(y, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    });
}

#[test]
fn results_of_nothing_have_rules() {
    on_each_device(|gpu| {
        let nothing = ok(Tensor::zeros([2, 0], DType::F32, gpu));
        assert!(ok(ok(nothing.var(1, 0)).to_vec::<f32>()).iter().all(|it| it.is_nan()));
        assert_eq!(ok(ok(nothing.norm(1)).to_vec::<f32>()), [0.0, 0.0]);
        assert!(nothing.argmax(1).is_err() && ok(nothing.argmax(0)).numel() == 0);
        for same in [nothing.softmax(1), nothing.cumsum(0), nothing.layer_norm(None, None, 0.1)] {
            assert_eq!(*ok(same).shape(), [2, 0]);
        }
        let padded = ok(nothing.pad(&[[0, 0], [1, 1]], 3));
        assert_eq!(ok(padded.to_vec::<f32>()), [3.0; 4]);
        let one = ok(Tensor::new([[1.0f32], [2.0]], gpu));
        let joined = ok(Tensor::concat(&[&nothing, &one, &nothing], 1));
        assert_eq!(ok(joined.to_vec::<f32>()), [1.0, 2.0]);
        assert_eq!(*ok(nothing.sort(1)).0.shape(), [2, 0]);
        assert_eq!(ok(ok(nothing.einsum("ij,kj->ik", &nothing)).to_vec::<f32>()), [0.0; 4]);
        let none = ok(Tensor::zeros([0], DType::U32, gpu));
        let unchanged = ok(one.index_add(0, &none, &ok(one.i(0..0))));
        assert_eq!(ok(unchanged.to_vec::<f32>()), [1.0, 2.0]);
        // One number has variance 0, and no estimate of that of a population.
        let single = ok(ok(Tensor::new([5.0f32], gpu)).var(0, 1));
        assert!(ok(single.item::<f32>()).is_nan());
        let scalar = ok(Tensor::new(-5.0f32, gpu));
        assert_eq!(ok(ok(scalar.norm(..)).item::<f32>()), 5.0);
        assert_eq!(ok(ok(scalar.argmax(..)).item::<u32>()), 0);
        let keys = ok(Tensor::zeros([1, 1, 0, 4], DType::F32, gpu));
        let q = ok(Tensor::ones([1, 1, 2, 4], DType::F32, gpu));
        let y = ok(q.attention(&keys, &keys, &Attention::default()));
        assert_eq!(ok(y.to_vec::<f32>()), [0.0; 8]);
    });
}

#[test]
fn indices_out_of_range_are_dropped() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([[1, 2], [3, 4]], gpu));
        let at = ok(Tensor::new([-3, -1, 2], gpu));
        let new = ok(Tensor::full([3, 2], 10, DType::I32, gpu));
        assert_eq!(ok(ok(x.index_add(0, &at, &new)).to_vec::<i32>()), [1, 2, 13, 14]);
        let at = ok(Tensor::new([[5, -1]], gpu));
        assert_eq!(ok(ok(x.gather(0, &at)).to_vec::<i32>()), [0, 4]);
        let new = ok(Tensor::full([1, 2], 10, DType::I32, gpu));
        assert_eq!(ok(ok(x.scatter_add(0, &at, &new)).to_vec::<i32>()), [1, 2, 3, 14]);
    });
}

#[test]
fn classes_out_of_range_are_ignored() {
    on_each_device(|gpu| {
        let scores = ok(Tensor::new([[0.0f32, 0.0], [3.0, 5.0], [NAN, 1.0], [0.0, 9.0]], gpu));
        for classes in [[0, -100, -1, 2], [1, i32::MIN, i32::MAX, -2]] {
            let classes = ok(Tensor::new(classes, gpu));
            let loss = ok(ok(scores.cross_entropy(&classes)).item::<f32>());
            assert!((loss - 2f32.ln()).abs() < 1e-6, "{loss}");
        }
        let none = ok(Tensor::new([-100, -100, 2, 9], gpu));
        assert!(ok(ok(scores.cross_entropy(&none)).item::<f32>()).is_nan());
        // The sum of the losses exceeds the largest f16; their mean does not.
        let scores = ok(ok(Tensor::new([[0.0f32, 30_000.0]; 4], gpu)).cast(DType::F16));
        let loss = ok(scores.cross_entropy(&ok(Tensor::new([0; 4], gpu))));
        assert_eq!(ok(ok(loss.cast(DType::F32)).item::<f32>()), 30_000.0);
    });
}

#[test]
fn floats_of_16_bits_are_computed_in_32() {
    on_each_device(|gpu| {
        let narrow = |x: Tensor| ok(x.cast(DType::F16));
        let wide = |x: Tensor| ok(ok(x.cast(DType::F32)).to_vec::<f32>());
        let x = narrow(ok(Tensor::new([[-1000.0f32, 1000.0], [0.0, 0.0002]], gpu)));
        let deviation = wide(ok(x.std(1, 0)));
        assert!(deviation[0] == 1000.0 && (deviation[1] - 0.0001).abs() < 1e-6, "{deviation:?}");
        // Neither the variance nor epsilon is 0, but their sum is below the smallest f16.
        let x = narrow(ok(Tensor::new([[2.0f32], [2.0]], gpu)));
        let (mean, variance) = (ok(x.mean(0)), ok(x.var(0, 0)));
        assert_eq!(wide(ok(x.batch_norm(&mean, &variance, None, None, 1e-9))), [0.0, 0.0]);
    });
}

#[test]
fn small_exponentials_keep_their_digits() {
    on_each_device(|gpu| {
        let xs: Vec<f32> = (0..60).map(|n| -(0.7f32.powi(n))).chain([-2.0, -15.0, -40.0]).collect();
        let x = ok(Tensor::from_slice(&xs, [xs.len()], gpu));
        for (x, y) in xs.iter().zip(ok(ok(x.elu(1.0)).to_vec::<f32>())) {
            let wanted = f64::from(*x).exp_m1();
            assert!((f64::from(y) / wanted - 1.0).abs() < 1e-5, "elu({x}) is {y}, not {wanted}");
        }
        let xs: Vec<f32> = (0..60).map(|n| n as f32 * -1.3).collect();
        let x = ok(Tensor::from_slice(&xs, [xs.len()], gpu));
        for (x, y) in xs.iter().zip(ok(ok(x.softplus()).to_vec::<f32>())) {
            let wanted = f64::from(*x).exp().ln_1p();
            assert!(
                (f64::from(y) / wanted - 1.0).abs() < 1e-4,
                "softplus({x}) is {y}, not {wanted}"
            );
        }
    });
}
