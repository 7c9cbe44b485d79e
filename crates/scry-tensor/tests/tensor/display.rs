//! Printing, compared with what NumPy 2 prints.

use half::f16;
use scry_tensor::{DType, Tensor};
use scry_test_support::on_each_device;

use crate::support::ok;

#[test]
fn floats_print_as_in_numpy() {
    on_each_device(|gpu| {
        let print = |data: &[f32]| ok(Tensor::from_slice(data, [data.len()], gpu)).to_string();
        assert_eq!(print(&[1.0, 2.5, -0.1]), "[ 1.   2.5 -0.1]");
        assert_eq!(print(&[1.0]), "[1.]");
        assert_eq!(print(&[1.0 / 3.0]), "[0.33333334]");
        assert_eq!(print(&[1e-10, 1.0]), "[1.e-10 1.e+00]");
        assert_eq!(print(&[1.5e9, -2.0]), "[ 1.5e+09 -2.0e+00]");
        assert_eq!(print(&[f32::NAN, 1.5, f32::NEG_INFINITY]), "[ nan  1.5 -inf]");
        let one = ok(Tensor::new(1.0f32, gpu));
        assert_eq!(one.to_string(), "1.0");
        assert_eq!(ok(Tensor::new([f16::from_f32(0.1)], gpu)).to_string(), "[0.1]");
        assert_eq!(ok(Tensor::new(7, gpu)).to_string(), "7");
    });
}

#[test]
fn axes_are_nested_and_abbreviated() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(8, DType::I32, gpu)).reshape([2, 2, 2]));
        assert_eq!(x.to_string(), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
        let long = ok(Tensor::arange(1001, DType::I32, gpu));
        assert_eq!(long.to_string(), "[   0    1    2 ...  998  999 1000]");
        let wide = ok(Tensor::arange(30, DType::I32, gpu)).to_string();
        let lines = "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n \
                     24 25 26 27 28 29]";
        assert_eq!(wide, lines);
        let huge = ok(Tensor::zeros([100_000, 100_000], DType::U32, gpu)).to_string();
        assert!(huge.starts_with("[[0 0 0 ... 0 0 0]\n [0 0 0"), "{huge}");
        assert_eq!(huge.lines().count(), 7);
        assert_eq!(ok(Tensor::zeros([0, 3], DType::F32, gpu)).to_string(), "[]");
        let quantised = ok(Tensor::from_blocks(&[0; 34], DType::Q8_0, [1, 32], gpu));
        assert_eq!(quantised.to_string(), "[q8_0 weights of shape [1, 32]]");
    });
}
