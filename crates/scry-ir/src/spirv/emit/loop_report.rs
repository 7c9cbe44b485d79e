//! Reports that the driver ended loops early.
//!
//! Some drivers limit the iterations of all loops of an invocation together, and leave every loop
//! after a single iteration once the limit is reached. So the kernel is followed by one more loop,
//! of two iterations: if it is left after one, a word in a buffer is set. The loop's bounds are
//! loaded from that buffer, so that no compiler can unroll it.

use spirv::{Decoration, MemorySemantics, Op, Scope, StorageClass};

use super::Emitter;
use super::module::Id;
use crate::kir::Type;

/// Words of the report: whether loops were ended early, and three words, all zero, from which the
/// last loop is computed.
const WORDS: u32 = 4;

/// Iterations of the last loop.
const ITERATIONS: u32 = 2;

impl Emitter<'_> {
    /// Writes an entry point that calls the kernel, and then enters one more loop.
    pub(super) fn with_loop_report(&mut self, kernel: Id) -> Id {
        let u32 = self.m.u32_ty();
        let void = self.m.ty(Op::TypeVoid, &[]);
        self.terminated = false;
        self.m.op(Op::FunctionCall, void, &[kernel]);
        let report = self.report_buffer();
        let [end, start, count] = [1, 2, 3].map(|word| {
            let pointer = self.report_word(report, word);
            self.m.op(Op::Load, u32, &[pointer])
        });
        let iterations = self.m.u32(ITERATIONS);
        let end = self.m.op(Op::IAdd, u32, &[end, iterations]);
        let count = self.last_loop([start, end, count]);
        let was_aborted = self.op(Op::INotEqual, Type::Bool, &[count, iterations]);
        let [report_block, merge] = [(); 2].map(|()| self.m.id());
        self.select(was_aborted, [report_block, merge], merge);
        self.begin(report_block);
        let pointer = self.report_word(report, 0);
        let words = [Scope::Device as u32, MemorySemantics::RELAXED.bits(), 1];
        let [scope, relaxed, one] = words.map(|word| self.m.u32(word));
        self.m.run(Op::AtomicStore, &[pointer, scope, relaxed, one]);
        self.go(merge);
        self.begin(merge);
        self.m.end_function()
    }

    /// Emits `for (i = start; i < end; i++) { count++; }`; returns the count after it.
    fn last_loop(&mut self, [start, end, count]: [Id; 3]) -> Id {
        let u32 = self.m.u32_ty();
        let [index_variable, count_variable] = [(); 2].map(|()| self.m.local_word());
        self.m.run(Op::Store, &[index_variable, start]);
        self.m.run(Op::Store, &[count_variable, count]);
        let [header, top, body, exit, next, merge] = [(); 6].map(|()| self.m.id());
        self.go(header);
        self.begin(header);
        self.m.run(Op::LoopMerge, &[merge, next, 0]);
        self.go(top);
        self.begin(top);
        let index = self.m.op(Op::Load, u32, &[index_variable]);
        let in_range = self.op(Op::ULessThan, Type::Bool, &[index, end]);
        self.select(in_range, [body, exit], body);
        self.begin(exit);
        self.go(merge);
        self.begin(body);
        let one = self.m.u32(1);
        for variable in [index_variable, count_variable] {
            let before = self.m.op(Op::Load, u32, &[variable]);
            let after = self.m.op(Op::IAdd, u32, &[before, one]);
            self.m.run(Op::Store, &[variable, after]);
        }
        self.go(next);
        self.begin(next);
        self.go(header);
        self.begin(merge);
        self.m.op(Op::Load, u32, &[count_variable])
    }

    /// Declares the buffer of the report, after those of the interface and of the grid.
    fn report_buffer(&mut self) -> Id {
        let u32 = self.m.u32_ty();
        let block = self.m.new_ty(Op::TypeStruct, &[u32; WORDS as usize]);
        self.m.decorate(block, Decoration::Block, &[]);
        for member in 0..WORDS {
            self.m.decorate_member(block, member, Decoration::Offset, &[member * 4]);
        }
        let variable = self.m.global(StorageClass::StorageBuffer, block, None);
        let bindings = self.interface.bindings.len() as u32;
        self.bind(variable, bindings + u32::from(self.options.linearised));
        variable
    }

    fn report_word(&mut self, report: Id, word: u32) -> Id {
        let (u32, word) = (self.m.u32_ty(), self.m.u32(word));
        self.pointer_to(StorageClass::StorageBuffer, u32, &[report, word])
    }
}
