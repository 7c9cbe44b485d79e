//! The kernel library: hand-tuned kernels with instructions that WGSL does not have, such as those
//! of tensor cores and TMA.
//!
//! A [`PtxKernel`] is one variant of a kernel together with the problem that it is launched for;
//! emitting its text needs no device. A [`Plan`] is a sequence of launches, its steps, with scratch
//! memory to pass data between them.

pub mod attention;
mod error;
pub mod gemm;
mod launch;
mod name;
pub mod norm;
pub mod quant;
pub mod rows;
pub mod softmax;

use std::fmt::Debug;

pub use error::PlanError;
pub use launch::{
    BufferAccess, BufferParameter, BufferSlot, GpuSpec, KernelInterface, LaunchShape, Parameter,
    Plan, Step, TensorMapElement, TensorMapSpec,
};

use crate::module::{PtxEntry, PtxModule};
use crate::target::Target;

/// A kernel with the problem that it is launched for.
pub trait PtxKernel: Debug + Send + Sync {
    /// Returns the name of the entry point. Kernels of the same name and target have the same text,
    /// whatever their problems, so that name and target are a cache key.
    fn name(&self) -> String;

    /// Returns the lowest target that the kernel supports.
    fn default_target(&self) -> Target;

    /// Emits the kernel for a target, which must have all features that it uses.
    fn write(&self, target: Target) -> PtxEntry;

    /// Returns grid size, block size and dynamic shared memory.
    fn launch(&self) -> LaunchShape;

    /// Returns the buffers that the kernel binds, and its parameters in order.
    fn interface(&self) -> KernelInterface;

    /// Returns the buffers, by index in the interface, that the kernel reads before
    /// `griddepcontrol.wait`; `None` if it does not use programmatic dependent launch (PDL). With
    /// PDL, which needs `sm_90`, the kernel may start while its predecessor runs. Kernels of the
    /// same name return the same buffers.
    fn pdl_reads(&self) -> Option<&'static [usize]> {
        None
    }

    /// Returns the kernel's text for its default target.
    fn emit_ptx(&self) -> String {
        let target = self.default_target();
        PtxModule::new(target).with(self.write(target)).to_string()
    }

    /// Returns the kernel's text for a target.
    ///
    /// # Errors
    /// [`PlanError::Target`] if the target lacks a feature that the kernel uses.
    fn emit_ptx_for(&self, target: Target) -> Result<String, PlanError> {
        let needed = self.default_target();
        if !target.supports(needed) {
            return Err(PlanError::Target { kernel: self.name(), needed, target });
        }
        Ok(PtxModule::new(target).with(self.write(target)).to_string())
    }
}
