//! Types of WGSL, and their layout in buffers.

use std::fmt;

/// Scalar types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Scalar {
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Returns the size in bytes of a value in a buffer.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::Bool | Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// Types of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Scalar(Scalar),
    Vector(Scalar, usize),
    /// Numbers of columns and of rows.
    Matrix(Scalar, usize, usize),
    /// Type of an element, and length; 0 is that of runtime-sized arrays.
    Array(Box<Type>, usize),
    /// Index of a structure of the kernel.
    Struct(usize),
}

impl Type {
    pub(crate) const BOOL: Self = Self::Scalar(Scalar::Bool);
    pub(crate) const I32: Self = Self::Scalar(Scalar::I32);
    pub(crate) const U32: Self = Self::Scalar(Scalar::U32);
    #[cfg(test)]
    pub(crate) const F32: Self = Self::Scalar(Scalar::F32);

    /// Returns a scalar for a width of 1, else a vector of this width.
    pub(crate) fn scalar_or_vector(scalar: Scalar, width: usize) -> Self {
        if width == 1 { Self::Scalar(scalar) } else { Self::Vector(scalar, width) }
    }

    /// Returns the scalar type of a scalar, vector or matrix.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Vector(scalar, _) | Self::Matrix(scalar, ..) => {
                Some(*scalar)
            }
            Self::Array(..) | Self::Struct(_) => None,
        }
    }

    /// Returns the number of components of a scalar or vector.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Vector(_, width) => *width,
            _ => 1,
        }
    }

    /// Returns the float type of a scalar, vector or matrix of floats.
    pub(crate) fn float(&self) -> Option<Scalar> {
        self.scalar().filter(|scalar| scalar.is_float())
    }

    /// Returns the type as an identifier, such as `vec3f32`.
    pub(crate) fn identifier(&self) -> String {
        self.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => f.write_str(scalar.name()),
            Self::Vector(scalar, width) => write!(f, "vec{width}<{}>", scalar.name()),
            Self::Matrix(scalar, columns, rows) => {
                write!(f, "mat{columns}x{rows}<{}>", scalar.name())
            }
            Self::Array(element, len) => write!(f, "array<{element}, {len}>"),
            Self::Struct(index) => write!(f, "S{index}"),
        }
    }
}

/// The members of each structure of a kernel.
pub(crate) type Structs = [Vec<Type>];

/// Returns the alignment and the size of a type in a buffer, in bytes.
pub(crate) fn layout(ty: &Type, structs: &Structs) -> (usize, usize) {
    match ty {
        Type::Scalar(scalar) => (scalar.size(), scalar.size()),
        Type::Vector(scalar, width) => {
            let rounded = if *width == 3 { 4 } else { *width };
            (rounded * scalar.size(), width * scalar.size())
        }
        Type::Matrix(scalar, columns, rows) => {
            let (align, size) = layout(&Type::Vector(*scalar, *rows), structs);
            (align, columns * size.next_multiple_of(align))
        }
        Type::Array(element, len) => {
            let (align, size) = layout(element, structs);
            (align, len * size.next_multiple_of(align))
        }
        Type::Struct(index) => {
            let members = &structs[*index];
            let align = members.iter().map(|member| layout(member, structs).0).max().unwrap_or(1);
            let end = offsets(members, structs).last().copied().unwrap_or(0);
            (align, end.next_multiple_of(align))
        }
    }
}

/// Returns the offset of each member, and the end of the last one.
fn offsets(members: &[Type], structs: &Structs) -> Vec<usize> {
    let mut end = 0usize;
    let mut offsets = Vec::new();
    for member in members {
        let (align, size) = layout(member, structs);
        offsets.push(end.next_multiple_of(align));
        end = end.next_multiple_of(align) + size;
    }
    offsets.push(end);
    offsets
}

/// Calls `f` with each scalar of a value of type `ty` at byte `base`, and with its offset in bytes.
pub(crate) fn for_each_scalar(
    ty: &Type,
    structs: &Structs,
    base: usize,
    f: &mut dyn FnMut(Scalar, usize),
) {
    let repeat = |element: &Type, count: usize, f: &mut dyn FnMut(Scalar, usize)| {
        let (align, size) = layout(element, structs);
        let stride = size.next_multiple_of(align);
        (0..count).for_each(|i| for_each_scalar(element, structs, base + i * stride, f));
    };
    match ty {
        Type::Scalar(scalar) => f(*scalar, base),
        Type::Vector(scalar, width) => {
            (0..*width).for_each(|i| f(*scalar, base + i * scalar.size()));
        }
        Type::Matrix(scalar, columns, rows) => repeat(&Type::Vector(*scalar, *rows), *columns, f),
        Type::Array(element, len) => repeat(element, *len, f),
        Type::Struct(index) => {
            let members = &structs[*index];
            for (member, offset) in members.iter().zip(offsets(members, structs)) {
                for_each_scalar(member, structs, base + offset, f);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_match_wgsl() {
        let structs = [vec![Type::F32, Type::Vector(Scalar::F32, 3), Type::U32]];
        let cases = [
            (Type::Vector(Scalar::F16, 3), (8, 6)),
            (Type::Matrix(Scalar::F32, 2, 3), (16, 32)),
            (Type::Matrix(Scalar::F32, 3, 2), (8, 24)),
            (Type::Array(Box::new(Type::Vector(Scalar::I32, 3)), 2), (16, 32)),
            (Type::Struct(0), (16, 32)),
        ];
        for (ty, expected) in cases {
            assert_eq!(layout(&ty, &structs), expected, "{ty}");
        }
        let mut offsets = Vec::new();
        for_each_scalar(&Type::Struct(0), &structs, 4, &mut |_, at| offsets.push(at));
        assert_eq!(offsets, [4, 20, 24, 28, 32]);
    }
}
