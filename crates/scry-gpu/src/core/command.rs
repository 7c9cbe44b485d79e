//! GPU work as plain data.

use std::ops::{BitOr, BitOrAssign};

use crate::core::handles::{KernelId, MemoryId};

/// A range of bytes in an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferRange {
    /// The allocation.
    pub memory: MemoryId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; never zero.
    pub size: u64,
}

impl BufferRange {
    /// The byte after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.size
    }
}

/// A command of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Fills with a 32-bit pattern; offset and size are multiples of 4.
    Fill { dst: BufferRange, pattern: u32 },
    /// Copies bytes; the ranges have the same size and do not overlap.
    Copy { src: BufferRange, dst: BufferRange },
    /// Runs a kernel.
    Dispatch(Dispatch),
}

/// The buffer range bound to a binding of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundBuffer {
    pub range: BufferRange,
    /// Whether the kernel may write it.
    pub writes: bool,
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dispatch {
    /// The compiled kernel.
    pub kernel: KernelId,
    /// The buffer range for each binding of the kernel's interface, in order, followed by the grid
    /// parameters of a linearised variant and the words of a failure report.
    pub bindings: Vec<BoundBuffer>,
    /// Workgroups along x, y and z.
    pub groups: Groups,
    /// The immediate block, of the interface's size; may be empty.
    pub immediates: Vec<u8>,
    /// The purpose of the launch. Drivers may ignore it.
    pub role: Role,
}

/// Workgroups of a launch, along x, y and z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Groups {
    /// Known when the launch is encoded: within the device's limits, and never zero.
    Direct([u32; 3]),
    /// Three `u32` in memory at a multiple of 4 bytes, read when the launch is executed: the
    /// caller's counts or a native grid, depending on
    /// [`Driver::indirect`](crate::core::driver::Driver::indirect). Boxed to keep direct launches,
    /// the common case, small: recording many of them is memory-bound.
    Indirect(Box<BufferRange>),
}

impl Groups {
    /// Bytes of the workgroup counts of an indirect launch.
    pub(crate) const SIZE: u64 = 12;
}

/// The purpose of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Requested by the caller.
    Launch,
    /// A copy: binding 0 overwrites all of binding 1.
    Copy,
    /// Computes the grid of the indirect launch that follows.
    Preparation,
    /// A collective of a group of devices.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "WebAssembly has no groups"))]
    Collective,
}

impl Dispatch {
    /// Returns whether the workgroup counts are in memory.
    #[cfg_attr(not(cuda), expect(dead_code, reason = "used only by the CUDA driver"))]
    pub(crate) fn is_indirect(&self) -> bool {
        matches!(self.groups, Groups::Indirect(_))
    }

    /// Returns whether the caller requested the launch: others are neither counted nor are their
    /// times returned.
    pub(crate) fn is_launch(&self) -> bool {
        self.role == Role::Launch
    }
}

/// A set of stages that access memory, like `VkPipelineStageFlags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stages(u8);

impl Stages {
    /// Kernels.
    pub(crate) const COMPUTE: Self = Self(1);
    /// Copies and fills.
    pub(crate) const TRANSFER: Self = Self(2);
    /// The host, for reads of device results.
    pub(crate) const HOST: Self = Self(4);

    /// No stages.
    pub(crate) const fn empty() -> Self {
        Self(0)
    }

    /// Returns whether these include all of `other`.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Stages {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Stages {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A barrier: accesses of the stages `before` in earlier commands complete, and their writes become
/// visible, before the stages `after` of later commands begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub before: Stages,
    pub after: Stages,
}

/// A step of a submission, in order. Commands without a barrier between them may overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Barrier(Barrier),
    Run(Command),
}

impl Command {
    /// The stage that executes the command.
    pub(crate) fn stage(&self) -> Stages {
        match self {
            Self::Fill { .. } | Self::Copy { .. } => Stages::TRANSFER,
            Self::Dispatch(_) => Stages::COMPUTE,
        }
    }

    /// Returns the range that the command overwrites entirely, if there is one.
    pub(crate) fn overwrites(&self) -> Option<BufferRange> {
        match self {
            Self::Fill { dst, .. } | Self::Copy { dst, .. } => Some(*dst),
            Self::Dispatch(dispatch) if dispatch.role == Role::Copy => {
                Some(dispatch.bindings[1].range)
            }
            Self::Dispatch(_) => None,
        }
    }

    /// Calls `visit` with each range that the command accesses, and whether it writes there.
    pub(crate) fn for_each_access(&self, mut visit: impl FnMut(BufferRange, bool)) {
        match self {
            Self::Fill { dst, .. } => visit(*dst, true),
            Self::Copy { src, dst } => {
                visit(*src, false);
                visit(*dst, true);
            }
            Self::Dispatch(dispatch) => {
                for bound in &dispatch.bindings {
                    visit(bound.range, bound.writes);
                }
                if let Groups::Indirect(counts) = &dispatch.groups {
                    visit(**counts, false);
                }
            }
        }
    }
}
