//! Encodes commands for the driver: resolves ids to addresses, and encodes kernel parameters.

use std::ffi::c_void;
use std::sync::Arc;

use scry_ptx::Param;

use super::communicator::{Collective, Membership};
use super::cublas::{Blas, Product};
use super::overlap;
use super::params::{Arguments, Parameters, Polled, Range};
use crate::api::error::Result;
use crate::backend::cuda::compile::Kernel;
use crate::backend::cuda::compile::native::{Native, Packed};
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{DevicePtr, Function};
use crate::backend::cuda::memory::Block;
use crate::backend::shared::command_checks::{
    check_arguments, check_range, no_allocation, no_kernel,
};
use crate::core::command::{BufferRange, Command, Dispatch, Groups};
use crate::core::driver::{KernelMark, MemoryMark};
use crate::core::id::Slots;

/// The driver's allocations.
pub(crate) type Blocks = Slots<MemoryMark, Arc<Block>>;
/// The driver's kernels.
pub(crate) type Kernels = Slots<KernelMark, Kernel>;

/// The resources that steps refer to by id.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) blocks: &'a Blocks,
    pub(crate) kernels: &'a Kernels,
}

impl Tables<'_> {
    /// Returns whether a dispatch's kernel polls for cancellation.
    pub(crate) fn polls(&self, dispatch: &Dispatch) -> bool {
        let kernel = self.kernels.get(dispatch.kernel);
        kernel.is_some_and(|kernel| kernel.params.contains(&Param::Epoch))
    }

    /// Returns whether a command needs the main stream, because it must not overlap others of its
    /// kind: cuBLAS products share a workspace, the collectives of a communicator have an order,
    /// and the blocks of an indirect launch may wait for each other, so that all of them have to
    /// become resident.
    pub(crate) fn needs_main_stream(&self, command: &Command) -> bool {
        match command {
            Command::Dispatch(dispatch) => dispatch.is_indirect() || self.is_library_call(dispatch),
            Command::Fill { .. } | Command::Copy { .. } => false,
        }
    }

    /// Returns whether a dispatch is a call of a library: a cuBLAS product or a collective.
    fn is_library_call(&self, dispatch: &Dispatch) -> bool {
        let kernel = self.kernels.get(dispatch.kernel);
        kernel.is_some_and(|kernel| {
            matches!(kernel.native, Some(Native::Product(..) | Native::Collectives(_)))
        })
    }

    /// Returns whether a dispatch may start before the dispatch `before` has finished (PDL).
    pub(crate) fn uses_pdl(&self, dispatch: &Dispatch, before: Option<&Dispatch>) -> bool {
        let kernel = self.kernels.get(dispatch.kernel);
        let (Some(reads), Some(before)) = (kernel.and_then(Kernel::pdl_reads), before) else {
            return false;
        };
        // It is not known whether the kernels of a library launch their dependents early.
        !self.is_library_call(before) && overlap::uses_pdl(reads, dispatch, before)
    }

    /// Returns the number of threads in a block of a dispatch. A call of a library has unknown
    /// kernels and needs the main stream: it counts as too large for a side stream.
    pub(crate) fn block_threads(&self, dispatch: &Dispatch) -> u64 {
        if self.is_library_call(dispatch) {
            return u64::MAX;
        }
        let size = self.kernels.get(dispatch.kernel).map_or([0; 3], |kernel| kernel.block);
        size.iter().map(|n| u64::from(*n)).product()
    }
}

/// An encoded command.
pub(crate) enum Op<'s> {
    /// Writes a 32-bit pattern `count` times.
    Fill { dst: DevicePtr, pattern: u32, count: usize },
    /// Copies `size` bytes.
    Copy { src: DevicePtr, dst: DevicePtr, size: usize },
    /// Launches a kernel.
    Launch(Launch<'s>),
    /// Multiplies matrices with cuBLAS.
    Product(&'s Blas, Product),
    /// Makes a collective with NCCL.
    Collective(&'s Arc<Membership>, Collective),
}

/// An encoded launch of a kernel.
pub(crate) struct Launch<'s> {
    /// Whether it is an indirect launch, two of which must not overlap.
    pub(crate) indirect: bool,
    pub(crate) function: Function,
    /// Blocks of the grid along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    pub(crate) params: KernelParams<'s>,
}

/// The kernel parameters of a launch.
pub(crate) enum KernelParams<'s> {
    /// A pointer to each value, `kernelParams`.
    List(&'s mut [*mut c_void]),
    /// One block of all values, `extra`.
    Block(&'s mut Packed),
}

impl KernelParams<'_> {
    /// Returns `kernelParams` and `extra` for the driver; one of them is null.
    pub(crate) fn pointers(self) -> [*mut *mut c_void; 2] {
        let none = std::ptr::null_mut();
        match self {
            Self::List(params) => [params.as_mut_ptr(), none],
            Self::Block(packed) => [none, packed.extra()],
        }
    }
}

/// Buffers for encoding one command, reused for the next.
#[derive(Default)]
pub(crate) struct Scratch {
    bindings: Vec<Range>,
    parameters: Parameters,
    packed: Packed,
}

/// Encodes commands for the driver.
pub(crate) struct Encoder<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) tables: Tables<'a>,
    pub(crate) polled: Polled,
    pub(crate) scratch: &'a mut Scratch,
}

impl<'a> Encoder<'a> {
    /// Encodes a command.
    pub(crate) fn encode(&mut self, command: &Command) -> Result<Op<'_>> {
        match command {
            Command::Fill { dst, pattern } => self.fill(*dst, *pattern),
            Command::Copy { src, dst } => self.copy(*src, *dst),
            Command::Dispatch(dispatch) => self.dispatch(dispatch),
        }
    }

    fn fill(&self, dst: BufferRange, pattern: u32) -> Result<Op<'static>> {
        let Range { address, size } = self.range("cuMemsetD32Async", dst)?;
        if !(address.is_multiple_of(4) && size.is_multiple_of(4)) {
            let why = format!("{size} bytes at {} are not whole words", dst.offset);
            return Err(self.gpu.defect_error("cuMemsetD32Async", why));
        }
        let count = self.to_usize("cuMemsetD32Async", size / 4)?;
        Ok(Op::Fill { dst: address, pattern, count })
    }

    fn copy(&self, src: BufferRange, dst: BufferRange) -> Result<Op<'static>> {
        let from = self.range("cuMemcpyAsync", src)?;
        let to = self.range("cuMemcpyAsync", dst)?;
        let disjoint =
            src.memory != dst.memory || src.end() <= dst.offset || dst.end() <= src.offset;
        if src.size != dst.size || !disjoint {
            let why = format!("{src:?} and {dst:?} differ in size or overlap");
            return Err(self.gpu.defect_error("cuMemcpyAsync", why));
        }
        let size = self.to_usize("cuMemcpyAsync", src.size)?;
        Ok(Op::Copy { src: from.address, dst: to.address, size })
    }

    /// Converts a number of bytes or words for the driver.
    fn to_usize(&self, call: &'static str, count: u64) -> Result<usize> {
        let defect = |_| self.gpu.defect_error(call, format!("{count} exceeds the address space"));
        usize::try_from(count).map_err(defect)
    }

    /// Returns the address of a range; an error unless it is within a live allocation.
    fn range(&self, call: &'static str, range: BufferRange) -> Result<Range> {
        let Some(block) = self.tables.blocks.get(range.memory) else {
            return Err(self.gpu.defect_error(call, no_allocation(range.memory)));
        };
        check_range(range, block.size).map_err(|why| self.gpu.defect_error(call, why))?;
        Ok(Range { address: block.address + range.offset, size: range.size })
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Op<'_>> {
        let kernel = self.kernel(dispatch)?;
        self.scratch.bindings.clear();
        for bound in &dispatch.bindings {
            let range = self.range("cuLaunchKernel", bound.range)?;
            self.scratch.bindings.push(range);
        }
        let (polled, immediates) = (self.polled, dispatch.immediates.as_slice());
        let (grid, counts) = self.grid(kernel, dispatch)?;
        let Scratch { bindings, parameters, packed } = &mut *self.scratch;
        let params = match &kernel.native {
            Some(Native::Product(blas, routine)) => {
                let product = Product::new(*routine, bindings, immediates);
                let mismatch =
                    || self.gpu.defect_error("cublasGemmEx", mismatch(dispatch, bindings));
                return Ok(Op::Product(blas, product.ok_or_else(mismatch)?));
            }
            Some(Native::Collectives(membership)) => {
                let collective = membership.collective(bindings, immediates);
                let mismatch = || self.gpu.defect_error("nccl", mismatch(dispatch, bindings));
                return Ok(Op::Collective(membership, collective.ok_or_else(mismatch)?));
            }
            Some(Native::Packed(interface, size)) => {
                packed.pack(interface, *size, bindings, immediates);
                KernelParams::Block(packed)
            }
            Some(Native::Declared(declared)) => {
                declared.pack(self.gpu, parameters, bindings, immediates)?;
                KernelParams::List(parameters.pointers())
            }
            None => {
                let arguments = Arguments { bindings, immediates, counts, polled };
                if parameters.pack(&kernel.params, arguments).is_none() {
                    let why = mismatch(dispatch, bindings);
                    return Err(self.gpu.defect_error("cuLaunchKernel", why));
                }
                KernelParams::List(parameters.pointers())
            }
        };
        Ok(Op::Launch(Launch {
            indirect: dispatch.is_indirect(),
            function: kernel.function(),
            grid,
            block: kernel.block,
            dynamic_shared: kernel.dynamic_shared,
            params,
        }))
    }

    /// Returns the grid of a launch. An indirect launch has a grid of all resident blocks; its
    /// kernel reads the workgroup counts at the address that is also returned.
    fn grid(&self, kernel: &Kernel, dispatch: &Dispatch) -> Result<([u32; 3], Option<u64>)> {
        let defect = |why: String| Err(self.gpu.defect_error("cuLaunchKernel", why));
        match (&dispatch.groups, kernel.resident_blocks) {
            (Groups::Direct(grid), _) => Ok((*grid, None)),
            (Groups::Indirect(counts), Some(resident)) => {
                let Range { address, size } = self.range("cuLaunchKernel", **counts)?;
                if size != Groups::SIZE || !address.is_multiple_of(4) {
                    return defect(format!(
                        "{size} bytes at {} are not workgroup counts",
                        counts.offset
                    ));
                }
                Ok(([resident, 1, 1], Some(address)))
            }
            (Groups::Indirect(_), None) => {
                defect(format!("kernel {:?} reads no workgroup counts", dispatch.kernel))
            }
        }
    }

    /// Returns the kernel of a dispatch, after checking its bindings and immediates.
    fn kernel(&self, dispatch: &Dispatch) -> Result<&'a Kernel> {
        let defect = |why: String| self.gpu.defect_error("cuLaunchKernel", why);
        let id = dispatch.kernel;
        let kernel = self.tables.kernels.get(id).ok_or_else(|| defect(no_kernel(id)))?;
        // The operation of a collective decides on the number of its bindings.
        let is_collective = matches!(kernel.native, Some(Native::Collectives(_)));
        let bindings = if is_collective { dispatch.bindings.len() } else { kernel.bindings };
        check_arguments(dispatch, (bindings, kernel.immediates)).map_err(defect)?;
        Ok(kernel)
    }
}

/// Returns the error text for a dispatch that does not fit its kernel.
fn mismatch(dispatch: &Dispatch, bindings: &[Range]) -> String {
    format!(
        "kernel {:?} does not match bindings {bindings:?} and {} bytes of immediates",
        dispatch.kernel,
        dispatch.immediates.len()
    )
}
