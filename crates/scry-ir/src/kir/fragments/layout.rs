//! Which elements of a matrix a lane holds.

use crate::kir::{MatrixRole, MatrixSize};

/// The layouts of the operands of [`Inst::MultiplyFragments`](crate::kir::Inst::MultiplyFragments)
/// over the 32 lanes of a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixFragments {
    /// Left factors.
    pub a: FragmentLayout,
    /// Right factors.
    pub b: FragmentLayout,
    /// Accumulators.
    pub c: FragmentLayout,
}

/// The elements of a matrix that a lane holds: 2 of one with 8 rows, 8 of one with 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentLayout {
    /// The row of the lane's first element.
    pub row: LaneBits,
    /// The column of the lane's first element.
    pub column: LaneBits,
    /// Rows and columns that bits 0, 1 and 2 of an element's number add to those of the first one.
    pub steps: [[u32; 2]; 3],
}

/// A row or column below 8 as a function of the lane: bits of its number, times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneBits {
    /// The lowest bit of the lane that counts.
    pub shift: u32,
    /// The factor, a power of two: 1 for three bits, 2 for two bits.
    pub scale: u32,
}

impl MatrixFragments {
    /// Returns the layout of matrices of a role.
    pub(super) const fn of(&self, role: MatrixRole) -> &FragmentLayout {
        match role {
            MatrixRole::A => &self.a,
            MatrixRole::B => &self.b,
            MatrixRole::C => &self.c,
        }
    }
}

impl FragmentLayout {
    /// Returns the rows and columns between the first element of a lane and another one.
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

/// Returns the number of elements that a lane holds.
pub(super) const fn held(size: MatrixSize) -> u32 {
    match size {
        MatrixSize::M8 => 2,
        MatrixSize::M16 => 8,
    }
}
