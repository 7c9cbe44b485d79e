//! The kernel library: kernels that portable languages cannot express.
//!
//! A [`PtxKernel`] is code for one variant together with the sizes that it is launched for; making
//! its text needs no device. What takes several launches is a [`Plan`]: steps in order, with memory
//! for what passes between them.

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
    BufferAccess, BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, Place, Plan,
    Step, TensorMapElement, TensorMapSpec,
};

use crate::module::{PtxEntry, PtxModule};
use crate::target::Target;

/// A kernel with the sizes that it is launched for.
pub trait PtxKernel: Debug + Send + Sync {
    /// The name of the entry point. Kernels of the same name and target have the same text,
    /// whatever they are launched for: who compiles kernels may keep them by it.
    fn name(&self) -> String;

    /// The oldest target that has all that the kernel uses.
    fn default_target(&self) -> Target;

    /// The kernel for a target, which has all that it uses.
    fn write(&self, target: Target) -> PtxEntry;

    /// How many threads are launched.
    fn launch(&self) -> LaunchShape;

    /// Which buffers it takes, and its parameters in order.
    fn interface(&self) -> KernelInterface;

    /// The buffers that it reads, by their places in the interface, before it waits for the launch
    /// before it, if for targets from `sm_90` on it waits itself: then it may begin while that one
    /// runs. Kernels of the same name read the same.
    fn reads_early(&self) -> Option<&'static [usize]> {
        None
    }

    /// The kernel's text for its default target.
    fn emit_ptx(&self) -> String {
        let target = self.default_target();
        PtxModule::new(target).with(self.write(target)).to_string()
    }

    /// The kernel's text for a target.
    ///
    /// # Errors
    /// [`PlanError::Target`] if the target lacks something that the kernel uses.
    fn emit_ptx_for(&self, target: Target) -> Result<String, PlanError> {
        let needed = self.default_target();
        if !target.runs(needed) {
            return Err(PlanError::Target { kernel: self.name(), needed, target });
        }
        Ok(PtxModule::new(target).with(self.write(target)).to_string())
    }
}
