//! Constant folding and algebraic simplification.
//!
//! A value is replaced by an operand, which is visible wherever the value is, or its instruction is
//! simplified. Nothing is moved. A branch on a constant becomes the block that is executed; the
//! values of that block are then visible after it too, which is harmless.

use super::super::{Block, Const, FragmentPlace, Inst, Kir, Place, Stmt, UnaryOp, Value};
use super::value_map::{ValueMap, always_exits};
use super::{algebraic, const_eval};
use crate::Location;

/// What an instruction is replaced by.
pub(super) enum Replacement {
    /// An existing value, equal to the result.
    Same(Value),
    /// A simpler instruction.
    Inst(Inst),
}

/// Folds a kernel.
pub(super) fn fold(kir: &mut Kir) {
    let body = std::mem::take(&mut kir.body);
    let map = ValueMap::new(kir.values.len());
    let mut fold = Fold { kir, map, out: Vec::new(), current: Value(0) };
    let body = fold.block(body);
    kir.body = body;
}

/// A kernel being folded.
pub(super) struct Fold<'a> {
    pub kir: &'a mut Kir,
    map: ValueMap,
    /// The block under construction.
    out: Block,
    /// The value being simplified.
    current: Value,
}

impl Fold<'_> {
    fn block(&mut self, block: Block) -> Block {
        let outer = std::mem::take(&mut self.out);
        self.splice(block);
        std::mem::replace(&mut self.out, outer)
    }

    /// Appends the statements of a block; returns whether its end is reachable.
    fn splice(&mut self, block: Block) -> bool {
        block.into_iter().all(|stmt| self.stmt(stmt))
    }

    /// Appends a statement; returns whether control can reach what follows it.
    fn stmt(&mut self, mut stmt: Stmt) -> bool {
        self.map.rename_stmt(&mut stmt);
        match &mut stmt {
            Stmt::Let(value) => return self.value(*value),
            Stmt::Store { place, .. } => self.place(place),
            Stmt::If { condition, then_block, else_block, at } => {
                let (then_block, else_block) =
                    (std::mem::take(then_block), std::mem::take(else_block));
                return self.branch(*condition, then_block, else_block, *at);
            }
            _ => {
                for block in stmt.blocks_mut() {
                    *block = self.block(std::mem::take(block));
                }
            }
        }
        let completes = !matches!(stmt, Stmt::Break(_));
        self.out.push(stmt);
        completes
    }

    fn branch(
        &mut self,
        condition: Value,
        then_block: Block,
        else_block: Block,
        at: Option<Location>,
    ) -> bool {
        if let Some(constant) = self.kir.constant(condition) {
            return self.splice(if constant.bits == 0 { else_block } else { then_block });
        }
        if let Inst::Unary(UnaryOp::Not, inverse) = *self.kir.inst(condition) {
            return self.branch(inverse, else_block, then_block, at);
        }
        let (then_block, else_block) = (self.block(then_block), self.block(else_block));
        let completes = !(always_exits(&then_block) && always_exits(&else_block));
        self.out.push(Stmt::If { condition, then_block, else_block, at });
        completes
    }

    fn value(&mut self, value: Value) -> bool {
        self.current = value;
        let mut inst = *self.kir.inst(value);
        self.map.rename(&mut inst);
        if let Inst::Load { place, .. }
        | Inst::WorkgroupUniformLoad { place, .. }
        | Inst::Atomic { place, .. }
        | Inst::LoadFragment(FragmentPlace { place, .. }) = &mut inst
        {
            self.place(place);
        }
        self.kir.values[value.index()].inst = inst;
        match self.simplify(value) {
            Some(same) => self.map.replace(value, same),
            None => self.out.push(Stmt::Let(value)),
        }
        true
    }

    /// Simplifies an instruction to a fixed point; returns the value that replaces it.
    fn simplify(&mut self, value: Value) -> Option<Value> {
        // The limit guards against rules that undo each other.
        for _ in 0..8 {
            let definition = self.kir.values[value.index()];
            let constant = |operand| self.kir.constant(operand);
            let inst = match const_eval::eval(definition.ty, &definition.inst, constant) {
                Some(constant) => Inst::Const(constant),
                None => match algebraic::apply(self, definition)? {
                    Replacement::Same(same) => return Some(same),
                    Replacement::Inst(inst) => inst,
                },
            };
            self.kir.values[value.index()].inst = inst;
            if let Inst::Const(_) = inst {
                return None;
            }
        }
        None
    }

    /// Adds an instruction before the current one.
    pub fn define(&mut self, ty: super::super::Type, inst: Inst) -> Value {
        self.kir.values.push(super::super::Definition { ty, inst });
        let value = Value(self.kir.values.len() as u32 - 1);
        self.kir.source.inherit(value, self.current);
        self.out.push(Stmt::Let(value));
        value
    }

    /// Adds a constant before the current instruction.
    pub fn constant(&mut self, constant: Const) -> Value {
        self.define(constant.ty, Inst::Const(constant))
    }

    /// Folds a constant index into the offset.
    fn place(&self, place: &mut Place) {
        let Some(index) = place.index.and_then(|index| self.kir.constant(index)) else { return };
        let offset = u64::from(place.stride) * index.bits + u64::from(place.offset);
        if let Ok(offset) = u32::try_from(offset) {
            *place = Place { index: None, offset, ..*place };
        }
    }
}
