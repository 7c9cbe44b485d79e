//! Operators and functions.

use super::Emitter;
use super::integers16::{self, is_16_bit};
use super::levels::LevelKind;
use crate::kir::{BinaryOp, Builtin, Type, UnaryOp, Value};

/// Maximum exponent of `ldexp` that is written as a constant. WGSL rejects constants above
/// `bias + 1`, which is 16 for `f16`, the least of all types.
const MAX_EXPONENT: i64 = 15;

impl Emitter<'_> {
    /// Returns the operands of a pure instruction. If all are literals, the first becomes a
    /// variable: WGSL rejects constant-expressions that overflow.
    pub(super) fn operands<const N: usize>(&mut self, values: [Value; N]) -> [String; N] {
        let mut operands = values.map(|value| self.operand(value));
        if values.iter().all(|value| self.is_literal(*value))
            && let Some(first) = operands.first_mut()
        {
            *first = self.literal_variable(first);
        }
        operands
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> String {
        let ty = self.kir.ty(a);
        let [x] = self.operands([a]);
        let full = self.full_unary(op, ty, &x);
        let narrow = if is_16_bit(ty) { integers16::unary(op, ty, &x, &full) } else { None };
        narrow.unwrap_or(full)
    }

    /// Returns a unary operation on the WGSL type that represents `ty`.
    fn full_unary(&self, op: UnaryOp, ty: Type, x: &str) -> String {
        match op {
            UnaryOp::Neg if matches!(ty, Type::U32 | Type::U16) => format!("0u - {x}"),
            UnaryOp::Neg => format!("-{x}"),
            UnaryOp::Not if ty == Type::Bool => format!("!{x}"),
            UnaryOp::Not => format!("~{x}"),
            UnaryOp::Abs if matches!(ty, Type::U32 | Type::U16) => x.to_owned(),
            // naga's exponent of an `f16` is a 16-bit integer, which devices may lack.
            UnaryOp::FrexpFraction if ty == Type::F16 => format!("f16(frexp(f32({x})).fract)"),
            UnaryOp::FrexpExponent if ty == Type::F16 => format!("frexp(f32({x})).exp"),
            UnaryOp::FrexpFraction => format!("frexp({x}).fract"),
            UnaryOp::FrexpExponent => format!("frexp({x}).exp"),
            UnaryOp::IsNan => self.compare_magnitude_bits(ty, x, ">"),
            UnaryOp::IsInf => self.compare_magnitude_bits(ty, x, "=="),
            // The result is 1 from 10 on. Clamping could make a number of NaN.
            UnaryOp::Tanh if self.clamps_tanh => {
                let is_nan = self.compare_magnitude_bits(ty, x, ">");
                format!("select(tanh(clamp({x}, -15.0, 15.0)), {x}, {is_nan})")
            }
            _ => format!("{}({x})", unary_function(op)),
        }
    }

    /// Compares the magnitude of a float with infinity by its bits: a compiler may assume that
    /// there are no NaNs.
    pub(super) fn compare_magnitude_bits(&self, ty: Type, x: &str, operator: &str) -> String {
        match ty {
            Type::F16 => {
                let bits = self.bits_of_f16(x);
                format!("({bits} & 0x7fffu) {operator} 0x7c00u")
            }
            _ => format!("(bitcast<u32>({x}) & 0x7fffffffu) {operator} 0x7f800000u"),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> String {
        let ty = self.kir.ty(a);
        let [x, mut y] = self.operands([a, b]);
        if let Some(constant) = self.kir.constant(b).filter(|_| self.is_literal(b)) {
            // WGSL rejects some constants as the second operand.
            let is_rejected = match op {
                BinaryOp::Div | BinaryOp::Rem => constant.as_i64() == 0,
                BinaryOp::Ldexp => constant.as_i64() > MAX_EXPONENT,
                _ => false,
            };
            if is_rejected {
                y = self.literal_variable(&y);
            } else if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
                y = format!("{}u", constant.bits % 32);
            }
        }
        if is_16_bit(ty) && matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            y = integers16::shift_amount(self.kir.constant(b).map(|constant| constant.bits), &y);
        }
        let full = match operator(op, ty) {
            // naga writes `!=` as a comparison that is false for NaN.
            Some("!=") if ty.is_float() => format!("!({x} == {y})"),
            Some(operator) => format!("{x} {operator} {y}"),
            None => format!("{}({x}, {y})", binary_function(op)),
        };
        match is_16_bit(ty) && integers16::may_overflow(op) {
            true => integers16::wrapped(ty, &full),
            false => full,
        }
    }

    /// Returns whether no compiler may know the second operand of a binary operation.
    pub(super) fn hides_bound(&self, value: Value, op: BinaryOp) -> bool {
        self.hides_loop_bounds
            && is_comparison(op)
            && self.exit_conditions[value.index()]
            && self.is_in_loop()
            && !self.unrollable.contains(&value)
    }

    /// Returns a comparison whose second operand equals `b`, since there is always a workgroup, but
    /// no compiler can prove it.
    pub(super) fn hidden_comparison(&mut self, op: BinaryOp, a: Value, b: Value) -> String {
        let [x, y] = self.operands([a, b]);
        let workgroups = self.builtin(Builtin::GroupCount(0));
        let hidden = format!("select({x}, {y}, {workgroups} != 0u)");
        match operator(op, self.kir.ty(a)).expect("comparisons have operators") {
            "!=" if self.kir.ty(a).is_float() => format!("!({x} == {hidden})"),
            operator => format!("{x} {operator} {hidden}"),
        }
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.levels.iter().any(|level| level.kind == LevelKind::Loop)
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ge | Gt | Le | Lt | Ne)
}

/// Returns the infix operator, if there is one.
fn operator(op: BinaryOp, ty: Type) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor if ty == Type::Bool => "!=",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        _ => return None,
    })
}

/// Returns the function of a binary operation without an infix operator.
fn binary_function(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Min => "min",
        BinaryOp::Max => "max",
        BinaryOp::Pow => "pow",
        BinaryOp::Atan2 => "atan2",
        BinaryOp::Ldexp => "ldexp",
        BinaryOp::Dot4I8 => "dot4I8Packed",
        _ => "dot4U8Packed",
    }
}

/// Returns the WGSL function of a unary operation.
fn unary_function(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Abs => "abs",
        UnaryOp::Sign => "sign",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Round => "round",
        UnaryOp::Trunc => "trunc",
        UnaryOp::Fract => "fract",
        UnaryOp::Sqrt => "sqrt",
        UnaryOp::InverseSqrt => "inverseSqrt",
        UnaryOp::QuantizeF16 => "quantizeToF16",
        UnaryOp::CountOnes => "countOneBits",
        UnaryOp::LeadingZeros => "countLeadingZeros",
        UnaryOp::TrailingZeros => "countTrailingZeros",
        UnaryOp::ReverseBits => "reverseBits",
        UnaryOp::FirstLeadingBit => "firstLeadingBit",
        UnaryOp::FirstTrailingBit => "firstTrailingBit",
        _ => transcendental(op),
    }
}

fn transcendental(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Exp => "exp",
        UnaryOp::Exp2 => "exp2",
        UnaryOp::Log => "log",
        UnaryOp::Log2 => "log2",
        UnaryOp::Sin => "sin",
        UnaryOp::Cos => "cos",
        UnaryOp::Tan => "tan",
        UnaryOp::Asin => "asin",
        UnaryOp::Acos => "acos",
        UnaryOp::Atan => "atan",
        UnaryOp::Sinh => "sinh",
        UnaryOp::Cosh => "cosh",
        UnaryOp::Tanh => "tanh",
        UnaryOp::Asinh => "asinh",
        UnaryOp::Acosh => "acosh",
        _ => "atanh",
    }
}
