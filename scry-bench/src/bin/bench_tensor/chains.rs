//! Chains of element-wise operations, which are one kernel, beside one operation.

use anyhow::{Result, ensure};
use scry_gpu::BackendKind;
use scry_tensor::{DType, Device, Graph, Plan, Tensor};

use crate::Bench;
use scry_bench::table::Goal;

/// Special functions per second of an H100 or H200: 16 per cycle of each of 132 multiprocessors, at
/// 1.98 GHz.
const SPECIAL_FUNCTIONS: f64 = 16.0 * 132.0 * 1.98e9;

/// Those of `exp` and of `tanh`, which is an exponential and a division.
const PER_EXP: f64 = 1.0;
const PER_TANH: f64 = 2.0;

/// Runs in a measurement.
const RUNS: usize = 10;

pub fn run(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let elements = if bench.quick { 1 << 20 } else { 1 << 26 };
    let x = Tensor::rand([elements], 1, DType::F32, &gpu)?;
    let one = plan(&gpu, elements, |x| x.add(0.5))?;
    let chain = plan(&gpu, elements, |x| {
        (0..8).try_fold(x.clone(), |y, n| y.add(0.125)?.mul(0.75)?.maximum(0.01 * n as f64))
    })?;
    let special = plan(&gpu, elements, |x| (0..4).try_fold(x.clone(), |y, _| y.tanh()?.exp()))?;
    for (plan, name) in [(&one, "one"), (&chain, "24"), (&special, "8 special")] {
        let kernels = plan.explain()?.kernels.len();
        ensure!(kernels == 1, "the chain of {name} operations is {kernels} kernels");
    }
    let run = |plan: &Plan| plan.run(&[("x", &x)]).map(drop).map_err(anyhow::Error::from);
    let medians = bench.medians(&mut [
        &mut || bench.seconds(RUNS, || run(&one)),
        &mut || bench.seconds(RUNS, || run(&chain)),
        &mut || bench.seconds(RUNS, || run(&special)),
    ])?;
    let goal = |ratio: f64| match gpu.backend_kind() {
        BackendKind::Cuda => Goal::AtLeast((1000.0 / ratio).ceil() / 1000.0),
        _ => Goal::None,
    };
    let rate = format!("{:.0} GB/s", 8.0 * elements as f64 / medians[1] / 1e9);
    bench.row("24 adds, products, maxima", rate, medians[1], "one addition", medians[0], goal(1.1));
    let per_element = 4.0 * (PER_EXP + PER_TANH);
    let limit = medians[0].max(per_element * elements as f64 / SPECIAL_FUNCTIONS);
    let rate = format!("{:.0} GB/s", 8.0 * elements as f64 / medians[2] / 1e9);
    bench.row("8 of exp and tanh", rate.clone(), medians[2], "limit", limit, goal(1.2));
    breakdown(bench, &x, [&one, &chain, &special])?;
    let numbers = [elements];
    bench.compare(
        "24 as above",
        String::new(),
        RUNS,
        || run(&chain),
        ("chain", &numbers),
        Goal::None,
    )?;
    bench.compare("8 as above", rate, RUNS, || run(&special), ("special", &numbers), Goal::None)
}

/// An addition as a program would write it.
const ADD: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = x[id.x] + 0.5; }
    }";

/// Prints the times without new outputs, beside a copy and a simple kernel.
fn breakdown(bench: &mut Bench, x: &Tensor, plans: [&Plan; 3]) -> Result<()> {
    let gpu = bench.gpu.clone();
    let elements = x.numel();
    let (from, to) = (gpu.alloc::<f32>(elements)?, gpu.alloc::<f32>(elements)?);
    let kernel = gpu.compile(ADD)?;
    let [one, chain, special] = plans.map(|plan| plan.bind(&[("x", x)]));
    let (one, chain, special) = (one?, chain?, special?);
    let medians = bench.medians(&mut [
        &mut || bench.seconds(RUNS, || Ok(from.copy_to(&to)?)),
        &mut || bench.seconds(RUNS, || Ok(gpu.run(&kernel, &[&from, &to], elements)?)),
        &mut || bench.seconds(RUNS, || Ok(one.run()?)),
        &mut || bench.seconds(RUNS, || Ok(chain.run()?)),
        &mut || bench.seconds(RUNS, || Ok(special.run()?)),
    ])?;
    let names = [
        "a copy",
        "an addition in WGSL",
        "one addition, bound",
        "24 operations, bound",
        "8 of exp and tanh, bound",
    ];
    for (name, seconds) in names.iter().zip(&medians) {
        let rate = format!("{:.0} GB/s", 8.0 * elements as f64 / seconds / 1e9);
        bench.row(name, rate, *seconds, "a copy", medians[0], Goal::None);
    }
    Ok(())
}

fn plan(
    gpu: &Device,
    elements: usize,
    function: impl Fn(&Tensor) -> scry_tensor::Result<Tensor>,
) -> Result<Plan> {
    let g = Graph::new(gpu)?;
    let x = g.input("x", [elements])?;
    Ok(g.compile(&[function(&x)?])?)
}
