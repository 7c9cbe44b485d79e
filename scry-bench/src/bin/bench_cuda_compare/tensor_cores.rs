//! The f16 matrix products of `scry_gpu::shaders`, on cooperative matrices, compared with cuBLAS
//! (called by PyTorch, with f16 results; ours are f32).

use anyhow::{Result, ensure};
use half::f16;
use scry_gpu::{Buffer, Device, Kernel, Launch, MatrixProducts, shaders::matmul};

use crate::{Bench, median};
use scry_bench::data;
use scry_bench::table::{Goal, Row};

/// A product: its side, the kernel, and the goal relative to cuBLAS.
struct Case {
    side: usize,
    kernel: &'static str,
    source: &'static str,
    goal: Goal,
}

const CASES: [Case; 4] = [
    Case { side: 1024, kernel: "vec4", source: matmul::COOPERATIVE_F16_VEC4, goal: Goal::None },
    Case {
        side: 2048,
        kernel: "vec4",
        source: matmul::COOPERATIVE_F16_VEC4,
        goal: Goal::AtLeast(0.28),
    },
    Case { side: 2048, kernel: "scalar", source: matmul::COOPERATIVE_F16, goal: Goal::None },
    Case { side: 4096, kernel: "vec4", source: matmul::COOPERATIVE_F16_VEC4, goal: Goal::None },
];

/// Launches in a measurement.
const REPEATS: usize = 10;

/// Rows and columns of C that a workgroup computes.
const TILE: usize = 128;

/// A product, compiled and uploaded to one device.
struct BoundProduct {
    name: &'static str,
    device: Device,
    kernel: Kernel,
    a: Buffer<f16>,
    b: Buffer<f16>,
    c: Buffer<f32>,
    side: usize,
}

/// Compares all products on each device that supports them.
pub fn run(bench: &mut Bench) -> Result<()> {
    let product = MatrixProducts::F16_F32_16X16;
    let vulkan = bench.vulkan.iter().map(|device| ("Vulkan", device));
    let mut devices = Vec::new();
    for (name, device) in [("CUDA", &bench.ours)].into_iter().chain(vulkan) {
        if device.info().matrix_products.contains(product) {
            devices.push((name, device.clone()));
        } else {
            println!("tensor-cores leaves out {name}: the device has no {product} products");
        }
    }
    CASES.iter().try_for_each(|case| compare(bench, case, &devices))
}

fn compare(bench: &mut Bench, case: &Case, devices: &[(&'static str, Device)]) -> Result<()> {
    let side = case.side;
    let random_f16 = |seed| -> Vec<f16> {
        data::random(seed, side * side).into_iter().map(f16::from_f32).collect()
    };
    let (a, b) = (random_f16(1), random_f16(2));
    let products: Vec<BoundProduct> = devices
        .iter()
        .map(|(name, device)| BoundProduct::new(name, device, case, &a, &b))
        .collect::<Result<_>>()?;
    let mut theirs = Vec::new();
    let mut times = vec![Vec::new(); products.len()];
    for round in 0..=bench.samples {
        let torch = bench.torch.measure("gemm_f16", &[side, side, side, REPEATS])?;
        let ours = products.iter().map(BoundProduct::measure).collect::<Result<Vec<_>>>()?;
        if round > 0 {
            theirs.push(torch);
            times.iter_mut().zip(ours).for_each(|(times, time)| times.push(time));
        }
    }
    let theirs = median(theirs);
    for (product, times) in products.iter().zip(times) {
        product.check(&a, &b)?;
        let ours = median(times);
        let name = format!("f16 gemm {side} {}, {}", case.kernel, product.name);
        let rate = format!("{:.1} TFLOP/s", 2.0 * (side as f64).powi(3) / ours / 1e12);
        bench.table.row(&Row { name: &name, rate, ours, peer: "cuBLAS", theirs, goal: case.goal });
    }
    Ok(())
}

impl BoundProduct {
    fn new(name: &'static str, device: &Device, case: &Case, a: &[f16], b: &[f16]) -> Result<Self> {
        let poison = vec![f32::NAN; case.side * case.side];
        let (a, b, c) = (device.upload(a)?, device.upload(b)?, device.upload(&poison)?);
        let kernel = device.compile(case.source)?;
        Ok(Self { name, device: device.clone(), kernel, a, b, c, side: case.side })
    }

    /// Returns the median device time of a launch in seconds.
    fn measure(&self) -> Result<f64> {
        let tiles = self.side.div_ceil(TILE) as u32;
        let shape = [self.side as u32; 3];
        let mut batch = self.device.batch();
        for _ in 0..REPEATS {
            let launch = Launch::workgroups([tiles, tiles, 1]).immediates(&shape);
            batch.run(&self.kernel, &[&self.a, &self.b, &self.c], launch)?;
        }
        let times = batch.submit_timed()?;
        Ok(median(times.iter().map(|time| time.as_secs_f64()).collect()))
    }

    /// Compares some elements, spread over all tiles, with sums in f64.
    fn check(&self, a: &[f16], b: &[f16]) -> Result<()> {
        let side = self.side;
        let c = self.c.download()?;
        // A prime step visits different rows and columns.
        for at in (0..side * side).step_by(9973) {
            let (row, column) = (at / side, at % side);
            let product = |i: usize| a[row * side + i].to_f64() * b[i * side + column].to_f64();
            let (expected, got) = ((0..side).map(product).sum::<f64>(), f64::from(c[at]));
            let (error, name) = ((got - expected).abs(), self.name);
            ensure!(
                error <= 1e-5 * side as f64,
                "{name}: {row}, {column} is {got}, not {expected}"
            );
        }
        ensure!(c.iter().all(|c| c.is_finite()), "some elements were not written");
        Ok(())
    }
}
