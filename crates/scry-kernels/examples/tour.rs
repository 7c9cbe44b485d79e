//! Runs each operation once: the variant that was chosen, the time on the device, and the rate at
//! which operands and results move or products are added.
//!
//!     cargo run --release -p scry-kernels --example tour [-- DEVICE [SCALE]]
//!
//! SCALE divides the sizes, for slow devices; by default 1 on GPUs and 64 on software.

use std::time::Duration;

use scry_gpu::{Buffer, Device, DeviceKind, Element, Result, f16};
use scry_kernels::{Attention, BlockFormat, Gemm, Kernels, Op, PtxType};

/// Runs of an operation, of which the fastest counts.
const RUNS: usize = 5;

/// What an operation does, for its rate.
enum Work {
    /// Bytes of operands and results.
    Bytes(usize),
    /// Multiplications and additions.
    Flops(usize),
}

/// The tour of one device.
struct Tour {
    gpu: Device,
    kernels: Kernels,
    /// Divides the sizes.
    scale: usize,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let gpu = match arguments.next() {
        Some(selector) => Device::open(&selector)?,
        None => Device::auto()?,
    };
    let is_software = gpu.info().kind == DeviceKind::Software;
    let default = if is_software { 64 } else { 1 };
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(default);
    println!("{} ({}), sizes divided by {scale}", gpu.name(), gpu.backend_kind());
    println!("{:<44} {:<18} {:>10}  {}", "operation", "variant", "time", "rate");
    let tour = Tour { kernels: Kernels::new(&gpu)?, gpu, scale };
    tour.products()?;
    tour.rows()?;
    tour.attention()?;
    tour.quantised()
}

impl Tour {
    /// Runs an operation, and prints a line.
    fn show(&self, title: &str, op: Result<Op>, work: &Work) -> Result<()> {
        let op = match op {
            Ok(op) => op,
            Err(error) => {
                println!("{title:<44} rejected: {error}");
                return Ok(());
            }
        };
        let mut fastest = Duration::MAX;
        for _ in 0..RUNS {
            let mut batch = self.gpu.batch();
            op.add_to(&mut batch)?;
            fastest = fastest.min(batch.submit_timed()?.iter().sum());
        }
        let seconds = fastest.as_secs_f64();
        let rate = match work {
            Work::Bytes(bytes) => format!("{:.1} GB/s", *bytes as f64 / seconds / 1e9),
            Work::Flops(count) => format!("{:.2} TFLOP/s", *count as f64 / seconds / 1e12),
        };
        let micros = seconds * 1e6;
        println!("{title:<44} {:<18} {micros:>7.1} µs  {rate}", op.explain().variant());
        Ok(())
    }

    /// Creates a buffer of numbers between -1 and 1.
    fn numbers<T: Element>(&self, count: usize, round: fn(f32) -> T) -> Result<Buffer<T>> {
        let number = |i: usize| {
            let bits = (i as u32).wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
            let mixed = (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d);
            (mixed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        self.gpu.upload(&(0..count).map(|i| round(number(i))).collect::<Vec<_>>())
    }

    fn floats(&self, count: usize) -> Result<Buffer<f32>> {
        self.numbers(count, |x| x)
    }

    fn products(&self) -> Result<()> {
        // The work of a product falls with the cube of its size.
        let n = 4096 / (self.scale as f64).cbrt().ceil() as usize;
        let flops = Work::Flops(2 * n * n * n);
        let (a, b, out) = (self.floats(n * n)?, self.floats(n * n)?, self.floats(n * n)?);
        let title = format!("matmul f32 {n} x {n} x {n}");
        self.show(&title, self.kernels.matmul(&a, &b, &out, n, n, n), &flops)?;
        let [a, b] = [(); 2].map(|()| self.numbers(n * n, f16::from_f32));
        let gemm =
            Gemm { output: PtxType::F32, ..Gemm::new(n as u64, n as u64, n as u64, PtxType::F16) };
        let title = format!("gemm f16, results f32 {n} x {n} x {n}");
        self.show(&title, self.kernels.gemm(&gemm, &[&a?, &b?, &out]), &flops)
    }

    fn rows(&self) -> Result<()> {
        for (rows, columns) in [(16384, 4096), (1 << 20, 64), (512, 131_072)] {
            let rows = (rows / self.scale).max(1);
            let count = rows * columns;
            let (x, y) = (self.floats(count)?, self.floats(count)?);
            let (weight, bias) = (self.floats(columns)?, self.floats(columns)?);
            let work = Work::Bytes(8 * count);
            let k = &self.kernels;
            let title = format!("softmax f32 {rows} x {columns}");
            self.show(&title, k.softmax(&x, &y, rows, columns), &work)?;
            let title = format!("layer_norm f32 {rows} x {columns}");
            let norm = k.layer_norm(&x, Some(&weight), Some(&bias), &y, rows, columns, 1e-5);
            self.show(&title, norm, &work)?;
        }
        Ok(())
    }

    fn attention(&self) -> Result<()> {
        let (batch, heads, length, dim) = (2, 16, 2048 / self.scale.min(8), 64);
        let count = batch * heads * length * dim;
        let [q, k, v] = [(); 3].map(|()| self.numbers(count, f16::from_f32));
        let out = self.numbers(count, f16::from_f32)?;
        let shape = [batch as u32, heads as u32];
        let attention =
            Attention::new(shape, length as u32, length as u32, dim as u32, PtxType::F16);
        let flops = Work::Flops(4 * batch * heads * length * length * dim);
        let title = format!("attention f16 {batch} x {heads} heads, {length} x {dim}");
        self.show(&title, self.kernels.attention(&attention, &[&q?, &k?, &v?, &out]), &flops)
    }

    fn quantised(&self) -> Result<()> {
        let (format, rows, k) = (BlockFormat::Q4K, (14336 / self.scale).max(16), 4096);
        let weights = self.floats(rows * k)?;
        let bytes = rows * k / format.block_len() * format.block_bytes();
        let blocks = self.gpu.alloc::<u8>(bytes)?;
        let kernels = &self.kernels;
        let work = Work::Bytes(4 * rows * k + bytes);
        let title = format!("quantize Q4_K {rows} x {k}");
        self.show(&title, kernels.quantize(format, &weights, &blocks, rows * k), &work)?;
        let title = format!("dequantize Q4_K {rows} x {k}");
        self.show(&title, kernels.dequantize(format, &blocks, &weights, rows * k), &work)?;
        let (x, y) = (self.floats(k)?, self.floats(rows)?);
        let title = format!("quantized_matmul Q4_K {rows} x {k} x 1");
        let product = kernels.quantized_matmul(format, &blocks, &x, &y, [rows, k], 1);
        self.show(&title, product, &Work::Bytes(bytes))
    }
}
