//! Cooperative matrices: types and memory layout.

use std::fmt;

use super::{Place, Type, Value};

/// Which operand of a product `a * b + c` a cooperative matrix is (SPIR-V: Cooperative Matrix Use).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatrixUse {
    /// The left operand.
    A,
    /// The right operand.
    B,
    /// The accumulator, and the result.
    C,
}

/// The number of rows and of columns of a cooperative matrix, which is square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatrixSize {
    /// 8 × 8 elements.
    M8,
    /// 16 × 16 elements.
    M16,
}

/// The element type of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatrixElement {
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
}

/// The type of a cooperative matrix: a square matrix that the invocations of a subgroup hold
/// together. Which invocation holds which element is up to the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatrixType {
    /// Which operand of a product it is.
    pub role: MatrixUse,
    /// Its number of rows and of columns.
    pub size: MatrixSize,
    /// The type of its elements.
    pub element: MatrixElement,
}

/// The memory of a cooperative matrix, in an array: row `r` and column `c` are element `index + r *
/// stride + c` of the array if it is row-major, else element `index + c * stride + r`. These
/// indices do not wrap: above `u32::MAX` they are out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixPlace {
    /// The address of the array's first element, in a buffer, the immediate block or workgroup
    /// memory. The elements are contiguous.
    pub array: Place,
    /// The number of elements of the array, a `U32`: elements of the matrix at this index or past
    /// it load as zero and are not stored. `None` if all of the matrix is in bounds.
    pub len: Option<Value>,
    /// The index of the matrix's first element, a `U32`.
    pub index: Value,
    /// Elements from one row (or column) to the next, a `U32`.
    pub stride: Value,
    /// Whether the elements of a row are contiguous, rather than those of a column.
    pub row_major: bool,
}

/// The memory of a cooperative matrix of which each lane loads the elements that it holds: row `r`
/// and column `c` are at `place` plus `r * stride + c` elements if the matrix is row-major, else
/// plus `c * stride + r` elements. All of it is in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentPlace {
    /// The matrix.
    pub matrix: MatrixType,
    /// The address of its first element, in workgroup memory; a multiple of 16 bytes.
    pub place: Place,
    /// Elements from one row (or column) to the next, a `U32`; a multiple of 16 bytes.
    pub stride: Value,
    /// Whether the elements of a row are contiguous, rather than those of a column.
    pub row_major: bool,
}

impl MatrixSize {
    /// Returns the number of rows, which equals the number of columns.
    #[must_use]
    pub const fn rows(self) -> u32 {
        match self {
            Self::M8 => 8,
            Self::M16 => 16,
        }
    }

    /// Returns the number of elements that each of the 32 lanes of a subgroup holds.
    #[must_use]
    pub const fn elements_per_lane(self) -> u32 {
        match self {
            Self::M8 => 2,
            Self::M16 => 8,
        }
    }
}

impl MatrixElement {
    /// Returns the scalar type.
    #[must_use]
    pub const fn ty(self) -> Type {
        match self {
            Self::F16 => Type::F16,
            Self::F32 => Type::F32,
        }
    }

    /// Returns the element type that is this scalar type; `None` if no matrix has such elements.
    #[must_use]
    pub const fn of(ty: Type) -> Option<Self> {
        match ty {
            Type::F16 => Some(Self::F16),
            Type::F32 => Some(Self::F32),
            _ => None,
        }
    }
}

impl MatrixType {
    /// Every type.
    pub const ALL: [Self; 12] = {
        let roles = [MatrixUse::A, MatrixUse::B, MatrixUse::C];
        let sizes = [MatrixSize::M8, MatrixSize::M16];
        let elements = [MatrixElement::F16, MatrixElement::F32];
        let first = Self { role: roles[0], size: sizes[0], element: elements[0] };
        let mut all = [first; 12];
        let mut i = 0;
        while i < all.len() {
            let (role, size) = (roles[i / 4], sizes[i / 2 % 2]);
            all[i] = Self { role, size, element: elements[i % 2] };
            i += 1;
        }
        all
    };

    /// Returns the size of all elements in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.size.rows() * self.size.rows() * self.element.ty().size()
    }

    /// Returns whether a product `a * b + c` of these types is supported. Sizes must be equal,
    /// roles A, B and C; `a` and `b` are `f16` with `c` of `f16` or `f32`, or all three are `f32`.
    #[must_use]
    pub fn multiplies(a: Self, b: Self, c: Self) -> bool {
        [a.role, b.role, c.role] == [MatrixUse::A, MatrixUse::B, MatrixUse::C]
            && a.size == b.size
            && a.size == c.size
            && a.element == b.element
            && (a.element == MatrixElement::F16 || c.element == MatrixElement::F32)
    }

    /// The name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use MatrixElement::{F16, F32};
        use MatrixSize::{M8, M16};
        use MatrixUse::{A, B, C};
        match (self.role, self.size, self.element) {
            (A, M8, F16) => "a8x8_f16",
            (A, M8, F32) => "a8x8_f32",
            (A, M16, F16) => "a16x16_f16",
            (A, M16, F32) => "a16x16_f32",
            (B, M8, F16) => "b8x8_f16",
            (B, M8, F32) => "b8x8_f32",
            (B, M16, F16) => "b16x16_f16",
            (B, M16, F32) => "b16x16_f32",
            (C, M8, F16) => "c8x8_f16",
            (C, M8, F32) => "c8x8_f32",
            (C, M16, F16) => "c16x16_f16",
            (C, M16, F32) => "c16x16_f32",
        }
    }
}

impl fmt::Display for MatrixType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MatrixPlace {
    /// Calls `visit` with each operand. `visit` may replace the operand.
    pub(super) fn visit_operands(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        let Self { array, len, index, stride, .. } = self;
        for operand in array.index.iter_mut().chain(len) {
            visit(operand);
        }
        visit(index);
        visit(stride);
    }
}

impl FragmentPlace {
    /// Calls `visit` with each operand. `visit` may replace the operand.
    pub(super) fn visit_operands(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        if let Some(index) = &mut self.place.index {
            visit(index);
        }
        visit(&mut self.stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_distinct_names() {
        let mut names = MatrixType::ALL.map(MatrixType::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 12);
        let [a, .., c] = MatrixType::ALL;
        assert_eq!((a.name(), a.bytes()), ("a8x8_f16", 128));
        assert_eq!((c.name(), c.bytes()), ("c16x16_f32", 1024));
    }

    #[test]
    fn three_products_exist_per_size() {
        let mut products = 0;
        for a in MatrixType::ALL {
            for b in MatrixType::ALL {
                products += MatrixType::ALL
                    .into_iter()
                    .filter(|c| MatrixType::multiplies(a, b, *c))
                    .count();
            }
        }
        assert_eq!(products, 2 * 3, "f16 to f16, f16 to f32 and f32, of two sizes");
    }
}
