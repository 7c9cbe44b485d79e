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

/// One piece of work for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Repeats a 32-bit pattern; offset and size are multiples of 4.
    Fill { dst: BufferRange, pattern: u32 },
    /// Copies bytes; the spans are of one size and do not overlap.
    Copy { src: BufferRange, dst: BufferRange },
    /// Runs a kernel.
    Dispatch(Dispatch),
}

/// What a binding of a kernel gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundBuffer {
    pub span: BufferRange,
    /// Whether the kernel may write it.
    pub writes: bool,
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dispatch {
    /// The compiled kernel.
    pub kernel: KernelId,
    /// What each binding of the kernel's interface gets, in the interface's order; a folded kernel
    /// has its fold parameters last.
    pub bindings: Vec<BoundBuffer>,
    /// Workgroups along x, y and z.
    pub groups: Groups,
    /// The immediate block, of exactly the size in the interface; may be empty.
    pub immediates: Vec<u8>,
    /// What it is for. Drivers need not know.
    pub role: Role,
}

/// Workgroups of a launch, along x, y and z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Groups {
    /// Within the device's limits, and never zero.
    Direct([u32; 3]),
    /// Three `u32` in memory at a multiple of 4 bytes, read when the launch is executed:
    /// the caller's counts or a native grid, as
    /// [`Driver::indirect`](crate::core::driver::Driver::indirect) says.
    /// Boxed, so that the far more usual direct launches stay small: recording many of them is
    /// bound by memory.
    Indirect(Box<BufferRange>),
}

impl Groups {
    /// Bytes of the counts of an indirect launch.
    pub(crate) const SIZE: u64 = 12;
}

/// What a launch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The caller asked for it.
    Launch,
    /// It is a copy: all of binding 1 is overwritten with binding 0.
    Copy,
    /// It computes the grid of the indirect launch that follows.
    Preparation,
}

impl Dispatch {
    /// Whether its number of workgroups is in memory.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only CUDA's driver asks"))]
    pub(crate) fn is_indirect(&self) -> bool {
        matches!(self.groups, Groups::Indirect(_))
    }

    /// Whether the caller asked for it: only such launches are counted and timed.
    pub(crate) fn is_launch(&self) -> bool {
        self.role == Role::Launch
    }
}

/// The parts of a device that touch memory: a set of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stages(u8);

impl Stages {
    /// Kernels.
    pub(crate) const COMPUTE: Self = Self(1);
    /// Copies and fills.
    pub(crate) const TRANSFER: Self = Self(2);
    /// The host, reading what the device wrote.
    pub(crate) const HOST: Self = Self(4);

    /// None of them.
    pub(crate) const fn empty() -> Self {
        Self(0)
    }

    /// Whether all of `other` are among these.
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

/// A barrier: all that the stages `before` did until here is done, and its writes are visible,
/// before the stages `after` go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub before: Stages,
    pub after: Stages,
}

/// What a driver executes, in order; commands not separated by a barrier may overlap.
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

    /// The span that the command overwrites whatever was there, if there is one.
    pub(crate) fn overwrites(&self) -> Option<BufferRange> {
        match self {
            Self::Fill { dst, .. } | Self::Copy { dst, .. } => Some(*dst),
            Self::Dispatch(dispatch) if dispatch.role == Role::Copy => {
                Some(dispatch.bindings[1].span)
            }
            Self::Dispatch(_) => None,
        }
    }

    /// Calls `visit` with each span that the command touches, and whether it writes there.
    pub(crate) fn for_each_access(&self, mut visit: impl FnMut(BufferRange, bool)) {
        match self {
            Self::Fill { dst, .. } => visit(*dst, true),
            Self::Copy { src, dst } => {
                visit(*src, false);
                visit(*dst, true);
            }
            Self::Dispatch(dispatch) => {
                for bound in &dispatch.bindings {
                    visit(bound.span, bound.writes);
                }
                if let Groups::Indirect(counts) = &dispatch.groups {
                    visit(**counts, false);
                }
            }
        }
    }
}
