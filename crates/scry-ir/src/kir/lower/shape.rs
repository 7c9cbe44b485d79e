//! Shapes of scalarised WGSL values.

use crate::kir::{Type, Value};

/// What a list of scalars represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// One scalar.
    Scalar(Type),
    /// `len` components.
    Vector { len: u8, ty: Type },
    /// `columns` columns of `rows` components each, one column after the other.
    Matrix { columns: u8, rows: u8, ty: Type },
    /// A structure or an array: its scalars in order, of any types.
    Aggregate,
}

/// A WGSL value: its scalars, and what they represent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaped<'a> {
    pub shape: Shape,
    pub values: &'a [Value],
}
