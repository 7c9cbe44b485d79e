//! Batches: one submission, few kernels, and handles that are errors.

use scry_gpu::testing;
use scry_tensor::{DType, ErrorKind, Tensor, TensorBatch, compiled_kernels};
use scry_test_support::on_each_device;

use crate::support::{cpu, ok};

#[test]
fn batch_agrees_with_tensors() {
    on_each_device(|gpu| {
        let mut batch = ok(TensorBatch::new(gpu));
        let data = [1.0f32, -2.0, 3.0, 0.5];
        let x = ok(batch.upload(&data, [2, 2]));
        let w = ok(batch.import(&ok(Tensor::new([[0.5f32, 1.0], [2.0, -1.0]], gpu))));
        let h = ok(batch.matmul(x, w));
        let a = ok(batch.relu(h));
        let y = ok(batch.scale(a, 2.0));
        let z = ok(batch.apply(&[y, x], |it| it[0].sub(&it[1].sum(0)?)));
        ok(batch.keep(h));
        ok(batch.execute());
        let t = ok(Tensor::from_slice(&data, [2, 2], gpu));
        let product = ok(t.matmul(ok(batch.tensor(w))));
        let wanted = ok(ok(ok(product.relu()).mul(2.0)).sub(ok(t.sum(0))));
        assert_eq!(ok(batch.read::<f32>(z)), ok(wanted.to_vec::<f32>()));
        assert_eq!(ok(batch.read::<f32>(h)), ok(product.to_vec::<f32>()));
        assert_eq!(pollster::block_on(batch.read_async::<f32>(x)).unwrap(), data);
        // Results are operands of later operations.
        let next = ok(batch.add(z, h));
        ok(batch.execute());
        let wanted = ok(wanted.add(&product));
        assert_eq!(ok(batch.read::<f32>(next)), ok(wanted.to_vec::<f32>()));
        ok(batch.execute());
    });
}

#[test]
fn execution_is_one_submission() {
    let calls = |layers: usize| {
        let faults = testing::FaultPlan::new(testing::Fault::DeviceLost, u64::MAX);
        let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
        let run = |batch: &mut TensorBatch| {
            let mut x = ok(batch.upload(&[0.25f32; 64], [8, 8]));
            let w = ok(batch.upload(&[0.125f32; 64], [8, 8]));
            let before = faults.calls();
            for _ in 0..layers {
                let h = ok(batch.matmul(x, w));
                let h = ok(batch.gelu(h));
                x = ok(batch.matmul(h, w));
            }
            assert_eq!(faults.calls(), before, "nothing runs before `execute`");
            ok(batch.execute());
            faults.calls() - before
        };
        let mut batch = ok(TensorBatch::new(&gpu));
        run(&mut batch);
        let compiled = compiled_kernels(&gpu);
        assert!(compiled <= 3, "{compiled}");
        let second = run(&mut batch);
        assert_eq!(compiled_kernels(&gpu), compiled);
        second
    };
    // Memory of arenas and of the result, and one submission, however many layers there are; the
    // CPU device prepares each of the two products of a layer by a call.
    assert_eq!(calls(36) - calls(2), 2 * 34);
}

#[test]
fn handles_are_checked() {
    let gpu = cpu();
    let (mut first, mut second) = (ok(TensorBatch::new(&gpu)), ok(TensorBatch::new(&gpu)));
    let x = ok(first.upload(&[1.0f32], [1]));
    let y = ok(first.exp(x));
    assert_eq!(second.exp(y).unwrap_err().kind(), ErrorKind::Graph);
    let early = first.read::<f32>(y).unwrap_err();
    assert!(early.to_string().contains("not executed yet; help: call `execute`"), "{early}");
    let z = ok(first.tanh(y));
    ok(first.execute());
    let dropped = first.read::<f32>(y).unwrap_err();
    assert!(dropped.to_string().contains("not kept; help: call `keep`"), "{dropped}");
    assert_eq!(first.exp(y).unwrap_err().kind(), ErrorKind::Graph);
    assert_eq!(ok(first.read::<f32>(z)).len(), 1);
    let far = ok(Tensor::zeros([1], DType::F32, &cpu()));
    assert_eq!(first.import(&far).unwrap_err().kind(), ErrorKind::Device);
    let bad = ok(first.upload(&[1.0f32, 2.0, 3.0], [3]));
    let two = ok(first.upload(&[1.0f32, 2.0], [2]));
    let error = first.add(bad, two).unwrap_err();
    assert!(error.location().file().ends_with("batches.rs"), "{error}");
}

#[test]
fn async_reads_agree() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(6, DType::F32, gpu)).reshape([2, 3]));
        let t = ok(x.t());
        let read = pollster::block_on(t.to_vec_async::<f32>());
        assert_eq!(ok(read), ok(t.to_vec::<f32>()));
        let wrong = pollster::block_on(t.to_vec_async::<i32>()).unwrap_err();
        assert!(wrong.location().file().ends_with("batches.rs"), "{wrong}");
        let empty = ok(x.i(0..0));
        assert!(ok(pollster::block_on(empty.to_vec_async::<f32>())).is_empty());
    });
}
