//! An operation on a resident tensor, beside a launch of a kernel through `Device::run`.

use std::time::Instant;

use anyhow::Result;
use scry_tensor::{DType, Device, Tensor};

use crate::Bench;
use scry_bench::table::Goal;

/// What a user would launch: the same function of each element.
const RELU: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn relu(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = max(x[id.x], 0.0); }
    }";

/// Calls in a measurement: fewer than may be unfinished, so that none waits for the device.
const CALLS: usize = 100;

/// The device time of a launch must not hide the time of the host.
const ELEMENTS: usize = 256;

/// An operation is at most 1.5 times as long as a launch.
const GOAL: Goal = Goal::AtLeast(1.0 / 1.5);

pub fn run(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let data: Vec<f32> = (0..ELEMENTS).map(|n| n as f32 - 100.0).collect();
    let x = Tensor::from_slice(&data, [ELEMENTS], &gpu)?;
    let (from, to) = (gpu.upload(&data)?, gpu.alloc::<f32>(ELEMENTS)?);
    let kernel = gpu.compile(RELU)?;
    let launch = || Ok(gpu.run(&kernel, &[&from, &to], ELEMENTS)?);
    let launch_and_allocate = || {
        let to = gpu.alloc::<f32>(ELEMENTS)?;
        gpu.run(&kernel, &[&from, &to], ELEMENTS)?;
        Ok(())
    };
    let one_by_two = Tensor::ones([16, 16], DType::F32, &gpu)?.add(0.0)?;
    let operations: [(&str, &dyn Fn() -> Result<()>); 4] = [
        ("relu", &|| drop_ok(x.relu())),
        ("add", &|| drop_ok(x.add(&x))),
        ("add a number", &|| drop_ok(x.add(1.5))),
        ("add a transpose", &|| drop_ok(one_by_two.add(one_by_two.t()?))),
    ];
    for (name, operation) in operations {
        let medians = bench.medians(&mut [
            &mut || host(&gpu, operation),
            &mut || host(&gpu, &launch),
            &mut || host(&gpu, &launch_and_allocate),
            &mut || round_trip(&gpu, operation),
            &mut || round_trip(&gpu, &launch),
        ])?;
        let title = format!("{name}, host");
        bench.row(&title, String::new(), medians[0], "Device::run", medians[1], GOAL);
        bench.row(&title, String::new(), medians[0], "with alloc", medians[2], Goal::None);
        let title = format!("{name}, with the wait");
        bench.row(&title, String::new(), medians[3], "Device::run", medians[4], GOAL);
    }
    Ok(())
}

fn drop_ok(result: scry_tensor::Result<Tensor>) -> Result<()> {
    result.map(drop).map_err(Into::into)
}

/// Returns the host's seconds of a call that does not wait.
fn host(gpu: &Device, call: &dyn Fn() -> Result<()>) -> Result<f64> {
    gpu.wait()?;
    let start = Instant::now();
    for _ in 0..CALLS {
        call()?;
    }
    let seconds = start.elapsed().as_secs_f64() / CALLS as f64;
    gpu.wait()?;
    Ok(seconds)
}

/// Returns the seconds of a call and a wait for the device.
fn round_trip(gpu: &Device, call: &dyn Fn() -> Result<()>) -> Result<f64> {
    gpu.wait()?;
    let start = Instant::now();
    for _ in 0..CALLS {
        call()?;
        gpu.wait()?;
    }
    Ok(start.elapsed().as_secs_f64() / CALLS as f64)
}
