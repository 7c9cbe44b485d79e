//! Polls of the stop word, in loops that are not proven to end.
//!
//! Loops are left, not the kernel: what follows them is finite, barriers are still reached, and
//! other such loops end at their next poll, which for those without barriers and matrices is in
//! their first iteration.
//!
//! All invocations of a workgroup must leave a loop with barriers in the same iteration, or some
//! would wait at a barrier that the others do not reach. Such a loop is executed uniformly, so that
//! its iterations are counted alike by all invocations; when a poll is due, they agree on the word
//! by workgroup memory. The same holds for the invocations of a subgroup in a loop with subgroup
//! barriers or cooperative matrices: they use the word of the first one.

use spirv::{Decoration, MemorySemantics, Op, Scope, StorageClass};

use super::Emitter;
use super::module::Id;
use crate::kir::{Barrier, Block, Inst, Kir, Stmt, Type, for_each_stmt};

/// Iterations of an invocation between two polls, over all loops without barriers; and those of a
/// loop with subgroup barriers or matrices.
const POLL_PERIOD: u32 = 64;

/// Iterations of a loop with workgroup barriers between two polls, each of which needs two more.
const BARRIER_PERIOD: u32 = 32;

/// The invocations that leave a loop together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    Invocation,
    Subgroup,
    Workgroup,
}

/// The variables of the polls, declared by the first loop that needs them.
#[derive(Clone, Copy, Default)]
pub(super) struct Poll {
    /// The buffer with the stop word.
    buffer: Option<Id>,
    /// Iterations since the last poll, over all loops without barriers and matrices.
    iterations: Option<Id>,
    /// The word of workgroup memory by which invocations agree.
    agreed: Option<Id>,
}

impl Emitter<'_> {
    /// Emits the start of an iteration: polls if a poll is due, and leaves the loop if the stop
    /// word is set.
    pub(super) fn poll(&mut self, body: &Block, merge: Id) {
        let u32 = self.m.u32_ty();
        let together = together(self.kir, body);
        let (iterations, period) = match together {
            Together::Invocation => (self.iterations(), POLL_PERIOD),
            Together::Subgroup => (self.m.local_word(), POLL_PERIOD),
            Together::Workgroup => (self.m.local_word(), BARRIER_PERIOD),
        };
        let [zero, one, period] = [0, 1, period].map(|word| self.m.u32(word));
        let before = self.m.op(Op::Load, u32, &[iterations]);
        let now = self.m.op(Op::IAdd, u32, &[before, one]);
        self.m.run(Op::Store, &[iterations, now]);
        let due = self.op(Op::UGreaterThanEqual, Type::Bool, &[now, period]);
        let [look, exit, go_on, after] = [(); 4].map(|()| self.m.id());
        self.select(due, [look, after], after);
        self.begin(look);
        let stop = self.stop_word();
        let stop = match together {
            Together::Invocation => stop,
            Together::Subgroup => self.of_first_lane(stop),
            Together::Workgroup => self.agree_on(stop),
        };
        let stopped = self.op(Op::INotEqual, Type::Bool, &[stop, zero]);
        self.select(stopped, [exit, go_on], go_on);
        // The count stays: the next loop that uses the variable polls in its first iteration.
        self.begin(exit);
        self.go(merge);
        self.begin(go_on);
        self.m.run(Op::Store, &[iterations, zero]);
        self.go(after);
        self.begin(after);
    }

    fn iterations(&mut self) -> Id {
        *self.polling.iterations.get_or_insert_with(|| self.m.local_word())
    }

    /// Loads the stop word. An atomic load of device scope is neither moved out of the loop nor
    /// served by a cache that is not coherent.
    fn stop_word(&mut self) -> Id {
        let buffer = match self.polling.buffer {
            Some(buffer) => buffer,
            None => self.stop_buffer(),
        };
        self.polling.buffer = Some(buffer);
        let (u32, zero) = (self.m.u32_ty(), self.m.u32(0));
        let pointer = self.pointer_to(StorageClass::StorageBuffer, u32, &[buffer, zero]);
        self.atomic_load(pointer, Scope::Device)
    }

    /// Returns one of the words that the invocations of a workgroup have loaded, the same for all.
    fn agree_on(&mut self, word: Id) -> Id {
        let u32 = self.m.u32_ty();
        let class = StorageClass::Workgroup;
        let agreed = *self.polling.agreed.get_or_insert_with(|| self.m.global(class, u32, None));
        // Until all have read the word of the previous poll.
        self.barrier(Barrier::Workgroup);
        let [scope, relaxed] = [Scope::Workgroup as u32, MemorySemantics::RELAXED.bits()];
        let [scope, relaxed] = [scope, relaxed].map(|word| self.m.u32(word));
        self.m.run(Op::AtomicStore, &[agreed, scope, relaxed, word]);
        self.barrier(Barrier::Workgroup);
        self.atomic_load(agreed, Scope::Workgroup)
    }

    fn atomic_load(&mut self, pointer: Id, scope: Scope) -> Id {
        let u32 = self.m.u32_ty();
        // In the Vulkan memory model, accesses are volatile instead of the buffer.
        let semantics = match self.has_matrices {
            true => MemorySemantics::VOLATILE,
            false => MemorySemantics::RELAXED,
        };
        let [scope, semantics] = [scope as u32, semantics.bits()].map(|word| self.m.u32(word));
        self.m.op(Op::AtomicLoad, u32, &[pointer, scope, semantics])
    }

    /// Declares the buffer of the stop word, after all others. It is not `NonWritable`: drivers may
    /// read such buffers through caches that are not coherent.
    fn stop_buffer(&mut self) -> Id {
        let u32 = self.m.u32_ty();
        let block = self.m.new_ty(Op::TypeStruct, &[u32]);
        self.m.decorate(block, Decoration::Block, &[]);
        self.m.decorate_member(block, 0, Decoration::Offset, &[0]);
        if !self.has_matrices {
            self.m.decorate_member(block, 0, Decoration::Volatile, &[]);
        }
        let variable = self.m.global(StorageClass::StorageBuffer, block, None);
        let hidden = [self.options.linearised, self.options.reports_aborted_loops].map(u32::from);
        let binding = self.interface.bindings.len() as u32 + hidden.iter().sum::<u32>();
        self.bind(variable, binding);
        self.m.name(variable, "stop");
        variable
    }
}

/// Returns which invocations execute statements of a block together: for barriers, and for
/// operations of cooperative matrices.
fn together(kir: &Kir, block: &Block) -> Together {
    let mut all = Together::Invocation;
    for_each_stmt(block, &mut |stmt| all = all.max(together_in(kir, stmt)));
    all
}

fn together_in(kir: &Kir, stmt: &Stmt) -> Together {
    match stmt {
        Stmt::Barrier(Barrier::Workgroup, _) => Together::Workgroup,
        Stmt::Barrier(Barrier::Subgroup, _) | Stmt::MatrixStore { .. } => Together::Subgroup,
        Stmt::Let(value) => match kir.inst(*value) {
            Inst::WorkgroupUniformLoad { .. } => Together::Workgroup,
            Inst::MatrixLoad(_) | Inst::MultiplyAdd(..) => Together::Subgroup,
            _ => Together::Invocation,
        },
        _ => Together::Invocation,
    }
}
