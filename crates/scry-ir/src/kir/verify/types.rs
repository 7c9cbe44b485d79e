//! Checks an instruction: the types of its operands and of its result.

use super::error::{Fault, fault, same};
use super::{Check, VerifyErrorKind, memory, var_type};
use crate::kir::{
    BinaryOp, Builtin, Const, Definition, Inst, Kir, MatrixType, Reduction, ShuffleSource,
    SubgroupOp, Type, UnaryOp, Value,
};

/// Checks the instruction of a definition whose operands are defined.
pub(super) fn check(kir: &Kir, definition: &Definition) -> Check {
    let Definition { ty, inst } = definition;
    let of = |value: &Value| kir.ty(*value);
    match inst {
        Inst::Const(constant) => check_const(*constant, *ty),
        Inst::Builtin(builtin) => check_builtin(*builtin, *ty),
        Inst::Unary(op, a) => check_unary(*op, of(a), *ty),
        Inst::Binary(op, a, b) => check_binary(*op, [of(a), of(b)], *ty),
        Inst::Fma(a, b, c) => {
            let all = [of(a), of(b), of(c), *ty];
            require(ty.is_float() && all.iter().all(|one| one == ty), "fma", &all)
        }
        Inst::Select(condition, a, b) => {
            same(of(condition), Type::Bool, "the condition")?;
            let fits = of(a) == *ty && of(b) == *ty && !is_matrix(*ty);
            require(fits, "select", &[of(a), of(b), *ty])
        }
        Inst::Convert(a) => {
            let scalars = !is_matrix(of(a)) && !is_matrix(*ty);
            require(scalars && of(a) != *ty, "convert", &[of(a), *ty])
        }
        Inst::Bitcast(a) => {
            let scalars = !is_matrix(of(a)) && !is_matrix(*ty);
            let fits = scalars && of(a) != *ty && of(a).bits() == ty.bits();
            require(fits, "bitcast", &[of(a), *ty])
        }
        Inst::ArrayLength { binding, offset: _, stride } => {
            memory::array(kir, *binding, *stride)?;
            gives(Type::U32, *ty)
        }
        Inst::Get(var) => gives(var_type(kir, *var)?, *ty),
        Inst::Load { place, count } => memory::load(kir, place, *count, *ty),
        Inst::WorkgroupUniformLoad { place, count } => {
            memory::uniform_load(kir, place, *count, *ty)
        }
        Inst::Extra(..) => Ok(()),
        Inst::Atomic { .. } => memory::atomic(kir, inst, *ty),
        Inst::Subgroup(op) => check_subgroup(kir, op, *ty),
        Inst::MatrixFill(element) => {
            let fits = ty.matrix().is_some_and(|matrix| matrix.element.ty() == of(element));
            require(fits, "matrix_fill", &[of(element), *ty])
        }
        Inst::MatrixLoad(place) => memory::matrix_load(kir, place, *ty),
        Inst::MultiplyAdd(a, b, c) => {
            let types = [of(a), of(b), of(c)];
            let exists = match types.map(Type::matrix) {
                [Some(a), Some(b), Some(c)] => MatrixType::multiplies(a, b, c),
                _ => false,
            };
            let [a, b, c] = types;
            require(exists && c == *ty, "multiply_add", &[a, b, c, *ty])
        }
        Inst::MultiplyFragments { a, b, c } => {
            let (factor, sum) = (kir.ty(a[0]), kir.ty(c[0]));
            a.iter().chain(b).try_for_each(|v| same(kir.ty(*v), factor, "a factor"))?;
            c.iter().try_for_each(|v| same(kir.ty(*v), sum, "what is added"))?;
            require(
                multiplies(factor, sum) && sum == *ty,
                "multiply_fragments",
                &[factor, sum, *ty],
            )
        }
    }
}

fn wrong(message: String) -> Fault {
    fault(VerifyErrorKind::Type, message)
}

/// Fails unless a condition on types holds; the last type is that of the result.
fn require(holds: bool, op: &str, types: &[Type]) -> Check {
    if holds {
        return Ok(());
    }
    let [operands @ .., result] = types else { return Ok(()) };
    let operands: Vec<_> = operands.iter().map(|ty| ty.name()).collect();
    Err(wrong(format!("no `{op}` takes {} and gives {result}", operands.join(", "))))
}

/// Requires that an instruction's result type is the defined one.
fn gives(inst: Type, definition: Type) -> Check {
    if inst == definition {
        return Ok(());
    }
    Err(wrong(format!("the result is {inst}, not {definition}")))
}

fn check_const(constant: Const, ty: Type) -> Check {
    gives(constant.ty, ty)?;
    if is_matrix(ty) {
        return Err(wrong(format!("there are no constants of {ty}")));
    }
    match constant.bits >> (ty.bits() - 1) {
        0 | 1 => Ok(()),
        _ => Err(wrong(format!("{:#x} has more bits than a {ty}", constant.bits))),
    }
}

fn check_builtin(builtin: Builtin, ty: Type) -> Check {
    gives(Type::U32, ty)?;
    match builtin {
        Builtin::LocalId(axis) | Builtin::GroupId(axis) | Builtin::GroupCount(axis) if axis > 2 => {
            Err(wrong(format!("there is no axis {axis}")))
        }
        _ => Ok(()),
    }
}

fn is_number(ty: Type) -> bool {
    ty != Type::Bool && !is_matrix(ty)
}

fn is_matrix(ty: Type) -> bool {
    ty.matrix().is_some()
}

fn check_unary(op: UnaryOp, a: Type, result: Type) -> Check {
    let takes = match op {
        UnaryOp::Neg => a != Type::Bool,
        UnaryOp::Not => a == Type::Bool || a.is_integer(),
        UnaryOp::Abs | UnaryOp::Sign => a.is_float() || a.is_signed(),
        UnaryOp::QuantizeF16 => a == Type::F32,
        UnaryOp::CountOnes
        | UnaryOp::LeadingZeros
        | UnaryOp::TrailingZeros
        | UnaryOp::ReverseBits
        | UnaryOp::FirstLeadingBit
        | UnaryOp::FirstTrailingBit => a.is_integer(),
        _ => a.is_float(),
    };
    require(takes && op.result(a) == result, &format!("{op:?}"), &[a, result])
}

fn check_binary(op: BinaryOp, [a, b]: [Type; 2], result: Type) -> Check {
    let takes = match op {
        BinaryOp::Shl | BinaryOp::Shr => a.is_integer() && b == Type::U32,
        BinaryOp::Ldexp => a.is_float() && b == Type::I32,
        _ => a == b && takes_two(op, a),
    };
    require(takes && op.result(a) == result, &format!("{op:?}"), &[a, b, result])
}

/// Returns whether a binary operation supports a type.
fn takes_two(op: BinaryOp, ty: Type) -> bool {
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => ty == Type::Bool || ty.is_integer(),
        BinaryOp::Eq | BinaryOp::Ne => !is_matrix(ty),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => ty != Type::Bool,
        BinaryOp::Pow | BinaryOp::Atan2 => ty.is_float(),
        BinaryOp::Dot4I8 | BinaryOp::Dot4U8 => ty == Type::U32,
        _ => is_number(ty),
    }
}

fn check_subgroup(kir: &Kir, op: &SubgroupOp, result: Type) -> Check {
    match op {
        SubgroupOp::Ballot { value, word } => {
            same(kir.ty(*value), Type::Bool, "a ballot")?;
            gives(Type::U32, result)?;
            if *word > 3 { Err(wrong(format!("there is no word {word}"))) } else { Ok(()) }
        }
        SubgroupOp::Reduce { op, value, .. } => {
            let ty = kir.ty(*value);
            require(reduces(*op, ty) && ty == result, &format!("{op:?}"), &[ty, result])
        }
        SubgroupOp::Shuffle { source, value } => {
            gives(kir.ty(*value), result)?;
            require(!is_matrix(result), "shuffle", &[result, result])?;
            check_source(kir, *source)
        }
    }
}

fn reduces(op: Reduction, ty: Type) -> bool {
    match op {
        Reduction::Add | Reduction::Mul | Reduction::Min | Reduction::Max => is_number(ty),
        Reduction::And | Reduction::Or | Reduction::Xor => ty == Type::Bool || ty.is_integer(),
    }
}

/// Returns whether a matrix multiply-add supports these types.
fn multiplies(factor: Type, sum: Type) -> bool {
    matches!((factor, sum), (Type::F16, Type::F16 | Type::F32) | (Type::F32, Type::F32))
}

fn check_source(kir: &Kir, source: ShuffleSource) -> Check {
    match source {
        ShuffleSource::First | ShuffleSource::QuadXor(1..=3) => Ok(()),
        ShuffleSource::QuadXor(by) => Err(wrong(format!("no lane of a group of four is at {by}"))),
        ShuffleSource::Lane(by)
        | ShuffleSource::Xor(by)
        | ShuffleSource::Up(by)
        | ShuffleSource::Down(by)
        | ShuffleSource::QuadLane(by) => same(kir.ty(by), Type::U32, "the lane"),
    }
}
