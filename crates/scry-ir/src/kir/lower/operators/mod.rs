//! Lowers WGSL's operators, `select` and relational functions.

mod matrix;

use naga::{BinaryOperator, RelationalFunction, UnaryOperator};

use super::componentwise::{map_binary, map_components, map_unary};
use super::shape::{Shape, Shaped};
use crate::ShaderError;
use crate::kir::{BinaryOp, Builder, Type, UnaryOp, Value};

/// Lowers a unary operator.
pub(crate) fn unary(
    b: &mut Builder,
    op: UnaryOperator,
    a: Shaped<'_>,
) -> Result<Vec<Value>, ShaderError> {
    reject_aggregate(&format!("{op:?}"), &[a])?;
    let op = match op {
        UnaryOperator::Negate => UnaryOp::Neg,
        UnaryOperator::LogicalNot | UnaryOperator::BitwiseNot => UnaryOp::Not,
    };
    Ok(map_unary(b, op, a))
}

/// Lowers a binary operator. `&&` and `||` do not short-circuit here: both operands are evaluated.
pub(crate) fn binary(
    b: &mut Builder,
    op: BinaryOperator,
    left: Shaped<'_>,
    right: Shaped<'_>,
) -> Result<Vec<Value>, ShaderError> {
    reject_aggregate(&format!("{op:?}"), &[left, right])?;
    match op {
        BinaryOperator::Multiply => Ok(multiply(b, left, right)),
        BinaryOperator::ShiftLeft => Ok(shift(b, BinaryOp::Shl, left, right)),
        BinaryOperator::ShiftRight => Ok(shift(b, BinaryOp::Shr, left, right)),
        _ => Ok(map_binary(b, instruction(op), left, right)),
    }
}

/// Returns the instruction of a component-wise operator.
fn instruction(op: BinaryOperator) -> BinaryOp {
    match op {
        BinaryOperator::Add => BinaryOp::Add,
        BinaryOperator::Subtract => BinaryOp::Sub,
        BinaryOperator::Multiply => BinaryOp::Mul,
        BinaryOperator::Divide => BinaryOp::Div,
        BinaryOperator::Modulo => BinaryOp::Rem,
        BinaryOperator::Equal => BinaryOp::Eq,
        BinaryOperator::NotEqual => BinaryOp::Ne,
        BinaryOperator::Less => BinaryOp::Lt,
        BinaryOperator::LessEqual => BinaryOp::Le,
        BinaryOperator::Greater => BinaryOp::Gt,
        BinaryOperator::GreaterEqual => BinaryOp::Ge,
        BinaryOperator::And | BinaryOperator::LogicalAnd => BinaryOp::And,
        BinaryOperator::ExclusiveOr => BinaryOp::Xor,
        BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => BinaryOp::Or,
        BinaryOperator::ShiftLeft => BinaryOp::Shl,
        BinaryOperator::ShiftRight => BinaryOp::Shr,
    }
}

fn multiply(b: &mut Builder, left: Shaped<'_>, right: Shaped<'_>) -> Vec<Value> {
    match (left.shape, right.shape) {
        (Shape::Matrix { rows, .. }, Shape::Vector { .. } | Shape::Matrix { .. }) => {
            matrix::multiply_by_columns(b, left.values, usize::from(rows), right.values)
        }
        (Shape::Vector { .. }, Shape::Matrix { .. }) => {
            matrix::multiply_row(b, left.values, right.values)
        }
        (Shape::Scalar(Type::Matrix(ty)), Shape::Scalar(scalar)) if scalar == ty.element.ty() => {
            // `Mul` of cooperative matrices is component-wise.
            let filled = b.matrix_fill(ty, right.values[0]);
            vec![b.binary(BinaryOp::Mul, left.values[0], filled)]
        }
        (Shape::Scalar(_), Shape::Scalar(Type::Matrix(_))) if left.shape != right.shape => {
            multiply(b, right, left)
        }
        _ => map_binary(b, BinaryOp::Mul, left, right),
    }
}

/// Lowers a shift. KIR shifts by the amount modulo the bit width, so the conversion of the amount
/// to `u32` does not change the result.
fn shift(b: &mut Builder, op: BinaryOp, left: Shaped<'_>, right: Shaped<'_>) -> Vec<Value> {
    map_components(b, [left, right], &|b, [left, right]| {
        let amount = b.convert(Type::U32, right);
        b.binary(op, left, amount)
    })
}

/// Lowers `select`, with one condition for all components or one for each.
pub(crate) fn select(
    b: &mut Builder,
    condition: Shaped<'_>,
    if_true: Shaped<'_>,
    if_false: Shaped<'_>,
) -> Result<Vec<Value>, ShaderError> {
    reject_aggregate("select", &[condition, if_true, if_false])?;
    Ok(map_components(b, [condition, if_true, if_false], &|b, [c, x, y]| b.select(c, x, y)))
}

/// Lowers `all`, `any`, `isnan` and `isinf`.
pub(crate) fn relational(
    b: &mut Builder,
    fun: RelationalFunction,
    a: Shaped<'_>,
) -> Result<Vec<Value>, ShaderError> {
    reject_aggregate(&format!("{fun:?}"), &[a])?;
    Ok(match fun {
        RelationalFunction::All => reduce(b, BinaryOp::And, a.values),
        RelationalFunction::Any => reduce(b, BinaryOp::Or, a.values),
        RelationalFunction::IsNan => map_unary(b, UnaryOp::IsNan, a),
        RelationalFunction::IsInf => map_unary(b, UnaryOp::IsInf, a),
    })
}

fn reduce(b: &mut Builder, op: BinaryOp, values: &[Value]) -> Vec<Value> {
    values.iter().copied().reduce(|x, y| b.binary(op, x, y)).into_iter().collect()
}

/// Returns an internal error if an operand is a structure or array: the validator has rejected
/// those already.
fn reject_aggregate(what: &str, args: &[Shaped<'_>]) -> Result<(), ShaderError> {
    if args.iter().all(|arg| arg.shape.component().is_some()) {
        return Ok(());
    }
    Err(ShaderError::compiler(format!("`{what}` is applied to a structure or array")))
}
