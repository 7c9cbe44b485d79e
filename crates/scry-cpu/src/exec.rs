//! Executes code for workgroups on the calling thread.

use std::ops::Range;

use crate::{Code, Job, Stop, Stopped};

/// What a thread needs to execute kernels; kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch;

/// Executes the workgroups of these numbers; x is fastest, then y, then z.
pub(crate) fn run(
    code: &Code,
    job: &Job<'_>,
    groups: Range<u64>,
    scratch: &mut Scratch,
    stop: &Stop,
) -> Result<(), Stopped> {
    let _ = (code, job, groups, scratch, stop);
    Ok(())
}
