//! Blocks of a cluster that write into each other's shared memory (`sm_90`).

use super::value::{Arg, Element, Val};
use super::{Code, Ptr, Shared};
use crate::asm::{Address, Arg as AsmArg, Opcode};

/// A barrier of the cluster in two parts, between which there is other work to do.
impl Code {
    /// Comes to the barrier of the cluster without waiting, and without telling others what was
    /// written before: they learn only that the thread is there. [`Code::wait_cluster`] follows.
    pub fn appear_in_cluster(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("barrier.cluster.arrive.relaxed.aligned"), []);
    }

    /// Has this thread's reads come back, of other blocks' memory too, before it goes on.
    pub fn finish_reads(&self) {
        self.emit(Opcode::new("fence.acq_rel.cta"), []);
    }

    /// Comes to the barrier of the cluster without waiting; [`Code::wait_cluster`] follows.
    pub fn arrive_cluster(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("barrier.cluster.arrive.release.aligned"), []);
    }

    /// Waits until all threads of the cluster have come to its barrier.
    pub fn wait_cluster(&self) {
        self.emit(Opcode::new("barrier.cluster.wait.acquire.aligned"), []);
    }
}

impl<T: Element> Ptr<'_, Shared, T> {
    /// Writes 2 or 4 elements at the same place in a block of the cluster, which is running: a
    /// barrier of the cluster lies between its begin and this, and another one between this and
    /// who reads them.
    pub fn store_in<const N: usize>(self, block: impl Arg<u32>, values: [impl Arg<T>; N]) {
        let here = self.to_bits().operand();
        let opcode = Opcode::new("mapa.shared::cluster.u32");
        let there: Val<'_, u32> = self.k.op(opcode, &[here, block.operand()]);
        let width = if N == 2 { "v2" } else { "v4" };
        let opcode = Opcode::new("st.shared::cluster").with(width).ty(T::TYPE.to_bits());
        let values = AsmArg::Vector(values.map(Arg::operand).into());
        self.k.emit(opcode, [Address::reg(there.reg(), 0).into(), values]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    #[test]
    fn a_block_writes_where_another_one_reads() {
        let mut kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
            let memory = k.shared::<f32>(64, 16);
            k.appear_in_cluster();
            let [a, b] = [1.0, 2.0].map(|number| k.constant(number).copied());
            k.wait_cluster();
            memory.at(2).store_in(k.cluster_rank() ^ 1, [a, b]);
            k.finish_reads();
            k.sync_cluster();
            k.pointer::<f32>("y").store(memory.at(2).load());
        });
        kernel.cluster = Some([2, 1, 1]);
        let text = PtxModule::new(Target::SM_90).with(kernel).to_string();
        assemble(&text, Target::SM_90);
        for line in [
            "barrier.cluster.arrive.relaxed.aligned;\n\tmov.b32",
            "mapa.shared::cluster.u32 %r6, %r5, %r4;",
            "st.shared::cluster.v2.b32 [%r6], {%r1, %r2};\n\tfence.acq_rel.cta;",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }
}
