//! The types of values and variables, from naga's types.

use naga::{CooperativeRole, CooperativeSize, Handle, Module, TypeInner};

use super::Shape;
use crate::ShaderError;
use crate::kir::{MatrixElement, MatrixSize, MatrixType, MatrixUse, Type};

/// The type of a value or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ty {
    /// A type that one [`Value`](crate::kir::Value) holds: a scalar, or a cooperative matrix, which
    /// `lower` treats as a scalar everywhere.
    Scalar(Type),
    Atomic(Type),
    Vector {
        len: u8,
        ty: Type,
    },
    Matrix {
        columns: u8,
        rows: u8,
        ty: Type,
    },
    /// An array, runtime-sized if `len` is `None`; `stride` is in bytes.
    Array {
        element: Handle<naga::Type>,
        len: Option<u32>,
        stride: u32,
    },
    Struct(Handle<naga::Type>),
}

/// The elements of an array, a matrix (its columns) or a vector (its components).
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    pub ty: Ty,
    /// Number of elements; `None` for a runtime-sized array.
    pub len: Option<u32>,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub ty: Ty,
    /// Offset in bytes.
    pub offset: u32,
    /// Number of scalars of the members before it.
    pub first_scalar: u32,
    /// Number of leaves of the members before it.
    pub first_leaf: u32,
}

/// The types of a module, with their numbers of scalars and leaves.
///
/// The leaves of a type are its scalars, vectors and matrices after structures are flattened; all
/// elements of an array share the leaves of one element. An `array<S, 4>` of a structure `S` of a
/// `f32` and a `vec2u` has two leaves. A variable in memory is one array of scalars per leaf.
pub(super) struct Types<'m> {
    module: &'m Module,
    /// Number of scalars of a value, by type; saturates.
    scalars: Vec<u64>,
    /// Number of leaves, by type; saturates.
    leaves: Vec<u64>,
}

impl Ty {
    /// Returns the shape of a value's scalars.
    pub fn shape(self) -> Shape {
        match self {
            Self::Scalar(ty) | Self::Atomic(ty) => Shape::Scalar(ty),
            Self::Vector { len, ty } => Shape::Vector { len, ty },
            Self::Matrix { columns, rows, ty } => Shape::Matrix { columns, rows, ty },
            Self::Array { .. } | Self::Struct(_) => Shape::Aggregate,
        }
    }
}

impl<'m> Types<'m> {
    pub fn new(module: &'m Module) -> Self {
        let mut types = Self { module, scalars: Vec::new(), leaves: Vec::new() };
        // Component types precede composite types.
        for (_, ty) in module.types.iter() {
            let (scalars, leaves) = types.count_scalars_and_leaves(&ty.inner);
            types.scalars.push(scalars);
            types.leaves.push(leaves);
        }
        types
    }

    fn count_scalars_and_leaves(&self, inner: &TypeInner) -> (u64, u64) {
        match inner {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) | TypeInner::CooperativeMatrix { .. } => {
                (1, 1)
            }
            TypeInner::Vector { size, .. } => (*size as u64, 1),
            TypeInner::Matrix { columns, rows, .. } => (*columns as u64 * *rows as u64, 1),
            TypeInner::Array { base, size, .. } => {
                let len = self.array_length(*size).ok().flatten().unwrap_or(0);
                let scalars = self.scalars[base.index()].saturating_mul(u64::from(len));
                (scalars, self.leaves[base.index()])
            }
            TypeInner::Struct { members, .. } => {
                let sum = |counts: &[u64]| {
                    let parts = members.iter().map(|member| counts[member.ty.index()]);
                    parts.fold(0, u64::saturating_add)
                };
                (sum(&self.scalars), sum(&self.leaves))
            }
            _ => (0, 0),
        }
    }

    fn array_length(&self, size: naga::ArraySize) -> Result<Option<u32>, ShaderError> {
        use naga::proc::IndexableLength;
        match size.resolve(self.module.to_ctx()) {
            Ok(IndexableLength::Known(len)) => Ok(Some(len)),
            Ok(IndexableLength::Dynamic) => Ok(None),
            Err(_) => Err(ShaderError::compiler("an array has no length".into())),
        }
    }

    /// Returns the type of a handle.
    pub fn ty_of(&self, handle: Handle<naga::Type>) -> Result<Ty, ShaderError> {
        match &self.module.types[handle].inner {
            TypeInner::Struct { .. } => Ok(Ty::Struct(handle)),
            inner => self.ty_of_inner(inner),
        }
    }

    /// Returns a type other than a structure.
    pub fn ty_of_inner(&self, inner: &TypeInner) -> Result<Ty, ShaderError> {
        Ok(match *inner {
            TypeInner::Scalar(s) => Ty::Scalar(scalar(s)?),
            TypeInner::Atomic(s) => Ty::Atomic(scalar(s)?),
            TypeInner::Vector { size, scalar: s } => Ty::Vector { len: size as u8, ty: scalar(s)? },
            TypeInner::Matrix { columns, rows, scalar: s } => {
                Ty::Matrix { columns: columns as u8, rows: rows as u8, ty: scalar(s)? }
            }
            TypeInner::Array { base, size, stride } => {
                Ty::Array { element: base, len: self.array_length(size)?, stride }
            }
            TypeInner::CooperativeMatrix { rows, scalar: s, role, .. } => {
                Ty::Scalar(cooperative_matrix(rows, role, scalar(s)?)?)
            }
            _ => return Err(ShaderError::compiler("a value of a type without scalars".into())),
        })
    }

    /// Returns the number of scalars of a value.
    pub fn scalar_count(&self, ty: Ty) -> u64 {
        match ty {
            Ty::Scalar(_) | Ty::Atomic(_) => 1,
            Ty::Vector { len, .. } => u64::from(len),
            Ty::Matrix { columns, rows, .. } => u64::from(columns) * u64::from(rows),
            Ty::Array { element, len, .. } => {
                self.scalars[element.index()].saturating_mul(u64::from(len.unwrap_or(0)))
            }
            Ty::Struct(handle) => self.scalars[handle.index()],
        }
    }

    /// Returns the number of leaves of a type.
    pub fn leaf_count(&self, ty: Ty) -> u64 {
        match ty {
            Ty::Array { element, .. } => self.leaves[element.index()],
            Ty::Struct(handle) => self.leaves[handle.index()],
            _ => 1,
        }
    }

    /// Describes the elements of an array, a matrix or a vector.
    pub fn element(&self, ty: Ty) -> Result<Element, ShaderError> {
        Ok(match ty {
            Ty::Vector { len, ty } => {
                Element { ty: Ty::Scalar(ty), len: Some(len.into()), stride: ty.size() }
            }
            Ty::Matrix { columns, rows, ty } => {
                // Columns of three rows are aligned to four, like `vec3`.
                let padded = if rows == 3 { 4 } else { rows };
                let stride = u32::from(padded) * ty.size();
                Element { ty: Ty::Vector { len: rows, ty }, len: Some(columns.into()), stride }
            }
            Ty::Array { element, len, stride } => Element { ty: self.ty_of(element)?, len, stride },
            _ => return Err(ShaderError::compiler(format!("an index into {ty:?}"))),
        })
    }

    /// Returns the number of members of a structure.
    pub fn member_count(&self, handle: Handle<naga::Type>) -> u32 {
        match &self.module.types[handle].inner {
            TypeInner::Struct { members, .. } => members.len() as u32,
            _ => 0,
        }
    }

    /// Returns a member of a structure.
    pub fn member(&self, handle: Handle<naga::Type>, at: u32) -> Result<Member, ShaderError> {
        let TypeInner::Struct { members, .. } = &self.module.types[handle].inner else {
            return Err(ShaderError::compiler("a member of a type that is not a structure".into()));
        };
        let (before, rest) = members.split_at((at as usize).min(members.len()));
        let member = rest.first().ok_or_else(|| {
            ShaderError::compiler("a member beyond the end of a structure".into())
        })?;
        let sum = |counts: &[u64]| {
            let counts = before.iter().map(|member| counts[member.ty.index()]);
            counts.fold(0, u64::saturating_add).min(u32::MAX.into()) as u32
        };
        Ok(Member {
            ty: self.ty_of(member.ty)?,
            offset: member.offset,
            first_scalar: sum(&self.scalars),
            first_leaf: sum(&self.leaves),
        })
    }
}

/// Returns the type of a cooperative matrix from naga's description.
fn cooperative_matrix(
    rows: CooperativeSize,
    role: CooperativeRole,
    element: Type,
) -> Result<Type, ShaderError> {
    let role = match role {
        CooperativeRole::A => MatrixUse::A,
        CooperativeRole::B => MatrixUse::B,
        CooperativeRole::C => MatrixUse::C,
    };
    let size = match rows {
        CooperativeSize::Eight => MatrixSize::M8,
        CooperativeSize::Sixteen => MatrixSize::M16,
    };
    let element = MatrixElement::of(element)
        .ok_or_else(|| ShaderError::compiler(format!("a cooperative matrix of {element}")))?;
    Ok(Type::Matrix(MatrixType { role, size, element }))
}

/// Returns the type of a scalar.
pub(super) fn scalar(scalar: naga::Scalar) -> Result<Type, ShaderError> {
    use naga::ScalarKind::{Bool, Float, Sint, Uint};
    Ok(match (scalar.kind, scalar.width) {
        (Bool, _) => Type::Bool,
        (Sint, 2) => Type::I16,
        (Uint, 2) => Type::U16,
        (Sint, 4) => Type::I32,
        (Uint, 4) => Type::U32,
        (Sint, 8) => Type::I64,
        (Uint, 8) => Type::U64,
        (Float, 2) => Type::F16,
        (Float, 4) => Type::F32,
        (Float, 8) => Type::F64,
        _ => return Err(ShaderError::compiler(format!("a scalar of unknown type: {scalar:?}"))),
    })
}
