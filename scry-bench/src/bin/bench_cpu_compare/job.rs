//! A kernel with its data, bound to a device and launched.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use scry_gpu::{Binding, Buffer, Device, Kernel, Launch};

/// Minimum seconds of one measurement; short launches are repeated, at most 1000 times.
const MIN_SECONDS: f64 = 0.02;

/// Contents of a buffer.
#[derive(Clone, Debug)]
pub enum Data {
    /// Floats.
    F32(Vec<f32>),
    /// Integers.
    U32(Vec<u32>),
}

/// The work of a launch, for a rate.
#[derive(Clone, Copy)]
pub enum Work {
    /// Bytes that it reads and writes.
    Bytes(f64),
    /// Floating-point operations, at most.
    Flops(f64),
    /// Elements.
    Elements(f64),
}

/// Fails unless the result after `count` launches is correct.
pub type Check = Box<dyn Fn(u32, &Data) -> Result<()>>;

/// A kernel, its data and how to launch it.
pub struct Job {
    /// WGSL.
    pub source: &'static str,
    /// Initial contents of the bindings; the last is the result.
    pub data: Vec<Data>,
    /// The launch of each piece.
    pub launch: Launch,
    /// Number of launches, each on an equal slice of every buffer: lavapipe binds at most 2²⁷
    /// bytes.
    pub pieces: usize,
    /// Work of all pieces together.
    pub work: Work,
    /// Checks a result.
    pub check: Check,
}

impl Job {
    /// Formats the rate of a launch of this duration.
    pub fn rate(&self, seconds: f64) -> String {
        let (amount, unit) = match self.work {
            Work::Bytes(bytes) => (bytes / 1e9, "GB/s"),
            Work::Flops(flops) => (flops / 1e9, "GFLOP/s"),
            Work::Elements(elements) => (elements / 1e6, "M/s"),
        };
        format!("{:.2} {unit}", amount / seconds)
    }
}

/// A buffer on the device.
enum DeviceBuffer {
    F32(Buffer<f32>),
    U32(Buffer<u32>),
}

impl DeviceBuffer {
    /// Returns one of `pieces` equal slices.
    fn slice(&self, piece: usize, pieces: usize) -> Result<Box<dyn Binding + '_>> {
        fn range(len: usize, piece: usize, pieces: usize) -> Range<usize> {
            let share = len.div_ceil(pieces);
            piece * share..len.min((piece + 1) * share)
        }
        Ok(match self {
            Self::F32(buffer) => Box::new(buffer.slice(range(buffer.len(), piece, pieces))?),
            Self::U32(buffer) => Box::new(buffer.slice(range(buffer.len(), piece, pieces))?),
        })
    }
}

/// A job, compiled and uploaded to a device.
pub struct BoundJob<'a> {
    device: &'a Device,
    kernel: Kernel,
    buffers: Vec<DeviceBuffer>,
    launch: Launch,
    pieces: usize,
    repetitions: u32,
    rounds: u32,
}

impl<'a> BoundJob<'a> {
    /// Compiles the kernel, and uploads the data.
    pub fn new(device: &'a Device, job: &Job) -> Result<Self> {
        let kernel = device.compile(job.source)?;
        let upload = |data: &Data| -> Result<DeviceBuffer> {
            Ok(match data {
                Data::F32(data) => DeviceBuffer::F32(device.upload(data)?),
                Data::U32(data) => DeviceBuffer::U32(device.upload(data)?),
            })
        };
        let buffers = job.data.iter().map(upload).collect::<Result<_>>()?;
        let (launch, pieces) = (job.launch.clone(), job.pieces);
        Ok(Self { device, kernel, buffers, launch, pieces, repetitions: 0, rounds: 0 })
    }

    /// Launches each piece once and waits.
    fn launch(&mut self) -> Result<()> {
        for piece in 0..self.pieces {
            let slices = self.buffers.iter().map(|memory| memory.slice(piece, self.pieces));
            let slices = slices.collect::<Result<Vec<_>>>()?;
            let bindings: Vec<&dyn Binding> = slices.iter().map(|slice| &**slice).collect();
            self.device.run(&self.kernel, &bindings, self.launch.clone())?;
        }
        self.device.wait()?;
        self.rounds += 1;
        Ok(())
    }

    /// Returns the mean seconds of a launch. The first call warms up, and chooses how many launches
    /// each later call averages.
    pub fn measure(&mut self) -> Result<f64> {
        if self.repetitions == 0 {
            self.launch()?;
            let start = Instant::now();
            self.launch()?;
            let once = start.elapsed().as_secs_f64();
            self.repetitions = (MIN_SECONDS / once).ceil().clamp(1.0, 1000.0) as u32;
            return Ok(once);
        }
        let start = Instant::now();
        for _ in 0..self.repetitions {
            self.launch()?;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(self.repetitions))
    }

    /// Returns the number of launches, and the contents of the last binding.
    pub fn finish(self) -> Result<(u32, Data)> {
        let result = match self.buffers.last().expect("every kernel has a result") {
            DeviceBuffer::F32(buffer) => Data::F32(buffer.download()?),
            DeviceBuffer::U32(buffer) => Data::U32(buffer.download()?),
        };
        Ok((self.rounds, result))
    }
}

/// Returns the median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
