//! What commands mean in terms of the driver: addresses, sizes and parameters.

use std::ffi::c_void;
use std::sync::Arc;

use scry_ptx::Param;

use super::compile::Kernel;
use super::gpu::Gpu;
use super::memory::Block;
use super::params::{Given, Parameters, Polled, Range};
use super::types::{DevicePtr, Function};
use crate::command::{Command, Dispatch, Span};
use crate::driver::{KernelMark, MemoryMark};
use crate::error::Result;
use crate::id::Slots;

/// The driver's allocations.
pub(super) type Blocks = Slots<MemoryMark, Arc<Block>>;
/// The driver's kernels.
pub(super) type Kernels = Slots<KernelMark, Kernel>;

/// What the ids in steps mean.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) blocks: &'a Blocks,
    pub(super) kernels: &'a Kernels,
}

impl Tables<'_> {
    /// Whether a dispatch is of a kernel that polls.
    pub(super) fn polls(&self, dispatch: &Dispatch) -> bool {
        let kernel = self.kernels.get(dispatch.kernel);
        kernel.is_some_and(|kernel| kernel.params.contains(&Param::Epoch))
    }

    /// Threads of a workgroup of a dispatch.
    pub(super) fn workgroup(&self, dispatch: &Dispatch) -> u64 {
        let size = self.kernels.get(dispatch.kernel).map_or([0; 3], |kernel| kernel.block);
        size.iter().map(|n| u64::from(*n)).product()
    }
}

/// A command that the driver can be told.
pub(super) enum Op<'s> {
    /// Writes a pattern `count` times.
    Fill { dst: DevicePtr, pattern: u32, count: usize },
    /// Copies so many bytes.
    Copy { src: DevicePtr, dst: DevicePtr, size: usize },
    /// Launches a kernel.
    Launch(Launch<'s>),
}

/// A launch.
pub(super) struct Launch<'s> {
    pub(super) function: Function,
    pub(super) groups: [u32; 3],
    pub(super) workgroup: [u32; 3],
    pub(super) dynamic_shared: u32,
    /// Where the parameters are.
    pub(super) params: &'s mut [*mut c_void],
}

/// Room for one command, kept from one to the next.
#[derive(Default)]
pub(super) struct Scratch {
    bindings: Vec<Range>,
    parameters: Parameters,
}

/// Turns commands into what the driver can be told.
pub(super) struct Encoder<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) tables: Tables<'a>,
    pub(super) polled: Polled,
    pub(super) scratch: &'a mut Scratch,
}

impl<'a> Encoder<'a> {
    /// What a command means.
    pub(super) fn encode(&mut self, command: &Command) -> Result<Op<'_>> {
        match command {
            Command::Fill { dst, pattern } => self.fill(*dst, *pattern),
            Command::Copy { src, dst } => self.copy(*src, *dst),
            Command::Dispatch(dispatch) => self.dispatch(dispatch),
        }
    }

    fn fill(&self, dst: Span, pattern: u32) -> Result<Op<'static>> {
        let Range { address, size } = self.range("cuMemsetD32Async", dst)?;
        if !(address.is_multiple_of(4) && size.is_multiple_of(4)) {
            let why = format!("{size} bytes at {} are not whole words", dst.offset);
            return Err(self.gpu.refused("cuMemsetD32Async", why));
        }
        Ok(Op::Fill { dst: address, pattern, count: self.bytes("cuMemsetD32Async", size / 4)? })
    }

    fn copy(&self, src: Span, dst: Span) -> Result<Op<'static>> {
        let from = self.range("cuMemcpyAsync", src)?;
        let to = self.range("cuMemcpyAsync", dst)?;
        let apart = src.memory != dst.memory || src.end() <= dst.offset || dst.end() <= src.offset;
        if src.size != dst.size || !apart {
            let why = format!("{src:?} and {dst:?} differ in size or overlap");
            return Err(self.gpu.refused("cuMemcpyAsync", why));
        }
        let size = self.bytes("cuMemcpyAsync", src.size)?;
        Ok(Op::Copy { src: from.address, dst: to.address, size })
    }

    /// A count that the driver takes.
    fn bytes(&self, call: &'static str, count: u64) -> Result<usize> {
        let refused = |_| self.gpu.refused(call, format!("{count} are more than there can be"));
        usize::try_from(count).map_err(refused)
    }

    /// The addresses of a span that lies within its allocation.
    fn range(&self, call: &'static str, span: Span) -> Result<Range> {
        let Span { memory, offset, size } = span;
        let Some(block) = self.tables.blocks.get(memory) else {
            let why = format!("allocation {memory:?} does not exist, or was freed");
            return Err(self.gpu.refused(call, why));
        };
        match offset.checked_add(size) {
            Some(end) if size > 0 && end <= block.size => {
                Ok(Range { address: block.address + offset, size })
            }
            _ => {
                let whole = block.size;
                let why = format!("{size} bytes at {offset} are not in an allocation of {whole}");
                Err(self.gpu.refused(call, why))
            }
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Op<'_>> {
        let kernel = self.kernel(dispatch)?;
        self.scratch.bindings.clear();
        for bound in &dispatch.bindings {
            let range = self.range("cuLaunchKernel", bound.span)?;
            self.scratch.bindings.push(range);
        }
        let (polled, immediates) = (self.polled, dispatch.immediates.as_slice());
        let Scratch { bindings, parameters } = &mut *self.scratch;
        let given = Given { bindings, immediates, polled };
        if parameters.pack(&kernel.params, given).is_none() {
            let why = format!(
                "kernel {:?} has parameters {:?}, and was given {} bindings and {} bytes of \
                 immediates",
                dispatch.kernel,
                kernel.params,
                bindings.len(),
                immediates.len()
            );
            return Err(self.gpu.refused("cuLaunchKernel", why));
        }
        Ok(Op::Launch(Launch {
            function: kernel.function,
            groups: dispatch.groups,
            workgroup: kernel.block,
            dynamic_shared: kernel.dynamic_shared,
            params: parameters.pointers(),
        }))
    }

    /// The kernel of a dispatch, whose bindings and immediates fit it.
    fn kernel(&self, dispatch: &Dispatch) -> Result<&'a Kernel> {
        let refused = |why: String| self.gpu.refused("cuLaunchKernel", why);
        let id = dispatch.kernel;
        let Some(kernel) = self.tables.kernels.get(id) else {
            let why = format!("kernel {id:?} does not exist, or was released");
            return Err(refused(why));
        };
        let (bindings, immediates) = (dispatch.bindings.len(), dispatch.immediates.len());
        if (bindings, immediates) != (kernel.bindings, kernel.immediates) {
            return Err(refused(format!(
                "kernel {id:?} takes {} bindings and {} bytes of immediates, and was given \
                 {bindings} and {immediates}",
                kernel.bindings, kernel.immediates
            )));
        }
        Ok(kernel)
    }
}
