//! Makes any kernel safe to run, whoever built it.
//!
//! Claims of the author count for nothing: minimum sizes of buffers and `finite` loops are dropped
//! and derived again. `limits` bounds the size of the kernel, before anything recurses over it;
//! [`verify`](super::verify()) checks the rules of the IR; `rebuild` and `places` copy the kernel
//! with a clamp for every index; [`termination`](super::termination) proves that loops end;
//! `divergence` refuses barriers that only some invocations reach; `interface` derives what
//! launches are checked against.

mod divergence;
mod interface;
mod limits;
mod places;
mod rebuild;
#[cfg(test)]
mod tests;

use super::{Kir, termination, verify};
use crate::{Interface, ShaderError, ShaderErrorKind};

/// Returns a kernel that computes the same and is safe to run, and its interface.
///
/// An index is clamped to the last element that is in bounds, as in WGSL. A place without an index,
/// or with index 0, has to be in bounds of every buffer that is bound: the interface requires it.
///
/// # Errors
/// [`TooComplex`](ShaderErrorKind::TooComplex) beyond the limits,
/// [`Validation`](ShaderErrorKind::Validation) if the kernel breaks a rule.
pub(crate) fn sanitise(kir: &Kir) -> Result<(Kir, Interface), ShaderError> {
    limits::check(kir)?;
    verify(kir).map_err(|error| {
        let location = error.location;
        ShaderError { location, ..invalid(error.to_string()) }
    })?;
    let (mut safe, origins) = rebuild::rebuild(kir)?;
    divergence::check(&safe, &|value| origins.describe(kir, value))?;
    termination::mark_finite(&mut safe);
    let interface = interface::of(&safe);
    Ok((safe, interface))
}

/// The error for a kernel that breaks a rule.
fn invalid(message: String) -> ShaderError {
    ShaderError::without_place(ShaderErrorKind::Validation, message)
}

/// The error for a kernel that exceeds a limit.
fn too_complex(message: String) -> ShaderError {
    ShaderError::without_place(ShaderErrorKind::TooComplex, message)
}
