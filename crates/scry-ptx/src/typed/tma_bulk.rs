//! Bulk copies (`cp.async.bulk`, `sm_90`) without a tensor map.

use super::hopper::Barrier;
use super::value::{Arg, Element};
use super::{Code, Global, Ptr, Shared};
use crate::asm::Opcode;

impl Code {
    /// Copies this many bytes, a multiple of 16, into shared memory; both addresses are multiples
    /// of 16, or the launch ends in an error. One thread asks for it. The barrier is told of the
    /// bytes as they arrive: a thread has to announce them, see
    /// [`Barrier::arrive_expecting`], or its phase may be complete too early.
    pub fn fetch_bytes<T: Element, U: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, U>,
        bytes: impl Arg<u32>,
        done: Barrier<'_>,
    ) {
        self.edit(|body| body.require(8, 0));
        let name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
        let (to, from) = (to.address().into(), from.address().into());
        let done = done.address().into();
        self.emit(Opcode::long(name), [to, from, bytes.operand().into(), done]);
    }
}
