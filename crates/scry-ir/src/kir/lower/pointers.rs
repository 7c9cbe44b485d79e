//! Pointers: the address of a variable, or of a part of one.

use super::Lower;
use super::types::Ty;
use crate::ShaderError;
use crate::kir::{AddressSpace, BinaryOp, Const, Place, Type, Value};

/// The base of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// Memory with WGSL's layout; strides and offsets are in bytes.
    Bytes(AddressSpace),
    /// Arrays of scalars, one for each leaf of the type, the first being this; strides and offsets
    /// count values of the pointer's type.
    Leaves { shared: bool, first: u32 },
    /// Variables, one for each scalar of the type, the first being this.
    Vars(u32),
}

/// A place of some type: number `index * stride + offset` of its root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointer {
    pub root: Root,
    pub ty: Ty,
    pub index: Option<Value>,
    pub stride: u32,
    pub offset: u32,
}

/// Which element.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    Constant(u32),
    /// A `u32` that is known to be in bounds.
    Value(Value),
}

impl Pointer {
    pub fn new(root: Root, ty: Ty) -> Self {
        Self { root, ty, index: None, stride: 0, offset: 0 }
    }
}

impl Lower<'_> {
    /// A pointer to a member of a structure.
    pub(super) fn member_of(&self, pointer: Pointer, at: u32) -> Result<Pointer, ShaderError> {
        let Ty::Struct(handle) = pointer.ty else {
            return Err(ShaderError::compiler("a pointer to a member of no structure".into()));
        };
        let member = self.types.member(handle, at)?;
        let mut part = Pointer { ty: member.ty, ..pointer };
        match &mut part.root {
            Root::Bytes(_) => part.offset += member.bytes,
            Root::Leaves { first, .. } => *first += member.leaves,
            Root::Vars(first) => *first += member.scalars,
        }
        Ok(part)
    }

    /// A pointer to an element of an array, a column of a matrix or a component of a vector.
    pub(super) fn element_of(&mut self, pointer: Pointer, at: At) -> Result<Pointer, ShaderError> {
        let element = self.types.element(pointer.ty)?;
        let mut part = Pointer { ty: element.ty, ..pointer };
        match (&mut part.root, at) {
            (Root::Bytes(_), At::Constant(at)) => part.offset += at * element.stride,
            (Root::Bytes(_), At::Value(at)) => self.step_bytes(&mut part, at, element.stride),
            (Root::Leaves { .. }, at) => {
                let len = element.len.unwrap_or(1);
                part.stride *= len;
                part.offset *= len;
                match at {
                    At::Constant(at) => part.offset += at,
                    At::Value(at) => self.step_bytes(&mut part, at, 1),
                }
            }
            (Root::Vars(first), At::Constant(at)) => {
                *first += at * self.types.scalars(element.ty) as u32;
            }
            (Root::Vars(_), At::Value(_)) => {
                let what = "a variable that is indexed lies in no memory";
                return Err(ShaderError::compiler(what.into()));
            }
        }
        Ok(part)
    }

    /// Adds `at * stride` to a pointer. Two strides become their common divisor.
    fn step_bytes(&mut self, part: &mut Pointer, at: Value, stride: u32) {
        let Some(index) = part.index else {
            (part.index, part.stride) = (Some(at), stride);
            return;
        };
        let common = gcd(part.stride, stride);
        let index = self.times(index, part.stride / common);
        let at = self.times(at, stride / common);
        part.index = Some(self.builder.binary(BinaryOp::Add, index, at));
        part.stride = common;
    }

    pub(super) fn times(&mut self, value: Value, by: u32) -> Value {
        if by == 1 {
            return value;
        }
        let by = self.constant(Const::u32(by));
        self.builder.binary(BinaryOp::Mul, value, by)
    }

    /// The place of the scalar, vector or matrix that a pointer leads to, and its type.
    pub(super) fn place(&self, pointer: &Pointer, scalar: Type) -> Result<Place, ShaderError> {
        let (space, unit) = match pointer.root {
            Root::Bytes(space) => (space, 1),
            Root::Leaves { shared, first } => {
                let unit = self.types.scalars(pointer.ty) as u32 * scalar.size();
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
                return Err(ShaderError::compiler("a variable lies in no memory".into()));
            }
        };
        Ok(Place::new(space, pointer.index, pointer.stride * unit, pointer.offset * unit))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
