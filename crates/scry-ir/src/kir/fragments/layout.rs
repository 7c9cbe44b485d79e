//! Which elements of a matrix a lane holds.

use crate::kir::MatrixUse;

/// The layouts of the operands of [`Inst::MultiplyFragments`](crate::kir::Inst::MultiplyFragments)
/// over the 32 lanes of a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixFragments {
    /// Left operands.
    pub a: FragmentLayout,
    /// Right operands.
    pub b: FragmentLayout,
    /// Accumulators.
    pub c: FragmentLayout,
    /// Whether [`Inst::LoadFragment`](crate::kir::Inst::LoadFragment) loads `f16` matrices in
    /// workgroup memory that are in bounds and whose rows (or columns) are aligned to 16 bytes.
    pub has_load: bool,
}

/// Which elements of a matrix a lane holds: 2 of an 8 × 8 matrix, 8 of a 16 × 16 matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentLayout {
    /// The row of the lane's first element.
    pub row: LaneBits,
    /// The column of the lane's first element.
    pub column: LaneBits,
    /// The position of the lane's other elements: bit `i` of an element's number, if set, adds
    /// `steps[i]`, a number of rows and of columns, to the position of the first one. Products rely
    /// on `[8, 0]` and `[0, 8]` as the last two.
    pub steps: [[u32; 2]; 3],
}

/// A row or column below 8 as a function of the lane: `(lane >> shift) % (8 / scale) * scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneBits {
    /// The lowest bit of the lane that is used.
    pub shift: u32,
    /// The factor, a power of two: 1 for three bits, 2 for two bits.
    pub scale: u32,
}

impl MatrixFragments {
    /// Returns the layout of an operand.
    pub(super) const fn operand(&self, role: MatrixUse) -> &FragmentLayout {
        match role {
            MatrixUse::A => &self.a,
            MatrixUse::B => &self.b,
            MatrixUse::C => &self.c,
        }
    }
}

impl FragmentLayout {
    /// Returns the numbers of rows and columns from a lane's first element to its element `nth`.
    pub(super) fn distance(&self, nth: u32) -> [u32; 2] {
        let mut distance = [0, 0];
        for (bit, [rows, columns]) in (0..).zip(self.steps) {
            let set = nth >> bit & 1;
            distance[0] += set * rows;
            distance[1] += set * columns;
        }
        distance
    }
}
