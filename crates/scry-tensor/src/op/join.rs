//! Results whose elements are pieces of other tensors: each piece is an operand whose layout is
//! moved to where the piece is, and coordinates choose among the pieces.
//!
//! A moved layout has positions outside of its operand, at coordinates of other pieces. Loads are
//! clamped to buffers there, and the elements are not used.

use scry_gpu::kir::{BinaryOp, Type};

use super::rule::Trivial;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::{Expression, Map};
use crate::shape::{Layout, Shape};

/// How pieces are joined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Join {
    /// One after the other, along an axis.
    Concat { axis: usize },
    /// One operand, with coordinates before and after it, per axis, where elements have these bits.
    Pad { widths: Vec<[usize; 2]>, value: u32 },
    /// One operand, moved along an axis; what leaves it at one end enters at the other.
    Roll { axis: usize, shift: i64 },
}

/// An operand, and the coordinates in the result of its first element.
pub(crate) struct Piece {
    pub(crate) operand: usize,
    start: Vec<i64>,
}

impl Piece {
    /// Returns the layout of the operand with the shape of the result.
    pub(crate) fn moved(&self, layout: &Layout, result: &Shape) -> Layout {
        let distance: i64 =
            layout.strides.iter().zip(&self.start).map(|(stride, start)| stride * start).sum();
        let (shape, strides) = (result.clone(), layout.strides.clone());
        Layout { shape, strides, offset: layout.offset - distance }
    }
}

impl Join {
    pub(super) fn shape(&self, call: Call, operands: &[&Shape]) -> Result<Shape> {
        let first = operands[0];
        let mut sizes = first.to_vec();
        match self {
            Self::Concat { axis } => {
                for other in &operands[1..] {
                    let differs = |n: usize| n != *axis && first[n] != other[n];
                    if first.rank() != other.rank() || (0..first.rank()).any(differs) {
                        return Err(call.shape_error(
                            &[first, other],
                            format!("{first} and {other} differ along other axes than {axis}"),
                            "only the size of the axis along which tensors are joined may differ",
                        ));
                    }
                    sizes[*axis] = sizes[*axis].saturating_add(other[*axis]);
                }
            }
            Self::Pad { widths, .. } => {
                for (size, [before, after]) in sizes.iter_mut().zip(widths) {
                    *size = size.saturating_add(*before).saturating_add(*after);
                }
            }
            Self::Roll { .. } => {}
        }
        Ok(sizes.into())
    }

    /// Returns the value of a padding without elements.
    pub(super) fn trivial(&self, operands: &[&Shape], result: &Shape) -> Option<Trivial> {
        match self {
            Self::Pad { value, .. } => {
                let is_padding = operands[0].contains(&0) && !result.contains(&0);
                is_padding.then_some(Trivial::Fill(*value))
            }
            _ => None,
        }
    }

    /// Returns the pieces with elements, and the map of them with its arguments.
    pub(crate) fn pieces(&self, dtype: DType, operands: &[&Shape]) -> (Vec<Piece>, Map, Vec<u32>) {
        match self {
            Self::Concat { axis } => concat(*axis, dtype, operands),
            Self::Pad { widths, value } => pad(widths, *value, dtype, operands[0]),
            Self::Roll { axis, shift } => {
                let (rank, size) = (operands[0].rank(), operands[0][*axis] as i64);
                let shift = shift.rem_euclid(size.max(1));
                // The coordinates before `shift` are the last ones of the operand.
                let piece = |start: i64| {
                    let start = (0..rank).map(|n| if n == *axis { start } else { 0 }).collect();
                    Piece { operand: 0, start }
                };
                let pieces = vec![piece(shift - size), piece(shift)];
                (pieces, chosen(*axis, dtype, 2), vec![shift as u32])
            }
        }
    }
}

fn concat(axis: usize, dtype: DType, operands: &[&Shape]) -> (Vec<Piece>, Map, Vec<u32>) {
    let (mut pieces, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
    for (operand, shape) in operands.iter().enumerate().filter(|(_, it)| !it.contains(&0)) {
        let start = (0..shape.rank()).map(|n| if n == axis { end } else { 0 }).collect();
        pieces.push(Piece { operand, start });
        end += shape[axis] as i64;
        ends.push(end as u32);
    }
    // After the last end is nothing.
    ends.pop();
    let map = chosen(axis, dtype, pieces.len());
    (pieces, map, ends)
}

/// Returns the map that chooses among pieces by a coordinate: the first whose end, an argument, is
/// greater.
fn chosen(axis: usize, dtype: DType, count: usize) -> Map {
    let mut e = Expression::default();
    let loads: Vec<_> = (0..count).map(|_| e.operand(dtype)).collect();
    let ends: Vec<_> = (1..count).map(|_| e.argument(DType::U32)).collect();
    let coordinate = e.coordinate(axis);
    let Some((last, others)) = loads.split_last() else { return Map::copy(dtype) };
    let mut result = *last;
    for (load, end) in others.iter().zip(&ends).rev() {
        let is_before = e.binary(BinaryOp::Lt, coordinate, *end);
        result = e.select(is_before, *load, result);
    }
    e.finish(result, dtype)
}

fn pad(
    widths: &[[usize; 2]],
    value: u32,
    dtype: DType,
    operand: &Shape,
) -> (Vec<Piece>, Map, Vec<u32>) {
    let mut e = Expression::default();
    let (load, value_id) = (e.operand(dtype), e.argument(dtype));
    let mut arguments = vec![value];
    let mut is_inside = None;
    for (axis, [before, after]) in widths.iter().enumerate() {
        if *before + *after == 0 {
            continue;
        }
        arguments.extend([*before as u32, operand[axis] as u32]);
        let (first, size) = (e.argument(DType::U32), e.argument(DType::U32));
        let coordinate = e.coordinate(axis);
        let own = e.binary(BinaryOp::Sub, coordinate, first);
        // Coordinates before the first wrap.
        let is_within = e.binary(BinaryOp::Lt, own, size);
        is_inside = Some(match is_inside {
            None => is_within,
            Some(others) => e.binary(BinaryOp::And, others, is_within),
        });
    }
    debug_assert!(is_inside.is_none_or(|it| e.ty(it) == Type::Bool));
    let result = is_inside.map_or(load, |is_inside| e.select(is_inside, load, value_id));
    let start = widths.iter().map(|[before, _]| *before as i64).collect();
    (vec![Piece { operand: 0, start }], e.finish(result, dtype), arguments)
}
