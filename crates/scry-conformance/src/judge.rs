//! Compares what a device did with what a case expects.

use std::fmt;

use scry_gpu::{Device, GpuError};

use crate::case::{Bound, Case, Expected, Failure, Lacking, Want};
use crate::outputs::Outputs;
use crate::ty::Ty;

/// A device's results differ from what a case expects.
#[derive(Debug)]
pub struct Mismatch(pub(crate) String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// What a runner found besides right results.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases, or parts of them, that were not run: each with the reason.
    pub skipped: Vec<String>,
}

/// The result of compiling and launching.
#[derive(Default)]
pub(crate) struct Attempt {
    pub(crate) error: Option<GpuError>,
    pub(crate) workgroup_size: Option<[u32; 3]>,
    /// The contents of the buffers afterwards; none if the kernel did not compile.
    pub(crate) buffers: Option<Vec<Vec<u8>>>,
}

/// How a runner continues after a case.
pub(crate) enum Verdict {
    Passed,
    Skipped(String),
    /// Runs these instead.
    Split(Vec<Case>),
}

/// Returns why a device skips a case.
pub(crate) fn reason_to_skip(gpu: &Device, case: &Case) -> Option<String> {
    let missing = case.needs.features.difference(gpu.info().features);
    let lacks = || format!("the device has no {missing}");
    let skips = !missing.is_empty() && !case.needs.or_refused;
    case.needs.skip.clone().or_else(|| skips.then(lacks))
}

pub(crate) fn judge(gpu: &Device, case: &Case, attempt: &Attempt) -> Result<Verdict, Mismatch> {
    verdict(gpu, case, attempt).map_err(|what| {
        let (device, backend) = (gpu.name(), gpu.backend_kind());
        Mismatch(format!("{}: {what}\non {device} ({backend})\n{}", case.name, case.source))
    })
}

fn verdict(gpu: &Device, case: &Case, attempt: &Attempt) -> Result<Verdict, String> {
    let missing = case.needs.features.difference(gpu.info().features);
    if !missing.is_empty() {
        let error = attempt.error.as_ref().ok_or("a kernel without its features was accepted")?;
        let GpuError::Unsupported(unsupported) = error else {
            return Err(format!("not an error of features: {error}"));
        };
        let names_all = unsupported.features().contains(missing);
        let parts = ["main", &missing.to_string(), gpu.name()].map(str::to_owned);
        return match names_all {
            true => says(error, &parts)
                .map(|()| Verdict::Skipped(format!("refused as it must be: no {missing}"))),
            false => Err(format!("{missing} is missing in: {error}")),
        };
    }
    match (&attempt.error, &case.failure) {
        (None, Failure::Always(parts)) => {
            return Err(format!("this should have been rejected, with {parts:?}"));
        }
        (Some(error), Failure::Always(parts)) => says(error, parts)?,
        // Refused by the compiler, not at a launch.
        (Some(error), Failure::Allowed(parts)) if attempt.buffers.is_none() => says(error, parts)?,
        (Some(error @ GpuError::Kernel(_)), Failure::Limit(parts)) => {
            return says(error, parts).map(|()| Verdict::Passed);
        }
        (Some(error), _) => return lacking(case, error),
        (None, _) => {}
    }
    let Some(buffers) = &attempt.buffers else { return Ok(Verdict::Passed) };
    let (size, want) = (attempt.workgroup_size, case.workgroup_size);
    if want.is_some() && size != want {
        return Err(format!("the workgroup size is {size:?}, not {want:?}"));
    }
    unbound_bytes(case, buffers)?;
    let bound = |bound: &Bound| part(&buffers[bound.buffer], bound).to_vec();
    let outputs = Outputs(case.bindings.iter().map(bound).collect());
    case.expected.iter().try_for_each(|expected| compare(expected, &outputs))?;
    Ok(Verdict::Passed)
}

/// An error that no case expects, unless a driver's compiler may lack the operation.
fn lacking(case: &Case, error: &GpuError) -> Result<Verdict, String> {
    let text = error.to_string();
    match &case.lacking {
        _ if !text.contains("the shader compiler failed") => Err(text),
        Lacking::Fails => Err(text),
        Lacking::Skips => Ok(Verdict::Skipped("the device's compiler lacks it".to_owned())),
        Lacking::Splits(parts) => Ok(Verdict::Split(parts())),
    }
}

fn says(error: &GpuError, parts: &[String]) -> Result<(), String> {
    let text = error.to_string();
    match parts.iter().find(|part| !text.contains(*part)) {
        Some(part) => Err(format!("`{part}` is missing in: {text}")),
        None => Ok(()),
    }
}

fn part<'b>(bytes: &'b [u8], bound: &Bound) -> &'b [u8] {
    bound.bytes.clone().map_or(bytes, |range| &bytes[range])
}

/// Fails if bytes outside of all bindings changed.
fn unbound_bytes(case: &Case, buffers: &[Vec<u8>]) -> Result<(), String> {
    for (index, (data, after)) in case.buffers.iter().zip(buffers).enumerate() {
        let bound: Vec<&Bound> = case.bindings.iter().filter(|it| it.buffer == index).collect();
        if bound.iter().any(|it| it.bytes.is_none()) {
            continue;
        }
        let is_bound = |at: usize| bound.iter().any(|it| part_contains(it, at));
        let before = data.initial();
        let changed = (0..after.len()).find(|at| before[*at] != after[*at] && !is_bound(*at));
        if let Some(at) = changed {
            return Err(format!("byte {at} of buffer {index}, outside of its bindings, changed"));
        }
    }
    Ok(())
}

fn part_contains(bound: &Bound, at: usize) -> bool {
    bound.bytes.as_ref().is_some_and(|range| range.contains(&at))
}

fn compare(expected: &Expected, outputs: &Outputs) -> Result<(), String> {
    match expected {
        Expected::Bytes(binding, want) => differ(*binding, outputs.bytes(*binding), want),
        Expected::Words(binding, want) => differ(*binding, &outputs.words(*binding), want),
        Expected::Values { binding, ty, wants, describe } => {
            let got = outputs.values(*binding, *ty, wants.len());
            if got.len() != wants.len() {
                return Err(format!("binding {binding} has {} values", got.len()));
            }
            let wrong = got.iter().zip(wants).position(|(got, want)| !want.holds(*ty, *got));
            let Some(at) = wrong else { return Ok(()) };
            let (bits, float) = (got[at], ty.float(got[at]));
            Err(format!("{} is {bits:#x} ({float:e}), not {:x?}", describe(at), wants[at]))
        }
        Expected::Holds(property) => property(outputs),
    }
}

fn differ<T: PartialEq + fmt::Debug>(binding: usize, got: &[T], want: &[T]) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    let differ = got.iter().zip(want).position(|(got, want)| got != want);
    let at = differ.unwrap_or_else(|| got.len().min(want.len()));
    let (got, want) = (&got[at..got.len().min(at + 16)], &want[at..want.len().min(at + 16)]);
    Err(format!("binding {binding} has {got:?} from element {at} on, not {want:?}"))
}

impl Want {
    /// Returns whether bits of a type are as wanted.
    pub(crate) fn holds(self, ty: Ty, got: u64) -> bool {
        let number = || ty.float(got);
        match self {
            Self::Bits(bits) => got == bits,
            Self::Number(want) => number() == want,
            Self::Near(want, ulps) => (number() - want).abs() <= ulps * ty.ulp(want),
            Self::Within(want, error) => (number() - want).abs() <= error,
            Self::Steps(bits, most) => got.abs_diff(bits) <= most,
            Self::Between(low, high) => low <= number() && number() <= high,
            Self::Any => true,
        }
    }
}
