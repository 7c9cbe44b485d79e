//! Launch parameters of the tiled GEMM kernels.

use super::Gemm;
use super::rasterization::{BlockTile, Division, TileOrder, block_tile};
use super::store::{Results, StoreVariant};
use crate::kernels::{BufferParameter, KernelInterface, Parameter};
use crate::typed::{Global, KernelBuilder, Ptr, Val};

/// A GEMM with all that its launch needs: buffers, tiles, and how results are stored.
#[derive(Debug, Clone)]
pub(super) struct GemmLaunch {
    /// The GEMM, with a row-major result.
    pub gemm: Gemm,
    pub buffers: Vec<BufferParameter>,
    pub division: Division,
    pub store: StoreVariant,
}

impl GemmLaunch {
    /// Returns the grid size.
    pub(super) fn grid(&self) -> [u32; 3] {
        self.division.grid().expect("it was checked when the kernel was chosen")
    }

    /// Returns what [`Params::declare`] declares.
    pub(super) fn interface(&self) -> KernelInterface {
        let gemm = &self.gemm;
        let sizes = [gemm.m, gemm.n, gemm.k, gemm.a.ld, gemm.b.ld];
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend(StoreVariant::parameters(gemm, self.division.split_stride(gemm)));
        parameters.extend(sizes.map(|size| Parameter::U32(size as u32)));
        parameters.extend([gemm.a.stride, gemm.b.stride].map(Parameter::U64));
        parameters.extend(self.division.parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// The kernel's parameters.
pub(super) struct Params<'k> {
    operands: [Ptr<'k, Global, u8>; 2],
    pub results: Results<'k>,
    /// Rows and columns of the result, M and N.
    pub mn: [Val<'k, u32>; 2],
    k_dim: Val<'k, u32>,
    ld: [Val<'k, u32>; 2],
    strides: [Val<'k, u64>; 2],
    order: TileOrder<'k>,
}

/// A block's work: its tile, and its part of the operands.
pub(super) struct Task<'k> {
    pub at: BlockTile<'k>,
    /// Elements along K of the block's slice.
    pub k_dim: Val<'k, u32>,
    pub operands: [Operand<'k>; 2],
}

/// An operand of a tile.
pub(super) struct Operand<'k> {
    /// Base address.
    pub base: Ptr<'k, Global, u8>,
    /// Leading dimension in elements.
    pub ld: Val<'k, u32>,
    /// First row or column of the tile.
    pub mn_start: Val<'k, u32>,
    /// The operand's extent along M or N.
    pub mn_extent: Val<'k, u32>,
    /// First element along K of the block's slice.
    pub k_start: Val<'k, u32>,
    /// Elements along K of the block's slice.
    pub k_dim: Val<'k, u32>,
}

impl<'k> Params<'k> {
    /// Declares the parameters.
    pub(super) fn declare(k: &'k KernelBuilder, store: StoreVariant) -> Self {
        Self {
            operands: ["a", "b"].map(|name| k.pointer_param(name)),
            results: Results::declare(k, store),
            mn: ["m", "n"].map(|name| k.scalar_param(name)),
            k_dim: k.scalar_param("k"),
            ld: ["a_ld", "b_ld"].map(|name| k.scalar_param(name)),
            strides: ["a_stride", "b_stride"].map(|name| k.scalar_param(name)),
            order: TileOrder::declare(k),
        }
    }

    /// Returns the work of this block, which exits if it has none; for tiles of `tile` rows and
    /// columns, and elements of `size` bytes.
    pub(super) fn task(&self, k: &'k KernelBuilder, tile: [u32; 2], size: u32) -> Task<'k> {
        let at = block_tile(k, &self.order, tile);
        let k_start = at.split * self.order.split_k_dim;
        let k_dim = (self.k_dim - k_start).min(self.order.split_k_dim);
        let operands = [(0, at.row), (1, at.column)].map(|(operand, start)| {
            let product = at.batch.convert::<u64>("") * self.strides[operand];
            Operand {
                base: self.operands[operand].at_wide(product * u64::from(size)),
                ld: self.ld[operand],
                mn_start: start,
                mn_extent: self.mn[operand],
                k_start,
                k_dim,
            }
        });
        Task { at, k_dim, operands }
    }
}
