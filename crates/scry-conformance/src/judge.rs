//! Compares the results of a device with those that a case expects.

use std::fmt;

use scry_gpu::{Device, GpuError};

use crate::case::{BufferBinding, Case, Expected, ExpectedValue, Failure, OnUnsupportedOp};
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

/// What a runner reports about a case that passed.
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
    /// The contents of the buffers afterwards; `None` if the kernel did not compile, or a transfer
    /// failed.
    pub(crate) buffers: Option<Vec<Vec<u8>>>,
}

/// How a runner continues after a case.
pub(crate) enum Verdict {
    Passed,
    Skipped(String),
    /// Continues with these cases instead.
    Split(Vec<Case>),
}

/// Returns the reason to skip a case on a device, if there is one.
pub(crate) fn reason_to_skip(gpu: &Device, case: &Case) -> Option<String> {
    let missing = case.needs.features.difference(gpu.info().features);
    let reason = || format!("the device has no {missing}");
    let skips = !missing.is_empty() && !case.needs.is_rejected_without;
    case.needs.skip.clone().or_else(|| skips.then(reason))
}

/// Compares the result of compiling and launching with what the case expects. The text of an error
/// contains the device's name and the kernel's source.
pub(crate) fn judge(gpu: &Device, case: &Case, attempt: &Attempt) -> Result<Verdict, Mismatch> {
    verdict(gpu, case, attempt).map_err(|what| {
        let (device, backend) = (gpu.name(), gpu.backend_kind());
        Mismatch(format!("{}: {what}\non {device} ({backend})\n{}", case.name, case.source))
    })
}

fn verdict(gpu: &Device, case: &Case, attempt: &Attempt) -> Result<Verdict, String> {
    let missing = case.needs.features.difference(gpu.info().features);
    if !missing.is_empty() {
        let error = attempt
            .error
            .as_ref()
            .ok_or("the device accepted a kernel that needs missing features")?;
        let GpuError::Unsupported(unsupported) = error else {
            return Err(format!("expected an error of missing features, got: {error}"));
        };
        let names_all = unsupported.features().contains(missing);
        // The error may name others in between.
        let names: Vec<String> = missing.names().map(|name| name.to_string()).collect();
        let parts = [names, vec!["main".to_owned(), gpu.name().to_owned()]].concat();
        return match names_all {
            true => contains_parts(error, &parts)
                .map(|()| Verdict::Skipped(format!("rejected as it must be: no {missing}"))),
            false => Err(format!("{missing} is missing in: {error}")),
        };
    }
    let offered = gpu.info().matrix_products;
    if !case.needs.products.is_empty() && !case.needs.products.intersects(offered) {
        let accepted = "the device accepted products of matrices that it does not have";
        let error = attempt.error.as_ref().ok_or(accepted)?;
        let parts = [format!("its products are: {offered}")];
        let reason =
            || Verdict::Skipped(format!("rejected as it must be: {}", case.needs.products));
        return contains_parts(error, &parts).map(|()| reason());
    }
    match (&attempt.error, &case.failure) {
        (None, Failure::Always(parts)) => {
            return Err(format!("the kernel was accepted; expected an error with {parts:?}"));
        }
        (Some(error), Failure::Always(parts)) => contains_parts(error, parts)?,
        // Only the compiler may reject the kernel, not a launch.
        (Some(error), Failure::Allowed(parts)) if attempt.buffers.is_none() => {
            contains_parts(error, parts)?
        }
        (Some(error @ GpuError::Kernel(_)), Failure::Limit(parts)) => {
            return contains_parts(error, parts).map(|()| Verdict::Passed);
        }
        (Some(error), _) => return unexpected_error(case, error),
        (None, _) => {}
    }
    let Some(buffers) = &attempt.buffers else { return Ok(Verdict::Passed) };
    let (size, want) = (attempt.workgroup_size, case.workgroup_size);
    if want.is_some() && size != want {
        return Err(format!("the workgroup size is {size:?}, not {want:?}"));
    }
    check_unbound_bytes(case, buffers)?;
    let contents = |bound: &BufferBinding| bound_bytes(&buffers[bound.buffer], bound).to_vec();
    let outputs = Outputs(case.bindings.iter().map(contents).collect());
    case.expected.iter().try_for_each(|expected| compare(expected, &outputs))?;
    Ok(Verdict::Passed)
}

/// Judges an error that the case does not expect: the case fails, unless the error is one of the
/// driver's compiler and the case permits that.
fn unexpected_error(case: &Case, error: &GpuError) -> Result<Verdict, String> {
    let text = error.to_string();
    match &case.on_unsupported_op {
        _ if !text.contains("the shader compiler failed") => Err(text),
        OnUnsupportedOp::Fail => Err(text),
        OnUnsupportedOp::Skip => {
            Ok(Verdict::Skipped("the driver's compiler does not implement it".to_owned()))
        }
        OnUnsupportedOp::Split(parts) => Ok(Verdict::Split(parts())),
    }
}

fn contains_parts(error: &GpuError, parts: &[String]) -> Result<(), String> {
    let text = error.to_string();
    match parts.iter().find(|part| !text.contains(*part)) {
        Some(part) => Err(format!("`{part}` is missing in: {text}")),
        None => Ok(()),
    }
}

/// Returns the bytes of a buffer that a binding covers.
fn bound_bytes<'b>(bytes: &'b [u8], bound: &BufferBinding) -> &'b [u8] {
    bound.bytes.clone().map_or(bytes, |range| &bytes[range])
}

/// Fails if bytes outside of all bindings changed.
fn check_unbound_bytes(case: &Case, buffers: &[Vec<u8>]) -> Result<(), String> {
    for (index, (data, after)) in case.buffers.iter().zip(buffers).enumerate() {
        let bound: Vec<&BufferBinding> =
            case.bindings.iter().filter(|it| it.buffer == index).collect();
        if bound.iter().any(|it| it.bytes.is_none()) {
            continue;
        }
        let is_bound = |at: usize| bound.iter().any(|it| range_contains(it, at));
        let before = data.initial();
        let changed = (0..after.len()).find(|at| before[*at] != after[*at] && !is_bound(*at));
        if let Some(at) = changed {
            return Err(format!("byte {at} of buffer {index}, outside of its bindings, changed"));
        }
    }
    Ok(())
}

fn range_contains(bound: &BufferBinding, at: usize) -> bool {
    bound.bytes.as_ref().is_some_and(|range| range.contains(&at))
}

fn compare(expected: &Expected, outputs: &Outputs) -> Result<(), String> {
    match expected {
        Expected::Bytes(binding, want) => check_equal(*binding, outputs.bytes(*binding), want),
        Expected::Words(binding, want) => check_equal(*binding, &outputs.words(*binding), want),
        Expected::Values { binding, ty, values, describe } => {
            let got = outputs.values(*binding, *ty, values.len());
            if got.len() != values.len() {
                return Err(format!("binding {binding} has {} values", got.len()));
            }
            let wrong = got.iter().zip(values).position(|(got, want)| !want.accepts(*ty, *got));
            let Some(at) = wrong else { return Ok(()) };
            let number = describe_number(*ty, got[at]);
            Err(format!("{} is {number}, not {:x?}", describe(at), values[at]))
        }
        Expected::Holds(property) => property(outputs),
    }
}

/// Formats the bits of a number and its value.
fn describe_number(ty: Ty, bits: u64) -> String {
    match ty.is_float() {
        true => format!("{bits:#x} ({:e})", ty.float(bits)),
        false => format!("{bits:#x} ({})", ty.integer(bits)),
    }
}

fn check_equal<T: PartialEq + fmt::Debug>(
    binding: usize,
    got: &[T],
    want: &[T],
) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    let first = got.iter().zip(want).position(|(got, want)| got != want);
    let at = first.unwrap_or_else(|| got.len().min(want.len()));
    let (got, want) = (&got[at..got.len().min(at + 16)], &want[at..want.len().min(at + 16)]);
    Err(format!("binding {binding} has {got:?} from element {at} on, not {want:?}"))
}

impl ExpectedValue {
    /// Returns whether the bits of a value satisfy the expectation.
    pub(crate) fn accepts(self, ty: Ty, got: u64) -> bool {
        let number = || ty.float(got);
        match self {
            Self::Bits(bits) => got == bits,
            Self::Number(want) => number() == want,
            Self::WithinUlps(want, ulps) => (number() - want).abs() <= ulps * ty.ulp(want),
            Self::WithinAbsolute(want, error) => (number() - want).abs() <= error,
            Self::BitsWithin(bits, distance) => got.abs_diff(bits) <= distance,
            Self::Between(min, max) => min <= number() && number() <= max,
            Self::Any => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_described_by_type() {
        assert_eq!(describe_number(Ty::F32, 0x4000_0000), "0x40000000 (2e0)");
        assert_eq!(describe_number(Ty::U32, 5), "0x5 (5)");
        assert_eq!(describe_number(Ty::I16, 0xffff), "0xffff (-1)");
    }
}
