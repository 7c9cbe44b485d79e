//! Creating tensors.

use half::{bf16, f16};
use scry_tensor::{DType, ErrorKind, Graph, Tensor};
use scry_test_support::{on_each_device, succeed};

use crate::support::ok;

#[test]
fn ranges_are_those_of_numpy() {
    on_each_device(|gpu| {
        let range = |start: f64, end: f64, step: f64| {
            ok(ok(Tensor::arange_step(start, end, step, DType::F32, gpu)).to_vec::<f32>())
        };
        assert_eq!(range(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75]);
        assert_eq!(range(1.0, 0.0, -0.5), [1.0, 0.5]);
        assert_eq!(range(1.0, 0.0, 0.5), []);
        let large = ok(Tensor::arange_step(4_000_000_000i64, 4_000_000_003i64, 1, DType::U32, gpu));
        assert_eq!(ok(large.to_vec::<u32>()), [4_000_000_000, 4_000_000_001, 4_000_000_002]);
        assert_eq!(ok(ok(Tensor::arange(-3, DType::I32, gpu)).to_vec::<i32>()), []);
        let halves = ok(Tensor::arange(3, DType::F16, gpu));
        assert_eq!(ok(halves.to_vec::<f16>()), [0.0, 1.0, 2.0].map(f16::from_f32));
    });
}

#[test]
fn ranges_beyond_the_type_are_rejected() {
    on_each_device(|gpu| {
        let kind = |result: scry_tensor::Result<Tensor>| result.unwrap_err().kind();
        let infinite = Tensor::arange_step(0.0, 1.0, f64::INFINITY, DType::F32, gpu);
        assert_eq!(kind(infinite), ErrorKind::Value);
        let tiny = ok(Tensor::arange_step(0.0, 1e-300, 1e300, DType::F32, gpu));
        assert_eq!(ok(tiny.to_vec::<f32>()), [0.0]);
        let (end, step) = (i64::MAX, 9_949_700_147_631_905i64);
        assert_eq!(kind(Tensor::arange_step(0, end, step, DType::I32, gpu)), ErrorKind::Value);
        assert_eq!(kind(Tensor::arange(4_294_967_295i64, DType::I32, gpu)), ErrorKind::Value);
        assert_eq!(kind(Tensor::arange_step(0, 5, 0, DType::I32, gpu)), ErrorKind::Value);
        assert_eq!(kind(Tensor::arange(70_000, DType::F16, gpu)), ErrorKind::Value);
        assert_eq!(kind(Tensor::full([1], 100_000, DType::F16, gpu)), ErrorKind::Value);
        assert_eq!(kind(Tensor::full([1], 1e39, DType::F32, gpu)), ErrorKind::Value);
        let endless = ok(Tensor::full([1], f64::INFINITY, DType::BF16, gpu));
        assert_eq!(ok(endless.to_vec::<bf16>()), [bf16::INFINITY]);
    });
}

#[test]
fn numbers_are_rounded_once() {
    on_each_device(|gpu| {
        // Just above the middle between two numbers of the type, closer than `f32` has numbers.
        let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let x = ok(Tensor::full([1], value, DType::F16, gpu));
        assert_eq!(ok(x.to_vec::<f16>()), [f16::from_f32(1.0 + 2f32.powi(-10))]);
        for sign in [1.0, -1.0] {
            let value = sign * (1.0 + 2f64.powi(-8) + 2f64.powi(-40));
            let x = ok(Tensor::linspace(value, value, 1, DType::BF16, gpu));
            assert_eq!(ok(x.to_vec::<bf16>()), [bf16::from_f64(sign * 1.0078125)]);
        }
    });
}

#[test]
fn linspace_ends_exactly() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::linspace(0.0, 0.7, 8, DType::F32, gpu)).to_vec::<f32>());
        assert_eq!((x[0], x[7], x.len()), (0.0, 0.7, 8));
        let one = ok(ok(Tensor::linspace(3.0, 5.0, 1, DType::BF16, gpu)).to_vec::<bf16>());
        assert_eq!(one, [bf16::from_f32(3.0)]);
        assert_eq!(ok(Tensor::linspace(0.0, 1.0, 0, DType::F32, gpu)).numel(), 0);
    });
}

#[test]
fn triangles_of_stacks() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(18, DType::I32, gpu)).reshape([2, 3, 3]));
        for diagonal in -4..=4i64 {
            let lower = ok(ok(x.tril(diagonal)).to_vec::<i32>());
            let upper = ok(ok(x.triu(diagonal)).to_vec::<i32>());
            for n in 0..18i64 {
                let distance = n % 3 - n / 3 % 3;
                let kept = |is_kept: bool| if is_kept { n as i32 } else { 0 };
                assert_eq!(lower[n as usize], kept(distance <= diagonal));
                assert_eq!(upper[n as usize], kept(distance >= diagonal));
            }
        }
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::Bool] {
            let eye = ok(ok(Tensor::eye(3, dtype, gpu)).cast(DType::I32));
            assert_eq!(ok(eye.to_vec::<i32>()), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
        }
    });
}

#[test]
fn i64_is_checked_at_import() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([i64::from(i32::MIN), i64::from(i32::MAX)], gpu));
        assert_eq!(ok(x.to_vec::<i64>()), [i32::MIN.into(), i64::from(i32::MAX)]);
        let error = Tensor::new([[1i64], [1 << 31]], gpu).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
    });
}

#[test]
fn quantised_weights_are_dequantised() {
    on_each_device(|gpu| {
        // 0.5 as f16, then the weights -3, -2, ….
        let mut block = vec![0x00u8, 0x38];
        block.extend((0..32i8).map(|n| (n - 3) as u8));
        let x = ok(Tensor::from_blocks(&block, DType::Q8_0, [1, 32], gpu));
        let wanted: Vec<f32> = (0..32).map(|n| (n as f32 - 3.0) / 2.0).collect();
        assert_eq!(ok(ok(x.cast(DType::F32)).to_vec::<f32>()), wanted);
        let halves = ok(ok(x.cast(DType::F16)).cast(DType::F32));
        assert_eq!(ok(halves.to_vec::<f32>()), wanted);
        let cpu = crate::support::cpu();
        let moved = ok(ok(x.to(&cpu)).cast(DType::F32));
        assert_eq!(ok(moved.to_vec::<f32>()), wanted);
        for (dtype, bytes) in [
            (DType::Q4_0, 18 * 8),
            (DType::Q4_1, 20 * 8),
            (DType::Q8_0, 34 * 8),
            (DType::Q4K, 144),
            (DType::Q5K, 176),
            (DType::Q6K, 210),
        ] {
            let x = ok(Tensor::from_blocks(&vec![0; bytes], dtype, [256], gpu));
            assert_eq!(ok(ok(x.cast(DType::F32)).to_vec::<f32>()), [0.0; 256], "{dtype}");
        }
    });
}

#[test]
fn blocks_in_buffers_are_shared() {
    on_each_device(|gpu| {
        let block = |weight: i8| [vec![0x00, 0x38], vec![weight as u8; 32]].concat();
        // Longer than the shape, and written in parts that are not whole words.
        let buffer = succeed(gpu.alloc_untyped(None, 3 * 34));
        succeed(succeed(buffer.slice(34..)).write_bytes(&[block(6), block(9)].concat()));
        let x = ok(Tensor::from_block_buffer(&buffer, DType::Q8_0, [2, 32], gpu));
        assert_eq!((x.dtype(), x.numel()), (DType::Q8_0, 64));
        succeed(succeed(buffer.slice(..34)).write_bytes(&block(4)));
        let wanted = [[2.0f32; 32], [3.0; 32]].concat();
        assert_eq!(ok(ok(x.cast(DType::F32)).to_vec::<f32>()), wanted);

        let far = succeed(crate::support::cpu().alloc_untyped(None, 34));
        let error = Tensor::from_block_buffer(&far, DType::Q8_0, [1, 32], gpu).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    });
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_go_both_ways() {
    on_each_device(|gpu| {
        let array = ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let x = ok(Tensor::from_ndarray(&array.t(), gpu));
        assert_eq!(ok(ok(x.t()).to_ndarray::<f32>()), array.into_dyn());
    });
}

#[test]
fn buffers_are_imported_without_copy() {
    on_each_device(|gpu| {
        let buffer = succeed(gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0]));
        let x = ok(Tensor::from_buffer(&buffer, [2, 2], gpu));
        assert_eq!(ok(ok(x.sum(0)).to_vec::<f32>()), [4.0, 6.0]);
        // Part of a buffer, written later, in a plan.
        let buffer = succeed(gpu.upload(&[1.0f32; 70]));
        let part = ok(Tensor::from_buffer(&succeed(buffer.slice(64..)), [3], gpu));
        let g = ok(Graph::new(gpu));
        let plan = ok(g.compile(&[ok(ok(g.input("x", [3])).mul(2))]));
        succeed(buffer.write_at(64, &[7.0, 8.0]));
        assert_eq!(ok(ok(plan.run(&[("x", &part)]))[0].to_vec::<f32>()), [14.0, 16.0, 2.0]);
        let halves = succeed(gpu.upload(&[f16::ONE; 4]));
        let x = ok(Tensor::from_buffer(&halves.untyped(), [3], gpu));
        assert_eq!(ok(ok(ok(x.sum(0)).cast(DType::F32)).item::<f32>()), 3.0);
        assert_eq!(ok(Tensor::from_buffer(&halves, [0], gpu)).numel(), 0);
    });
}
