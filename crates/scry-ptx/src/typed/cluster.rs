//! Cluster barriers and distributed shared memory (`sm_90`).

use super::hopper::MBarrier;
use super::value::{Element, ToOperand, Val};
use super::{KernelBuilder, Ptr, Shared};
use crate::asm::{Address, Arg, Opcode};

/// The cluster barrier, split into arrival and wait. Both are `.aligned`: all lanes of a warp must
/// execute them together.
impl KernelBuilder {
    /// Arrives at the cluster barrier without waiting and without release semantics
    /// (`barrier.cluster.arrive.relaxed`): it only signals that this thread is running.
    /// [`KernelBuilder::wait_cluster`] must follow.
    pub fn arrive_cluster_relaxed(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("barrier.cluster.arrive.relaxed.aligned"), []);
    }

    /// Waits until this thread's earlier reads are complete, including those of other blocks'
    /// shared memory (`fence.acq_rel.cta`). Needed before a relaxed arrival that allows those
    /// blocks to exit.
    ///
    /// The scope limits which threads observe this thread's *writes* in order. A read has no
    /// observers: it is complete once it has its value, in every scope. Writes that other blocks
    /// read after the barrier need the scope `cluster`, which ptxas emits as a fence of the whole
    /// GPU: use [`KernelBuilder::arrive_cluster`].
    pub fn fence_acq_rel_cta(&self) {
        self.emit(Opcode::new("fence.acq_rel.cta"), []);
    }

    /// Arrives at the cluster barrier without waiting; [`KernelBuilder::wait_cluster`] must follow.
    pub fn arrive_cluster(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("barrier.cluster.arrive.release.aligned"), []);
    }

    /// Waits until all threads of the cluster have arrived at its barrier.
    pub fn wait_cluster(&self) {
        self.emit(Opcode::new("barrier.cluster.wait.acquire.aligned"), []);
    }
}

impl<'k, T: Element> Ptr<'k, Shared, T> {
    /// Stores 2 or 4 elements at the same offset in the shared memory of a block of the cluster.
    /// That block must be running: a cluster barrier is needed before this. Another one is needed
    /// between this and the loads of the elements.
    pub fn store_in<const N: usize>(
        self,
        block: impl ToOperand<u32>,
        values: [impl ToOperand<T>; N],
    ) {
        let remote = self.in_block(block);
        let width = if N == 2 { "v2" } else { "v4" };
        let opcode = Opcode::new("st.shared::cluster").with(width).ty(T::TYPE.to_bits());
        let values = Arg::Vector(values.map(ToOperand::operand).into());
        self.k.emit(opcode, [remote, values]);
    }

    /// Stores 1, 2 or 4 elements of 32 bits at the same offset in the shared memory of a block of
    /// the cluster, asynchronously (`st.async`). That block's own mbarrier at the offset of `done`
    /// counts the bytes: threads that wait for it see them. The block must be running, have its
    /// mbarrier initialised, and not exit before all bytes have arrived.
    pub fn send(self, block: impl ToOperand<u32>, values: &[Val<'_, T>], done: MBarrier<'_>) {
        self.k.edit(|body| body.require(8, 1));
        let (to, done) = (self.in_block(block), done.in_block(block));
        let opcode = Opcode::new("st.async.shared::cluster.mbarrier::complete_tx::bytes");
        let (opcode, values) = match values {
            [one] => (opcode, one.operand().into()),
            several => {
                let width = if several.len() == 2 { "v2" } else { "v4" };
                let values = several.iter().map(|value| value.operand()).collect();
                (opcode.with(width), Arg::Vector(values))
            }
        };
        self.k.emit(opcode.ty(T::TYPE.to_bits()), [to, values, done]);
    }

    /// Loads an element of 32 bits at the same offset in the shared memory of another block of the
    /// cluster. A cluster barrier is needed between the store of the element and this, and another
    /// one between this and that block's exit.
    #[must_use]
    pub fn load_in(self, block: impl ToOperand<u32>) -> Val<'k, T> {
        let remote = self.in_block(block);
        let value = self.k.edit(|body| body.reg(T::TYPE));
        self.k.emit(Opcode::new("ld.shared::cluster.b32"), [value.into(), remote]);
        self.k.wrap(value)
    }

    /// Returns the same address in another block of the cluster (`mapa`), as an argument.
    pub(super) fn in_block(self, block: impl ToOperand<u32>) -> Arg {
        let opcode = Opcode::new("mapa.shared::cluster.u32");
        let remote: Val<'_, u32> = self.k.op(opcode, &[self.base.into(), block.operand()]);
        Address::reg(remote.reg(), self.bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use super::MBarrier;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    #[test]
    fn blocks_write_distributed_shared_memory() {
        let mut kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
            let memory = k.shared::<f32>(64, 16);
            k.arrive_cluster_relaxed();
            let [a, b] = [1.0, 2.0].map(|number| k.constant(number).copied());
            k.wait_cluster();
            memory.at(2).store_in(k.cluster_rank() ^ 1, [a, b]);
            k.fence_acq_rel_cta();
            k.sync_cluster();
            let full = MBarrier::at(memory.at(8).cast());
            memory.send(k.cluster_rank(), &[a], full);
            memory.at(4).send(0, &[a, b, a, b], full);
            k.pointer_param::<f32>("y").store(memory.at(2).load());
        });
        kernel.cluster = Some([2, 1, 1]);
        let text = PtxModule::new(Target::SM_90).with(kernel).to_string();
        assemble(&text, Target::SM_90);
        for line in [
            "barrier.cluster.arrive.relaxed.aligned;\n\tmov.b32",
            "mapa.shared::cluster.u32 %r5, %r0, %r4;",
            "st.shared::cluster.v2.b32 [%r5+8], {%r1, %r2};\n\tfence.acq_rel.cta;",
            ".version 8.1",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r7], %r1, [%r8+32];",
            "bytes.v4.b32 [%r9+16], {%r1, %r2, %r1, %r2}, [%r10+32];",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }
}
