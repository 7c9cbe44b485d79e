//! Checks an instruction: the types of its operands and of its result.

use super::error::{Violation, require_same_type, violation};
use super::{Check, VerifyErrorKind, memory, var_type};
use crate::kir::{
    BinaryOp, Builtin, Const, Definition, Inst, Kir, MatrixType, Reduction, ShuffleSource,
    SubgroupOp, Type, UnaryOp, Value,
};

/// Checks the instruction of a definition whose operands are defined.
pub(super) fn check(kir: &Kir, definition: &Definition) -> Check {
    let Definition { ty, inst } = definition;
    let type_of = |value: &Value| kir.ty(*value);
    match inst {
        Inst::Const(constant) => check_const(*constant, *ty),
        Inst::Builtin(builtin) => check_builtin(*builtin, *ty),
        Inst::Unary(op, a) => check_unary(*op, type_of(a), *ty),
        Inst::Binary(op, a, b) => check_binary(*op, [type_of(a), type_of(b)], *ty),
        Inst::Fma(a, b, c) => {
            let all = [type_of(a), type_of(b), type_of(c)];
            require(ty.is_float() && all.iter().all(|one| one == ty), "fma", &all, *ty)
        }
        Inst::Select(condition, a, b) => {
            require_same_type(type_of(condition), Type::Bool, "the condition")?;
            let is_valid = type_of(a) == *ty && type_of(b) == *ty && !is_matrix(*ty);
            require(is_valid, "select", &[type_of(a), type_of(b)], *ty)
        }
        Inst::Convert(a) => {
            let are_scalars = !is_matrix(type_of(a)) && !is_matrix(*ty);
            require(are_scalars && type_of(a) != *ty, "convert", &[type_of(a)], *ty)
        }
        Inst::Bitcast(a) => {
            let are_scalars = !is_matrix(type_of(a)) && !is_matrix(*ty);
            let is_valid = are_scalars && type_of(a) != *ty && type_of(a).bits() == ty.bits();
            require(is_valid, "bitcast", &[type_of(a)], *ty)
        }
        Inst::ArrayLength { binding, offset: _, stride } => {
            memory::array_length(kir, *binding, *stride)?;
            require_result(Type::U32, *ty)
        }
        Inst::Get(var) => require_result(var_type(kir, *var)?, *ty),
        Inst::Load { place, count } => memory::load(kir, place, *count, *ty),
        Inst::WorkgroupUniformLoad { place, count } => {
            memory::uniform_load(kir, place, *count, *ty)
        }
        Inst::Extra(..) => Ok(()),
        Inst::Atomic { .. } => memory::atomic(kir, inst, *ty),
        Inst::Subgroup(op) => check_subgroup(kir, op, *ty),
        Inst::MatrixFill(element) => {
            let is_valid =
                ty.matrix().is_some_and(|matrix| matrix.element.ty() == type_of(element));
            require(is_valid, "matrix_fill", &[type_of(element)], *ty)
        }
        Inst::MatrixLoad(place) => memory::matrix_load(kir, place, *ty),
        Inst::LoadFragment(from) => memory::load_fragment(kir, from, *ty),
        Inst::MultiplyAdd(a, b, c) => {
            let types = [type_of(a), type_of(b), type_of(c)];
            let is_supported = match types.map(Type::matrix) {
                [Some(a), Some(b), Some(c)] => MatrixType::multiplies(a, b, c),
                _ => false,
            };
            let [a, b, c] = types;
            require(is_supported && c == *ty, "multiply_add", &[a, b, c], *ty)
        }
        Inst::MultiplyFragments { a, b, c } => {
            let (operand, accumulator) = (kir.ty(a[0]), kir.ty(c[0]));
            a.iter()
                .chain(b)
                .try_for_each(|v| require_same_type(kir.ty(*v), operand, "an operand"))?;
            c.iter()
                .try_for_each(|v| require_same_type(kir.ty(*v), accumulator, "the accumulator"))?;
            require(
                is_product_supported(operand, accumulator) && accumulator == *ty,
                "multiply_fragments",
                &[operand, accumulator],
                *ty,
            )
        }
    }
}

fn type_violation(message: String) -> Violation {
    violation(VerifyErrorKind::Type, message)
}

/// Fails unless `is_valid`, with the types of the operands and of the result in the message.
fn require(is_valid: bool, op: &str, operands: &[Type], result: Type) -> Check {
    if is_valid {
        return Ok(());
    }
    let operands: Vec<_> = operands.iter().map(|ty| ty.name()).collect();
    let operands = operands.join(", ");
    Err(type_violation(format!("`{op}` is not defined for ({operands}) -> {result}")))
}

/// Requires that the type of an instruction's result is that of its definition.
fn require_result(inst: Type, definition: Type) -> Check {
    if inst == definition {
        return Ok(());
    }
    Err(type_violation(format!(
        "the instruction results in {inst}, but the value is declared {definition}"
    )))
}

fn check_const(constant: Const, ty: Type) -> Check {
    require_result(constant.ty, ty)?;
    if is_matrix(ty) {
        return Err(type_violation(format!("a constant cannot be a {ty}")));
    }
    match constant.bits >> (ty.bits() - 1) {
        0 | 1 => Ok(()),
        _ => Err(type_violation(format!("{:#x} has more bits than a {ty}", constant.bits))),
    }
}

fn check_builtin(builtin: Builtin, ty: Type) -> Check {
    require_result(Type::U32, ty)?;
    match builtin {
        Builtin::LocalId(axis) | Builtin::GroupId(axis) | Builtin::GroupCount(axis) if axis > 2 => {
            Err(type_violation(format!("there is no axis {axis}")))
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
    let is_supported = match op {
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
    require(is_supported && op.result(a) == result, &format!("{op:?}"), &[a], result)
}

fn check_binary(op: BinaryOp, [a, b]: [Type; 2], result: Type) -> Check {
    let is_supported = match op {
        BinaryOp::Shl | BinaryOp::Shr => a.is_integer() && b == Type::U32,
        BinaryOp::Ldexp => a.is_float() && b == Type::I32,
        _ => a == b && supports_type(op, a),
    };
    require(is_supported && op.result(a) == result, &format!("{op:?}"), &[a, b], result)
}

/// Returns whether a binary operation supports operands of a type.
fn supports_type(op: BinaryOp, ty: Type) -> bool {
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
            require_same_type(kir.ty(*value), Type::Bool, "the operand of a ballot")?;
            require_result(Type::U32, result)?;
            if *word > 3 { Err(type_violation(format!("there is no word {word}"))) } else { Ok(()) }
        }
        SubgroupOp::Reduce { op, value, .. } => {
            let ty = kir.ty(*value);
            require(supports_reduction(*op, ty) && ty == result, &format!("{op:?}"), &[ty], result)
        }
        SubgroupOp::Shuffle { source, value } => {
            require_result(kir.ty(*value), result)?;
            require(!is_matrix(result), "shuffle", &[result], result)?;
            check_source(kir, *source)
        }
    }
}

fn supports_reduction(op: Reduction, ty: Type) -> bool {
    match op {
        Reduction::Add | Reduction::Mul | Reduction::Min | Reduction::Max => is_number(ty),
        Reduction::And | Reduction::Or | Reduction::Xor => ty == Type::Bool || ty.is_integer(),
    }
}

/// Returns whether a product of matrix fragments supports these types.
fn is_product_supported(operand: Type, accumulator: Type) -> bool {
    matches!((operand, accumulator), (Type::F16, Type::F16 | Type::F32) | (Type::F32, Type::F32))
}

fn check_source(kir: &Kir, source: ShuffleSource) -> Check {
    match source {
        ShuffleSource::First | ShuffleSource::QuadXor(1..=3) => Ok(()),
        ShuffleSource::QuadXor(by) => {
            Err(type_violation(format!("`quad_xor` must be 1, 2 or 3, but is {by}")))
        }
        ShuffleSource::Lane(by)
        | ShuffleSource::Xor(by)
        | ShuffleSource::Up(by)
        | ShuffleSource::Down(by)
        | ShuffleSource::QuadLane(by) => {
            require_same_type(kir.ty(by), Type::U32, "the operand of the shuffle")
        }
    }
}
