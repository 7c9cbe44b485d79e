//! Whether cooperative matrices are inside of their arrays, and the places of their elements.

use super::{BinaryOp, Builder, Const, MatrixPlace, MatrixType, Place, Type, Value};

/// Whether all elements of a matrix are inside of its array.
pub(super) enum Inside {
    Always,
    Never,
    /// If this `Bool` is true, which is the same in all lanes if the matrix's index, its stride and
    /// the array's length are.
    If(Value),
}

/// Returns whether all elements of a matrix are inside of its array.
pub(super) fn inside(builder: &mut Builder, place: &MatrixPlace, ty: MatrixType) -> Inside {
    let Some(len) = place.len else { return Inside::Always };
    let edge = ty.size.rows() - 1;
    let constant = |value| builder.kir().constant(value).map(|known| known.bits);
    let known = [len, place.stride, place.index].map(constant);
    let [Some(len_bits), Some(stride), index] = known else {
        let edge = builder.u32(edge);
        let last = exact_index(builder, place, edge, edge);
        let len = wide(builder, len);
        return Inside::If(builder.binary(BinaryOp::Lt, last, len));
    };
    // The greatest index at which a matrix is inside.
    let most = len_bits.checked_sub(1 + u64::from(edge) * (stride + 1));
    match (most, index) {
        (None, _) => Inside::Never,
        (Some(most), Some(index)) if index <= most => Inside::Always,
        (Some(_), Some(_)) => Inside::Never,
        (Some(most), None) => {
            let most = builder.u32(most as u32);
            Inside::If(builder.binary(BinaryOp::Le, place.index, most))
        }
    }
}

/// Returns `index + line * stride + position` as a `U64`, which cannot overflow. A line is a row or
/// column that is contiguous in memory.
pub(super) fn exact_index(
    builder: &mut Builder,
    place: &MatrixPlace,
    line: Value,
    position: Value,
) -> Value {
    let operands = [place.index, line, place.stride, position];
    let [index, line, stride, position] = operands.map(|value| wide(builder, value));
    let lines = builder.binary(BinaryOp::Mul, line, stride);
    let start = builder.binary(BinaryOp::Add, index, lines);
    builder.binary(BinaryOp::Add, start, position)
}

/// Converts a `U32` to a `U64`, which sums and products of two do not exceed.
pub(super) fn wide(builder: &mut Builder, value: Value) -> Value {
    builder.convert(Type::U64, value)
}

/// Returns the place of an element of a matrix's array, whose own place may have an index.
pub(super) fn element_place(
    builder: &mut Builder,
    place: &MatrixPlace,
    ty: MatrixType,
    index: Value,
) -> Place {
    let stride = ty.element.ty().size();
    Place { index: Some(index_from_offset(builder, place, ty, index)), stride, ..place.array }
}

/// Returns the index of an element of a matrix's array, counted from the array's constant offset.
pub(super) fn index_from_offset(
    builder: &mut Builder,
    place: &MatrixPlace,
    ty: MatrixType,
    index: Value,
) -> Value {
    let Some(outer) = place.array.index else { return index };
    let outer = match place.array.stride / ty.element.ty().size() {
        1 => outer,
        elements => {
            let elements = builder.constant(Const::u32(elements));
            builder.binary(BinaryOp::Mul, outer, elements)
        }
    };
    builder.binary(BinaryOp::Add, outer, index)
}
