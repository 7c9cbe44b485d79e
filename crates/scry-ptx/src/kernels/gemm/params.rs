//! Launch parameters of the tiled GEMM kernels.

use super::Gemm;
use super::rasterization::{Division, Place, TileOrder, tile_of};
use super::store::{Results, Sink};
use crate::kernels::{BufferParameter, KernelInterface, Parameter};
use crate::typed::{Code, Global, Ptr, Val};

/// A GEMM with its buffers, as it is launched.
#[derive(Debug, Clone)]
pub(super) struct Launched {
    /// The GEMM, with a row-major result.
    pub gemm: Gemm,
    pub buffers: Vec<BufferParameter>,
    pub division: Division,
    pub sink: Sink,
}

impl Launched {
    /// Returns the grid size.
    pub(super) fn grid(&self) -> [u32; 3] {
        self.division.grid().expect("it was checked when the kernel was chosen")
    }

    /// Returns what [`Terms::declare`] declares.
    pub(super) fn interface(&self) -> KernelInterface {
        let gemm = &self.gemm;
        let sides = [gemm.m, gemm.n, gemm.k, gemm.a.ld, gemm.b.ld];
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend(Sink::parameters(gemm, self.division.part_stride(gemm)));
        parameters.extend(sides.map(|side| Parameter::U32(side as u32)));
        parameters.extend([gemm.a.stride, gemm.b.stride].map(Parameter::U64));
        parameters.extend(self.division.parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// The kernel's parameters.
pub(super) struct Terms<'k> {
    operands: [Ptr<'k, Global, u8>; 2],
    pub results: Results<'k>,
    /// Rows and columns of the result.
    pub ends: [Val<'k, u32>; 2],
    k_dim: Val<'k, u32>,
    ld: [Val<'k, u32>; 2],
    strides: [Val<'k, u64>; 2],
    order: TileOrder<'k>,
}

/// A block's work: its tile and operands.
pub(super) struct Task<'k> {
    pub at: Place<'k>,
    /// Elements along K of its slice.
    pub k_dim: Val<'k, u32>,
    pub operands: [Operand<'k>; 2],
}

/// An operand of a tile.
pub(super) struct Operand<'k> {
    /// Base address.
    pub base: Ptr<'k, Global, u8>,
    /// Leading dimension in elements.
    pub ld: Val<'k, u32>,
    /// First row or column of the tile, and the operand's extent along M or N.
    pub mn_start: Val<'k, u32>,
    pub mn_extent: Val<'k, u32>,
    /// First element along K, and their number.
    pub k_start: Val<'k, u32>,
    pub k_dim: Val<'k, u32>,
}

impl<'k> Terms<'k> {
    pub(super) fn declare(k: &'k Code, sink: Sink) -> Self {
        Self {
            operands: ["a", "b"].map(|name| k.pointer(name)),
            results: Results::declare(k, sink),
            ends: ["m", "n"].map(|name| k.number(name)),
            k_dim: k.number("k"),
            ld: ["a_leading", "b_leading"].map(|name| k.number(name)),
            strides: ["a_stride", "b_stride"].map(|name| k.number(name)),
            order: TileOrder::declare(k),
        }
    }

    /// Returns the work of this block, which exits if it has none; for tiles of `tile` rows and
    /// columns, and elements of `size` bytes.
    pub(super) fn task(&self, k: &'k Code, tile: [u32; 2], size: u32) -> Task<'k> {
        let at = tile_of(k, &self.order, tile);
        let k_start = at.part * self.order.part_k_dim;
        let k_dim = (self.k_dim - k_start).min(self.order.part_k_dim);
        let operands = [(0, at.row), (1, at.column)].map(|(side, start)| {
            let product = at.batch.convert::<u64>("") * self.strides[side];
            Operand {
                base: self.operands[side].at_wide(product * u64::from(size)),
                ld: self.ld[side],
                mn_start: start,
                mn_extent: self.ends[side],
                k_start,
                k_dim,
            }
        });
        Task { at, k_dim, operands }
    }
}
