//! The f32 matrix products of `scry_gpu::shaders`, compared with cuBLAS (called by PyTorch) and
//! with Vulkan.

use anyhow::{Result, ensure};
use scry_gpu::{Buffer, Device, Kernel, Launch, shaders::matmul};

use crate::{Bench, median};
use scry_bench::data;
use scry_bench::table::{Goal, Row};

/// A product: its sides m, n and k, the kernel, and the goal relative to cuBLAS.
struct Case {
    sides: [usize; 3],
    kernel: &'static str,
    source: &'static str,
    goal: Goal,
    /// The goal relative to Vulkan.
    vulkan: Goal,
}

const CASES: [Case; 4] = [
    Case {
        sides: [4096, 4096, 4096],
        kernel: "8x8 vec4",
        source: matmul::COARSE_8X8_VEC4,
        goal: Goal::AtLeast(0.8),
        vulkan: Goal::AtLeast(1.0),
    },
    Case {
        sides: [4096, 4096, 4096],
        kernel: "8x8",
        source: matmul::COARSE_8X8,
        goal: Goal::None,
        vulkan: Goal::AtLeast(1.0),
    },
    Case {
        sides: [4097, 4095, 1023],
        kernel: "8x8",
        source: matmul::COARSE_8X8,
        goal: Goal::None,
        vulkan: Goal::AtLeast(1.0),
    },
    Case {
        sides: [1024, 1024, 1024],
        kernel: "8x8 vec4",
        source: matmul::COARSE_8X8_VEC4,
        goal: Goal::None,
        vulkan: Goal::None,
    },
];

/// Launches in a measurement.
const REPEATS: usize = 5;

/// A product, compiled and uploaded to one device.
struct BoundProduct {
    device: Device,
    kernel: Kernel,
    operands: [Buffer<f32>; 3],
    shape: [u32; 3],
}

/// Compares all products.
pub fn run(bench: &mut Bench) -> Result<()> {
    CASES.iter().try_for_each(|case| compare(bench, case))
}

fn compare(bench: &mut Bench, case: &Case) -> Result<()> {
    let [m, n, k] = case.sides;
    let (a, b) = (data::random(1, m * k), data::random(2, k * n));
    let mut devices = vec![BoundProduct::new(&bench.ours, case, &a, &b)?];
    if let Some(vulkan) = &bench.vulkan {
        devices.push(BoundProduct::new(vulkan, case, &a, &b)?);
    }
    let mut times = vec![Vec::new(); 3];
    for round in 0..=bench.samples {
        let torch = bench.torch.measure("gemm", &[m, n, k, REPEATS])?;
        let ours = devices.iter().map(BoundProduct::measure).collect::<Result<Vec<_>>>()?;
        if round > 0 {
            times[0].push(torch);
            times[1..].iter_mut().zip(ours).for_each(|(times, time)| times.push(time));
        }
    }
    devices.iter().try_for_each(|product| product.check(&a, &b))?;
    let [torch, ours, vulkan] = [0, 1, 2].map(|index| median(std::mem::take(&mut times[index])));
    let name = format!("gemm {m}x{n}x{k} {}", case.kernel);
    let rate = format!("{:.1} TFLOP/s", 2.0 * (m * n * k) as f64 / ours / 1e12);
    let row = Row { name: &name, rate, ours, peer: "cuBLAS", theirs: torch, goal: case.goal };
    bench.table.row(&row);
    if bench.vulkan.is_some() {
        let rate = String::new();
        let row = Row { rate, peer: "ours, Vulkan", theirs: vulkan, goal: case.vulkan, ..row };
        bench.table.row(&row);
    }
    Ok(())
}

impl BoundProduct {
    fn new(device: &Device, case: &Case, a: &[f32], b: &[f32]) -> Result<Self> {
        let [m, n, _] = case.sides;
        let poison = vec![f32::NAN; m * n];
        let operands = [device.upload(a)?, device.upload(b)?, device.upload(&poison)?];
        let kernel = device.compile(case.source)?;
        let shape = case.sides.map(|side| side as u32);
        Ok(Self { device: device.clone(), kernel, operands, shape })
    }

    /// Returns the median device time of a launch in seconds.
    fn measure(&self) -> Result<f64> {
        let [m, n, _] = self.shape;
        let [a, b, c] = &self.operands;
        let mut batch = self.device.batch();
        for _ in 0..REPEATS {
            let launch = Launch::invocations([n.div_ceil(8), m.div_ceil(8), 1]);
            batch.run(&self.kernel, &[a, b, c], launch.immediates(&self.shape))?;
        }
        let times = batch.submit_timed()?;
        Ok(median(times.iter().map(|time| time.as_secs_f64()).collect()))
    }

    /// Compares some elements, spread over all tiles, with sums in f64.
    fn check(&self, a: &[f32], b: &[f32]) -> Result<()> {
        let [m, n, k] = self.shape.map(|side| side as usize);
        let c = self.operands[2].download()?;
        // A prime step visits different rows and columns.
        for at in (0..m * n).step_by(9973) {
            let (row, column) = (at / n, at % n);
            let products = (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + column]));
            let (expected, got) = (products.sum::<f64>(), f64::from(c[at]));
            let error = (got - expected).abs();
            ensure!(error <= 1e-5 * k as f64, "{row}, {column} is {got}, it should be {expected}");
        }
        ensure!(c.iter().all(|c| c.is_finite()), "some elements were not written");
        Ok(())
    }
}
