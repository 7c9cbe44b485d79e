//! Memory-bound kernels: saxpy, copies and sums of vectors larger than the caches.

use anyhow::{Result, ensure};
use scry_gpu::{Batch, Buffer, Device, Kernel, Launch, shaders};

use crate::{Bench, median};
use scry_bench::data;
use scry_bench::table::{Goal, Row};

/// Numbers of elements: a power of two, and one that is not a multiple of the vector width.
const LENGTHS: [usize; 2] = [1 << 27, (1 << 27) + 3];

/// Launches in a measurement.
const REPEATS: usize = 5;

/// `y = x`, four elements an invocation.
const COPY: &str = include_str!("../../kernels/copy_vec4.wgsl");

/// Workgroups of the first pass of a sum.
const SUM_GROUPS: u32 = 1024;

/// The measurements: the name, which is also that of the request to PyTorch, and bytes moved per
/// element.
const NAMES: [(&str, usize); 3] = [("copy", 8), ("saxpy", 12), ("sum", 4)];

/// The kernels and their buffers.
struct Streams {
    device: Device,
    /// The kernel for vectors of four, and that for the remaining elements.
    saxpy: [Kernel; 2],
    copy: Kernel,
    /// The first pass of a sum, and the second, of one workgroup.
    sums: [Kernel; 2],
    x: Buffer<f32>,
    y: Buffer<f32>,
    partial: Buffer<f32>,
    sum: Buffer<f32>,
}

/// Compares copies, saxpy and sums of each length.
pub fn run(bench: &mut Bench) -> Result<()> {
    LENGTHS.iter().try_for_each(|n| compare(bench, *n))
}

fn compare(bench: &mut Bench, n: usize) -> Result<()> {
    let x = data::random(3, n);
    let streams = Streams::new(&bench.ours, &x)?;
    let mut times = [const { [const { Vec::new() }; 2] }; 3];
    for round in 0..=bench.samples {
        for (index, (name, _)) in NAMES.iter().enumerate() {
            let now = [streams.measure(index)?, bench.torch.measure(name, &[n, REPEATS])?];
            if round > 0 {
                times[index].iter_mut().zip(now).for_each(|(times, now)| times.push(now));
            }
        }
    }
    streams.check(&x)?;
    let medians = times.map(|pair| pair.map(median));
    // The fastest copy of either kind, for each byte that it moves.
    let copy = medians[0][0].min(medians[0][1]) / (8 * n) as f64;
    for ((name, bytes), [ours, theirs]) in NAMES.into_iter().zip(medians) {
        let moved = (bytes * n) as f64;
        let title = format!("{name} {}", length(n));
        let rate = format!("{:.0} GB/s", moved / ours / 1e9);
        let goal = if name == "sum" { Goal::AtLeast(1.0) } else { Goal::None };
        bench.table.row(&Row { name: &title, rate, ours, peer: "PyTorch", theirs, goal });
        if name == "saxpy" {
            let (theirs, goal) = (copy * moved, Goal::AtLeast(0.97));
            let peer = "best copy";
            bench.table.row(&Row { name: &title, rate: String::new(), ours, peer, theirs, goal });
        }
    }
    Ok(())
}

/// Formats a length, such as `2^27+3`.
fn length(n: usize) -> String {
    let log = n.ilog2();
    match n - (1 << log) {
        0 => format!("2^{log}"),
        rest => format!("2^{log}+{rest}"),
    }
}

impl Streams {
    fn new(device: &Device, x: &[f32]) -> Result<Self> {
        use shaders::{reduce, saxpy};
        let is_multiple = x.len().is_multiple_of(4);
        let compile_sum = |vec4, scalar| device.compile(if is_multiple { vec4 } else { scalar });
        Ok(Self {
            saxpy: [device.compile(saxpy::SAXPY_VEC4)?, device.compile(saxpy::SAXPY)?],
            copy: device.compile(COPY)?,
            sums: [compile_sum(reduce::SUM_VEC4, reduce::SUM)?, device.compile(reduce::SUM)?],
            x: device.upload(x)?,
            y: device.upload(x)?,
            partial: device.alloc(SUM_GROUPS as usize)?,
            sum: device.alloc(1)?,
            device: device.clone(),
        })
    }

    /// Returns the median seconds of the measurement with this index in [`NAMES`].
    fn measure(&self, index: usize) -> Result<f64> {
        let mut batch = self.device.batch();
        // A sum needs two launches; saxpy needs a second one for an incomplete last vector.
        let launches = match index {
            0 => 1,
            1 => 1 + usize::from(!self.x.len().is_multiple_of(4)),
            _ => 2,
        };
        for _ in 0..REPEATS {
            match index {
                0 => self.add_copy(&mut batch)?,
                1 => self.add_saxpy(&mut batch)?,
                _ => self.add_sum(&mut batch)?,
            }
        }
        let times: Vec<f64> = batch.submit_timed()?.iter().map(|t| t.as_secs_f64()).collect();
        Ok(median(times.chunks(launches).map(|one| one.iter().sum()).collect()))
    }

    fn add_copy(&self, batch: &mut Batch) -> Result<()> {
        let vector_len = self.x.len() / 4 * 4;
        let (x, y) = (self.x.slice(..vector_len)?, self.y.slice(..vector_len)?);
        let groups = u32::try_from(vector_len.div_ceil(4 * 256))?;
        let launch = Launch::workgroups([groups, 1, 1]);
        batch.run(&self.copy, &[&x, &y], launch)?;
        Ok(())
    }

    fn add_saxpy(&self, batch: &mut Batch) -> Result<()> {
        let vector_len = self.x.len() / 4 * 4;
        let (x, y) = (self.x.slice(..vector_len)?, self.y.slice(..vector_len)?);
        batch.run_with_immediates(&self.saxpy[0], &[&x, &y], vector_len / 4, &0.5f32)?;
        if vector_len < self.x.len() {
            let (x, y) = (self.x.slice(vector_len..)?, self.y.slice(vector_len..)?);
            batch.run_with_immediates(&self.saxpy[1], &[&x, &y], x.len(), &0.5f32)?;
        }
        Ok(())
    }

    fn add_sum(&self, batch: &mut Batch) -> Result<()> {
        let [first, last] = &self.sums;
        let launch = |groups: u32| Launch::workgroups([groups, 1, 1]);
        batch.run(first, &[&self.x, &self.partial], launch(SUM_GROUPS))?;
        batch.run(last, &[&self.partial, &self.sum], launch(1))?;
        Ok(())
    }

    /// Runs each computation once, and checks the results.
    fn check(&self, x: &[f32]) -> Result<()> {
        let vector_len = x.len() / 4 * 4;
        let mut batch = self.device.batch();
        batch.fill(&self.y, 2.0)?;
        self.add_copy(&mut batch)?;
        self.add_saxpy(&mut batch)?;
        self.add_sum(&mut batch)?;
        batch.submit()?;
        let copied = |i: usize| if i < vector_len { x[i] } else { 2.0 };
        data::check("saxpy", &self.y.download()?, |i| 0.5f32.mul_add(x[i], copied(i)))?;
        let expected: f64 = x.iter().map(|x| f64::from(*x)).sum();
        let got = f64::from(self.sum.download()?[0]);
        // The sum of the magnitudes is half the length. Each element takes part in 40 to 90
        // additions, whose errors of at most half an epsilon mostly cancel.
        let max_error = 20.0 * f64::from(f32::EPSILON) * x.len() as f64 / 2.0;
        ensure!((got - expected).abs() <= max_error, "the sum is {got}, it should be {expected}");
        Ok(())
    }
}
