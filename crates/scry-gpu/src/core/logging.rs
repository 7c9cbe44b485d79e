//! Log lines at level `debug`, enabled by the filter `scry=debug`.
//!
//! The targets are documented for users: `scry::device`, `scry::kernel`, `scry::cache`,
//! `scry::memory` and `scry::submit`. With the filter off, a call is one comparison of the level;
//! nothing is formatted. Each function logs the event that its comment describes.

use std::time::Duration;

use crate::api::info::DeviceInfo;
use crate::core::handles::{MemoryKind, SubmissionIndex};

fn milliseconds(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// A device was opened; `duration` includes the search for it.
pub(crate) fn opened(info: &DeviceInfo, duration: Duration) {
    log::debug!(target: "scry::device", "opened {info} in {:.2} ms", milliseconds(duration));
}

/// A kernel was compiled, or loaded from the disk cache.
pub(crate) fn compiled(info: &DeviceInfo, kernel: &str, duration: Duration) {
    log::debug!(
        target: "scry::kernel",
        "{}: compiled kernel `{kernel}` in {:.2} ms",
        info.selector(),
        milliseconds(duration)
    );
}

/// A kernel was found in the device's memory cache.
pub(crate) fn found_in_memory(info: &DeviceInfo, kernel: &str) {
    log::debug!(
        target: "scry::kernel",
        "{}: found kernel `{kernel}` in the memory cache",
        info.selector()
    );
}

/// An entry of a kernel was looked up in the disk cache; `entry` is `None` if there is none.
pub(crate) fn read_from_disk(folder: &str, kind: &str, entry: Option<&[u8]>) {
    match entry {
        Some(bytes) => log::debug!(
            target: "scry::cache",
            "disk cache hit: a {kind} of {} bytes in {folder}",
            bytes.len()
        ),
        None => log::debug!(target: "scry::cache", "disk cache miss: no {kind} in {folder}"),
    }
}

/// An entry of a kernel was stored in the disk cache.
pub(crate) fn stored_on_disk(folder: &str, kind: &str, bytes: usize) {
    log::debug!(target: "scry::cache", "disk cache: stored a {kind} of {bytes} bytes in {folder}");
}

/// Entries were evicted from the disk cache, which had exceeded its size limit.
pub(crate) fn evicted_from_disk(entries: usize, bytes: u64) {
    log::debug!(
        target: "scry::cache",
        "disk cache: evicted least recently used entries: {entries}, {bytes} bytes"
    );
}

/// The driver allocated memory, for buffers or for staging.
pub(crate) fn allocated(info: &DeviceInfo, kind: MemoryKind, size: u64, label: &str) {
    let purpose = match kind {
        MemoryKind::Device => "device",
        MemoryKind::Upload => "upload",
        MemoryKind::Readback => "readback",
    };
    log::debug!(
        target: "scry::memory",
        "{}: allocated {size} bytes of {purpose} memory{}{label}",
        info.selector(),
        if label.is_empty() { "" } else { " for " }
    );
}

/// Steps were submitted: launches, copies, fills and barriers.
pub(crate) fn submitted(
    info: &DeviceInfo,
    submission: SubmissionIndex,
    launches: u64,
    steps: usize,
) {
    log::debug!(
        target: "scry::submit",
        "{}: submission {}, launches: {launches}, steps: {steps}",
        info.selector(),
        submission.0
    );
}

/// A recording was replayed.
pub(crate) fn replayed(
    info: &DeviceInfo,
    submission: SubmissionIndex,
    launches: u64,
    steps: usize,
) {
    log::debug!(
        target: "scry::submit",
        "{}: submission {}, a replay, launches: {launches}, steps: {steps}",
        info.selector(),
        submission.0
    );
}
