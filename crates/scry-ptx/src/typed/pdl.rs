//! Launches that begin while the one before them still runs (`sm_90`).
//!
//! A launch may begin as soon as each block of the one before it has said that it may, or has
//! ended. It waits before it touches what the other one may still write. The two calls go together:
//! a kernel that lets the next launch begin has waited before, in each of its blocks. So whoever
//! begins early runs beside one launch only, and all that was launched before that is done.
//!
//! For older targets nothing is written: there all launches wait for each other.

use super::Code;
use crate::asm::Opcode;

impl Code {
    /// Waits until the launch before this one is done, and what it wrote can be seen. Returns at
    /// once where it was done when this one began. Each thread waits that afterwards touches memory
    /// of the device other than what the kernel says that it reads early.
    pub fn wait_for_launch_before(&self) {
        self.emit_for_sm_90("griddepcontrol.wait");
    }

    /// Lets the launch after this one begin, once a thread of each block has said so or the block
    /// has ended. It comes after [`Code::wait_for_launch_before`] in the same thread.
    pub fn let_next_launch_begin(&self) {
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
            k.wait_for_launch_before();
            k.let_next_launch_begin();
            k.pointer::<f32>("y").store(1.0);
        });
        let text = PtxModule::new(target).with(kernel).to_string();
        assemble(&text, target);
        text
    }

    #[test]
    fn a_launch_waits_for_the_one_before_and_lets_the_next_begin() {
        let both = "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";
        for target in [Target::SM_90, Target::SM_90A] {
            assert!(text(target).contains(both), "no {both} in {}", text(target));
        }
    }

    #[test]
    fn older_targets_wait_for_all_that_was_launched() {
        for target in [Target::SM_75, Target::SM_80, Target::SM_89] {
            assert!(!text(target).contains("griddepcontrol"), "{target}");
        }
    }
}
