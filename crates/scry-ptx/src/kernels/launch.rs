//! What a launch of a kernel takes, as data.

use crate::target::Target;
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

use super::PtxKernel;

/// A device, as far as the choice of kernels depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GpuSpec {
    /// The newest target that it runs.
    pub target: Target,
    /// Number of its multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can have if it asks for more than 48 KiB: the device's
    /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`. It does not follow from the target:
    /// 99 KiB for compute capability 8.6, 8.9 and 12.x, 163 KiB for 8.0, 227 KiB for 9.0 and 10.x.
    pub shared_memory: u32,
}

impl GpuSpec {
    /// Whether kernels for Hopper alone run, whose tiles take all of its shared memory.
    pub(crate) fn is_hopper(self) -> bool {
        self.target.runs(Target::SM_90A) && self.shared_memory >= 227 << 10
    }
}

/// How many threads are launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks along x, y and z: multiples of the cluster, if there is one.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, beside what the kernel declares itself.
    pub dynamic_shared: u32,
}

/// Whether a kernel reads or writes a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferAccess {
    /// It reads only.
    Read,
    /// It writes, and may read.
    Write,
}

/// A buffer that a kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferParameter {
    /// Its name, for errors.
    pub name: &'static str,
    /// What the kernel does with it.
    pub access: BufferAccess,
    /// What it holds: a scalar type, or [`PtxType::B8`] for blocks of bytes.
    pub element: PtxType,
    /// Elements that it must have at least.
    pub len: u64,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// The address of a buffer, by its place in [`KernelInterface::buffers`].
    Pointer(usize),
    /// A number.
    U32(u32),
    /// A number.
    U64(u64),
    /// A number.
    F32(f32),
    /// A tensor map of a buffer, by its place in [`KernelInterface::buffers`].
    Map(usize, TensorMapSpec),
}

/// Which buffers a kernel takes, and its parameters in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KernelInterface {
    /// The buffers.
    pub buffers: Vec<BufferParameter>,
    /// The parameters.
    pub parameters: Vec<Parameter>,
}

/// What a tensor holds, as far as copies of tiles care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorMapElement {
    /// Bytes.
    U8,
    /// f16.
    F16,
    /// Bfloat16.
    Bf16,
    /// f32.
    F32,
}

/// How a buffer is copied tile by tile: a tensor of 2 to 5 dimensions, innermost first. The driver
/// encodes it (`cuTensorMapEncodeTiled`) for the address of a buffer, a multiple of 16, and refuses
/// what is beyond the limits named here with CUDA_ERROR_INVALID_VALUE; scry-gpu says which it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapSpec {
    /// What it holds.
    pub element: TensorMapElement,
    /// Bytes from the begin of the buffer: a multiple of 16.
    pub offset: u64,
    /// Elements along each dimension: 1 to 2^32.
    pub dims: Vec<u64>,
    /// Bytes from one to the next along each dimension but the first: multiples of 16, below 2^40.
    pub strides: Vec<u64>,
    /// Elements of a tile along each dimension: 1 to 256; those of the first are a multiple of 16
    /// bytes, and with a swizzle no more bytes than that.
    pub tile: Vec<u32>,
    /// How a tile lies in shared memory.
    pub swizzle: Swizzle,
}

/// Where a step finds a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Among the buffers that the plan is given.
    Argument(usize),
    /// Among the memory for what passes between steps.
    Scratch(usize),
}

/// A launch of a kernel.
#[derive(Debug)]
pub struct Step {
    /// The kernel.
    pub kernel: Box<dyn PtxKernel>,
    /// Its buffers, in the order of its interface.
    pub buffers: Vec<Place>,
}

/// Launches that together compute something, each one after those before it.
#[derive(Debug, Default)]
pub struct Plan {
    /// The buffers that it is given.
    pub arguments: Vec<BufferParameter>,
    /// Bytes of each piece of memory for what passes between steps. What is in it at first is
    /// anything.
    pub scratch: Vec<u64>,
    /// The launches.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan of one launch.
    #[must_use]
    pub fn single(kernel: Box<dyn PtxKernel>) -> Self {
        let arguments = kernel.interface().buffers;
        let buffers = (0..arguments.len()).map(Place::Argument).collect();
        Self { arguments, scratch: Vec::new(), steps: vec![Step { kernel, buffers }] }
    }
}
