//! Fragments of cooperative matrices: replaces each matrix by the elements that a lane holds, for
//! backends without instructions for whole matrices.
//!
//! The backend decides which elements a lane holds ([`MatrixFragments`]). Element-wise operations
//! apply to each scalar; loads and stores access elements whose indices depend on the lane, or
//! loads become [`Inst::LoadFragment`](super::Inst::LoadFragment); a product becomes
//! [`Inst::MultiplyFragments`](super::Inst::MultiplyFragments).

mod accesses;
mod expand;
mod layout;
mod products;

pub use layout::{FragmentLayout, LaneBits, MatrixFragments};

use super::{Kir, Type, optimise};

impl Kir {
    /// Returns whether the kernel has cooperative matrices.
    #[must_use]
    pub fn has_matrices(&self) -> bool {
        let mut types = self.values.iter().map(|definition| definition.ty);
        types.any(|ty| matches!(ty, Type::Matrix(_)))
    }

    /// Returns the kernel, which must be valid, with scalars in place of its cooperative matrices,
    /// for subgroups of 32 lanes. The result is optimised.
    ///
    /// ```
    /// use scry_ir::kir::{FragmentLayout, Inst, KirOptions, LaneBits, MatrixFragments};
    ///
    /// // Rows are distributed over groups of four lanes, each of which holds pairs of columns.
    /// let (group, pair) = (LaneBits { shift: 2, scale: 1 }, LaneBits { shift: 0, scale: 2 });
    /// let rows = FragmentLayout { row: group, column: pair, steps: [[0, 1], [8, 0], [0, 8]] };
    /// let columns = FragmentLayout { row: pair, column: group, steps: [[1, 0], [8, 0], [0, 8]] };
    /// let layout = MatrixFragments { a: rows, b: columns, c: rows, has_load: false };
    /// let program = scry_ir::Program::parse(
    ///     "enable wgpu_cooperative_matrix;
    ///      @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    ///      @compute @workgroup_size(32) fn copy() {
    ///          coopStore(coopLoad<coop_mat8x8<f32, C>>(&data[64], 8u), &data[0], 8u);
    ///      }",
    /// )?;
    /// let kir = program.to_kir(&KirOptions { checked: true })?;
    /// assert!(kir.has_matrices());
    /// assert!(!kir.with_fragments(&layout).has_matrices());
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    #[must_use]
    pub fn with_fragments(&self, layout: &MatrixFragments) -> Self {
        let mut kir = expand::expand(self, layout);
        optimise(&mut kir);
        kir
    }
}

#[cfg(test)]
pub(super) mod tests;
