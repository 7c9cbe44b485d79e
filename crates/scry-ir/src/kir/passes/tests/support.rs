//! Helpers of the tests of passes.

use super::super::super::{AddressSpace, BinaryOp, Block, Builder, Inst, Kir, Place, Stmt, Value};

/// Returns the instructions of a block and of nested blocks, in order.
pub(super) fn all_insts(kir: &Kir, block: &Block) -> Vec<Inst> {
    let own = |stmt: &Stmt| match stmt {
        Stmt::Let(value) => vec![*kir.inst(*value)],
        stmt => stmt.blocks().flat_map(|block| all_insts(kir, block)).collect(),
    };
    block.iter().flat_map(own).collect()
}

/// Counts the instructions of a kernel that satisfy a condition.
pub(super) fn count_insts(kir: &Kir, predicate: impl Fn(&Inst) -> bool) -> usize {
    all_insts(kir, &kir.body).iter().filter(|inst| predicate(inst)).count()
}

/// Counts the instructions of a kernel with a binary operation.
pub(super) fn count_binary(kir: &Kir, op: BinaryOp) -> usize {
    count_insts(kir, |inst| matches!(inst, Inst::Binary(found, ..) if *found == op))
}

/// Counts the loads of a kernel.
pub(super) fn count_loads(kir: &Kir) -> usize {
    count_insts(kir, |inst| matches!(inst, Inst::Load { .. }))
}

/// Returns the body of the first loop in a kernel's outermost block.
pub(super) fn loop_body(kir: &Kir) -> &Block {
    let body = kir.body.iter().find_map(|stmt| match stmt {
        Stmt::Loop { body, .. } => Some(body),
        _ => None,
    });
    body.expect("there is a loop")
}

/// Stores a `u32` to the first element of a buffer.
pub(super) fn store_result(b: &mut Builder, buffer: u32, value: Value) {
    b.store(Place::new(AddressSpace::Binding(buffer), None, 4, 0), vec![value]);
}

/// Returns the instruction whose value is stored last.
pub(super) fn last_stored_inst(kir: &Kir) -> Inst {
    match kir.body.last() {
        Some(Stmt::Store { values, .. }) => *kir.inst(values[0]),
        other => panic!("{other:?} is not a store"),
    }
}
