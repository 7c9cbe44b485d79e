//! Steady-state throughput of saxpy, sum and matrix product: kernels are compiled, data is on the
//! device, and launches are recorded once and replayed. Every kernel's result is checked.
//!
//!     cargo run --release -p scry-gpu --example bench_compute -- [small|full]
//!
//! The default is `small` on software devices, else `full`. Each line shows the median time of one
//! pass (one launch, or two for a sum), its 10th and 90th percentiles, and the throughput at the
//! median.

use std::env;
use std::error::Error;

use scry_gpu::{Binding, Device, DeviceKind, Kernel, Launch, Result, shaders};

#[path = "shared/random.rs"]
mod random;
#[path = "shared/stats.rs"]
mod stats;

use random::random_f32;
use stats::{Summary, measure};

const SAMPLES: usize = 30;

/// Sizes of one run.
struct Sizes {
    vectors: &'static [usize],
    matrices: &'static [usize],
    /// Target duration of a replay, long enough to make its overhead negligible.
    replay_seconds: f64,
}

const SMALL: Sizes =
    Sizes { vectors: &[1 << 18, 1 << 20], matrices: &[128, 256], replay_seconds: 0.02 };
const FULL: Sizes = Sizes {
    vectors: &[1 << 20, 1 << 24, 1 << 27],
    matrices: &[512, 1024, 2048, 4096],
    replay_seconds: 0.01,
};

fn main() -> Result<(), Box<dyn Error>> {
    let gpu = Device::auto()?;
    let sizes = match env::args().nth(1).as_deref() {
        Some("small") => SMALL,
        Some("full") => FULL,
        Some(other) => return Err(format!("`{other}` is neither `small` nor `full`").into()),
        None if gpu.info().kind == DeviceKind::Software => SMALL,
        None => FULL,
    };
    println!("{} ({}, {})", gpu.name(), gpu.backend_kind(), gpu.info().driver);
    for &n in sizes.vectors {
        saxpy(&gpu, &sizes, n)?;
    }
    for &n in sizes.vectors {
        sum(&gpu, &sizes, n)?;
    }
    for &n in sizes.matrices {
        matmul(&gpu, &sizes, n)?;
    }
    Ok(())
}

/// One launch: kernel, bindings, size.
type Step<'a> = (&'a Kernel, Vec<&'a dyn Binding>, Launch);

/// Measures the time of one pass over `steps`, by replays of many passes.
fn time(gpu: &Device, sizes: &Sizes, steps: &[Step<'_>]) -> Result<Summary> {
    let record = |passes: u32| {
        let mut batch = gpu.batch();
        for _ in 0..passes {
            for (kernel, bindings, launch) in steps {
                batch.run(kernel, bindings, launch.clone())?;
            }
        }
        batch.record()
    };
    let once = record(1)?;
    let estimate = measure(3, || once.replay()?.wait())?.median;
    let passes = (sizes.replay_seconds / estimate).clamp(1.0, 1000.0) as u32;
    let many = record(passes)?;
    let Summary { median, p10, p90 } = measure(SAMPLES, || many.replay()?.wait())?;
    let passes = f64::from(passes);
    Ok(Summary { median: median / passes, p10: p10 / passes, p90: p90 / passes })
}

/// Returns an error if `got` differs from `expected` by more than `tolerance`.
fn check(what: &str, got: f32, expected: f64, tolerance: f64) -> Result<(), Box<dyn Error>> {
    let is_close = (f64::from(got) - expected).abs() <= tolerance;
    if is_close { Ok(()) } else { Err(format!("{what}: got {got}, expected {expected}").into()) }
}

fn report(name: &str, size: usize, time: Summary, work: f64, unit: &str) {
    let speed = work / time.median / 1e9;
    println!("{name:18} {size:>10}  {:40} {speed:9.1} {unit}", time.times());
}

fn saxpy(gpu: &Device, sizes: &Sizes, n: usize) -> Result<(), Box<dyn Error>> {
    let (x, y) = (random_f32(1, n), random_f32(2, n));
    let gpu_x = gpu.upload(&x)?;
    let variants =
        [("saxpy", shaders::saxpy::SAXPY, n), ("saxpy vec4", shaders::saxpy::SAXPY_VEC4, n / 4)];
    for (name, source, invocations) in variants {
        let kernel = gpu.compile(source)?;
        let gpu_y = gpu.upload(&y)?;
        // Small enough to keep y finite in all repetitions.
        let launch = Launch::invocations(invocations).immediates(&1e-3f32);
        gpu.run(&kernel, &[&gpu_x, &gpu_y], launch.clone())?;
        for (i, got) in gpu_y.download()?.into_iter().enumerate() {
            check(name, got, 1e-3 * f64::from(x[i]) + f64::from(y[i]), 1e-6)?;
        }
        let time = time(gpu, sizes, &[(&kernel, vec![&gpu_x, &gpu_y], launch)])?;
        report(name, n, time, 12.0 * n as f64, "GB/s");
    }
    Ok(())
}

fn sum(gpu: &Device, sizes: &Sizes, n: usize) -> Result<(), Box<dyn Error>> {
    let x = random_f32(3, n);
    let expected: f64 = x.iter().copied().map(f64::from).sum();
    let scale: f64 = x.iter().map(|x| f64::from(x.abs())).sum();
    let gpu_x = gpu.upload(&x)?;
    let groups = n.div_ceil(2048).min(1024);
    let (partial, result) = (gpu.alloc::<f32>(groups)?, gpu.alloc::<f32>(1)?);
    let second = gpu.compile(shaders::reduce::SUM)?;
    let variants = [("sum", shaders::reduce::SUM), ("sum vec4", shaders::reduce::SUM_VEC4)];
    for (name, source) in variants {
        let first = gpu.compile(source)?;
        let steps: [Step<'_>; 2] = [
            (&first, vec![&gpu_x, &partial], Launch::workgroups([groups as u32, 1, 1])),
            (&second, vec![&partial, &result], Launch::workgroups([1, 1, 1])),
        ];
        let time = time(gpu, sizes, &steps)?;
        check(name, result.download()?[0], expected, 1e-6 * scale)?;
        report(name, n, time, 4.0 * n as f64, "GB/s");
    }
    Ok(())
}

fn matmul(gpu: &Device, sizes: &Sizes, n: usize) -> Result<(), Box<dyn Error>> {
    let (a, b) = (random_f32(4, n * n), random_f32(5, n * n));
    let (gpu_a, gpu_b) = (gpu.upload(&a)?, gpu.upload(&b)?);
    let variants = [
        ("matmul 16x16", shaders::matmul::TILED_16X16, 1),
        ("matmul 64x64", shaders::matmul::COARSE_64X64, 4),
        ("matmul 64x64 vec4", shaders::matmul::COARSE_64X64_VEC4, 4),
        ("matmul 8x8", shaders::matmul::COARSE_8X8, 8),
        ("matmul 8x8 vec4", shaders::matmul::COARSE_8X8_VEC4, 8),
    ];
    for (name, source, edge) in variants {
        let kernel = gpu.compile(source)?;
        let gpu_c = gpu.upload(&vec![f32::NAN; n * n])?;
        let launch = Launch::invocations([n / edge, n / edge]).immediates(&[n as u32; 3]);
        let time = time(gpu, sizes, &[(&kernel, vec![&gpu_a, &gpu_b, &gpu_c], launch)])?;
        check_product(name, [&a, &b, &gpu_c.download()?], n)?;
        report(name, n, time, 2.0 * (n as f64).powi(3), "GFLOP/s");
    }
    Ok(())
}

/// Checks a thousand elements of C against inner products in f64.
fn check_product(name: &str, [a, b, c]: [&[f32]; 3], n: usize) -> Result<(), Box<dyn Error>> {
    // The primes spread the samples over the whole matrix.
    for sample in 0..1000 {
        let (row, column) = (sample * 7919 % n, sample * 104_729 % n);
        let term = |i: usize| f64::from(a[row * n + i]) * f64::from(b[i * n + column]);
        let expected = (0..n).map(term).sum();
        check(name, c[row * n + column], expected, 1e-6 * n as f64)?;
    }
    Ok(())
}
