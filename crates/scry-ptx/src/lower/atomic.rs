//! Lowers atomics.
//!
//! All are relaxed: WGSL orders other accesses by barriers only. The scope is `gpu` in storage and
//! `cta` in workgroup memory.

use scry_ir::kir::{AtomicOp, Place, Type, Value};

use super::{Lowering, ptx_type};
use crate::asm::{Address, Arg, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// The memory that an atomic accesses: state space, address and type.
struct AtomicMemory {
    space: StateSpace,
    address: Address,
    ty: Type,
}

impl Lowering<'_> {
    /// Lowers an atomic operation; returns the previous content, except for a store.
    pub(super) fn atomic(
        &mut self,
        value: Value,
        op: AtomicOp,
        place: &Place,
        operand: Option<Value>,
        compare: Option<Value>,
    ) -> Reg {
        let ty = self.ty(value);
        let target = self.memory_operand(place);
        let memory = AtomicMemory { space: target.space, address: target.address, ty };
        let old = self.b.reg(ptx_type(ty));
        let operand = operand.map(|operand| self.value(operand));
        let compare = compare.map(|compare| self.value(compare));
        match (op, operand, compare) {
            (AtomicOp::Store, Some(operand), _) => self.atomic_store(&memory, operand),
            (AtomicOp::Sub, Some(operand), _) => {
                let negative = self.neg_operand(ptx_type(ty), operand).into();
                self.read_modify_write(value, old, &memory, AtomicOp::Add, negative);
            }
            (_, Some(operand), Some(compare)) => {
                let opcode = memory.opcode("atom").with("cas").ty(ptx_type(ty).to_bits());
                self.b.emit(opcode, memory.args(Some(old), &[compare, operand]));
            }
            (_, Some(operand), None) => self.read_modify_write(value, old, &memory, op, operand),
            // A load.
            (_, None, _) => {
                let opcode = memory.opcode("ld").ty(ptx_type(ty).to_bits());
                self.b.emit(opcode, memory.args(Some(old), &[]));
            }
        }
        old
    }

    fn atomic_store(&mut self, memory: &AtomicMemory, operand: Operand) {
        let opcode = memory.opcode("st").ty(ptx_type(memory.ty).to_bits());
        self.b.emit(opcode, memory.args(None, &[operand]));
    }

    /// Lowers a read-modify-write other than compare-exchange. Where the previous content is
    /// unused, `red` replaces `atom`.
    fn read_modify_write(
        &mut self,
        value: Value,
        old: Reg,
        memory: &AtomicMemory,
        op: AtomicOp,
        operand: Operand,
    ) {
        // `red` has no exchange.
        let needs_old = self.uses[value.index()] > 0 || op == AtomicOp::Exchange;
        let opcode = memory.opcode(if needs_old { "atom" } else { "red" });
        let opcode = opcode.with(opcode_name(op)).ty(operand_type(op, memory.ty));
        self.b.emit(opcode, memory.args(needs_old.then_some(old), &[operand]));
    }
}

impl AtomicMemory {
    /// Returns the opcode for this memory, without operation and type.
    fn opcode(&self, name: &str) -> Opcode {
        let scope = if self.space == StateSpace::Shared { "cta" } else { "gpu" };
        Opcode::new(name).with("relaxed").with(scope).space(self.space)
    }

    /// Returns the arguments: the result if there is one, the address, and the operands.
    fn args(&self, result: Option<Reg>, operands: &[Operand]) -> Vec<Arg> {
        let mut args: Vec<Arg> = result.into_iter().map(Arg::from).collect();
        args.push(self.address.clone().into());
        args.extend(operands.iter().map(|operand| Arg::Operand(*operand)));
        args
    }
}

/// Returns the operation's name in the opcode.
const fn opcode_name(op: AtomicOp) -> &'static str {
    match op {
        AtomicOp::Min => "min",
        AtomicOp::Max => "max",
        AtomicOp::And => "and",
        AtomicOp::Or => "or",
        AtomicOp::Xor => "xor",
        AtomicOp::Exchange => "exch",
        _ => "add",
    }
}

/// Returns the type in the opcode: 64-bit addition exists as unsigned only, and exchanges and
/// bitwise operations are untyped.
const fn operand_type(op: AtomicOp, ty: Type) -> PtxType {
    match (op, ty) {
        (AtomicOp::Add, Type::I64) => PtxType::U64,
        (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, _) => ptx_type(ty),
        _ => ptx_type(ty).to_bits(),
    }
}
