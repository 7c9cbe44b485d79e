//! Writes the functions that pack and unpack bytes as shifts and masks.
//!
//! naga's writer has vectors of bytes for them, which not every device has, and from which NVIDIA's
//! driver 580 takes wrong bytes where the word is a truth value.

use naga::{
    BinaryOperator, Expression, Handle, Literal, MathFunction, Scalar, ScalarKind, Span, Type,
    TypeInner, UniqueArena, VectorSize,
};

use crate::spirv::naga::rebuild::{Lowering, Maker};

type Expr = Handle<Expression>;

/// How one function is written.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    fun: MathFunction,
    /// The type of what is unpacked, which is not known at first.
    ty: Option<Handle<Type>>,
}

/// How a function is written, if it packs or unpacks bytes.
pub(crate) fn bytes(fun: MathFunction) -> Option<Bytes> {
    use MathFunction as F;
    let packs = matches!(fun, F::Pack4xI8 | F::Pack4xU8 | F::Pack4xI8Clamp | F::Pack4xU8Clamp);
    let unpacks = matches!(fun, F::Unpack4xI8 | F::Unpack4xU8);
    (packs || unpacks).then_some(Bytes { fun, ty: None })
}

impl Lowering for Bytes {
    fn size(&self) -> Option<VectorSize> {
        None
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let Expression::Math { arg, .. } = *expression else {
            unreachable!("only such expressions are rewritten");
        };
        match (self.unpacked(), self.ty) {
            (Some(scalar), Some(ty)) => {
                let bytes = (0..4).map(|index| byte(make, arg, index, scalar.kind)).collect();
                make.vector(ty, bytes)
            }
            _ => word(make, arg, self.fun),
        }
    }
}

impl Bytes {
    /// Has the type of what is unpacked among those of the module.
    pub(crate) fn settle(&mut self, types: &mut UniqueArena<Type>) {
        self.ty = self.unpacked().map(|scalar| {
            let inner = TypeInner::Vector { size: VectorSize::Quad, scalar };
            types.insert(Type { name: None, inner }, Span::UNDEFINED)
        });
    }

    /// What bytes become, if the function unpacks them.
    fn unpacked(&self) -> Option<Scalar> {
        match self.fun {
            MathFunction::Unpack4xI8 => Some(Scalar::I32),
            MathFunction::Unpack4xU8 => Some(Scalar::U32),
            _ => None,
        }
    }
}

/// A byte of a word, as a number of a kind.
fn byte(make: &mut Maker, word: Expr, index: u32, kind: ScalarKind) -> Expr {
    let word = if kind == ScalarKind::Sint { make.bitcast(word, kind) } else { word };
    let [left, right] = [24 - 8 * index, 24].map(|amount| make.literal(Literal::U32(amount)));
    let top = make.binary(BinaryOperator::ShiftLeft, word, left);
    make.binary(BinaryOperator::ShiftRight, top, right)
}

/// The word of the lowest bytes of a vector's components.
fn word(make: &mut Maker, vector: Expr, fun: MathFunction) -> Expr {
    let mut word = make.literal(Literal::U32(0));
    for index in 0..4 {
        let number = make.part(vector, index);
        let number = clamped(make, number, fun);
        let most = make.literal(Literal::U32(255));
        let byte = make.binary(BinaryOperator::And, number, most);
        let place = make.literal(Literal::U32(8 * index));
        let byte = make.binary(BinaryOperator::ShiftLeft, byte, place);
        word = make.binary(BinaryOperator::InclusiveOr, word, byte);
    }
    word
}

/// A number as one without a sign, clamped before if the function does that.
fn clamped(make: &mut Maker, number: Expr, fun: MathFunction) -> Expr {
    let (least, most) = match fun {
        MathFunction::Pack4xI8Clamp => (Literal::I32(-128), Literal::I32(127)),
        MathFunction::Pack4xU8Clamp => (Literal::U32(0), Literal::U32(255)),
        MathFunction::Pack4xI8 => return make.bitcast(number, ScalarKind::Uint),
        _ => return number,
    };
    let [least, most] = [least, most].map(|bound| make.literal(bound));
    let number = make.math(MathFunction::Max, number, Some(least));
    let number = make.math(MathFunction::Min, number, Some(most));
    make.bitcast(number, ScalarKind::Uint)
}
