//! Lowers atomics.
//!
//! All are relaxed: WGSL orders other accesses by barriers only. The scope is `gpu` in storage and
//! `cta` in workgroup memory.

use scry_ir::kir::{AtomicOp, Place, Type, Value};

use super::{Lowering, ptx_type};
use crate::asm::{Address, Arg, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// The memory operand of an atomic: address space, address and type.
struct Cell {
    space: StateSpace,
    address: Address,
    ty: Type,
}

impl Lowering<'_> {
    /// Lowers an atomic operation; its result is the previous content. A store has no result that
    /// is read.
    pub(super) fn atomic(
        &mut self,
        value: Value,
        op: AtomicOp,
        place: &Place,
        operand: Option<Value>,
        compare: Option<Value>,
    ) -> Reg {
        let ty = self.ty(value);
        let target = self.target(place);
        let cell = Cell { space: target.space, address: target.address, ty };
        let old = self.b.reg(ptx_type(ty));
        let operand = operand.map(|operand| self.value(operand));
        let compare = compare.map(|compare| self.value(compare));
        match (op, operand, compare) {
            (AtomicOp::Store, Some(operand), _) => self.atomic_store(&cell, operand),
            (AtomicOp::Sub, Some(operand), _) => {
                let negative = self.b.typed("neg", signed(ty), &[operand]).into();
                self.change(value, old, &cell, AtomicOp::Add, negative);
            }
            (_, Some(operand), Some(compare)) => {
                let opcode = cell.opcode("atom").with("cas").ty(ptx_type(ty).to_bits());
                self.b.emit(opcode, cell.args(Some(old), &[compare, operand]));
            }
            (_, Some(operand), None) => self.change(value, old, &cell, op, operand),
            (_, None, _) => {
                let opcode = cell.opcode("ld").ty(ptx_type(ty).to_bits());
                self.b.emit(opcode, cell.args(Some(old), &[]));
            }
        }
        old
    }

    fn atomic_store(&mut self, cell: &Cell, operand: Operand) {
        let opcode = cell.opcode("st").ty(ptx_type(cell.ty).to_bits());
        self.b.emit(opcode, cell.args(None, &[operand]));
    }

    /// Lowers a read-modify-write. Where the previous content is unused, `red` replaces `atom`.
    fn change(&mut self, value: Value, old: Reg, cell: &Cell, op: AtomicOp, operand: Operand) {
        let fetched = self.uses[value.index()] > 0 || op == AtomicOp::Exchange;
        let opcode = cell.opcode(if fetched { "atom" } else { "red" });
        let opcode = opcode.with(name(op)).ty(operand_type(op, cell.ty));
        self.b.emit(opcode, cell.args(fetched.then_some(old), &[operand]));
    }
}

impl Cell {
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
const fn name(op: AtomicOp) -> &'static str {
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

/// Returns the type in the opcode: 64-bit sums exist as unsigned only, and exchanges and bitwise
/// operations are untyped.
const fn operand_type(op: AtomicOp, ty: Type) -> PtxType {
    match (op, ty) {
        (AtomicOp::Add, Type::I64) => PtxType::U64,
        (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, _) => ptx_type(ty),
        _ => ptx_type(ty).to_bits(),
    }
}

/// Returns the type to negate in: signed for integers.
const fn signed(ty: Type) -> PtxType {
    match ptx_type(ty) {
        PtxType::U32 => PtxType::S32,
        PtxType::U64 => PtxType::S64,
        other => other,
    }
}
