//! Launches that begin while the one before them still runs (`sm_90`).
//!
//! A launch may begin as soon as each block of the one before it has said that it may, or has
//! ended. It waits before it touches what the other one may still write. The two calls go together:
//! a kernel that lets the next launch begin has waited before, in each of its blocks. So whoever
//! begins early runs beside one launch only, and all that was launched before that is done.

use super::Code;
use crate::asm::Opcode;

impl Code {
    /// Waits until the launch before this one is done, and what it wrote can be seen. Returns at
    /// once where it was done when this one began. Each thread waits that afterwards touches memory
    /// of the device other than what the kernel says that it reads early.
    pub fn wait_for_launch_before(&self) {
        self.edit(|body| body.require(7, 8));
        self.emit(Opcode::new("griddepcontrol.wait"), []);
    }

    /// Lets the launch after this one begin, once a thread of each block has said so or the block
    /// has ended. It comes after [`Code::wait_for_launch_before`] in the same thread.
    pub fn let_next_launch_begin(&self) {
        self.emit(Opcode::new("griddepcontrol.launch_dependents"), []);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    #[test]
    fn a_launch_waits_for_the_one_before_and_lets_the_next_begin() {
        let kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
            k.wait_for_launch_before();
            k.let_next_launch_begin();
            k.pointer::<f32>("y").store(1.0);
        });
        let text = PtxModule::new(Target::SM_90).with(kernel).to_string();
        assemble(&text, Target::SM_90);
        let both = "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";
        assert!(text.contains(both), "no {both} in {text}");
    }
}
