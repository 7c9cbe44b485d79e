//! Programmatic dependent launch (PDL, `sm_90`).
//!
//! A kernel may start as soon as each block of its predecessor has executed
//! `griddepcontrol.launch_dependents`, or has exited. It must execute `griddepcontrol.wait` before
//! it accesses what the predecessor writes. Here the two are combined: each block of a kernel waits
//! before it executes `griddepcontrol.launch_dependents`. So a kernel overlaps with one predecessor
//! only, and all earlier launches are complete.
//!
//! For older targets nothing is emitted: there launches do not overlap.
//!
//! Loads after a wait are coherent: what the predecessor writes is not constant while the kernel
//! runs.

use super::KernelBuilder;
use crate::body::Body;

impl KernelBuilder {
    /// Waits until the preceding launch is complete and its writes are visible
    /// (`griddepcontrol.wait`). Returns at once if it is complete already. Required in each thread
    /// that afterwards accesses global memory other than what `PtxKernel::pdl_reads` lists.
    pub fn pdl_wait(&self) {
        self.edit(Body::pdl_wait);
    }

    /// Allows the next launch to start (`griddepcontrol.launch_dependents`). It starts once a
    /// thread of each block has executed this, or the block has exited. Must follow
    /// [`KernelBuilder::pdl_wait`] in the same thread.
    pub fn pdl_launch_dependents(&self) {
        self.edit(Body::pdl_launch_dependents);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KernelBuilder, kernel};
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    fn text(target: Target) -> String {
        emit(target, |k| {
            let y = k.pointer_param::<f32>("y");
            k.pdl_wait();
            k.pdl_launch_dependents();
            y.store(1.0);
        })
    }

    fn emit(target: Target, write: impl FnOnce(&KernelBuilder)) -> String {
        let text = PtxModule::new(target).with(kernel("k", target, [32, 1, 1], write)).to_string();
        assemble(&text, target);
        text
    }

    const BOTH: &str = "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";

    #[test]
    fn pdl_emits_wait_and_launch_dependents() {
        for target in [Target::SM_90, Target::SM_90A] {
            let text = text(target);
            assert!(text.contains(BOTH), "no {BOTH} in {text}");
            assert_eq!(text.matches("griddepcontrol").count(), 2, "{text}");
            assert!(text.find("ld.param") < text.find(BOTH), "the kernel places them: {text}");
        }
    }

    #[test]
    fn loads_after_the_wait_are_coherent() {
        let text = emit(Target::SM_90, |k| {
            let x = k.pointer_param::<f32>("x");
            let before = x.load_constant();
            k.pdl_wait();
            x.at(2).store(before + x.at(1).load_constant());
        });
        let (before, after) = text.split_once("griddepcontrol.wait;").expect("a wait");
        assert!(before.contains("ld.global.nc.b32") && after.contains("ld.global.b32"), "{text}");
        assert!(!after.contains(".nc"), "{text}");
    }

    #[test]
    fn older_targets_emit_no_pdl() {
        for target in [Target::SM_75, Target::SM_80, Target::SM_89] {
            assert!(!text(target).contains("griddepcontrol"), "{target}");
        }
    }
}
