//! Pointers to variables and their parts.

use super::Lower;
use super::types::Ty;
use crate::ShaderError;
use crate::kir::{AddressSpace, BinaryOp, Const, Place, Type, Value};

/// The base of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// Memory with WGSL's layout; strides and offsets are in bytes.
    Bytes(AddressSpace),
    /// Arrays of scalars, one for each leaf of the type (see [`Types`](super::types::Types)), from
    /// number `first` on; in workgroup memory if `shared`, else in local memory. Strides and
    /// offsets count values of the pointer's type.
    Leaves { shared: bool, first: u32 },
    /// Variables, one for each scalar of the type, from this number on.
    Vars(u32),
}

/// A pointer to `index * stride + offset` in its root, whose kind determines the unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointer {
    pub root: Root,
    pub ty: Ty,
    /// `None` is zero.
    pub index: Option<Value>,
    pub stride: u32,
    pub offset: u32,
}

/// An index that is in bounds, or without bounds checks is claimed to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum ElementIndex {
    Constant(u32),
    /// A `u32`.
    Value(Value),
}

impl Pointer {
    pub fn new(root: Root, ty: Ty) -> Self {
        Self { root, ty, index: None, stride: 0, offset: 0 }
    }
}

impl Lower<'_> {
    /// Returns a pointer to a member of a structure.
    pub(super) fn member_of(&self, pointer: Pointer, at: u32) -> Result<Pointer, ShaderError> {
        let Ty::Struct(handle) = pointer.ty else {
            return Err(ShaderError::compiler(
                "a pointer to a member of a type that is not a structure".into(),
            ));
        };
        let member = self.types.member(handle, at)?;
        let mut part = Pointer { ty: member.ty, ..pointer };
        match &mut part.root {
            Root::Bytes(_) => part.offset += member.offset,
            Root::Leaves { first, .. } => *first += member.first_leaf,
            Root::Vars(first) => *first += member.first_scalar,
        }
        Ok(part)
    }

    /// Returns a pointer to an element of an array, a column of a matrix or a component of a
    /// vector.
    pub(super) fn element_of(
        &mut self,
        pointer: Pointer,
        at: ElementIndex,
    ) -> Result<Pointer, ShaderError> {
        let element = self.types.element(pointer.ty)?;
        let mut part = Pointer { ty: element.ty, ..pointer };
        match (&mut part.root, at) {
            (Root::Bytes(_), ElementIndex::Constant(at)) => part.offset += at * element.stride,
            (Root::Bytes(_), ElementIndex::Value(at)) => {
                self.add_index(&mut part, at, element.stride)
            }
            (Root::Leaves { .. }, at) => {
                let len = element.len.unwrap_or(1);
                part.stride *= len;
                part.offset *= len;
                match at {
                    ElementIndex::Constant(at) => part.offset += at,
                    ElementIndex::Value(at) => self.add_index(&mut part, at, 1),
                }
            }
            (Root::Vars(first), ElementIndex::Constant(at)) => {
                *first += at * self.types.scalar_count(element.ty) as u32;
            }
            (Root::Vars(_), ElementIndex::Value(_)) => {
                let what = "a variable that is indexed is not in memory";
                return Err(ShaderError::compiler(what.into()));
            }
        }
        Ok(part)
    }

    /// Adds `at * stride` to a pointer. If the pointer has an index with another stride, the sum of
    /// both has their greatest common divisor as its stride.
    fn add_index(&mut self, part: &mut Pointer, at: Value, stride: u32) {
        let Some(index) = part.index else {
            (part.index, part.stride) = (Some(at), stride);
            return;
        };
        let common = gcd(part.stride, stride);
        let index = self.multiply_by(index, part.stride / common);
        let at = self.multiply_by(at, stride / common);
        part.index = Some(self.builder.binary(BinaryOp::Add, index, at));
        part.stride = common;
    }

    /// Multiplies a `U32` by a constant.
    pub(super) fn multiply_by(&mut self, value: Value, factor: u32) -> Value {
        if factor == 1 {
            return value;
        }
        let factor = self.constant(Const::u32(factor));
        self.builder.binary(BinaryOp::Mul, value, factor)
    }

    /// Returns the address of the first scalar that a pointer refers to.
    pub(super) fn place(&self, pointer: &Pointer, scalar: Type) -> Result<Place, ShaderError> {
        let (space, unit) = match pointer.root {
            Root::Bytes(space) => (space, 1),
            Root::Leaves { shared, first } => {
                let unit = self.types.scalar_count(pointer.ty) as u32 * scalar.size();
                (
                    if shared {
                        AddressSpace::Workgroup(first)
                    } else {
                        AddressSpace::Local(first)
                    },
                    unit,
                )
            }
            Root::Vars(_) => {
                return Err(ShaderError::compiler("a variable is not in memory".into()));
            }
        };
        Ok(Place::new(space, pointer.index, pointer.stride * unit, pointer.offset * unit))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
