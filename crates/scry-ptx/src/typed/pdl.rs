//! Programmatic dependent launch (PDL, `sm_90`).
//!
//! A kernel may start as soon as each block of its predecessor has executed
//! `griddepcontrol.launch_dependents`, or has exited. It must execute `griddepcontrol.wait` before
//! it accesses what the predecessor writes. Here the two are combined: each block of a kernel waits
//! before it executes `griddepcontrol.launch_dependents`. So a kernel overlaps with one predecessor
//! only, and all earlier launches are complete.
//!
//! For older targets nothing is emitted: there launches do not overlap.

use super::KernelBuilder;
use crate::asm::Opcode;

impl KernelBuilder {
    /// Waits until the preceding launch is complete and its writes are visible
    /// (`griddepcontrol.wait`). Returns at once if it is complete already. Required in each thread
    /// that afterwards accesses global memory other than what `PtxKernel::pdl_reads` lists.
    pub fn pdl_wait(&self) {
        self.emit_for_sm_90("griddepcontrol.wait");
    }

    /// Allows the next launch to start (`griddepcontrol.launch_dependents`). It starts once a
    /// thread of each block has executed this, or the block has exited. Must follow
    /// [`KernelBuilder::pdl_wait`] in the same thread.
    pub fn pdl_launch_dependents(&self) {
        self.emit_for_sm_90("griddepcontrol.launch_dependents");
    }

    fn emit_for_sm_90(&self, name: &'static str) {
        if self.target().has(90) {
            self.edit(|body| body.require(7, 8));
            self.emit(Opcode::new(name), []);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    fn text(target: Target) -> String {
        let kernel = kernel("k", target, [32, 1, 1], |k| {
            k.pdl_wait();
            k.pdl_launch_dependents();
            k.pointer_param::<f32>("y").store(1.0);
        });
        let text = PtxModule::new(target).with(kernel).to_string();
        assemble(&text, target);
        text
    }

    #[test]
    fn pdl_emits_wait_and_launch_dependents() {
        let both = "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";
        for target in [Target::SM_90, Target::SM_90A] {
            assert!(text(target).contains(both), "no {both} in {}", text(target));
        }
    }

    #[test]
    fn older_targets_emit_no_pdl() {
        for target in [Target::SM_75, Target::SM_80, Target::SM_89] {
            assert!(!text(target).contains("griddepcontrol"), "{target}");
        }
    }
}
