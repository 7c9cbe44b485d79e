//! Algebraic identities that hold for all operands, including NaN, negative zero and integers that
//! wrap.

use super::super::{BinaryOp, Const, Definition, Inst, Type, UnaryOp, Value};
use super::fold::{Fold, Simple};

use Simple::Same;

/// Returns a simpler equivalent of an instruction.
pub(super) fn apply(fold: &mut Fold<'_>, definition: Definition) -> Option<Simple> {
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

fn simpler(inst: Inst) -> Option<Simple> {
    Some(Simple::Inst(inst))
}

fn unary(fold: &Fold<'_>, op: UnaryOp, a: Value) -> Option<Simple> {
    match (op, *fold.kir.inst(a)) {
        (UnaryOp::Neg | UnaryOp::Not, Inst::Unary(inner, x)) if inner == op => Some(Same(x)),
        (UnaryOp::Abs, Inst::Unary(UnaryOp::Abs, _)) => Some(Same(a)),
        (UnaryOp::Abs, Inst::Unary(UnaryOp::Neg, x)) => simpler(Inst::Unary(op, x)),
        (
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc,
            Inst::Unary(inner, _),
        ) if is_rounding(inner) => Some(Same(a)),
        (UnaryOp::Not, Inst::Binary(comparison, x, y)) => {
            let opposite = opposite(comparison, fold.kir.ty(x))?;
            simpler(Inst::Binary(opposite, x, y))
        }
        _ => None,
    }
}

fn is_rounding(op: UnaryOp) -> bool {
    matches!(op, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)
}

/// Returns the negated comparison. Because of NaN, of floats only equality has one.
fn opposite(op: BinaryOp, ty: Type) -> Option<BinaryOp> {
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

/// Returns the comparison or commutative operation that is equivalent with swapped operands. The
/// minimum of zeros of different signs may be either, so floats have none for it.
fn swapped(op: BinaryOp, ty: Type) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ if commutes(op, ty) => op,
        _ => return None,
    })
}

/// Returns whether the operation is commutative.
pub(super) fn commutes(op: BinaryOp, ty: Type) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
        BinaryOp::Min | BinaryOp::Max => !ty.is_float(),
        BinaryOp::Dot4I8 | BinaryOp::Dot4U8 => true,
        _ => false,
    }
}

fn binary(fold: &mut Fold<'_>, op: BinaryOp, a: Value, b: Value) -> Option<Simple> {
    let ty = fold.kir.ty(a);
    if a == b
        && let Some(simple) = of_equals(fold, op, ty, a)
    {
        return Some(simple);
    }
    match (fold.kir.constant(a), fold.kir.constant(b)) {
        (None, Some(constant)) if ty == Type::Bool => {
            with_truth(op, a, constant.bits != 0, constant)
        }
        (None, Some(constant)) if ty.is_float() => with_float(fold, op, a, constant),
        (None, Some(constant)) => {
            with_integer(fold, op, a, constant).or_else(|| reassociated(fold, op, a, constant))
        }
        (Some(constant), None) => match swapped(op, ty) {
            Some(op) => simpler(Inst::Binary(op, b, a)),
            None => after_integer(op, constant, b),
        },
        _ => None,
    }
}

/// Simplifies `x op x`.
fn of_equals(fold: &Fold<'_>, op: BinaryOp, ty: Type, a: Value) -> Option<Simple> {
    let constant = |constant| simpler(Inst::Const(constant));
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max => Some(Same(a)),
        BinaryOp::Lt | BinaryOp::Gt => constant(Const::bool(false)),
        _ if fold.kir.ty(a).is_float() => None,
        BinaryOp::Ne => constant(Const::bool(false)),
        BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge => constant(Const::bool(true)),
        BinaryOp::Sub | BinaryOp::Xor | BinaryOp::Rem => constant(Const::zero(ty)),
        _ => None,
    }
}

/// Simplifies `x op c` of bools.
fn with_truth(op: BinaryOp, a: Value, holds: bool, constant: Const) -> Option<Simple> {
    match (op, holds) {
        (BinaryOp::And | BinaryOp::Eq, true)
        | (BinaryOp::Or | BinaryOp::Xor | BinaryOp::Ne, false) => Some(Same(a)),
        (BinaryOp::And, false) | (BinaryOp::Or, true) => simpler(Inst::Const(constant)),
        (BinaryOp::Eq, false) | (BinaryOp::Xor | BinaryOp::Ne, true) => {
            simpler(Inst::Unary(UnaryOp::Not, a))
        }
        _ => None,
    }
}

/// Simplifies `x op c` of floats.
fn with_float(fold: &mut Fold<'_>, op: BinaryOp, a: Value, c: Const) -> Option<Simple> {
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
fn with_integer(fold: &mut Fold<'_>, op: BinaryOp, a: Value, c: Const) -> Option<Simple> {
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
        _ => at_the_end(op, a, c),
    }
}

/// Simplifies `x op c` of integers, where `c` is the minimum or maximum of the type.
fn at_the_end(op: BinaryOp, a: Value, c: Const) -> Option<Simple> {
    let least = if c.ty.is_signed() { -1 << (c.ty.bits() - 1) } else { 0 };
    let (is_least, is_largest) = (c == Const::int(c.ty, least), c == Const::int(c.ty, !least));
    match op {
        BinaryOp::Max if is_least => Some(Same(a)),
        BinaryOp::Min if is_largest => Some(Same(a)),
        BinaryOp::Min if is_least => simpler(Inst::Const(c)),
        BinaryOp::Max if is_largest => simpler(Inst::Const(c)),
        BinaryOp::Lt if is_least => simpler(Inst::Const(Const::bool(false))),
        BinaryOp::Ge if is_least => simpler(Inst::Const(Const::bool(true))),
        BinaryOp::Gt if is_largest => simpler(Inst::Const(Const::bool(false))),
        BinaryOp::Le if is_largest => simpler(Inst::Const(Const::bool(true))),
        _ => None,
    }
}

/// Simplifies `c op x` of operations that do not commute.
fn after_integer(op: BinaryOp, c: Const, a: Value) -> Option<Simple> {
    let absorbs = matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Div | BinaryOp::Rem);
    if absorbs && c.bits == 0 && c.ty.is_integer() {
        return simpler(Inst::Const(c));
    }
    (op == BinaryOp::Sub && c.bits == 0 && c.ty.is_integer())
        .then_some(Simple::Inst(Inst::Unary(UnaryOp::Neg, a)))
}

/// Simplifies `(x op c) op d` of integers to one operation.
fn reassociated(fold: &mut Fold<'_>, op: BinaryOp, a: Value, d: Const) -> Option<Simple> {
    let Inst::Binary(inner, x, c) = *fold.kir.inst(a) else { return None };
    let c = fold.kir.constant(c)?;
    let (op, both) = match (inner, op) {
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
    let merged = super::const_eval::binary(both, c, d)?;
    let merged = fold.constant(merged);
    simpler(Inst::Binary(op, x, merged))
}

/// Multiplying by one is exact, so only the sum is rounded.
fn fma(fold: &Fold<'_>, a: Value, b: Value, c: Value) -> Option<Simple> {
    let is_one = |value| fold.kir.constant(value).is_some_and(|x| x == one(x.ty));
    if is_one(a) {
        return simpler(Inst::Binary(BinaryOp::Add, b, c));
    }
    is_one(b).then_some(Simple::Inst(Inst::Binary(BinaryOp::Add, a, c)))
}

fn select(fold: &Fold<'_>, condition: Value, a: Value, b: Value) -> Option<Simple> {
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
    let truth = |value| fold.kir.constant(value).map(|constant| constant.bits != 0);
    match (truth(a), truth(b)) {
        (Some(true), Some(false)) => Some(Same(condition)),
        (Some(false), Some(true)) => simpler(Inst::Unary(UnaryOp::Not, condition)),
        (Some(true), None) => simpler(Inst::Binary(BinaryOp::Or, condition, b)),
        (None, Some(false)) => simpler(Inst::Binary(BinaryOp::And, condition, a)),
        _ => None,
    }
}

fn convert(fold: &Fold<'_>, ty: Type, a: Value) -> Option<Simple> {
    let from = fold.kir.ty(a);
    if from == ty {
        return Some(Same(a));
    }
    let same_bits = from.is_integer() && ty.is_integer() && from.bits() == ty.bits();
    same_bits.then_some(Simple::Inst(Inst::Bitcast(a)))
}

fn bitcast(fold: &Fold<'_>, ty: Type, a: Value) -> Option<Simple> {
    if fold.kir.ty(a) == ty {
        return Some(Same(a));
    }
    match *fold.kir.inst(a) {
        Inst::Bitcast(x) => simpler(Inst::Bitcast(x)),
        _ => None,
    }
}
