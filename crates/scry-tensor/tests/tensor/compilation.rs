//! What operations compile and submit.

use scry_gpu::testing;
use scry_tensor::{DType, Tensor, compiled_kernels};
use scry_test_support::on_each_device;

use crate::support::ok;

#[test]
fn second_call_compiles_nothing() {
    on_each_device(|gpu| {
        // The device of this test alone, as others compile on the shared one.
        let info = gpu.info();
        let gpu = &scry_gpu::Device::open(&format!("{}:{}", info.backend, info.index)).unwrap();
        let x = ok(ok(Tensor::arange(24, DType::F32, gpu)).reshape([4, 6]));
        let y = ok(ok(Tensor::arange(35, DType::F32, gpu)).reshape([5, 7]));
        let all = |x: &Tensor| {
            ok(x.relu());
            ok(&ok(x.exp()) * 3.0);
            ok(ok(x.t()).contiguous());
            let sum = ok(x.sum_keepdim(-1));
            ok(x - &sum);
            ok(x.cast(DType::F16));
            ok(x.gt(1.0));
        };
        all(&x);
        let compiled = compiled_kernels(gpu);
        assert!(compiled >= 7, "{compiled}");
        all(&x);
        all(&y);
        all(&ok(x.i((1..3, 2..5))).contiguous().unwrap());
        assert_eq!(compiled_kernels(gpu), compiled);
    });
}

#[test]
fn operation_is_one_launch() {
    let (gpu, log) = testing::observed(testing::null_info());
    let x = ok(Tensor::from_slice(&[1.0f32; 12], [3, 4], &gpu));
    let y = ok(Tensor::from_slice(&[1.0f32; 4], [4], &gpu));
    let _ = log.take();
    let results = [x.gelu(), x.add(&y), x.pow(2.0), x.lt(&y), ok(x.t()).contiguous(), x.tril(0)];
    let _alive = results.map(ok);
    assert_eq!(log.take().dispatches, 6);
    let views = [x.t(), x.i(1), x.expand([2, 3, 4]), x.reshape([2, 6]), x.contiguous()];
    let _alive = views.map(ok);
    assert_eq!(log.take(), testing::Counts::default());
}

#[test]
fn device_closes_with_its_last_tensor() {
    let (gpu, log) = testing::observed(testing::null_info());
    let x = ok(Tensor::from_slice(&[1.0f32; 12], [3, 4], &gpu));
    let y = ok(x.relu());
    drop((gpu, x));
    assert!(!log.is_device_dropped());
    drop(y);
    assert!(log.is_device_dropped());
}
