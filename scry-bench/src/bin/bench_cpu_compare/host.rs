//! A plain Rust loop over all processors.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::cases::FACTOR;
use crate::job::{Data, Job};

/// Saxpy as a plain Rust loop, with its data.
pub struct Host {
    x: Vec<f32>,
    y: Vec<f32>,
    rounds: u32,
}

impl Host {
    /// Returns the loop equivalent to the kernel of `job`.
    pub fn saxpy(job: &Job) -> Result<Self> {
        match job.data.as_slice() {
            [Data::F32(x), Data::F32(y)] => Ok(Self { x: x.clone(), y: y.clone(), rounds: 0 }),
            _ => bail!("saxpy has two buffers of floats"),
        }
    }

    /// Runs one pass; returns its seconds.
    pub fn measure(&mut self) -> f64 {
        let start = Instant::now();
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = self.x.len().div_ceil(threads);
        thread::scope(|scope| {
            for (x, y) in self.x.chunks(share).zip(self.y.chunks_mut(share)) {
                scope.spawn(move || {
                    for (x, y) in x.iter().zip(y) {
                        *y += FACTOR * *x;
                    }
                });
            }
        });
        self.rounds += 1;
        start.elapsed().as_secs_f64()
    }

    /// Returns the number of passes, and the result.
    pub fn finish(self) -> (u32, Data) {
        (self.rounds, Data::F32(self.y))
    }
}
