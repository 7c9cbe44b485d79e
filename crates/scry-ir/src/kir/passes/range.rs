//! Integer intervals, and interval arithmetic.
//!
//! An interval contains all values that an expression can have. If an operation may wrap, its
//! result may be any value of its type.

use super::super::{
    BinaryOp, Builtin, Const, Inst, Kir, ShuffleSource, SubgroupOp, Type, UnaryOp, Value,
};

/// The integers from `lo` to `hi`, both included; empty if `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kir) struct Range {
    pub lo: i64,
    pub hi: i64,
}

impl Range {
    /// The interval of values whose types are not tracked (see [`is_tracked`]).
    const ANY: Self = Self::new(i64::MIN, i64::MAX);

    pub const fn new(lo: i64, hi: i64) -> Self {
        Self { lo, hi }
    }

    /// All values of a type.
    pub fn full(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::new(0, 1),
            Type::I16 => Self::new(i16::MIN.into(), i16::MAX.into()),
            Type::U16 => Self::new(0, u16::MAX.into()),
            Type::I32 => Self::new(i32::MIN.into(), i32::MAX.into()),
            Type::U32 => Self::new(0, u32::MAX.into()),
            _ => Self::ANY,
        }
    }

    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    /// Returns the value, if there is only one.
    pub fn point(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Returns the convex hull of both (join).
    pub fn join(self, other: Self) -> Self {
        Self::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    /// Returns the intersection (meet).
    pub fn meet(self, other: Self) -> Self {
        Self::new(self.lo.max(other.lo), self.hi.min(other.hi))
    }

    pub fn is_within(self, other: Self) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    fn is_non_negative(self) -> bool {
        self.lo >= 0
    }

    /// Returns the interval, or all values of the type if it does not fit: then the operation may
    /// wrap.
    #[inline(never)]
    fn or_wrapped(self, ty: Type) -> Self {
        if self.is_within(Self::full(ty)) { self } else { Self::full(ty) }
    }

    /// Returns the convex hull of a function's values at the four corners of two intervals. It
    /// contains all values of a function that is monotonic in each argument.
    fn hull_of_corners(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        let ends = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo)];
        let last = f(self.hi, other.hi);
        ends.iter()
            .map(|(a, b)| f(*a, *b))
            .fold(Self::new(last, last), |range, end| range.join(Self::new(end, end)))
    }
}

/// Returns whether intervals of a type are tracked: of `Bool` and integers of at most 32 bits.
pub(in crate::kir) fn is_tracked(ty: Type) -> bool {
    ty == Type::Bool || (ty.is_integer() && ty.bits() <= 32)
}

/// Returns the interval of an instruction's result, from those of its operands.
pub(in crate::kir) fn of(
    kir: &Kir,
    ty: Type,
    inst: &Inst,
    get: &mut dyn FnMut(Value) -> Range,
) -> Range {
    if !is_tracked(ty) {
        return Range::ANY;
    }
    match *inst {
        Inst::Const(constant) => constant_range(constant),
        Inst::Builtin(builtin) => builtin_range(kir, builtin),
        Inst::Unary(op, a) if is_tracked(kir.ty(a)) => unary(op, ty, get(a)),
        Inst::Binary(op, a, b) if is_tracked(kir.ty(a)) => binary(op, ty, get(a), get(b)),
        Inst::Select(_, a, b) => get(a).join(get(b)),
        Inst::Convert(a) | Inst::Bitcast(a) if kir.ty(a).is_integer() && ty != Type::Bool => {
            get(a).or_wrapped(ty)
        }
        Inst::Convert(a) if kir.ty(a) == Type::Bool => get(a),
        // The first active lane executes the same statement, so its value is in the operand's
        // interval too.
        Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value }) => get(value),
        // A buffer has at least one element.
        Inst::ArrayLength { .. } => Range::new(1, u32::MAX.into()),
        _ => Range::full(ty),
    }
}

fn constant_range(constant: Const) -> Range {
    Range::new(constant.as_i64(), constant.as_i64())
}

fn builtin_range(kir: &Kir, builtin: Builtin) -> Range {
    let size = kir.workgroup_size.map(i64::from);
    let invocations = size.iter().fold(1, |all: i64, axis| all.saturating_mul(*axis));
    let range = match builtin {
        Builtin::LocalId(axis) => Range::new(0, size[usize::from(axis)] - 1),
        Builtin::GroupCount(_) | Builtin::SubgroupSize => Range::new(1, i64::MAX),
        Builtin::SubgroupId => Range::new(0, invocations - 1),
        Builtin::SubgroupCount => Range::new(1, invocations),
        Builtin::GroupId(_) | Builtin::SubgroupLane => Range::full(Type::U32),
    };
    range.meet(Range::full(Type::U32))
}

fn unary(op: UnaryOp, ty: Type, a: Range) -> Range {
    let bits = i64::from(ty.bits());
    match op {
        // Unreachable code: the conditions that hold here contradict each other.
        _ if a.is_empty() => Range::full(ty),
        UnaryOp::Not if ty == Type::Bool => Range::new(1 - a.hi, 1 - a.lo),
        UnaryOp::Neg => Range::new(-a.hi, -a.lo).or_wrapped(ty),
        UnaryOp::Abs if a.is_non_negative() => a,
        UnaryOp::Abs => Range::new(0, a.hi.max(-a.lo)).or_wrapped(ty),
        UnaryOp::Sign => Range::new(a.lo.signum(), a.hi.signum()),
        UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => Range::new(0, bits),
        UnaryOp::FirstLeadingBit | UnaryOp::FirstTrailingBit => {
            Range::new(if a.lo > 0 { 0 } else { -1 }, bits - 1).or_wrapped(ty)
        }
        _ => Range::full(ty),
    }
}

/// Returns the interval of a comparison: a single value if it has the same result for all operands.
fn compare(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let result = |always, never| match (always, never) {
        (true, _) => Range::new(1, 1),
        (_, true) => Range::new(0, 0),
        _ => Range::new(0, 1),
    };
    let disjoint = a.meet(b).is_empty();
    let equal = a.point().is_some() && a == b;
    Some(match op {
        BinaryOp::Lt => result(a.hi < b.lo, a.lo >= b.hi),
        BinaryOp::Le => result(a.hi <= b.lo, a.lo > b.hi),
        BinaryOp::Gt => result(a.lo > b.hi, a.hi <= b.lo),
        BinaryOp::Ge => result(a.lo >= b.hi, a.hi < b.lo),
        BinaryOp::Eq => result(equal, disjoint),
        BinaryOp::Ne => result(disjoint, equal),
        _ => return None,
    })
}

fn binary(op: BinaryOp, ty: Type, a: Range, b: Range) -> Range {
    if a.is_empty() || b.is_empty() {
        return Range::full(ty);
    }
    if let Some(range) = compare(op, a, b) {
        return range;
    }
    match op {
        BinaryOp::Add => Range::new(a.lo + b.lo, a.hi + b.hi).or_wrapped(ty),
        BinaryOp::Sub => Range::new(a.lo - b.hi, a.hi - b.lo).or_wrapped(ty),
        BinaryOp::Mul => a.hull_of_corners(b, i64::saturating_mul).or_wrapped(ty),
        BinaryOp::Div => quotient(ty, a, b),
        BinaryOp::Rem => remainder(a, b),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => bitwise(op, ty, a, b),
        BinaryOp::Shl => shift_left(ty, a, b),
        BinaryOp::Shr => shift_right(ty, a, b),
        BinaryOp::Min => Range::new(a.lo.min(b.lo), a.hi.min(b.hi)),
        BinaryOp::Max => Range::new(a.lo.max(b.lo), a.hi.max(b.hi)),
        _ => Range::full(ty),
    }
}

/// Returns the interval of `a - b`, if `a >= b`.
pub(in crate::kir) fn difference(ty: Type, a: Range, b: Range) -> Range {
    if !is_tracked(ty) || a.is_empty() || b.is_empty() {
        return Range::full(ty);
    }
    Range::new((a.lo - b.hi).max(0), a.hi - b.lo).or_wrapped(ty)
}

/// Returns the interval of a quotient. By definition, `x / 0 = x`.
fn quotient(ty: Type, a: Range, b: Range) -> Range {
    if b.lo > 0 {
        a.hull_of_corners(b, |a, b| a / b)
    } else if a.is_non_negative() && b.is_non_negative() {
        Range::new(0, a.hi)
    } else {
        Range::full(ty)
    }
}

/// Returns the interval of a remainder. Its magnitude is less than that of the divisor and at most
/// that of the dividend, and it has the dividend's sign.
fn remainder(a: Range, b: Range) -> Range {
    let max = (b.lo.abs().max(b.hi.abs()) - 1).max(0);
    Range::new(a.lo.max(-max).min(0), a.hi.min(max).max(0))
}

fn bitwise(op: BinaryOp, ty: Type, a: Range, b: Range) -> Range {
    let (any, both) =
        (a.is_non_negative() || b.is_non_negative(), a.is_non_negative() && b.is_non_negative());
    match op {
        BinaryOp::And if both => Range::new(0, a.hi.min(b.hi)),
        BinaryOp::And if any => Range::new(0, if a.is_non_negative() { a.hi } else { b.hi }),
        BinaryOp::Or if both => Range::new(a.lo.max(b.lo), ones_up_to(a.hi | b.hi)),
        BinaryOp::Xor if both => Range::new(0, ones_up_to(a.hi | b.hi)),
        _ => Range::full(ty),
    }
}

/// Returns the smallest number of the form `2^n - 1` that is at least `value`.
fn ones_up_to(value: i64) -> i64 {
    if value == 0 { 0 } else { i64::MAX >> (value.leading_zeros() - 1) }
}

fn shift_left(ty: Type, a: Range, amount: Range) -> Range {
    if a.is_non_negative() && amount.hi < i64::from(ty.bits()) {
        Range::new(a.lo << amount.lo, a.hi << amount.hi).or_wrapped(ty)
    } else {
        Range::full(ty)
    }
}

fn shift_right(ty: Type, a: Range, amount: Range) -> Range {
    if amount.hi < i64::from(ty.bits()) {
        a.hull_of_corners(amount, |a, amount| a >> amount)
    } else {
        Range::new(a.lo.min(0), a.hi.max(0))
    }
}
