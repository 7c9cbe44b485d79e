//! Launches of kernels as data.

use crate::target::Target;
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

use super::{PlanError, PtxKernel};

/// The properties of a GPU that the choice of kernels depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GpuSpec {
    /// The highest target that it runs.
    pub target: Target,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Maximum bytes of shared memory per block with opt-in:
    /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`. It does not follow from the target:
    /// 99 KiB for compute capability 8.6, 8.9 and 12.x, 163 KiB for 8.0, 227 KiB for 9.0 and 10.x.
    pub shared_memory: u32,
}

impl GpuSpec {
    /// Whether the kernels for Hopper run: they need `sm_90a`, and all of Hopper's shared memory.
    pub(crate) fn is_hopper(self) -> bool {
        self.target.supports(Target::SM_90A) && self.shared_memory >= 227 << 10
    }
}

/// Grid and block size of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks along x, y and z: multiples of the cluster size, if there is one.
    pub grid: [u32; 3],
    /// Threads per block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub dynamic_shared: u32,
}

/// How a kernel accesses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferAccess {
    /// Read only.
    Read,
    /// Writes, and may read.
    Write,
}

/// A buffer that a kernel binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferParameter {
    /// Its name, for errors.
    pub name: &'static str,
    /// How the kernel accesses it.
    pub access: BufferAccess,
    /// Its element type: a scalar type, or [`PtxType::B8`] for untyped bytes.
    pub element: PtxType,
    /// Minimum number of elements.
    pub len: u64,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// The address of a buffer, by its index in [`KernelInterface::buffers`].
    Pointer(usize),
    /// A 32-bit integer.
    U32(u32),
    /// A 64-bit integer.
    U64(u64),
    /// An `f32`.
    F32(f32),
    /// A tensor map of a buffer, by its index in [`KernelInterface::buffers`].
    TensorMap(usize, TensorMapSpec),
}

/// The buffers that a kernel binds, and its parameters in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KernelInterface {
    /// The buffers.
    pub buffers: Vec<BufferParameter>,
    /// The parameters.
    pub parameters: Vec<Parameter>,
}

/// The element type of a tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorMapElement {
    /// Bytes.
    U8,
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// `f32`.
    F32,
}

/// A tensor map (TMA) of a buffer: a tensor of 2 to 5 dimensions, innermost first. The driver
/// encodes it (`cuTensorMapEncodeTiled`) for the address of a buffer, a multiple of 16, and rejects
/// values outside the limits below with CUDA_ERROR_INVALID_VALUE; scry-gpu reports the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapSpec {
    /// The element type.
    pub element: TensorMapElement,
    /// Byte offset in the buffer: a multiple of 16.
    pub offset: u64,
    /// Elements along each dimension: 1 to 2^32.
    pub dims: Vec<u64>,
    /// Stride in bytes of each dimension but the first, which is contiguous: multiples of 16, below
    /// 2^40.
    pub strides: Vec<u64>,
    /// Elements of a tile (the TMA box) along each dimension: 1 to 256. Along the first dimension
    /// they are a multiple of 16 bytes, and with a swizzle at most as many bytes as the swizzle.
    pub tile: Vec<u32>,
    /// The swizzle of a tile in shared memory.
    pub swizzle: Swizzle,
}

/// A buffer of a plan, which a step binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferSlot {
    /// Index in the plan's arguments.
    Argument(usize),
    /// Index in the plan's scratch buffers.
    Scratch(usize),
}

/// A launch of a kernel.
#[derive(Debug)]
pub struct Step {
    /// The kernel.
    pub kernel: Box<dyn PtxKernel>,
    /// Its buffers, in the order of its interface.
    pub buffers: Vec<BufferSlot>,
}

/// A sequence of launches, with the scratch memory that passes data between them.
#[derive(Debug, Default)]
pub struct Plan {
    /// The buffers that the caller binds.
    pub arguments: Vec<BufferParameter>,
    /// Bytes of each scratch buffer, which passes data between steps. Its initial content is
    /// undefined.
    pub scratch: Vec<u64>,
    /// The launches.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Returns a plan of one launch.
    #[must_use]
    pub fn single(kernel: Box<dyn PtxKernel>) -> Self {
        let arguments = kernel.interface().buffers;
        let buffers = (0..arguments.len()).map(BufferSlot::Argument).collect();
        Self { arguments, scratch: Vec::new(), steps: vec![Step { kernel, buffers }] }
    }

    /// Returns the plan if all its kernels can be emitted for a target.
    pub(super) fn checked_for(self, target: Target) -> Result<Self, PlanError> {
        let kernels = self.steps.iter().map(|step| &step.kernel);
        match kernels.into_iter().find(|kernel| !target.supports(kernel.default_target())) {
            None => Ok(self),
            Some(kernel) => {
                let (kernel, needed) = (kernel.name(), kernel.default_target());
                Err(PlanError::Target { kernel, needed, target })
            }
        }
    }
}
