//! Values: one line each, except for literals and built-in values, which are written at their uses.

use super::Emitter;
use super::constants::literal;
use crate::ShaderError;
use crate::kir::{Const, Inst, Value};

impl Emitter<'_> {
    /// Writes the computation of a value.
    pub(super) fn value(&mut self, value: Value) -> Result<(), ShaderError> {
        let (kir, ty) = (self.kir, self.kir.ty(value));
        let text = match *kir.inst(value) {
            Inst::Const(constant) => {
                self.constant(value, constant);
                return Ok(());
            }
            Inst::Builtin(builtin) => {
                let text = self.builtin(builtin);
                self.global_alias(value, text);
                return Ok(());
            }
            Inst::Load { place, count } => return self.load(value, &place, count.into()),
            Inst::Atomic { op, place, value: operand, compare } => {
                return self.atomic(value, op, &place, [operand, compare]);
            }
            Inst::Unary(op, a) => self.unary(op, a),
            Inst::Binary(op, a, b) if self.hides_bound(value, op) => {
                self.hidden_comparison(op, a, b)
            }
            Inst::Binary(op, a, b) => self.binary(op, a, b),
            Inst::Fma(a, b, c) => {
                let [a, b, c] = self.operands([a, b, c]);
                format!("fma({a}, {b}, {c})")
            }
            Inst::Select(condition, a, b) => {
                let [condition, a, b] = self.operands([condition, a, b]);
                format!("select({b}, {a}, {condition})")
            }
            Inst::Convert(a) => {
                let [x] = self.operands([a]);
                let converted = self.convert(kir.ty(a), ty, &x);
                match ty.is_integer() && self.may_be_nan(a) {
                    true => self.zero_if_nan(ty, &converted, (kir.ty(a), &x)),
                    false => converted,
                }
            }
            Inst::Bitcast(a) => {
                let [x] = self.operands([a]);
                self.bitcast(kir.ty(a), ty, &x)
            }
            Inst::ArrayLength { binding, offset, stride } => {
                self.array_length(binding, offset, stride)?
            }
            Inst::Get(var) => self.variable(var.0),
            Inst::Subgroup(op) => self.subgroup(op),
            // Matrices were rejected (`rejections.rs`), `statements` writes uniform loads, and no
            // `Let` computes an `Extra`.
            Inst::Extra(..)
            | Inst::MatrixFill(_)
            | Inst::MatrixLoad(_)
            | Inst::LoadFragment(_)
            | Inst::MultiplyAdd(..)
            | Inst::MultiplyFragments { .. }
            | Inst::WorkgroupUniformLoad { .. } => {
                let message = "Kir::to_wgsl: an instruction that it does not lower";
                return Err(ShaderError::compiler(message.into()));
            }
        };
        // A conversion without effect, such as a bitcast to the same WGSL type, is its operand.
        let mut is_copy = false;
        kir.inst(value).for_each_operand(|operand| is_copy |= self.operand(operand) == text);
        match is_copy {
            true => self.alias(value, text),
            false => self.define(value, &text),
        }
        Ok(())
    }

    fn constant(&mut self, value: Value, constant: Const) {
        match literal(constant, self.native_f16) {
            Some(literal) => self.global_alias(value, literal),
            None => {
                let text = self.value_of_bits(constant);
                self.define(value, &text);
            }
        }
    }
}
