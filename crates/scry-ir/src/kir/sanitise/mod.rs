//! Makes any kernel safe to run, whoever built it.
//!
//! The kernel's claims are not trusted: minimum sizes of buffers and `finite` flags of loops are
//! dropped and derived again. In this order:
//!
//! - `limits` bounds the size of the kernel, before anything recurses over it;
//! - [`verify`](super::verify()) checks the rules of the IR;
//! - `rebuild` and `places` copy the kernel, with a clamp for every index;
//! - `divergence` rejects barriers, subgroup operations, operations on cooperative matrices and
//!   uniform loads that only some invocations may reach;
//! - [`termination`](super::termination) proves that loops end;
//! - `interface` derives the interface, against which launches are checked.

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
/// An index is clamped to the last element that is in bounds, as in WGSL. An access without an
/// index, or with the constant index 0, is not clamped: the interface requires buffers that contain
/// it.
///
/// # Errors
/// [`TooComplex`](ShaderErrorKind::TooComplex) if the kernel exceeds a limit,
/// [`Validation`](ShaderErrorKind::Validation) if it breaks a rule.
pub(crate) fn sanitise(kir: &Kir) -> Result<(Kir, Interface), ShaderError> {
    limits::check(kir)?;
    verify(kir).map_err(|error| {
        let location = error.location;
        ShaderError { location, ..invalid(error.to_string()) }
    })?;
    let (mut safe, origins) = rebuild::rebuild(kir)?;
    divergence::check(&safe, &|value| origins.describe(kir, value))?;
    termination::mark_finite(&mut safe);
    let interface = interface::derive(&safe);
    Ok((safe, interface))
}

/// The error for a kernel that breaks a rule.
fn invalid(message: String) -> ShaderError {
    ShaderError::new(ShaderErrorKind::Validation, message)
}

/// The error for a kernel that exceeds a limit.
fn too_complex(message: String) -> ShaderError {
    ShaderError::new(ShaderErrorKind::TooComplex, message)
}
