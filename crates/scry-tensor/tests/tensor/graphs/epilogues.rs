//! Products with epilogues, on each device.

use scry_gpu::DeviceKind;
use scry_tensor::{DType, Device, Graph, Result, Tensor};
use scry_test_support::on_each_device;

use crate::support::ok;

/// Layers of a network, of which the last product adds the residual.
fn layers(x: &Tensor, weights: &[Tensor; 4], gelu: bool) -> Result<Tensor> {
    let [up, bias, gate, down] = weights;
    let mut x = x.clone();
    for _ in 0..3 {
        let h = x.matmul(up)?.add(bias)?;
        let h = if gelu { h.gelu_tanh()? } else { h.silu()? };
        let h = h.mul(x.matmul(gate)?.mul(0.5)?.relu()?)?;
        x = x.add(h.matmul(down.t()?)?)?;
    }
    Ok(x)
}

fn check(gpu: &Device, dtype: DType, rows: usize, [model, hidden]: [usize; 2], gelu: bool) {
    let data = |shape: [usize; 2], seed, scale: f64| {
        ok(ok(ok(Tensor::randn(shape, seed, DType::F32, gpu)).mul(scale)).cast(dtype))
    };
    let scale = 0.3 / (model as f64).sqrt();
    let weights = [
        data([model, hidden], 1, scale),
        ok(data([1, hidden], 2, 0.1).i(0)),
        data([model, hidden], 3, scale),
        data([model, hidden], 4, scale),
    ];
    let g = ok(Graph::new(gpu));
    let x = ok(g.input_with_dtype("x", [rows, model], dtype));
    let plan = ok(g.compile(&[ok(layers(&x, &weights, gelu))]));
    let x = data([rows, model], 5, 1.0);
    let given = [("x", &x)];
    let count = ok(plan.explain()).kernels.len();
    ok(plan.check(&given));
    let runs: Vec<Vec<f32>> =
        (0..3).map(|_| ok(ok(ok(plan.run(&given))[0].cast(DType::F32)).to_vec())).collect();
    let bound = ok(plan.bind(&given));
    ok(bound.run());
    let last: Vec<f32> = ok(ok(bound.outputs()[0].cast(DType::F32)).to_vec());
    let wanted: Vec<f32> = ok(ok(ok(layers(&x, &weights, gelu)).cast(DType::F32)).to_vec());
    let what = format!("{dtype}, {rows} rows, {count} kernels on {}", gpu.name());
    for (n, found) in runs.iter().chain([&last]).enumerate() {
        assert!(found == &runs[0], "run {n} differs: {what}");
    }
    let tolerance = if dtype == DType::F32 { 1e-4 } else { 0.05 };
    let differs = |(a, b): (&f32, &f32)| (a - b).abs() > tolerance * b.abs().max(1.0);
    let differs = last.iter().zip(&wanted).position(differs);
    assert_eq!(differs, None, "{what}: {last:?} {wanted:?}");
}

#[test]
fn layers_agree_with_operations() {
    on_each_device(|gpu| {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for (rows, gelu) in [(1, false), (9, true)] {
                check(gpu, dtype, rows, [64, 96], gelu);
            }
        }
    });
}

/// Shapes for which the kernel library has other variants. The comparison of the elements, on the
/// host, takes most of the time.
#[test]
#[ignore = "takes minutes"]
fn large_layers_agree_with_operations() {
    on_each_device(|gpu| {
        // A software Vulkan driver needs minutes for the large matrices.
        let is_software = gpu.info().kind == DeviceKind::Software;
        if !is_software {
            check(gpu, DType::BF16, 1, [2560, 9728], false);
        }
        check(gpu, DType::BF16, 64, [512, 1024], true);
        check(gpu, DType::F16, 64, [512, 1024], false);
    });
}
