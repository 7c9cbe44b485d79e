//! Algebraic identities that hold for all operands, including NaN, negative zero and integers that
//! wrap.

use super::super::{BinaryOp, Const, Definition, Inst, Type, UnaryOp, Value};
use super::fold::{Fold, Replacement};

use Replacement::Same;

/// Returns a simpler equivalent of an instruction.
pub(super) fn apply(fold: &mut Fold<'_>, definition: Definition) -> Option<Replacement> {
    let ty = definition.ty;
    match definition.inst {
        Inst::Unary(op, a) => unary(fold, op, a),
        Inst::Binary(op, a, b) => binary(fold, op, a, b),
        Inst::Fma(a, b, c) => fma(fold, a, b, c),
        Inst::Select(condition, a, b) => select(fold, condition, a, b),
        Inst::Convert(a) => convert(fold, ty, a),
        Inst::Bitcast(a) => bitcast(fold, ty, a),
        _ => None,
    }
}

/// Returns the replacement by an instruction.
fn simpler(inst: Inst) -> Option<Replacement> {
    Some(Replacement::Inst(inst))
}

fn unary(fold: &Fold<'_>, op: UnaryOp, a: Value) -> Option<Replacement> {
    match (op, *fold.kir.inst(a)) {
        (UnaryOp::Neg | UnaryOp::Not, Inst::Unary(inner, x)) if inner == op => Some(Same(x)),
        (UnaryOp::Abs, Inst::Unary(UnaryOp::Abs, _)) => Some(Same(a)),
        (UnaryOp::Abs, Inst::Unary(UnaryOp::Neg, x)) => simpler(Inst::Unary(op, x)),
        (
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc,
            Inst::Unary(inner, _),
        ) if is_rounding(inner) => Some(Same(a)),
        (UnaryOp::Not, Inst::Binary(comparison, x, y)) => {
            let negated = negate_comparison(comparison, fold.kir.ty(x))?;
            simpler(Inst::Binary(negated, x, y))
        }
        _ => None,
    }
}

fn is_rounding(op: UnaryOp) -> bool {
    matches!(op, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)
}

/// Returns the negated comparison. Of the comparisons of floats only `Eq` and `Ne` have one,
/// because of NaN.
fn negate_comparison(op: BinaryOp, ty: Type) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        _ if ty.is_float() => return None,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

/// Returns the operation that is equivalent with swapped operands, if there is one.
fn swap_operands(op: BinaryOp, ty: Type) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ if commutes(op, ty) => op,
        _ => return None,
    })
}

/// Returns whether the operation is commutative. `Min` and `Max` of floats are not: of zeros of
/// different signs, either may be the result.
pub(super) fn commutes(op: BinaryOp, ty: Type) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
        BinaryOp::Min | BinaryOp::Max => !ty.is_float(),
        BinaryOp::Dot4I8 | BinaryOp::Dot4U8 => true,
        _ => false,
    }
}

fn binary(fold: &mut Fold<'_>, op: BinaryOp, a: Value, b: Value) -> Option<Replacement> {
    let ty = fold.kir.ty(a);
    if a == b
        && let Some(replacement) = simplify_equal_operands(op, ty, a)
    {
        return Some(replacement);
    }
    match (fold.kir.constant(a), fold.kir.constant(b)) {
        (None, Some(constant)) if ty == Type::Bool => simplify_bool(op, a, constant),
        (None, Some(constant)) if ty.is_float() => simplify_float(fold, op, a, constant),
        (None, Some(constant)) => {
            simplify_integer(fold, op, a, constant).or_else(|| reassociate(fold, op, a, constant))
        }
        (Some(constant), None) => match swap_operands(op, ty) {
            Some(op) => simpler(Inst::Binary(op, b, a)),
            None => simplify_constant_first(op, constant, b),
        },
        _ => None,
    }
}

/// Simplifies `x op x`.
fn simplify_equal_operands(op: BinaryOp, ty: Type, a: Value) -> Option<Replacement> {
    let constant = |constant| simpler(Inst::Const(constant));
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max => Some(Same(a)),
        BinaryOp::Lt | BinaryOp::Gt => constant(Const::bool(false)),
        // NaN and infinity minus themselves are NaN; and no constant is a matrix.
        _ if !ty.is_integer() && ty != Type::Bool => None,
        BinaryOp::Ne => constant(Const::bool(false)),
        BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge => constant(Const::bool(true)),
        BinaryOp::Sub | BinaryOp::Xor | BinaryOp::Rem => constant(Const::zero(ty)),
        _ => None,
    }
}

/// Simplifies `x op c` of bools.
fn simplify_bool(op: BinaryOp, a: Value, c: Const) -> Option<Replacement> {
    match (op, c.bits != 0) {
        (BinaryOp::And | BinaryOp::Eq, true)
        | (BinaryOp::Or | BinaryOp::Xor | BinaryOp::Ne, false) => Some(Same(a)),
        (BinaryOp::And, false) | (BinaryOp::Or, true) => simpler(Inst::Const(c)),
        (BinaryOp::Eq, false) | (BinaryOp::Xor | BinaryOp::Ne, true) => {
            simpler(Inst::Unary(UnaryOp::Not, a))
        }
        _ => None,
    }
}

/// Simplifies `x op c` of floats.
fn simplify_float(fold: &mut Fold<'_>, op: BinaryOp, a: Value, c: Const) -> Option<Replacement> {
    let negative_zero = Const { ty: c.ty, bits: 1 << (c.ty.bits() - 1) };
    match op {
        BinaryOp::Mul | BinaryOp::Div if c == one(c.ty) => Some(Same(a)),
        BinaryOp::Add if c == negative_zero => Some(Same(a)),
        BinaryOp::Sub if c.bits == 0 => Some(Same(a)),
        BinaryOp::Div => {
            let reciprocal = reciprocal(c)?;
            let factor = fold.constant(reciprocal);
            simpler(Inst::Binary(BinaryOp::Mul, a, factor))
        }
        _ => None,
    }
}

fn one(ty: Type) -> Const {
    match ty {
        Type::F16 => Const { ty, bits: 0x3c00 },
        Type::F32 => Const::f32(1.0),
        Type::F64 => Const::f64(1.0),
        _ => Const::int(ty, 1),
    }
}

/// Returns the reciprocal of a power of two, if both are normal numbers: then multiplying by it and
/// dividing give the same result.
fn reciprocal(c: Const) -> Option<Const> {
    let fraction = match c.ty {
        Type::F32 => c.bits & 0x7f_ffff,
        Type::F64 => c.bits & 0xf_ffff_ffff_ffff,
        _ => return None,
    };
    let inverse = match c.ty {
        Type::F32 => Const::f32(1.0 / f32::from_bits(c.bits as u32)),
        _ => Const::f64(1.0 / f64::from_bits(c.bits)),
    };
    (fraction == 0 && is_normal(c) && is_normal(inverse)).then_some(inverse)
}

fn is_normal(c: Const) -> bool {
    match c.ty {
        Type::F32 => f32::from_bits(c.bits as u32).is_normal(),
        _ => f64::from_bits(c.bits).is_normal(),
    }
}

/// Simplifies `x op c` of integers.
fn simplify_integer(fold: &mut Fold<'_>, op: BinaryOp, a: Value, c: Const) -> Option<Replacement> {
    let ty = fold.kir.ty(a);
    let ones = Const::int(ty, -1);
    let constant = |constant| simpler(Inst::Const(constant));
    match op {
        BinaryOp::Shl | BinaryOp::Shr if c.bits.is_multiple_of(ty.bits().into()) => Some(Same(a)),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor if c.bits == 0 => {
            Some(Same(a))
        }
        BinaryOp::And | BinaryOp::Mul if c.bits == 0 => constant(c),
        BinaryOp::Mul | BinaryOp::Div if c == one(ty) => Some(Same(a)),
        // By definition, `x / 0 = x`.
        BinaryOp::Div if c.bits == 0 => Some(Same(a)),
        // By definition, `x % 0 = 0`.
        BinaryOp::Rem if c.bits <= 1 => constant(Const::zero(ty)),
        BinaryOp::And if c == ones => Some(Same(a)),
        BinaryOp::Or if c == ones => constant(ones),
        BinaryOp::Xor if c == ones => simpler(Inst::Unary(UnaryOp::Not, a)),
        BinaryOp::Div if !ty.is_signed() && c.bits.is_power_of_two() => {
            let by = fold.constant(Const::u32(c.bits.trailing_zeros()));
            simpler(Inst::Binary(BinaryOp::Shr, a, by))
        }
        BinaryOp::Rem if !ty.is_signed() && c.bits.is_power_of_two() => {
            let mask = fold.constant(Const { ty, bits: c.bits - 1 });
            simpler(Inst::Binary(BinaryOp::And, a, mask))
        }
        _ => simplify_extreme(op, a, c),
    }
}

/// Simplifies `x op c` of integers, where `c` is the minimum or maximum of the type.
fn simplify_extreme(op: BinaryOp, a: Value, c: Const) -> Option<Replacement> {
    let min = if c.ty.is_signed() { -1 << (c.ty.bits() - 1) } else { 0 };
    let (is_min, is_max) = (c == Const::int(c.ty, min), c == Const::int(c.ty, !min));
    match op {
        BinaryOp::Max if is_min => Some(Same(a)),
        BinaryOp::Min if is_max => Some(Same(a)),
        BinaryOp::Min if is_min => simpler(Inst::Const(c)),
        BinaryOp::Max if is_max => simpler(Inst::Const(c)),
        BinaryOp::Lt if is_min => simpler(Inst::Const(Const::bool(false))),
        BinaryOp::Ge if is_min => simpler(Inst::Const(Const::bool(true))),
        BinaryOp::Gt if is_max => simpler(Inst::Const(Const::bool(false))),
        BinaryOp::Le if is_max => simpler(Inst::Const(Const::bool(true))),
        _ => None,
    }
}

/// Simplifies `c op x` of operations that do not commute.
fn simplify_constant_first(op: BinaryOp, c: Const, a: Value) -> Option<Replacement> {
    let zero_absorbs = matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Div | BinaryOp::Rem);
    if zero_absorbs && c.bits == 0 && c.ty.is_integer() {
        return simpler(Inst::Const(c));
    }
    (op == BinaryOp::Sub && c.bits == 0 && c.ty.is_integer())
        .then_some(Replacement::Inst(Inst::Unary(UnaryOp::Neg, a)))
}

/// Simplifies `(x op c) op d` of integers to one operation.
fn reassociate(fold: &mut Fold<'_>, op: BinaryOp, a: Value, d: Const) -> Option<Replacement> {
    let Inst::Binary(inner, x, c) = *fold.kir.inst(a) else { return None };
    let c = fold.kir.constant(c)?;
    // The operation on `x`, and the one that merges the constants.
    let (op, merge_op) = match (inner, op) {
        (BinaryOp::Add, BinaryOp::Add) => (op, BinaryOp::Add),
        (BinaryOp::Sub, BinaryOp::Sub) => (op, BinaryOp::Add),
        (BinaryOp::Add, BinaryOp::Sub) => (inner, BinaryOp::Sub),
        (BinaryOp::Sub, BinaryOp::Add) => (inner, BinaryOp::Sub),
        (BinaryOp::Mul, BinaryOp::Mul)
        | (BinaryOp::And, BinaryOp::And)
        | (BinaryOp::Or, BinaryOp::Or)
        | (BinaryOp::Xor, BinaryOp::Xor)
        | (BinaryOp::Min, BinaryOp::Min)
        | (BinaryOp::Max, BinaryOp::Max) => (op, op),
        _ => return None,
    };
    let merged = super::const_eval::binary(merge_op, c, d)?;
    let merged = fold.constant(merged);
    simpler(Inst::Binary(op, x, merged))
}

/// Simplifies a multiply-add with a factor of one: that product is exact, so only the sum is
/// rounded.
fn fma(fold: &Fold<'_>, a: Value, b: Value, c: Value) -> Option<Replacement> {
    let is_one = |value| fold.kir.constant(value).is_some_and(|x| x == one(x.ty));
    if is_one(a) {
        return simpler(Inst::Binary(BinaryOp::Add, b, c));
    }
    is_one(b).then_some(Replacement::Inst(Inst::Binary(BinaryOp::Add, a, c)))
}

fn select(fold: &Fold<'_>, condition: Value, a: Value, b: Value) -> Option<Replacement> {
    if a == b {
        return Some(Same(a));
    }
    if let Some(constant) = fold.kir.constant(condition) {
        return Some(Same(if constant.bits == 0 { b } else { a }));
    }
    if let Inst::Unary(UnaryOp::Not, inverse) = *fold.kir.inst(condition) {
        return simpler(Inst::Select(inverse, b, a));
    }
    if fold.kir.ty(a) != Type::Bool {
        return None;
    }
    let bool_constant = |value| fold.kir.constant(value).map(|constant| constant.bits != 0);
    match (bool_constant(a), bool_constant(b)) {
        (Some(true), Some(false)) => Some(Same(condition)),
        (Some(false), Some(true)) => simpler(Inst::Unary(UnaryOp::Not, condition)),
        (Some(true), None) => simpler(Inst::Binary(BinaryOp::Or, condition, b)),
        (None, Some(false)) => simpler(Inst::Binary(BinaryOp::And, condition, a)),
        _ => None,
    }
}

fn convert(fold: &Fold<'_>, ty: Type, a: Value) -> Option<Replacement> {
    let from = fold.kir.ty(a);
    if from == ty {
        return Some(Same(a));
    }
    let same_bits = from.is_integer() && ty.is_integer() && from.bits() == ty.bits();
    same_bits.then_some(Replacement::Inst(Inst::Bitcast(a)))
}

fn bitcast(fold: &Fold<'_>, ty: Type, a: Value) -> Option<Replacement> {
    if fold.kir.ty(a) == ty {
        return Some(Same(a));
    }
    match *fold.kir.inst(a) {
        Inst::Bitcast(x) => simpler(Inst::Bitcast(x)),
        _ => None,
    }
}
