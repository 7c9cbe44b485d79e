//! Costs of one kernel, cold and warm: compilation, the first launch, and later ones.
//!
//!     cargo run --release -p scry-gpu --example bench_kernel -- [elements]
//!
//! A constant in the source changes in every run: the first compilation misses all caches. Times
//! are wall-clock times, except those of the last line, which the device measures. The result is
//! checked after each stage that launches.

use std::env;
use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use scry_gpu::{Buffer, Device, DeviceKind, Result};

#[path = "shared/random.rs"]
mod random;
#[path = "shared/stats.rs"]
mod stats;

use random::random_f32;
use stats::{Summary, measure};

const SAMPLES: usize = 200;

/// Returns the source of `y = factor · x + 1`, with the factor as a literal.
fn source(factor: f32) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;

         @compute @workgroup_size(256)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             if id.x < arrayLength(&x) {{
                 y[id.x] = fma({factor:?}f, x[id.x], 1.0);
             }}
         }}"
    )
}

/// Checks `y = factor · x + 1`, and overwrites `y`, so that the next check needs new results.
fn check(y: &Buffer<f32>, x: &[f32], factor: f32) -> Result<(), Box<dyn Error>> {
    for (i, (got, x)) in y.download()?.into_iter().zip(x).enumerate() {
        let expected = f64::from(factor) * f64::from(*x) + 1.0;
        let is_close = (f64::from(got) - expected).abs() < 1e-6 * expected.abs().max(1.0);
        if !is_close {
            return Err(format!("element {i}: got {got}, expected {expected}").into());
        }
    }
    Ok(y.fill(f32::NAN)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let gpu = Device::auto()?;
    let open_time = start.elapsed();
    let is_software = gpu.info().kind == DeviceKind::Software;
    let n = match env::args().nth(1) {
        Some(n) => {
            n.parse().map_err(|error| format!("`{n}` is not a number of elements: {error}"))?
        }
        None => {
            if is_software {
                1 << 16
            } else {
                1 << 20
            }
        }
    };
    println!("{} ({}), {n} elements", gpu.name(), gpu.backend_kind());
    println!("open the device   {open_time:.2?}");

    let x = random_f32(1, n);
    let (gpu_x, gpu_y) = (gpu.upload(&x)?, gpu.upload(&vec![f32::NAN; n])?);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    // Between 1 and 2, with the 23 bits that an f32 has there.
    let factor = 1.0 + (nanos % 8_000_000) as f32 / 8_388_608.0;
    let source = source(factor);

    let start = Instant::now();
    let kernel = gpu.compile(&source)?;
    println!("compile, cold     {:.2?}", start.elapsed());

    let start = Instant::now();
    gpu.run(&kernel, &[&gpu_x, &gpu_y], n)?;
    gpu.wait()?;
    println!("first launch      {:.2?}", start.elapsed());
    check(&gpu_y, &x, factor)?;

    let compile = measure(SAMPLES, || gpu.compile(&source).map(drop))?;
    println!("compile, warm     {}", compile.times());

    let run = measure(SAMPLES, || {
        gpu.run(&kernel, &[&gpu_x, &gpu_y], n)?;
        gpu.wait()
    })?;
    check(&gpu_y, &x, factor)?;
    println!("run + wait        {}", run.times());

    let dispatch = measure(SAMPLES, || {
        gpu.dispatch(&source, &[&gpu_x, &gpu_y], n)?;
        gpu.wait()
    })?;
    check(&gpu_y, &x, factor)?;
    println!("dispatch + wait   {}", dispatch.times());

    let times = device_time(&gpu, &kernel, [&gpu_x, &gpu_y], n)?;
    println!("on the device     {}", times.map_or("not reported".to_owned(), Summary::times));
    check(&gpu_y, &x, factor)
}

/// Measures launches by the device's timestamps; `None` if it has none.
fn device_time(
    gpu: &Device,
    kernel: &scry_gpu::Kernel,
    [x, y]: [&Buffer<f32>; 2],
    n: usize,
) -> Result<Option<Summary>> {
    let mut batch = gpu.batch();
    for _ in 0..SAMPLES {
        batch.run(kernel, &[x, y], n)?;
    }
    let times = batch.submit_timed()?;
    Ok(Summary::from_seconds(times.into_iter().map(|time| time.as_secs_f64()).collect()))
}
