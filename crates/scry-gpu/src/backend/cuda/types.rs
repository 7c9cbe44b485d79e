//! Types of the CUDA driver's interface, as of CUDA 12.0.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;

/// What a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Code(pub(super) c_uint);

impl Code {
    pub(super) const SUCCESS: Self = Self(0);
    pub(super) const INVALID_VALUE: Self = Self(1);
    pub(super) const OUT_OF_MEMORY: Self = Self(2);
    pub(super) const NOT_INITIALIZED: Self = Self(3);
    pub(super) const STUB_LIBRARY: Self = Self(34);
    pub(super) const NO_DEVICE: Self = Self(100);
    /// Work is not done yet.
    pub(super) const NOT_READY: Self = Self(600);

    /// An error unless the call succeeded.
    pub(super) fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// An object of the driver's, named by an address that means nothing here.
#[repr(transparent)]
pub(super) struct Handle<K>(usize, PhantomData<fn() -> K>);

impl<K> Handle<K> {
    /// No object.
    pub(super) const NULL: Self = Self(0, PhantomData);

    /// Whether this is no object.
    pub(super) fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Handle<K> {}

impl<K> PartialEq for Handle<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> fmt::Debug for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Marks handles.
pub(super) mod mark {
    pub(in super::super) enum Context {}
    pub(in super::super) enum Event {}
    pub(in super::super) enum Function {}
    pub(in super::super) enum Graph {}
    pub(in super::super) enum GraphExec {}
    pub(in super::super) enum GraphNode {}
    pub(in super::super) enum LinkState {}
    pub(in super::super) enum MemoryPool {}
    pub(in super::super) enum Module {}
    pub(in super::super) enum Stream {}
}

pub(super) type Context = Handle<mark::Context>;
pub(super) type Event = Handle<mark::Event>;
pub(super) type Function = Handle<mark::Function>;
pub(super) type Graph = Handle<mark::Graph>;
pub(super) type GraphExec = Handle<mark::GraphExec>;
pub(super) type GraphNode = Handle<mark::GraphNode>;
pub(super) type LinkState = Handle<mark::LinkState>;
pub(super) type MemoryPool = Handle<mark::MemoryPool>;
pub(super) type Module = Handle<mark::Module>;
pub(super) type Stream = Handle<mark::Stream>;

/// The number of a device.
pub(super) type Device = c_int;

/// An address in the space that the host and all devices share.
pub(super) type DevicePtr = u64;

/// `CUdevice_attribute`.
pub(super) mod attribute {
    use std::ffi::c_int;

    pub(in super::super) const MULTIPROCESSORS: c_int = 16;
    pub(in super::super) const INTEGRATED: c_int = 18;
    pub(in super::super) const COMPUTE_MODE: c_int = 20;
    pub(in super::super) const PCI_BUS: c_int = 33;
    pub(in super::super) const PCI_DEVICE: c_int = 34;
    pub(in super::super) const PCI_DOMAIN: c_int = 50;
    pub(in super::super) const THREADS_PER_MULTIPROCESSOR: c_int = 39;
    pub(in super::super) const CAPABILITY_MAJOR: c_int = 75;
    pub(in super::super) const CAPABILITY_MINOR: c_int = 76;
    pub(in super::super) const SHARED_MEMORY_OPTIN: c_int = 97;
    pub(in super::super) const MEMORY_POOLS: c_int = 115;
    pub(in super::super) const STREAM_WRITE_64: c_int = 122;
    /// The model and the vendor, 16 bits each; newer drivers only.
    pub(in super::super) const PCI_MODEL: c_int = 139;
}

/// `CUfunction_attribute`.
pub(super) mod function_attribute {
    use std::ffi::c_int;

    pub(in super::super) const MAX_THREADS: c_int = 0;
    pub(in super::super) const LOCAL_BYTES: c_int = 3;
    pub(in super::super) const REGISTERS: c_int = 4;
    pub(in super::super) const MAX_DYNAMIC_SHARED: c_int = 8;
}

/// `CUjit_option`.
pub(super) mod jit {
    use std::ffi::c_int;

    pub(in super::super) const INFO_LOG: c_int = 3;
    pub(in super::super) const INFO_LOG_SIZE: c_int = 4;
    pub(in super::super) const ERROR_LOG: c_int = 5;
    pub(in super::super) const ERROR_LOG_SIZE: c_int = 6;
    /// `CU_JIT_INPUT_PTX`: what is given is PTX.
    pub(in super::super) const INPUT_PTX: c_int = 1;
}

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the one that has no name.
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub(super) const EVENT_WITHOUT_TIMING: c_uint = 2;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: for all contexts, and for kernels.
pub(super) const HOST_MEMORY: c_uint = 1 | 2;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: how many free bytes the pool keeps; a `u64`.
pub(super) const POOL_RELEASE_THRESHOLD: c_int = 4;
/// `CU_MEMORYTYPE_UNIFIED`: the address says where the memory is.
pub(super) const MEMORY_UNIFIED: c_int = 4;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct KernelNode {
    pub(super) function: Function,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    /// Another way to name the function; null.
    pub(super) kernel: usize,
    pub(super) context: Context,
}

/// `CUlaunchConfig`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: Stream,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// `CUlaunchAttribute`: its value begins behind its padded number.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LaunchAttribute {
    pub(super) id: c_uint,
    pub(super) value: [u64; 8],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel waits itself for the
    /// launch before it in the stream.
    pub(super) const WAITS_ITSELF: Self = Self { id: 6, value: [1, 0, 0, 0, 0, 0, 0, 0] };
}

/// `CUgraphEdgeData`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Edge {
    pub(super) from_port: u8,
    pub(super) to_port: u8,
    pub(super) kind: u8,
    pub(super) reserved: [u8; 5],
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct MemsetNode {
    pub(super) dst: DevicePtr,
    pub(super) pitch: usize,
    pub(super) value: c_uint,
    pub(super) element_size: c_uint,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// One side of a [`MemcpyNode`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct CopySide {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
    pub(super) lod: usize,
    pub(super) memory_type: c_int,
    pub(super) host: usize,
    pub(super) device: DevicePtr,
    pub(super) array: usize,
    pub(super) reserved: usize,
    pub(super) pitch: usize,
    pub(super) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct MemcpyNode {
    pub(super) src: CopySide,
    pub(super) dst: CopySide,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// `CUmemPoolProps`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location: Device,
    security: usize,
    max_size: usize,
    rest: [u8; 56],
}

impl PoolProperties {
    /// A pool of a device's memory, for this process alone.
    pub(super) fn on(device: Device) -> Self {
        Self {
            // `CU_MEM_ALLOCATION_TYPE_PINNED` in `CU_MEM_LOCATION_TYPE_DEVICE`.
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location: device,
            security: 0,
            max_size: 0,
            rest: [0; 56],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structures_are_laid_out_as_the_driver_reads_them() {
        // The numbers are what a C compiler gives for cuda.h of CUDA 12.8.
        assert_eq!(size_of::<KernelNode>(), 72);
        assert_eq!(offset_of!(KernelNode, params), 40);
        assert_eq!(offset_of!(KernelNode, context), 64);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(offset_of!(LaunchConfig, stream), 32);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(offset_of!(LaunchAttribute, value), 8);
        assert_eq!(size_of::<Edge>(), 8);
        assert_eq!(size_of::<MemsetNode>(), 40);
        assert_eq!(offset_of!(MemsetNode, width), 24);
        assert_eq!(size_of::<MemcpyNode>(), 200);
        assert_eq!(offset_of!(MemcpyNode, dst), 88);
        assert_eq!(offset_of!(MemcpyNode, src) + offset_of!(CopySide, device), 48);
        assert_eq!(offset_of!(MemcpyNode, dst) + offset_of!(CopySide, pitch), 160);
        assert_eq!(offset_of!(MemcpyNode, depth), 192);
        assert_eq!(size_of::<PoolProperties>(), 88);
        assert_eq!(offset_of!(PoolProperties, location), 12);
        assert_eq!(offset_of!(PoolProperties, max_size), 24);
        assert_eq!(size_of::<Stream>(), size_of::<*mut c_void>());
    }
}
