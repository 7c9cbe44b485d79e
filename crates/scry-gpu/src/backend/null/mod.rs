//! A device that checks and records everything and computes nothing.

use super::Absence;
use crate::driver::Adapter;

/// The null device is always there.
pub(crate) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    Ok(Vec::new())
}
