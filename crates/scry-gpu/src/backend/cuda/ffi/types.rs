//! Types of the CUDA driver's interface: those of CUDA 12.0, and what newer versions added in place
//! of reserved bytes or for functions that older drivers lack.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;

/// The status code that a driver call returns, `CUresult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) c_uint);

impl Code {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const STUB_LIBRARY: Self = Self(34);
    pub(crate) const NO_DEVICE: Self = Self(100);
    /// Work is not done yet.
    pub(crate) const NOT_READY: Self = Self(600);

    /// Returns an error unless the call succeeded.
    pub(crate) fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// An opaque handle of a driver object; `K` distinguishes the kinds of objects.
#[repr(transparent)]
pub(crate) struct Handle<K>(usize, PhantomData<fn() -> K>);

impl<K> Handle<K> {
    /// The null handle.
    pub(crate) const NULL: Self = Self(0, PhantomData);

    /// Returns whether this is the null handle.
    pub(crate) fn is_null(self) -> bool {
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

/// Marker types for handles.
pub(crate) mod mark {
    pub(crate) enum Context {}
    pub(crate) enum Event {}
    pub(crate) enum Function {}
    pub(crate) enum Graph {}
    pub(crate) enum GraphExec {}
    pub(crate) enum GraphNode {}
    pub(crate) enum KernelLibrary {}
    pub(crate) enum LibraryKernel {}
    pub(crate) enum LinkState {}
    pub(crate) enum MemoryPool {}
    pub(crate) enum Module {}
    pub(crate) enum Stream {}
}

pub(crate) type Context = Handle<mark::Context>;
pub(crate) type Event = Handle<mark::Event>;
pub(crate) type Function = Handle<mark::Function>;
pub(crate) type Graph = Handle<mark::Graph>;
pub(crate) type GraphExec = Handle<mark::GraphExec>;
pub(crate) type GraphNode = Handle<mark::GraphNode>;
/// `CUlibrary`: code that is not bound to a context.
pub(crate) type KernelLibrary = Handle<mark::KernelLibrary>;
/// `CUkernel`: a kernel of a library.
pub(crate) type LibraryKernel = Handle<mark::LibraryKernel>;
pub(crate) type LinkState = Handle<mark::LinkState>;
pub(crate) type MemoryPool = Handle<mark::MemoryPool>;
pub(crate) type Module = Handle<mark::Module>;
pub(crate) type Stream = Handle<mark::Stream>;

/// The handle of a device, `CUdevice`.
pub(crate) type Device = c_int;

/// A unified virtual address.
pub(crate) type DevicePtr = u64;

/// `CUdevice_attribute`.
pub(crate) mod attribute {
    use std::ffi::c_int;

    pub(crate) const SHARED_MEMORY: c_int = 8;
    pub(crate) const MULTIPROCESSORS: c_int = 16;
    pub(crate) const INTEGRATED: c_int = 18;
    pub(crate) const COMPUTE_MODE: c_int = 20;
    pub(crate) const PCI_BUS: c_int = 33;
    pub(crate) const PCI_DEVICE: c_int = 34;
    pub(crate) const PCI_DOMAIN: c_int = 50;
    pub(crate) const THREADS_PER_MULTIPROCESSOR: c_int = 39;
    pub(crate) const CAPABILITY_MAJOR: c_int = 75;
    pub(crate) const CAPABILITY_MINOR: c_int = 76;
    pub(crate) const SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 81;
    pub(crate) const SHARED_MEMORY_OPTIN: c_int = 97;
    pub(crate) const MEMORY_POOLS: c_int = 115;
    pub(crate) const STREAM_WRITE_64: c_int = 122;
    /// PCI device and vendor id, 16 bits each; newer drivers only.
    pub(crate) const PCI_MODEL: c_int = 139;
}

/// `CUfunction_attribute`.
pub(crate) mod function_attribute {
    use std::ffi::c_int;

    pub(crate) const MAX_THREADS: c_int = 0;
    pub(crate) const LOCAL_BYTES: c_int = 3;
    pub(crate) const REGISTERS: c_int = 4;
    pub(crate) const MAX_DYNAMIC_SHARED: c_int = 8;
}

/// `CUjit_option`.
pub(crate) mod jit {
    use std::ffi::c_int;

    pub(crate) const INFO_LOG: c_int = 3;
    pub(crate) const INFO_LOG_SIZE: c_int = 4;
    pub(crate) const ERROR_LOG: c_int = 5;
    pub(crate) const ERROR_LOG_SIZE: c_int = 6;
    /// `CU_JIT_INPUT_PTX`: the input is PTX.
    pub(crate) const INPUT_PTX: c_int = 1;
}

/// `CU_STREAM_NON_BLOCKING`: the stream does not synchronise with the default stream.
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub(crate) const EVENT_WITHOUT_TIMING: c_uint = 2;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: for all contexts, mapped into the
/// device.
pub(crate) const HOST_MEMORY: c_uint = 1 | 2;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: bytes of free memory that the pool keeps; a `u64`.
pub(crate) const POOL_RELEASE_THRESHOLD: c_int = 4;
/// `CU_MEMORYTYPE_UNIFIED`: the memory type follows from the address.
pub(crate) const MEMORY_UNIFIED: c_int = 4;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelNode {
    pub(crate) function: Function,
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) params: *mut *mut c_void,
    pub(crate) extra: *mut *mut c_void,
    /// `CUkernel`, an alternative to the function; null.
    pub(crate) kernel: usize,
    pub(crate) context: Context,
}

/// `CUlaunchConfig`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: Stream,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute`: the value follows the padded id.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_uint,
    pub(crate) value: [u64; 8],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel waits for the previous
    /// launch in the stream by `griddepcontrol.wait`.
    pub(crate) const PROGRAMMATIC_STREAM_SERIALIZATION: Self =
        Self { id: 6, value: [1, 0, 0, 0, 0, 0, 0, 0] };
}

/// `CUgraphEdgeData`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Edge {
    pub(crate) from_port: u8,
    pub(crate) to_port: u8,
    pub(crate) kind: u8,
    pub(crate) reserved: [u8; 5],
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct MemsetNode {
    pub(crate) dst: DevicePtr,
    pub(crate) pitch: usize,
    pub(crate) value: c_uint,
    pub(crate) element_size: c_uint,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The source or the destination of a [`MemcpyNode`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct CopySide {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) lod: usize,
    pub(crate) memory_type: c_int,
    pub(crate) host: usize,
    pub(crate) device: DevicePtr,
    pub(crate) array: usize,
    pub(crate) reserved: usize,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct MemcpyNode {
    pub(crate) src: CopySide,
    pub(crate) dst: CopySide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `CUmemPoolProps`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location: Device,
    security: usize,
    max_size: usize,
    reserved: [u8; 56],
}

impl PoolProperties {
    /// Returns the properties of a pool of device memory that is not shared with other processes.
    pub(crate) fn for_device(device: Device) -> Self {
        Self {
            // `CU_MEM_ALLOCATION_TYPE_PINNED` in `CU_MEM_LOCATION_TYPE_DEVICE`.
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location: device,
            security: 0,
            max_size: 0,
            reserved: [0; 56],
        }
    }
}

/// `CUmemAccessDesc`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PoolAccess {
    location_type: c_int,
    location: Device,
    flags: c_int,
}

impl PoolAccess {
    /// Lets a device read and write.
    pub(crate) fn read_write(device: Device) -> Self {
        // `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
        Self { location_type: 1, location: device, flags: 3 }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structure_layouts_match_cuda_h() {
        // The sizes are those of cuda.h of CUDA 12.8, as a C compiler reports them.
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
