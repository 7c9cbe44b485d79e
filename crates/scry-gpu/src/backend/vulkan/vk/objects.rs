//! Handles.

use std::marker::PhantomData;

/// A handle that commands are called on: a pointer of the loader's.
#[repr(transparent)]
pub(crate) struct Dispatchable<K>(usize, PhantomData<fn() -> K>);

/// Any other handle; null is none.
#[repr(transparent)]
pub(crate) struct Object<K>(u64, PhantomData<fn() -> K>);

/// What handles are of.
pub(crate) mod kind {
    pub(crate) struct Instance;
    pub(crate) struct PhysicalDevice;
    pub(crate) struct Device;
    pub(crate) struct Queue;
    pub(crate) struct CommandBuffer;
    pub(crate) struct Buffer;
    pub(crate) struct CommandPool;
    pub(crate) struct DescriptorPool;
    pub(crate) struct DescriptorSet;
    pub(crate) struct DescriptorSetLayout;
    pub(crate) struct DescriptorUpdateTemplate;
    pub(crate) struct DeviceMemory;
    pub(crate) struct Fence;
    pub(crate) struct Messenger;
    pub(crate) struct Pipeline;
    pub(crate) struct PipelineCache;
    pub(crate) struct PipelineLayout;
    pub(crate) struct QueryPool;
    pub(crate) struct Semaphore;
    pub(crate) struct ShaderModule;
}

pub(crate) type InstanceHandle = Dispatchable<kind::Instance>;
pub(crate) type PhysicalDevice = Dispatchable<kind::PhysicalDevice>;
pub(crate) type DeviceHandle = Dispatchable<kind::Device>;
pub(crate) type Queue = Dispatchable<kind::Queue>;
pub(crate) type CommandBuffer = Dispatchable<kind::CommandBuffer>;

pub(crate) type Buffer = Object<kind::Buffer>;
pub(crate) type CommandPool = Object<kind::CommandPool>;
pub(crate) type DebugUtilsMessengerEXT = Object<kind::Messenger>;
pub(crate) type DescriptorPool = Object<kind::DescriptorPool>;
pub(crate) type DescriptorSet = Object<kind::DescriptorSet>;
pub(crate) type DescriptorSetLayout = Object<kind::DescriptorSetLayout>;
pub(crate) type DescriptorUpdateTemplate = Object<kind::DescriptorUpdateTemplate>;
pub(crate) type DeviceMemory = Object<kind::DeviceMemory>;
pub(crate) type Fence = Object<kind::Fence>;
pub(crate) type Pipeline = Object<kind::Pipeline>;
pub(crate) type PipelineCache = Object<kind::PipelineCache>;
pub(crate) type PipelineLayout = Object<kind::PipelineLayout>;
pub(crate) type QueryPool = Object<kind::QueryPool>;
pub(crate) type Semaphore = Object<kind::Semaphore>;
pub(crate) type ShaderModule = Object<kind::ShaderModule>;

/// A handle that tools can be told the name of.
pub(crate) trait Nameable {
    /// Vulkan's number for the kind of object.
    const TYPE: i32;
    /// The handle.
    fn raw(self) -> u64;
}

impl Nameable for Buffer {
    const TYPE: i32 = 9;
    fn raw(self) -> u64 {
        self.0
    }
}

impl Nameable for Pipeline {
    const TYPE: i32 = 19;
    fn raw(self) -> u64 {
        self.0
    }
}

impl<K> Dispatchable<K> {
    /// No object.
    pub(crate) const fn null() -> Self {
        Self(0, PhantomData)
    }
}

impl<K> Object<K> {
    /// No object.
    pub(crate) const fn null() -> Self {
        Self(0, PhantomData)
    }
}

impl<K> Clone for Dispatchable<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Dispatchable<K> {}

impl<K> PartialEq for Dispatchable<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Object<K> {}
