//! An operation on a resident tensor, beside a launch of a kernel through `Device::run`.

use std::time::Instant;

use anyhow::Result;
use scry_tensor::{DType, Device, Tensor};

use crate::Bench;
use scry_bench::table::Goal;

/// What a user would launch: the same functions of each element.
const RELU: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn relu(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = max(x[id.x], 0.0); }
    }";
const ADD: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read> y: array<f32>;
    @group(0) @binding(2) var<storage, read_write> z: array<f32>;
    @compute @workgroup_size(256)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { z[id.x] = x[id.x] + y[id.x]; }
    }";
const ADD_NUMBER: &str = "
    var<immediate> number: f32;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = x[id.x] + number; }
    }";

/// Calls in a measurement: fewer than may be unfinished, so that none waits for the device.
const CALLS: usize = 100;

/// The device time of a launch must not hide the time of the host.
const ELEMENTS: usize = 256;

/// An operation is at most 1.5 times as long as a launch.
const GOAL: Goal = Goal::AtLeast(0.667);

pub fn run(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let data: Vec<f32> = (0..ELEMENTS).map(|n| n as f32 - 100.0).collect();
    let x = Tensor::from_slice(&data, [ELEMENTS], &gpu)?;
    let (from, to) = (gpu.upload(&data)?, gpu.alloc::<f32>(ELEMENTS)?);
    let (relu, add) = (gpu.compile(RELU)?, gpu.compile(ADD)?);
    let add_number = gpu.compile(ADD_NUMBER)?;
    let launch_relu = || Ok(gpu.run(&relu, &[&from, &to], ELEMENTS)?);
    let launch_add = || Ok(gpu.run(&add, &[&from, &from, &to], ELEMENTS)?);
    let launch_add_number =
        || Ok(gpu.run_with_immediates(&add_number, &[&from, &to], ELEMENTS, &1.5f32)?);
    let square = Tensor::ones([16, 16], DType::F32, &gpu)?.add(0.0)?;
    // The operation, the launch, and whether the operands are in row-major order.
    type Call<'c> = &'c dyn Fn() -> Result<()>;
    let operations: [(&str, Call<'_>, Call<'_>, Goal); 4] = [
        ("relu", &|| drop_ok(x.relu()), &launch_relu, GOAL),
        ("add", &|| drop_ok(x.add(&x)), &launch_add, GOAL),
        ("add a number", &|| drop_ok(x.add(1.5)), &launch_add_number, GOAL),
        ("add a transpose", &|| drop_ok(square.add(square.t()?)), &launch_add, Goal::None),
    ];
    for (name, operation, launch, goal) in operations {
        let with_result = || {
            let _result = gpu.alloc::<f32>(ELEMENTS)?;
            launch()
        };
        let medians = bench.medians(&mut [
            &mut || host(&gpu, operation),
            &mut || host(&gpu, launch),
            &mut || host(&gpu, &with_result),
            &mut || round_trip(&gpu, operation),
            &mut || round_trip(&gpu, launch),
        ])?;
        let title = format!("{name}, host");
        bench.row(&title, String::new(), medians[0], "Device::run", medians[1], goal);
        bench.row(&title, String::new(), medians[0], "with alloc", medians[2], Goal::None);
        let title = format!("{name}, with the wait");
        bench.row(&title, String::new(), medians[3], "Device::run", medians[4], goal);
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
