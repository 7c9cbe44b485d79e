//! Matrix products, compared with cuBLAS as called by PyTorch and through our own device.

use anyhow::{Result, ensure};
use scry_gpu::{Binding, Buffer, GpuError, bf16, f16};
use scry_kernels::{Gemm, KernelOptions, Op, Precision, PtxType};

use crate::Bench;
use crate::chain::replay;
use crate::clock::{Caches, median};
use crate::element::{Element, Rng};
use scry_bench::table::{Goal, Row};

/// Sides m, n and k, and the minimum ratio to cuBLAS.
type Case = ([usize; 3], f64);

/// The cases of bfloat16, the first four also of `f16`.
const CASES: [Case; 8] = [
    ([2048; 3], 0.85),
    ([4096; 3], 0.85),
    ([8192; 3], 0.85),
    ([4096, 4096, 14336], 0.85),
    ([4097, 4095, 1023], 2.5),
    ([16, 4096, 4096], 1.2),
    ([8192, 64, 8192], 1.0),
    ([32768, 256, 128], 1.0),
];

/// Chained products, in the form of [`CASES`]: their time is that of reading the weights.
const CHAINED: [Case; 2] = [([16, 4096, 4096], 1.2), ([16, 4096, 14336], 1.0)];

/// Bytes of alternating weights: more than the caches hold.
const WEIGHT_BYTES: usize = 320 << 20;

/// Number of random products, their maximum side, and the minimum ratio of each.
const RANDOM: (usize, usize, f64) = (100, 8192, 0.8);

/// Compares all products.
pub fn run(bench: &mut Bench) -> Result<()> {
    if let Some(seed) = bench.shape_seed {
        let mut rng = Rng(seed);
        let (count, max, min_ratio) = RANDOM;
        return (0..count).try_for_each(|index| {
            // Alternately, sides are uniform, and uniform in their logarithm.
            let side = |()| if index % 2 == 0 { rng.uniform(max) } else { rng.log_uniform(max) };
            let sides = [(); 3].map(side);
            compare::<bf16>(bench, sides, Precision::Full, Goal::AtLeast(min_ratio))
        });
    }
    for (sides, min_ratio) in CASES {
        compare::<bf16>(bench, sides, Precision::Full, Goal::AtLeast(min_ratio))?;
    }
    for (sides, min_ratio) in CHAINED {
        compare_chained(bench, sides, min_ratio)?;
    }
    for (sides, min_ratio) in &CASES[..4] {
        compare::<f16>(bench, *sides, Precision::Full, Goal::AtLeast(*min_ratio))?;
    }
    compare::<f32>(bench, [1024; 3], Precision::Full, Goal::AtLeast(0.9))?;
    compare::<f32>(bench, [4096; 3], Precision::Full, Goal::AtLeast(0.92))?;
    compare::<f32>(bench, [4096; 3], Precision::Tf32x3, Goal::AtLeast(1.3))
}

/// The operands of a product, and its description.
struct Product<T> {
    gemm: Gemm,
    a: Buffer<T>,
    b: Buffer<T>,
    out: Buffer<T>,
}

fn compare<T: Element>(
    bench: &mut Bench,
    sides: [usize; 3],
    precision: Precision,
    goal: Goal,
) -> Result<()> {
    let product = Product::<T>::new(bench, sides, precision)?;
    let buffers: [&dyn Binding; 3] = [&product.a, &product.b, &product.out];
    let prepared = bench.kernels.gemm(&product.gemm, &buffers)?;
    product.check(&prepared)?;
    let [m, n, k] = sides;
    let how = match precision {
        Precision::Full => String::new(),
        other => format!(" {other:?}"),
    };
    let name = format!("gemm {} {m}x{n}x{k}{how}", T::NAME);
    let peer = (format!("gemm {}", T::NAME), vec![m, n, k]);
    let bytes = (m * k + k * n + m * n) * size_of::<T>();
    bench.row(&name, &prepared, peer, ("TFLOP/s", 2.0 * (m * n * k) as f64), bytes, goal)?;
    if precision != Precision::Full || bench.shape_seed.is_some() {
        return Ok(());
    }
    let Product { a, b, out, .. } = &product;
    let cublas = KernelOptions { variant: Some("cublas".to_owned()), ..Default::default() };
    match bench.kernels.having(cublas).matmul(a, b, out, m, n, k) {
        Ok(cublas) => bench.print_cublas(&name, &cublas, 2.0 * (m * n * k) as f64, bytes),
        Err(GpuError::Library(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Compares chains of dependent products with alternating weights: a recording of ours with a CUDA
/// graph of PyTorch's.
fn compare_chained(bench: &mut Bench, [m, n, k]: [usize; 3], min_ratio: f64) -> Result<()> {
    let kernels = bench.kernels.clone();
    let product = Product::<bf16>::new(bench, [m, n, k], Precision::Full)?;
    product.check(&kernels.gemm(&product.gemm, &[&product.a, &product.b, &product.out])?)?;
    let count = WEIGHT_BYTES.div_ceil(product.b.byte_size() as usize);
    let copies = (0..count).map(|_| {
        let copy = kernels.device().alloc::<bf16>(n * k)?;
        product.b.copy_to(&copy)?;
        Ok(copy)
    });
    let copies: Vec<Buffer<bf16>> = copies.collect::<Result<_>>()?;
    let prepare = |b: &Buffer<bf16>| kernels.gemm(&product.gemm, &[&product.a, b, &product.out]);
    let prepared = copies.iter().map(prepare).collect::<scry_gpu::Result<Vec<_>>>()?;
    let (recording, launches) = bench.record_chain(&prepared)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=bench.samples {
        let seconds = [
            replay(&recording)? / launches as f64,
            bench.torch.measure("used chain bf16", &[m, n, k, count])?,
        ];
        if round > 0 {
            ours.push(seconds[0]);
            theirs.push(seconds[1]);
        }
    }
    let (ours, theirs) = (median(ours)?, median(theirs)?);
    bench.table.row(&Row {
        name: &format!("gemm bf16 {m}x{n}x{k}, chained"),
        rate: format!("{:.2} TB/s", (2 * n * k) as f64 / ours / 1e12),
        ours,
        peer: "PyTorch",
        theirs,
        goal: Goal::AtLeast(min_ratio),
    });
    Ok(())
}

impl Bench {
    /// Measures an operation, and prints a row; `work` is its number of operations or bytes, for
    /// the rate in `unit`, TFLOP/s or TB/s; `bytes` is the size of operands and results. Where warm
    /// caches matter, another row has the time with flushed caches.
    pub fn row(
        &mut self,
        name: &str,
        prepared: &Op,
        peer: (String, Vec<usize>),
        (unit, work): (&str, f64),
        bytes: usize,
        goal: Goal,
    ) -> Result<()> {
        let caches = Caches::for_bytes(bytes);
        let mut row = |name: &str, caches, goal| -> Result<()> {
            let (peer, samples) = ((&*peer.0, &*peer.1), self.samples);
            let times = self.clock.compare(prepared, &mut self.torch, peer, caches, samples)?;
            let [ours, theirs] = times;
            let rate = format!("{:.1} {unit}", work / ours / 1e12);
            self.table.row(&Row { name, rate, ours, peer: "PyTorch", theirs, goal });
            Ok(())
        };
        row(name, caches, goal)?;
        if caches == Caches::Used && Caches::may_affect(bytes) {
            row(&format!("{name} flushed"), Caches::Flushed, Goal::None)?;
        }
        Ok(())
    }

    /// Prints the rate of cuBLAS, called through our device; `work` is the number of operations.
    fn print_cublas(&mut self, name: &str, cublas: &Op, work: f64, bytes: usize) -> Result<()> {
        let caches = Caches::for_bytes(bytes);
        let times = (0..self.samples).map(|_| self.clock.seconds(cublas, caches));
        let seconds = median(times.collect::<Result<_>>()?)?;
        println!("{name:<34} by cuBLAS on our device: {:.1} TFLOP/s", work / seconds / 1e12);
        Ok(())
    }
}

impl<T: Element> Product<T> {
    fn new(bench: &Bench, [m, n, k]: [usize; 3], precision: Precision) -> Result<Self> {
        let (device, mut rng) = (bench.kernels.device(), Rng(1));
        let element = match T::NAME {
            "f16" => PtxType::F16,
            "bf16" => PtxType::Bf16,
            _ => PtxType::F32,
        };
        let mut gemm = Gemm::new(m as u64, n as u64, k as u64, element);
        gemm.precision = precision;
        Ok(Self {
            gemm,
            a: device.upload(&rng.elements::<T>(m * k))?,
            b: device.upload(&rng.elements::<T>(k * n))?,
            out: device.upload(&vec![T::round_from(f32::NAN); m * n])?,
        })
    }

    /// Runs it once, and compares elements spread over all tiles with sums in f64.
    fn check(&self, prepared: &Op) -> Result<()> {
        prepared.run()?;
        let [m, n, k] = [self.gemm.m, self.gemm.n, self.gemm.k].map(|side| side as usize);
        let (a, b) = (self.a.download()?, self.b.download()?);
        let out = self.out.download()?;
        ensure!(
            out.iter().all(|x| x.widen().is_finite()),
            "{:?}: some elements were not written",
            self.gemm
        );
        for at in (0..m * n).step_by((m * n).div_ceil(200) | 1) {
            let (row, column) = (at / n, at % n);
            let sum: f64 = (0..k).map(|l| a[row * k + l].widen() * b[l * n + column].widen()).sum();
            let error = (out[at].widen() - sum).abs();
            ensure!(
                error <= T::MAX_ERROR * k as f64,
                "{row}, {column} is {}, not {sum}",
                out[at].widen()
            );
        }
        Ok(())
    }
}
