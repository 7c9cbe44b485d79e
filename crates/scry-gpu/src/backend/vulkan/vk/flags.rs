//! Sets of flags, and numbers that stand for one of several things.

use std::marker::PhantomData;
use std::ops::{BitOr, BitOrAssign};

/// A set of flags of one kind.
#[repr(transparent)]
pub(crate) struct Flags<K>(u32, PhantomData<fn() -> K>);

impl<K> Flags<K> {
    const fn of(bits: u32) -> Self {
        Self(bits, PhantomData)
    }

    /// No flag.
    pub(crate) const fn empty() -> Self {
        Self::of(0)
    }

    /// Whether there is no flag.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` are here too.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as Vulkan has them.
    #[cfg(test)]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl<K> Clone for Flags<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Flags<K> {}

impl<K> BitOr for Flags<K> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self::of(self.0 | other.0)
    }
}

impl<K> BitOrAssign for Flags<K> {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What flags are of.
pub(crate) mod of {
    pub(crate) struct Access;
    pub(crate) struct BufferUsage;
    pub(crate) struct CommandBufferUsage;
    pub(crate) struct MemoryHeap;
    pub(crate) struct MemoryProperty;
    pub(crate) struct MessageSeverity;
    pub(crate) struct MessageType;
    pub(crate) struct PipelineStage;
    pub(crate) struct Queue;
    pub(crate) struct ShaderStage;
    pub(crate) struct Subgroup;
}

pub(crate) type AccessFlags = Flags<of::Access>;
pub(crate) type BufferUsageFlags = Flags<of::BufferUsage>;
pub(crate) type CommandBufferUsageFlags = Flags<of::CommandBufferUsage>;
pub(crate) type MemoryHeapFlags = Flags<of::MemoryHeap>;
pub(crate) type MemoryPropertyFlags = Flags<of::MemoryProperty>;
pub(crate) type MessageSeverityFlags = Flags<of::MessageSeverity>;
pub(crate) type MessageTypeFlags = Flags<of::MessageType>;
pub(crate) type PipelineStageFlags = Flags<of::PipelineStage>;
pub(crate) type QueueFlags = Flags<of::Queue>;
pub(crate) type ShaderStageFlags = Flags<of::ShaderStage>;
pub(crate) type SubgroupFeatureFlags = Flags<of::Subgroup>;

impl AccessFlags {
    pub(crate) const UNIFORM_READ: Self = Self::of(0x8);
    pub(crate) const SHADER_READ: Self = Self::of(0x20);
    pub(crate) const SHADER_WRITE: Self = Self::of(0x40);
    pub(crate) const TRANSFER_READ: Self = Self::of(0x800);
    pub(crate) const TRANSFER_WRITE: Self = Self::of(0x1000);
    pub(crate) const HOST_READ: Self = Self::of(0x2000);
    pub(crate) const HOST_WRITE: Self = Self::of(0x4000);
}

impl BufferUsageFlags {
    pub(crate) const TRANSFER_SRC: Self = Self::of(0x1);
    pub(crate) const TRANSFER_DST: Self = Self::of(0x2);
    pub(crate) const UNIFORM_BUFFER: Self = Self::of(0x10);
    pub(crate) const STORAGE_BUFFER: Self = Self::of(0x20);
}

impl CommandBufferUsageFlags {
    pub(crate) const ONE_TIME_SUBMIT: Self = Self::of(0x1);
    pub(crate) const SIMULTANEOUS_USE: Self = Self::of(0x4);
}

impl MemoryHeapFlags {
    pub(crate) const DEVICE_LOCAL: Self = Self::of(0x1);
}

impl MemoryPropertyFlags {
    pub(crate) const DEVICE_LOCAL: Self = Self::of(0x1);
    pub(crate) const HOST_VISIBLE: Self = Self::of(0x2);
    pub(crate) const HOST_COHERENT: Self = Self::of(0x4);
    pub(crate) const HOST_CACHED: Self = Self::of(0x8);
}

impl MessageSeverityFlags {
    pub(crate) const WARNING: Self = Self::of(0x100);
    pub(crate) const ERROR: Self = Self::of(0x1000);
}

impl MessageTypeFlags {
    pub(crate) const GENERAL: Self = Self::of(0x1);
    pub(crate) const VALIDATION: Self = Self::of(0x2);
    pub(crate) const PERFORMANCE: Self = Self::of(0x4);
}

impl PipelineStageFlags {
    pub(crate) const COMPUTE_SHADER: Self = Self::of(0x800);
    pub(crate) const TRANSFER: Self = Self::of(0x1000);
    pub(crate) const BOTTOM_OF_PIPE: Self = Self::of(0x2000);
    pub(crate) const HOST: Self = Self::of(0x4000);
}

impl QueueFlags {
    pub(crate) const COMPUTE: Self = Self::of(0x2);
}

impl ShaderStageFlags {
    pub(crate) const COMPUTE: Self = Self::of(0x20);
}

impl SubgroupFeatureFlags {
    pub(crate) const BASIC: Self = Self::of(0x1);
    pub(crate) const VOTE: Self = Self::of(0x2);
    pub(crate) const ARITHMETIC: Self = Self::of(0x4);
    pub(crate) const BALLOT: Self = Self::of(0x8);
    pub(crate) const SHUFFLE: Self = Self::of(0x10);
    pub(crate) const SHUFFLE_RELATIVE: Self = Self::of(0x20);
    pub(crate) const QUAD: Self = Self::of(0x80);
}

/// What a device is.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhysicalDeviceType(pub(super) i32);

impl PhysicalDeviceType {
    pub(crate) const INTEGRATED_GPU: Self = Self(1);
    pub(crate) const DISCRETE_GPU: Self = Self(2);
    pub(crate) const VIRTUAL_GPU: Self = Self(3);
    pub(crate) const CPU: Self = Self(4);
}

/// What a descriptor is for.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorType(pub(super) i32);

impl DescriptorType {
    pub(crate) const UNIFORM_BUFFER: Self = Self(6);
    pub(crate) const STORAGE_BUFFER: Self = Self(7);
}

/// `VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR`.
pub(crate) const SET_LAYOUT_PUSH_DESCRIPTORS: u32 = 0x1;
/// `VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR`.
pub(crate) const INSTANCE_ENUMERATE_PORTABILITY: u32 = 0x1;
/// `VK_QUERY_RESULT_64_BIT`.
pub(crate) const QUERY_RESULT_64: u32 = 0x1;

/// `VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET`.
pub(crate) const TEMPLATE_DESCRIPTOR_SET: i32 = 0;
/// `VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR`.
pub(crate) const TEMPLATE_PUSH_DESCRIPTORS: i32 = 1;
/// `VK_PIPELINE_BIND_POINT_COMPUTE`.
pub(crate) const BIND_POINT_COMPUTE: i32 = 1;
/// `VK_PIPELINE_CACHE_HEADER_VERSION_ONE`.
pub(crate) const CACHE_HEADER_VERSION_ONE: u32 = 1;
/// `VK_QUERY_TYPE_TIMESTAMP`.
pub(crate) const QUERY_TIMESTAMP: i32 = 2;
/// `VK_SEMAPHORE_TYPE_TIMELINE`.
pub(crate) const SEMAPHORE_TIMELINE: i32 = 1;
/// `VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT`.
pub(crate) const VALIDATE_SYNCHRONIZATION: i32 = 4;
