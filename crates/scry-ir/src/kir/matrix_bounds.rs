//! Whether cooperative matrices are in bounds of their arrays, and the addresses of their elements.

use super::{BinaryOp, Builder, Const, MatrixPlace, MatrixType, Place, Type, Value};

/// When a condition on the address of a matrix holds, such as that the matrix is in bounds.
pub(super) enum Condition {
    Always,
    Never,
    /// If this `Bool` is true. It is the same in all lanes if the matrix's index and stride and the
    /// array's length are.
    If(Value),
}

/// Returns the condition that all elements of a matrix are in bounds of its array.
pub(super) fn is_in_bounds(
    builder: &mut Builder,
    place: &MatrixPlace,
    ty: MatrixType,
) -> Condition {
    let Some(len) = place.len else { return Condition::Always };
    let last_line = ty.size.rows() - 1;
    let constant_bits = |value| builder.kir().constant(value).map(|constant| constant.bits);
    let constants = [len, place.stride, place.index].map(constant_bits);
    let [Some(len_bits), Some(stride), index] = constants else {
        let last_line = builder.u32(last_line);
        let last_element = index_u64(builder, place, last_line, last_line);
        let len = to_u64(builder, len);
        return Condition::If(builder.binary(BinaryOp::Lt, last_element, len));
    };
    // The last element is at `index + last_line * stride + last_line`.
    let max_index = len_bits.checked_sub(1 + u64::from(last_line) * (stride + 1));
    match (max_index, index) {
        (None, _) => Condition::Never,
        (Some(max_index), Some(index)) if index <= max_index => Condition::Always,
        (Some(_), Some(_)) => Condition::Never,
        (Some(max_index), None) => {
            let max_index = builder.u32(max_index as u32);
            Condition::If(builder.binary(BinaryOp::Le, place.index, max_index))
        }
    }
}

/// Returns `index + line * stride + position` as a `U64`, which cannot overflow. A line is a row of
/// a row-major matrix, else a column.
pub(super) fn index_u64(
    builder: &mut Builder,
    place: &MatrixPlace,
    line: Value,
    position: Value,
) -> Value {
    let operands = [place.index, line, place.stride, position];
    let [index, line, stride, position] = operands.map(|value| to_u64(builder, value));
    let lines = builder.binary(BinaryOp::Mul, line, stride);
    let start = builder.binary(BinaryOp::Add, index, lines);
    builder.binary(BinaryOp::Add, start, position)
}

/// Converts a `U32` to a `U64`, in which `a + b * c + d` of such values does not overflow.
pub(super) fn to_u64(builder: &mut Builder, value: Value) -> Value {
    builder.convert(Type::U64, value)
}

/// Returns the address of element `index` of a matrix's array.
pub(super) fn element_place(
    builder: &mut Builder,
    place: &MatrixPlace,
    ty: MatrixType,
    index: Value,
) -> Place {
    let stride = ty.element.ty().size();
    Place { index: Some(index_from_offset(builder, place, ty, index)), stride, ..place.array }
}

/// Returns the index of element `index` of a matrix's array, counted from the array's constant
/// offset: the array's address may have an index of its own, which is added.
pub(super) fn index_from_offset(
    builder: &mut Builder,
    place: &MatrixPlace,
    ty: MatrixType,
    index: Value,
) -> Value {
    let Some(array_index) = place.array.index else { return index };
    let first = match place.array.stride / ty.element.ty().size() {
        1 => array_index,
        elements => {
            let elements = builder.constant(Const::u32(elements));
            builder.binary(BinaryOp::Mul, array_index, elements)
        }
    };
    builder.binary(BinaryOp::Add, first, index)
}
