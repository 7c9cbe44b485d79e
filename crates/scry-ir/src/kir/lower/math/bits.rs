//! Bit manipulation functions.

use naga::MathFunction as F;

use crate::kir::lower::componentwise::{map_binary, map_components};
use crate::kir::lower::shape::Shaped;
use crate::kir::{BinaryOp, Builder, Const, Type, UnaryOp, Value};

/// Lowers a bit manipulation function; returns `None` for other functions and arguments.
pub(super) fn bits(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    match (fun, args) {
        (F::ExtractBits, &[x, offset, count]) => {
            let field = Field::new(b, x, offset, count)?;
            Some(field.extract(b, x))
        }
        (F::InsertBits, &[x, new, offset, count]) => {
            let field = Field::new(b, x, offset, count)?;
            Some(field.insert(b, x, new))
        }
        (F::Dot4I8Packed, &[x, y]) => Some(map_binary(b, BinaryOp::Dot4I8, x, y)),
        (F::Dot4U8Packed, &[x, y]) => Some(map_binary(b, BinaryOp::Dot4U8, x, y)),
        _ => None,
    }
}

/// A bit field of a word. Offset and count are `u32`s, clamped so that the field is in the word.
struct Field {
    /// The type of the word.
    ty: Type,
    /// Number of bits below the field.
    offset: Value,
    /// Number of bits below and above the field: the width of the word minus the count.
    others: Value,
    /// Whether the count is zero. Then a shift by `others`, modulo the width, does nothing.
    empty: Value,
}

impl Field {
    fn new(b: &mut Builder, x: Shaped<'_>, offset: Shaped<'_>, count: Shaped<'_>) -> Option<Self> {
        let ty = x.shape.component()?;
        let (offset, count) = (*offset.values.first()?, *count.values.first()?);
        let (zero, width) = (b.u32(0), b.u32(ty.bits()));
        let offset = b.binary(BinaryOp::Min, offset, width);
        let max_count = b.binary(BinaryOp::Sub, width, offset);
        let count = b.binary(BinaryOp::Min, count, max_count);
        let others = b.binary(BinaryOp::Sub, width, count);
        let empty = b.binary(BinaryOp::Eq, count, zero);
        Some(Self { ty, offset, others, empty })
    }

    /// Shifts the field to the top of the word, and then to the bottom, which extends the sign.
    fn extract(&self, b: &mut Builder, x: Shaped<'_>) -> Vec<Value> {
        let above = b.binary(BinaryOp::Sub, self.others, self.offset);
        let zero = b.constant(Const::zero(self.ty));
        map_components(b, [x], &|b, [x]| {
            let top = b.binary(BinaryOp::Shl, x, above);
            let field = b.binary(BinaryOp::Shr, top, self.others);
            b.select(self.empty, zero, field)
        })
    }

    fn insert(&self, b: &mut Builder, x: Shaped<'_>, new: Shaped<'_>) -> Vec<Value> {
        let mask = self.mask(b);
        let outside_mask = b.unary(UnaryOp::Not, mask);
        map_components(b, [x, new], &|b, [x, new]| {
            let shifted = b.binary(BinaryOp::Shl, new, self.offset);
            let inside = b.binary(BinaryOp::And, shifted, mask);
            let outside = b.binary(BinaryOp::And, x, outside_mask);
            b.binary(BinaryOp::Or, outside, inside)
        })
    }

    /// Returns a mask of the field.
    fn mask(&self, b: &mut Builder) -> Value {
        let unsigned = self.ty.to_unsigned();
        let ones = b.constant(Const::int(unsigned, -1));
        let low = b.binary(BinaryOp::Shr, ones, self.others);
        let shifted = b.binary(BinaryOp::Shl, low, self.offset);
        let zero = b.constant(Const::zero(unsigned));
        let mask = b.select(self.empty, zero, shifted);
        b.bitcast(self.ty, mask)
    }
}
