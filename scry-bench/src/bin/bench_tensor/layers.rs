//! The feed-forward layers of a model, and layers in the batch spelling.

use anyhow::{Result, bail, ensure};
use scry_gpu::BackendKind;
use scry_tensor::{DType, Device, Graph, Plan, Tensor, TensorBatch, compiled_kernels};

use crate::Bench;
use scry_bench::table::Goal;

/// The sizes of the layers.
#[derive(Clone, Copy)]
struct Sizes {
    layers: usize,
    model: usize,
    hidden: usize,
}

/// Those of a model of 4 · 10⁹ parameters.
const FULL: Sizes = Sizes { layers: 36, model: 2560, hidden: 9728 };
const QUICK: Sizes = Sizes { layers: 4, model: 128, hidden: 256 };

const RUNS: usize = 10;

pub fn run(bench: &mut Bench) -> Result<()> {
    let sizes = if bench.quick { QUICK } else { FULL };
    let weights = Weights::new(&bench.gpu, sizes)?;
    for batch in [1, 64] {
        feed_forward(bench, sizes, &weights, batch)?;
    }
    drop(weights);
    batch_spelling(bench)
}

/// The weights of layers: `[outputs, inputs]`, as PyTorch's linear layers store them.
struct Weights(Vec<[Tensor; 3]>);

impl Weights {
    fn new(gpu: &Device, sizes: Sizes) -> Result<Self> {
        let Sizes { layers, model, hidden } = sizes;
        let weight = |outputs: usize, inputs: usize, seed: usize| {
            // The products of `silu` and `up` grow with the square of `x`: it must not.
            let scale = 0.1 / (inputs as f64).sqrt();
            let weight = Tensor::randn([outputs, inputs], seed as u64, DType::BF16, gpu)?;
            weight.mul(scale)
        };
        let layer = |n: usize| -> Result<[Tensor; 3]> {
            Ok([
                weight(hidden, model, 3 * n)?,
                weight(hidden, model, 3 * n + 1)?,
                weight(model, hidden, 3 * n + 2)?,
            ])
        };
        Ok(Self((0..layers).map(layer).collect::<Result<_>>()?))
    }
}

fn compile(gpu: &Device, sizes: Sizes, weights: &Weights, batch: usize) -> Result<Plan> {
    let g = Graph::new(gpu)?;
    let mut x = g.input_with_dtype("x", [batch, sizes.model], DType::BF16)?;
    for [gate, up, down] in &weights.0 {
        let h = x.matmul(gate.t()?)?.silu()?.mul(x.matmul(up.t()?)?)?;
        x = x.add(h.matmul(down.t()?)?)?;
    }
    Ok(g.compile(&[x])?)
}

fn feed_forward(bench: &mut Bench, sizes: Sizes, weights: &Weights, batch: usize) -> Result<()> {
    let gpu = bench.gpu.clone();
    let plan = compile(&gpu, sizes, weights, batch)?;
    let report = plan.explain()?;
    let mut distinct: Vec<(String, String)> =
        report.kernels.iter().map(|it| (it.ops.join(" "), it.variant.clone())).collect();
    let kernels = distinct.len();
    distinct.sort_unstable();
    distinct.dedup();
    let total: u64 = report.arenas.iter().sum();
    println!(
        "  batch {batch}: {kernels} kernels, {} distinct: {distinct:?}; arenas of {total} bytes, \
         {} in use",
        distinct.len(),
        report.peak
    );
    let data = Tensor::randn([batch, sizes.model], 99, DType::BF16, &gpu)?;
    let inputs = [("x", &data)];
    let bound = plan.bind(&inputs)?;
    bound.run()?;
    let found: Vec<f32> = bound.outputs()[0].cast(DType::F32)?.to_vec()?;
    let run: Vec<f32> = plan.run(&inputs)?[0].cast(DType::F32)?.to_vec()?;
    ensure!(found.iter().all(|x| x.is_finite()), "results are not finite: {:?}", &found[..4]);
    let differs = found.iter().zip(&run).position(|(a, b)| a != b);
    if let Some(at) = differs {
        bail!("bound and other runs differ at {at}: {} and {}", found[at], run[at]);
    }
    let bytes = (6 * sizes.layers * sizes.model * sizes.hidden) as f64;
    let seconds = bench.seconds(RUNS, || Ok(bound.run()?))?;
    let rate = format!("{:.0} GB/s", bytes / seconds / 1e9);
    let goal = match gpu.backend_kind() {
        BackendKind::Cuda if !bench.quick => Goal::AtLeast(1.0),
        _ => Goal::None,
    };
    let numbers = [sizes.layers, sizes.model, sizes.hidden, batch];
    let title = format!("{} FFN layers, batch {batch}", sizes.layers);
    let run = || Ok(bound.run()?);
    bench.compare(&title, rate, RUNS, run, ("compiled_ffn", &numbers), goal)?;
    let run = || {
        plan.run(&inputs)?;
        Ok(())
    };
    bench.compare(&format!("{title}, run"), String::new(), RUNS, run, ("ffn", &numbers), Goal::None)
}

/// 36 times a product, `gelu` and a product, on handles.
fn batch_spelling(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let size = if bench.quick { 32 } else { 512 };
    let elements = vec![1.0 / size as f32; size * size];
    let execute = |layers: usize| -> Result<()> {
        let mut batch = TensorBatch::new(&gpu)?;
        let mut x = batch.upload(&elements, [size, size])?;
        let w = batch.upload(&elements, [size, size])?;
        for _ in 0..layers {
            let h = batch.matmul(x, w)?;
            let h = batch.gelu(h)?;
            x = batch.matmul(h, w)?;
        }
        batch.execute()?;
        Ok(())
    };
    // The kernels are counted as long as there is a tensor.
    let _tensor = Tensor::ones([1], DType::F32, &gpu)?;
    let before = compiled_kernels(&gpu);
    execute(36)?;
    println!("  batch spelling: {} maps compiled", compiled_kernels(&gpu) - before);
    let ours = bench.medians(&mut [&mut || bench.seconds(2, || execute(36))])?[0];
    bench.row("36 × (matmul, gelu, matmul), batch", String::new(), ours, "", f64::NAN, Goal::None);
    Ok(())
}
