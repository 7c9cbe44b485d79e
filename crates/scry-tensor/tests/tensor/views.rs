//! Views and their copies.

use proptest::prelude::*;
use scry_tensor::{DType, Tensor};
use scry_test_support::on_each_device;

use crate::support::{ELEMENTS, Host, check, ok, source, view};

#[test]
fn views_read_the_right_elements() {
    for dtype in ELEMENTS {
        check(60, source(dtype), |gpu, (host, steps)| {
            let (x, host) = view(host.upload(gpu), host, &steps);
            let found = Host::download(&x);
            // NaN differs from itself.
            assert_eq!(format!("{found:?}"), format!("{host:?}"), "{steps:?}");
        });
    }
}

#[test]
fn reshape_keeps_the_order() {
    let inputs = (source(DType::F16), any::<prop::sample::Index>());
    check(60, inputs, |gpu, ((host, steps), index)| {
        let (x, host) = view(host.upload(gpu), host, &steps);
        let count = x.numel();
        let divisors: Vec<usize> = (1..=count).filter(|n| count.is_multiple_of(*n)).collect();
        if divisors.is_empty() {
            return;
        }
        let rows = divisors[index.index(divisors.len())];
        let reshaped = ok(x.reshape([rows as i64, -1]));
        let host = Host { shape: vec![rows, count / rows], ..host };
        assert_eq!(format!("{:?}", Host::download(&reshaped)), format!("{host:?}"));
    });
}

#[test]
fn views_of_views_read_in_place() {
    on_each_device(|gpu| {
        let x = ok(Tensor::arange(24, DType::I32, gpu));
        let y = ok(ok(ok(x.reshape([2, 3, 4])).permute([2, 0, 1])).i((1..3, 0)));
        let y = ok(ok(y.unsqueeze(0)).expand([5, 2, 3]));
        assert_eq!(ok(y.to_vec::<i32>())[..6], [1, 5, 9, 2, 6, 10]);
    });
}

#[test]
fn parts_of_words_are_copied() {
    on_each_device(|gpu| {
        let values: Vec<bool> = (0..101).map(|n| n % 3 == 0).collect();
        let x = ok(Tensor::from_slice(&values, [101], gpu));
        for start in 0..9usize {
            let part = ok(ok(x.i(start..start + 53)).logical_not());
            let wanted: Vec<bool> = values[start..start + 53].iter().map(|it| !it).collect();
            assert_eq!(ok(part.to_vec::<bool>()), wanted);
            assert_eq!(ok(ok(x.i(start..start + 53)).to_vec::<bool>()), values[start..start + 53]);
        }
    });
}

#[test]
fn many_axes_use_a_parameter_buffer() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(4096, DType::I32, gpu)).reshape([2i64; 12]));
        let reversed: Vec<i64> = (0..12).rev().collect();
        let y = ok(x.permute(reversed));
        let sum = ok(ok(&x + &y).to_vec::<i32>());
        for (n, sum) in sum.iter().enumerate() {
            let mirrored = (n as u32).reverse_bits() >> 20;
            assert_eq!(*sum, n as i32 + mirrored as i32);
        }
    });
}

#[test]
fn tensors_move_between_devices() {
    on_each_device(|gpu| {
        let cpu = crate::support::cpu();
        let x = ok(ok(Tensor::new([[1i32, 2], [3, 4]], gpu)).t());
        assert_eq!(ok(ok(x.to(&cpu)).to_vec::<i32>()), [1, 3, 2, 4]);
        let ones = ok(Tensor::ones([1000, 1000, 1000], DType::BF16, gpu));
        let moved = ok(ones.to(&cpu));
        assert_eq!(moved.shape(), ones.shape());
    });
}
