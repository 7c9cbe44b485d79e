//! Tuning: finds the fastest variant of an operation by running each, and accepts it only if its
//! results match those of the reference.

use std::env;
use std::time::Duration;

use scry_gpu::{DType, Element, Result, UntypedBuffer, bf16, f16};

use crate::explanation::Explanation;
use crate::op::Op;
use crate::operation::Candidate;
use crate::plain;

/// The environment variable that turns tuning off if it is `0`.
const TUNE: &str = "SCRY_TUNE";

/// Timed runs of a variant, of which the median counts.
const RUNS: usize = 7;

/// What a run of a variant computed, and how long it took.
struct Trial {
    /// The elements of each written buffer.
    outputs: Vec<Vec<f64>>,
    time: Duration,
}

impl Op {
    /// Runs every variant that the device supports on copies of the written buffers, and returns
    /// the operation with the fastest one. Later operations of the same kind, types and sizes use
    /// that variant too, for the life of the [`Kernels`](crate::Kernels) and its clones.
    ///
    /// A variant is accepted only if its results match those of the reference, the last one of
    /// [`operations`](crate::operations). If the environment variable `SCRY_TUNE` is `0`, or the
    /// options request a variant, the operation is returned unchanged. Tuning waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[2.0f32; 8])?, gpu.alloc::<f32>(8)?);
    /// let kernels = Kernels::new(&gpu)?;
    /// let softmax = kernels.softmax(&x, &y, 1, 8)?.tune()?;
    /// assert_eq!(y.download()?, [0.0; 8]); // only copies of `y` were written
    /// softmax.run()?;
    /// assert_eq!(y.download()?, [0.125; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// Those of the reference variant; [`GpuError::OutOfMemory`](scry_gpu::GpuError::OutOfMemory)
    /// for the copies.
    pub fn tune(&self) -> Result<Self> {
        let options = self.kernels.options();
        let is_off = env::var(TUNE).is_ok_and(|value| value.trim() == "0");
        if is_off || options.variant.is_some() || self.operation.is_empty() {
            return Ok(self.clone());
        }
        let candidates = self.operation.candidates(&self.kernels);
        // A plain kernel that does not suit may take minutes on a GPU.
        let is_hopeless = |it: &Candidate| it.info.name == plain::INFO.name && !it.suits;
        let usable = candidates.iter().enumerate();
        let usable = usable.filter(|(_, it)| it.obstacle.is_none() && !is_hopeless(it));
        let mut usable: Vec<_> = usable.map(|(position, _)| position).collect();
        // One was chosen when the operation was prepared.
        let Some(reference) = usable.pop() else { return Ok(self.clone()) };
        let expected = self.try_variant(reference, &candidates)?;
        let mut fastest = (reference, expected.time);
        for position in usable {
            let name = candidates[position].info.name;
            match self.try_variant(position, &candidates) {
                Err(error) => log::warn!("{self:?}: variant `{name}` is left out: {error}"),
                Ok(trial) if !matches(&expected, &trial, self.operation.tolerance()) => {
                    log::warn!("{self:?}: variant `{name}` is left out: its results differ");
                }
                Ok(trial) if trial.time < fastest.1 => fastest = (position, trial.time),
                Ok(_) => {}
            }
        }
        self.with_tuned(fastest.0, &candidates)
    }

    /// Returns the operation with the fastest variant, and keeps the choice.
    fn with_tuned(&self, variant: usize, candidates: &[Candidate]) -> Result<Self> {
        let name = candidates[variant].info.name;
        self.kernels.set_tuned(self.operation.key(), name);
        let reason = "it was the fastest when tuned".to_owned();
        let explanation = Explanation::new(&self.operation.call(), variant, reason, candidates);
        let (operation, buffers) = (self.operation.clone(), self.buffers.clone());
        Self::new(&self.kernels, operation, buffers, variant, explanation)
    }

    /// Runs a variant on copies of the written buffers.
    fn try_variant(&self, variant: usize, candidates: &[Candidate]) -> Result<Trial> {
        let arguments = self.operation.arguments();
        let copy = |(buffer, argument): (&UntypedBuffer, &scry_gpu::NativeBinding)| {
            if argument.is_written() { buffer.duplicate() } else { Ok(buffer.clone()) }
        };
        let buffers = self.buffers.iter().zip(&arguments).map(copy);
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let operation = self.operation.clone();
        let reason = "it is tried".to_owned();
        let explanation = Explanation::new(&operation.call(), variant, reason, candidates);
        let op = Self::new(&self.kernels, operation, buffers, variant, explanation)?;
        op.run()?;
        let written = op.buffers.iter().zip(&arguments).filter(|(_, it)| it.is_written());
        let outputs = written.map(|(buffer, _)| elements(buffer)).collect::<Result<_>>()?;
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let mut batch = self.kernels.device().batch();
            op.add_to(&mut batch)?;
            times.push(batch.submit_timed()?.iter().sum());
        }
        times.sort_unstable();
        Ok(Trial { outputs, time: times[RUNS / 2] })
    }
}

/// Downloads the elements of a buffer.
fn elements(buffer: &UntypedBuffer) -> Result<Vec<f64>> {
    match buffer.dtype() {
        Some(DType::F32) => numbers::<f32>(buffer, f64::from),
        Some(DType::F16) => numbers(buffer, f16::to_f64),
        Some(DType::BF16) => numbers(buffer, bf16::to_f64),
        Some(DType::I32) => numbers::<i32>(buffer, f64::from),
        Some(DType::U32) => numbers::<u32>(buffer, f64::from),
        _ => Ok(buffer.download_bytes()?.into_iter().map(f64::from).collect()),
    }
}

fn numbers<T: Element>(buffer: &UntypedBuffer, to_f64: fn(T) -> f64) -> Result<Vec<f64>> {
    Ok(buffer.typed::<T>()?.download()?.into_iter().map(to_f64).collect())
}

/// Returns whether results are within `tolerance` of the largest expected one. NaN matches NaN, and
/// an infinity itself.
fn matches(expected: &Trial, actual: &Trial, tolerance: f64) -> bool {
    expected.outputs.iter().zip(&actual.outputs).all(|(expected, actual)| {
        let finite = expected.iter().filter(|number| number.is_finite());
        let largest = finite.fold(0f64, |largest, number| largest.max(number.abs()));
        let is_close = |(expected, actual): (&f64, &f64)| {
            expected == actual
                || (expected.is_nan() && actual.is_nan())
                || (expected - actual).abs() <= tolerance * largest
        };
        expected.len() == actual.len() && expected.iter().zip(actual).all(is_close)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(outputs: &[f64]) -> Trial {
        Trial { outputs: vec![outputs.to_vec()], time: Duration::ZERO }
    }

    #[test]
    fn wrong_results_do_not_match() {
        let expected = trial(&[1.0, -100.0, f64::NAN, f64::INFINITY]);
        let changed = |nth: usize, value: f64| {
            let mut outputs = expected.outputs[0].clone();
            outputs[nth] = value;
            matches(&expected, &trial(&outputs), 1e-3)
        };
        assert!(changed(0, 1.0) && changed(0, 1.09) && changed(1, -99.95));
        assert!(!changed(0, 1.11) && !changed(0, f64::NAN) && !changed(2, 0.0));
        assert!(!changed(3, f64::NEG_INFINITY) && !changed(3, f64::MAX));
        assert!(!matches(&expected, &trial(&[1.0]), 1.0), "another length");
    }
}
