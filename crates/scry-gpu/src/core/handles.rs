//! Handles of driver objects, and indices of submissions.

use crate::core::id::Id;

/// Marks [`MemoryId`]s.
pub(crate) enum MemoryMark {}
/// Marks [`KernelId`]s.
pub(crate) enum KernelMark {}
/// Marks [`RecordingId`]s.
pub(crate) enum RecordingMark {}

/// An allocation of a driver.
pub(crate) type MemoryId = Id<MemoryMark>;
/// A compiled kernel of a driver.
pub(crate) type KernelId = Id<KernelMark>;
/// A replayable list of steps of a driver.
pub(crate) type RecordingId = Id<RecordingMark>;

/// The purpose of an allocation.
///
/// [`Driver::write`]: crate::core::driver::Driver::write
/// [`Driver::read`]: crate::core::driver::Driver::read
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MemoryKind {
    /// Bindings, copies and fills; the fastest memory of the device.
    Device,
    /// Written by the host with [`Driver::write`]; source of copies, uniform binding.
    Upload,
    /// Destination of copies, read by the host with [`Driver::read`].
    Readback,
}

/// The index of a submission. It increases from submission to submission, and submissions complete
/// in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SubmissionIndex(pub u64);
