//! What all kernels have in common: their parameters, and the steps of maps.

use scry_gpu::kir::{Access, AddressSpace, BinaryOp, Builder, Const, Place, Type, Value};

use super::memory::{Conversions, round};
use crate::dtype::DType;
use crate::expr::{Id, Scalar};

/// Returns the type of the words in which elements are stored.
pub(super) fn stored(dtype: DType) -> Type {
    match dtype.computed() {
        ty if dtype.size() == 4 => ty,
        _ => Type::U32,
    }
}

/// Where the parameters are.
enum Source {
    Immediates,
    Buffer(u32),
}

/// Reads the parameters one after the other.
pub(super) struct Parameters {
    source: Source,
    next: u32,
}

impl Parameters {
    /// Declares parameters, in a buffer after the kernel's others or as immediates.
    pub(super) fn declare(b: &mut Builder, count: usize, in_buffer: bool) -> Self {
        let source = match in_buffer {
            true => Source::Buffer(b.named_buffer("parameters", Type::U32, Access::Read)),
            false => {
                b.immediates(count as u32 * 4);
                Source::Immediates
            }
        };
        Self { source, next: 0 }
    }

    /// Reads the next parameter.
    pub(super) fn read(&mut self, b: &mut Builder) -> Value {
        let offset = self.next * 4;
        self.next += 1;
        let space = match self.source {
            Source::Immediates => AddressSpace::Immediate,
            Source::Buffer(buffer) => AddressSpace::Binding(buffer),
        };
        b.load(Type::U32, Place::new(space, None, 0, offset), 1)[0]
    }

    pub(super) fn read_many(&mut self, b: &mut Builder, count: u32) -> Vec<Value> {
        (0..count).map(|_| self.read(b)).collect()
    }
}

/// What the steps of a map use.
pub(super) struct Context<'c> {
    /// The arguments of the map.
    pub(super) arguments: &'c [Value],
    /// The parameter that is 0.
    pub(super) zero: Option<Value>,
    pub(super) conversions: Conversions,
}

impl Context<'_> {
    /// Computes a step of a map of the steps before it; `None` if it depends on where it is
    /// computed: loads and coordinates.
    pub(super) fn step(
        &self,
        b: &mut Builder,
        (scalar, ty): &(Scalar, Type),
        values: &[Value],
    ) -> Option<Value> {
        let of = |id: Id| values[id.index()];
        Some(match *scalar {
            Scalar::Load(_) | Scalar::Gather { .. } | Scalar::Coordinate(_) | Scalar::Position => {
                return None;
            }
            Scalar::Argument(n) => argument(b, self.arguments[n as usize], *ty),
            Scalar::Constant(bits) => b.constant(Const { ty: *ty, bits: bits.into() }),
            Scalar::Unary(op, a) => b.unary(op, of(a)),
            Scalar::Binary(op, x, y) => b.binary(op, of(x), of(y)),
            Scalar::Select(x, y, z) => b.select(of(x), of(y), of(z)),
            Scalar::Convert(a) => b.convert(*ty, of(a)),
            Scalar::Bitcast(a) => b.bitcast(*ty, of(a)),
            Scalar::Round(dtype, a) => round(b, self.conversions, dtype, of(a)),
            Scalar::Opaque(a) => self.opaque(b, of(a)),
        })
    }

    /// Returns the same number, as the result of an operation with the parameter that is 0.
    pub(super) fn opaque(&self, b: &mut Builder, number: Value) -> Value {
        let Some(zero) = self.zero else { return number };
        let bits = b.bitcast(Type::U32, number);
        let bits = b.binary(BinaryOp::Xor, bits, zero);
        b.bitcast(Type::F32, bits)
    }
}

/// Returns an argument in its type.
fn argument(b: &mut Builder, bits: Value, ty: Type) -> Value {
    match ty {
        Type::Bool => b.convert(Type::Bool, bits),
        ty => b.bitcast(ty, bits),
    }
}
