//! Interleaved measurements of an operation and of its naive kernel.

use std::time::Instant;

use anyhow::{Result, ensure};
use scry_bench::data;
use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};
use scry_gpu::{Batch, Binding, Buffer, Device, Element, GpuError, Launch, PreparedLaunch};
use scry_kernels::{Kernels, Op};

/// Minimum duration of a measurement: shorter runs are repeated.
const MIN_SECONDS: f64 = 4e-3;

/// Minimum ratio of the naive kernel's time to ours, with 5 % for noise.
const GOAL: Goal = Goal::AtLeast(0.95);

/// The context of all parts.
pub struct Bench {
    /// The device of both.
    pub device: Device,
    /// The library on that device.
    pub kernels: Kernels,
    /// Measurements of each number.
    pub samples: usize,
    /// Whether the processor time of all threads is measured.
    pub counts_cpu_time: bool,
    /// Parts of the names of rows to be measured; of all rows if empty.
    pub only: Vec<String>,
    /// The printed table.
    pub table: Table,
}

/// Something to be measured: submits work, without waiting.
pub type Run<'r> = Box<dyn Fn() -> Result<()> + 'r>;

/// Compares the results of both after one run of each.
pub type Check<'r> = Box<dyn Fn() -> Result<()> + 'r>;

impl Bench {
    /// Compiles a naive kernel, with sizes as its immediates.
    pub fn naive(
        &self,
        source: &str,
        buffers: &[&dyn Binding],
        invocations: impl Into<Launch>,
        sizes: &[usize],
    ) -> Result<PreparedLaunch> {
        let words: Vec<u32> = sizes.iter().map(|size| *size as u32).collect();
        self.naive_with_words(source, buffers, invocations, &words)
    }

    /// Compiles a naive kernel, with these words as its immediates.
    pub fn naive_with_words(
        &self,
        source: &str,
        buffers: &[&dyn Binding],
        invocations: impl Into<Launch>,
        words: &[u32],
    ) -> Result<PreparedLaunch> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let launch = invocations.into().immediate_bytes(bytes);
        Ok(self.device.compile(source)?.prepare(buffers, launch)?)
    }

    /// Uploads random numbers between -1 and 1.
    pub fn random(&self, seed: u32, count: usize) -> Result<Buffer<f32>> {
        Ok(self.device.upload(&data::random(seed, count))?)
    }

    /// Uploads random words below a bound.
    pub fn words(&self, seed: u32, count: usize, bound: u32) -> Result<Buffer<u32>> {
        let word = |at: usize| {
            let bits = (at as u32 ^ seed.rotate_left(16)).wrapping_mul(0x9e37_79b9);
            let mixed = (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d);
            ((u64::from(mixed ^ (mixed >> 13)) * u64::from(bound)) >> 32) as u32
        };
        Ok(self.device.upload(&(0..count).map(word).collect::<Vec<_>>())?)
    }

    /// Allocates the results of both, filled with zeros.
    pub fn results<T: Element>(&self, count: usize) -> Result<[Buffer<T>; 2]> {
        Ok([self.device.alloc(count)?, self.device.alloc(count)?])
    }

    /// Compares an operation with a naive kernel.
    pub fn compare(
        &mut self,
        name: &str,
        op: &Op,
        naive: &PreparedLaunch,
        check: Check<'_>,
    ) -> Result<()> {
        let peer: Run<'_> = Box::new(|| Ok(naive.run()?));
        self.compare_runs(name, op, (Box::new(|| Ok(op.run()?)), peer), check)
    }

    /// Compares batches: the first command of each, and then the operation or the launches.
    pub fn compare_batches<'b>(
        &mut self,
        name: &str,
        (before, op): (impl Fn(&mut Batch) -> scry_gpu::Result<()> + 'b, &'b Op),
        (before_naive, naive): (
            impl Fn(&mut Batch) -> scry_gpu::Result<()> + 'b,
            &'b [PreparedLaunch],
        ),
        check: Check<'b>,
    ) -> Result<()> {
        let device = self.device.clone();
        let ours = || {
            let mut batch = device.batch();
            before(&mut batch)?;
            op.add_to(&mut batch)?;
            Ok(batch.submit()?)
        };
        let peer = || {
            let mut batch = device.batch();
            before_naive(&mut batch)?;
            naive.iter().try_for_each(|launch| batch.run_prepared(launch).map(|_| ()))?;
            Ok(batch.submit()?)
        };
        self.compare_runs(name, op, (Box::new(ours), Box::new(peer)), check)
    }

    fn compare_runs(
        &mut self,
        name: &str,
        op: &Op,
        (ours, naive): (Run<'_>, Run<'_>),
        check: Check<'_>,
    ) -> Result<()> {
        let variant = op.explain().variant().to_owned();
        self.row(name, (&variant, ours), ("naive", naive, GOAL), check)
    }

    /// Prints the row of two runs, after their results were compared.
    pub fn row(
        &mut self,
        name: &str,
        (variant, ours): (&str, Run<'_>),
        (peer, theirs, goal): (&str, Run<'_>, Goal),
        check: Check<'_>,
    ) -> Result<()> {
        if !runner::is_matched(&self.only, name) {
            return Ok(());
        }
        ours()?;
        self.device.wait()?;
        theirs()?;
        if let Err(error @ GpuError::Kernel(_)) = self.device.wait() {
            // llvmpipe ends loops after 65535 iterations.
            println!("{name:<34} skipped, since the peer cannot run: {error}");
            return Ok(());
        }
        check().map_err(|error| error.context(format!("{name}, {variant}")))?;
        let runs = [ours, theirs];
        let mut fastest = [f64::INFINITY; 2];
        let repetitions = [self.repetitions(&runs[0])?, self.repetitions(&runs[1])?];
        for _ in 0..self.samples {
            for side in 0..2 {
                let seconds = self.seconds(&runs[side], repetitions[side])?;
                fastest[side] = fastest[side].min(seconds);
            }
        }
        let [ours, theirs] = fastest;
        self.table.row(&Row { name, rate: variant.to_owned(), ours, peer, theirs, goal });
        Ok(())
    }

    /// Returns how many runs a measurement averages.
    fn repetitions(&self, run: &Run<'_>) -> Result<u32> {
        self.seconds(run, 1)?;
        Ok((MIN_SECONDS / self.seconds(run, 1)?).ceil().clamp(1.0, 200.0) as u32)
    }

    /// Returns the mean seconds of a run with its wait.
    fn seconds(&self, run: &Run<'_>, repetitions: u32) -> Result<f64> {
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        for _ in 0..repetitions {
            run()?;
            self.device.wait()?;
        }
        let seconds = match self.counts_cpu_time {
            true => cpu_seconds() - cpu_start,
            false => start.elapsed().as_secs_f64(),
        };
        Ok(seconds / f64::from(repetitions))
    }
}

/// Returns the processor time of all threads of the process.
#[cfg(unix)]
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns 0: the processor time is not known.
#[cfg(not(unix))]
fn cpu_seconds() -> f64 {
    0.0
}

/// Checks that results are within `tolerance` of the naive ones, relative to the larger of their
/// magnitude and 1.
pub fn close<'r>(results: &'r [Buffer<f32>; 2], tolerance: f32) -> Check<'r> {
    Box::new(move || {
        let [ours, naive] = [results[0].download()?, results[1].download()?];
        for (nth, (ours, naive)) in ours.iter().zip(&naive).enumerate() {
            let is_close = (ours - naive).abs() <= tolerance * naive.abs().max(1.0);
            ensure!(is_close, "result {nth} is {ours}, that of the naive kernel {naive}");
        }
        ensure!(naive.iter().any(|x| *x != 0.0), "all results are zero");
        Ok(())
    })
}

/// Checks that results are equal.
pub fn equal<'r>(results: &'r [Buffer<u32>; 2]) -> Check<'r> {
    Box::new(move || {
        let [ours, naive] = [results[0].download()?, results[1].download()?];
        for (nth, (ours, naive)) in ours.iter().zip(&naive).enumerate() {
            ensure!(ours == naive, "result {nth} is {ours}, that of the naive kernel {naive}");
        }
        ensure!(naive.iter().any(|x| *x != 0), "all results are zero");
        Ok(())
    })
}

/// Checks both.
pub fn both<'r>(first: Check<'r>, second: Check<'r>) -> Check<'r> {
    Box::new(move || {
        first()?;
        second()
    })
}
