//! Mutation testing: makes the results of one operator wrong. If all tests still pass, they do not
//! test that operator.

mod environment;
mod operator_names;
mod operators;
#[cfg(test)]
mod tests;

pub use environment::{is_requested, mutate_as_requested};
pub use operators::operators;

use std::collections::BTreeSet;
use std::mem;

use super::{
    BinaryOp, Block, Const, Definition, Inst, Kir, MatrixElement, Stmt, Type, UnaryOp, Value,
    for_each_stmt,
};

/// Returns the names of the [`operators()`] that a kernel contains.
#[must_use]
pub fn operators_of(kir: &Kir) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for_each_stmt(&kir.body, &mut |stmt| {
        found.extend(operator_names::stmt_operators(kir, stmt));
    });
    found
}

/// Makes the results of all instructions and stores of one operator wrong. Returns their number.
///
/// Bools are negated. The lowest bit of integers is flipped; of floats the highest exponent bit,
/// which changes the magnitude. 1.0 is added to the elements of matrices. For operators that write,
/// the written value is wrong.
pub fn mutate(kir: &mut Kir, operator: &str) -> usize {
    let body = mem::take(&mut kir.body);
    let mut mutator = Mutator { kir, operator, mutated: 0 };
    let body = mutator.block(body);
    let mutated = mutator.mutated;
    kir.body = body;
    mutated
}

/// Returns the bits of the number 1.0.
fn bits_of_one(element: MatrixElement) -> u64 {
    match element {
        MatrixElement::F16 => 0x3c00,
        MatrixElement::F32 => 1f32.to_bits().into(),
    }
}

struct Mutator<'a> {
    kir: &'a mut Kir,
    operator: &'a str,
    /// Number of mutated instructions and statements.
    mutated: usize,
}

impl Mutator<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            stmt.blocks_mut().for_each(|inner| *inner = self.block(mem::take(inner)));
            let has_operator = operator_names::stmt_operators(self.kir, &stmt)
                .iter()
                .any(|name| name == self.operator);
            if has_operator {
                self.mutated += 1;
                self.mutate_stmt(stmt, &mut out);
            } else {
                out.push(stmt);
            }
        }
        out
    }

    fn mutate_stmt(&mut self, stmt: Stmt, out: &mut Block) {
        match stmt {
            Stmt::Let(value) if self.operator.ends_with(operator_names::MEMORY) => {
                self.mutate_operand(value, out)
            }
            Stmt::Let(value) => self.mutate_result(value, out),
            Stmt::Store { place, values, at } => {
                let values = values.into_iter().map(|value| self.wrong_value(value, out)).collect();
                out.push(Stmt::Store { place, values, at });
            }
            Stmt::MatrixStore { place, value, at } => {
                let value = self.wrong_value(value, out);
                out.push(Stmt::MatrixStore { place, value, at });
            }
            other => out.push(other),
        }
    }

    /// Makes the result of an instruction wrong: a new value computes the correct result, and the
    /// old value is computed from it.
    fn mutate_result(&mut self, value: Value, out: &mut Block) {
        let count = self.kir.inst(value).results();
        let correct = Value(self.kir.values.len() as u32);
        for nth in 0..count {
            let mut copy = self.kir.values[(value.0 + nth) as usize];
            if let Inst::Extra(first, _) = &mut copy.inst {
                *first = correct;
            }
            self.kir.values.push(copy);
        }
        out.push(Stmt::Let(correct));
        for nth in 0..count {
            let wrong = self.wrong_inst(Value(correct.0 + nth), out);
            self.kir.values[(value.0 + nth) as usize].inst = wrong;
            out.push(Stmt::Let(Value(value.0 + nth)));
        }
    }

    /// Makes the effect of an atomic operation on memory wrong.
    fn mutate_operand(&mut self, atomic: Value, out: &mut Block) {
        if let Inst::Atomic { op, place, value: Some(value), compare } = *self.kir.inst(atomic) {
            let value = Some(self.wrong_value(value, out));
            self.kir.values[atomic.index()].inst = Inst::Atomic { op, place, value, compare };
        }
        out.push(Stmt::Let(atomic));
    }

    /// Adds a value that differs from the given one.
    fn wrong_value(&mut self, correct: Value, out: &mut Block) -> Value {
        let inst = self.wrong_inst(correct, out);
        self.define(self.kir.ty(correct), inst, out)
    }

    /// Adds the instructions that compute a value other than the given one, except the last one,
    /// and returns that.
    fn wrong_inst(&mut self, correct: Value, out: &mut Block) -> Inst {
        let ty = self.kir.ty(correct);
        if ty == Type::Bool {
            return Inst::Unary(UnaryOp::Not, correct);
        }
        if let Some(matrix) = ty.matrix() {
            let one = Const { ty: matrix.element.ty(), bits: bits_of_one(matrix.element) };
            let one = self.define(one.ty, Inst::Const(one), out);
            let ones = self.define(ty, Inst::MatrixFill(one), out);
            return Inst::Binary(BinaryOp::Add, correct, ones);
        }
        let bits = ty.to_unsigned();
        let flipped = if ty.is_float() { 1 << (ty.bits() - 2) } else { 1 };
        let mask = Inst::Const(Const { ty: if ty.is_float() { bits } else { ty }, bits: flipped });
        if !ty.is_float() {
            let mask = self.define(ty, mask, out);
            return Inst::Binary(BinaryOp::Xor, correct, mask);
        }
        let mask = self.define(bits, mask, out);
        let word = self.define(bits, Inst::Bitcast(correct), out);
        let wrong = self.define(bits, Inst::Binary(BinaryOp::Xor, word, mask), out);
        Inst::Bitcast(wrong)
    }

    fn define(&mut self, ty: Type, inst: Inst, out: &mut Block) -> Value {
        self.kir.values.push(Definition { ty, inst });
        let value = Value(self.kir.values.len() as u32 - 1);
        out.push(Stmt::Let(value));
        value
    }
}
