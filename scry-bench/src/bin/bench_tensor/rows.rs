//! Row operations that a program writes by hand, which the compiler fuses, beside PyTorch's own.

use anyhow::{Result, ensure};
use scry_gpu::BackendKind;
use scry_tensor::{DType, Graph, Tensor};

use crate::Bench;
use scry_bench::table::Goal;

const RUNS: usize = 20;

pub fn run(bench: &mut Bench) -> Result<()> {
    let shapes: &[[usize; 2]] = match bench.quick {
        true => &[[64, 128]],
        false => &[[64, 128], [4096, 1024], [8192, 8192]],
    };
    for [rows, columns] in shapes.iter().copied() {
        let functions: [(&str, Function); 2] = [("softmax", softmax), ("layer_norm", layer_norm)];
        for (name, function) in functions {
            compare(bench, name, function, [rows, columns])?;
        }
    }
    Ok(())
}

/// A function of rows.
type Function = fn(&Tensor) -> scry_tensor::Result<Tensor>;

fn compare(bench: &mut Bench, name: &str, function: Function, shape: [usize; 2]) -> Result<()> {
    let gpu = bench.gpu.clone();
    let data = Tensor::randn(shape, 1, DType::F32, &gpu)?;
    let g = Graph::new(&gpu)?;
    let plan = g.compile(&[function(&g.input("x", shape)?)?])?;
    let kernels = plan.explain()?.kernels.len();
    ensure!(kernels == 1, "{name} is {kernels} kernels");
    let bound = plan.bind(&[("x", &data)])?;
    let [rows, columns] = shape;
    let title = format!("{name} by hand, {rows}×{columns}");
    let goal = match gpu.backend_kind() {
        BackendKind::Cuda => Goal::AtLeast(1.0),
        _ => Goal::None,
    };
    let run = || bound.run().map_err(anyhow::Error::from);
    let seconds = bench.seconds(RUNS, run)?;
    let rate = format!("{:.0} GB/s", 8.0 * (rows * columns) as f64 / seconds / 1e9);
    bench.compare(&title, rate, RUNS, run, (name, &shape), goal)
}

fn softmax(x: &Tensor) -> scry_tensor::Result<Tensor> {
    let e = x.sub(x.max_keepdim(-1)?)?.exp()?;
    e.div(e.sum_keepdim(-1)?)
}

fn layer_norm(x: &Tensor) -> scry_tensor::Result<Tensor> {
    let centred = x.sub(x.mean_keepdim(-1)?)?;
    let variance = centred.square()?.mean_keepdim(-1)?;
    centred.mul(variance.add(1e-5)?.rsqrt()?)
}
