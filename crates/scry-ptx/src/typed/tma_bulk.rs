//! Bulk copies (`cp.async.bulk`, `sm_90`) without a tensor map.

use super::hopper::MBarrier;
use super::value::{Element, ToOperand};
use super::{Global, KernelBuilder, Ptr, Shared};
use crate::asm::Opcode;

impl KernelBuilder {
    /// Copies this many bytes, a multiple of 16, from global to shared memory. Both addresses must
    /// be multiples of 16, or the launch fails. Executed by one thread.
    ///
    /// The mbarrier counts the bytes. One of the phase's arrivals must announce them
    /// ([`MBarrier::arrive_expect_tx`]), or the phase may complete too early.
    pub fn bulk_load<T: Element, U: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, U>,
        bytes: impl ToOperand<u32>,
        done: MBarrier<'_>,
    ) {
        self.edit(|body| body.require(8, 0));
        let name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
        let (to, from) = (to.address().into(), from.address().into());
        let done = done.address().into();
        self.emit(Opcode::long(name), [to, from, bytes.operand().into(), done]);
    }
}
