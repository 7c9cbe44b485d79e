//! Converts `f32` operands for tensor cores: repacks them K-major, rounded to TF32 or split into
//! two TF32 terms.

use super::memory::to_u64;
use super::{Layout, MatrixLayout};
use crate::asm::Opcode;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Shared, ToOperand, Val};
use crate::types::PtxType;

/// Rows and columns of a block's tile.
const TILE: u32 = 32;
/// Rows of a tile that are copied at the same time.
const ROWS_PER_STEP: u32 = 8;
/// Row pitch in shared memory, padded against bank conflicts.
const PITCH: u32 = TILE + 1;

/// Rounds an operand to TF32 or splits it into two terms; the result is K-major.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// Layout of the operand.
    pub layout: MatrixLayout,
    /// Whether the operand is K-major already.
    pub is_k_major: bool,
    /// Elements along K.
    pub k_dim: u64,
    /// Elements along M or N.
    pub mn_extent: u64,
    /// Number of matrices.
    pub batch: u64,
    /// TF32 terms per element: 1 or 2.
    pub terms: u32,
}

impl Split {
    /// Creates the operand from its sizes along M or N, and along K.
    pub(super) fn new(
        layout: MatrixLayout,
        [mn_extent, k_dim]: [u64; 2],
        is_k_major: bool,
        batch: u64,
    ) -> Self {
        let batch = if layout.stride == 0 { 1 } else { batch };
        Self { layout, is_k_major, k_dim, mn_extent, batch, terms: 1 }
    }

    /// Returns the leading dimension of the result.
    fn result_ld(&self) -> u64 {
        self.k_dim.next_multiple_of(TILE.into())
    }

    /// Returns the layout of the result. The matrices of the low terms, if there are any, follow
    /// those of the high terms.
    pub(super) fn result_layout(&self) -> MatrixLayout {
        let order =
            if self.is_k_major { self.layout.order } else { self.layout.order.transposed() };
        let stride = if self.layout.stride == 0 { 0 } else { self.matrix_len() };
        MatrixLayout { order, ld: self.result_ld(), stride }
    }

    fn matrix_len(&self) -> u64 {
        self.result_ld() * self.mn_extent
    }

    /// Returns the bytes of the result.
    pub(super) fn bytes(&self) -> u64 {
        4 * self.matrix_len() * self.batch * u64::from(self.terms)
    }

    fn tiles(&self) -> [u64; 2] {
        [self.k_dim, self.mn_extent].map(|size| size.div_ceil(TILE.into()))
    }

    /// Whether the numbers of tiles and of matrices are in range.
    pub(super) fn fits_grid(&self) -> bool {
        let [k_tiles, mn_tiles] = self.tiles();
        k_tiles * mn_tiles < 1 << 31 && self.batch <= 65535
    }

    fn len(&self) -> u64 {
        let (line, lines) = if self.is_k_major {
            (self.k_dim, self.mn_extent)
        } else {
            (self.mn_extent, self.k_dim)
        };
        let packed = MatrixLayout { order: Layout::RowMajor, ..self.layout };
        packed.extent(lines, line, self.batch).expect("the product's buffers were checked")
    }
}

/// The copy of a block's tile: the kernel's parameters, and the tile's position.
struct TileCopy<'k> {
    k: &'k KernelBuilder,
    from: Ptr<'k, Global, f32>,
    to: Ptr<'k, Global, f32>,
    /// Leading dimension and batch stride of the operand.
    ld: Val<'k, u64>,
    stride: Val<'k, u64>,
    /// Leading dimension and batch stride of the result.
    out_ld: Val<'k, u64>,
    out_stride: Val<'k, u64>,
    /// Elements from a high term to its low term in the result.
    term_stride: Val<'k, u64>,
    k_dim: Val<'k, u32>,
    mn_extent: Val<'k, u32>,
    /// First element along K.
    first_k_index: Val<'k, u32>,
    /// First element along M or N.
    first_mn: Val<'k, u32>,
}

impl PtxKernel for Split {
    fn name(&self) -> String {
        let major = if self.is_k_major { "kmajor" } else { "mnmajor" };
        Name::new(format_args!("gemm_split{}", self.terms)).with(major).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [TILE, ROWS_PER_STEP, 1], |k| {
            let copy = TileCopy::new(k);
            match self.is_k_major {
                true => copy.copy_k_major(self.terms),
                false => copy.copy_transposed(self.terms),
            }
        })
    }

    fn launch(&self) -> LaunchShape {
        let [k_tiles, mn_tiles] = self.tiles();
        LaunchShape {
            grid: [(k_tiles * mn_tiles) as u32, 1, self.batch as u32],
            block: [TILE, ROWS_PER_STEP, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let (element, bytes) = (PtxType::F32, self.bytes());
        let buffers = vec![
            BufferParameter {
                name: "operand",
                access: BufferAccess::Read,
                element,
                len: self.len(),
            },
            BufferParameter {
                name: "terms",
                access: BufferAccess::Write,
                element: PtxType::B8,
                len: bytes,
            },
        ];
        let matrix = self.matrix_len();
        let sizes =
            [self.layout.ld, self.layout.stride, self.result_ld(), matrix, matrix * self.batch];
        let mut parameters = vec![Parameter::Pointer(0), Parameter::Pointer(1)];
        parameters.extend(sizes.map(Parameter::U64));
        parameters.extend([self.k_dim, self.mn_extent].map(|size| Parameter::U32(size as u32)));
        KernelInterface { buffers, parameters }
    }
}

impl<'k> TileCopy<'k> {
    fn new(k: &'k KernelBuilder) -> Self {
        let (from, to) = (k.pointer_param("operand"), k.pointer_param("terms"));
        let [ld, stride] = ["operand_ld", "operand_stride"].map(|name| k.scalar_param(name));
        let [out_ld, out_stride, term_stride] =
            ["terms_ld", "terms_stride", "term_stride"].map(|name| k.scalar_param(name));
        let (k_dim, mn_extent): (Val<'_, u32>, _) =
            (k.scalar_param("k_dim"), k.scalar_param("mn_extent"));
        let k_tiles = (k_dim + (TILE - 1)) / TILE;
        let mn_tiles = k.block_id(0) / k_tiles;
        let first_k_index = (k.block_id(0) - mn_tiles * k_tiles) * TILE;
        Self {
            k,
            from,
            to,
            ld,
            stride,
            out_ld,
            out_stride,
            term_stride,
            k_dim,
            mn_extent,
            first_k_index,
            first_mn: mn_tiles * TILE,
        }
    }

    fn row(&self) -> Val<'k, u32> {
        self.k.special("%tid.y")
    }

    /// Loads element `nth` of a line; 0 out of bounds.
    fn load_or_zero<'a>(
        &'a self,
        line: Val<'a, u32>,
        nth: Val<'a, u32>,
        in_bounds: Val<'a, bool>,
    ) -> Val<'a, f32> {
        let at = to_u64(self.k.block_id(2)) * self.stride + to_u64(line) * self.ld + to_u64(nth);
        let value = self.k.var::<f32>(0.0);
        self.k.if_then(in_bounds, || value.set(self.from.at_wide(at).load_constant()));
        value.get()
    }

    /// Converts a tile that is K-major already.
    fn copy_k_major(&self, terms: u32) {
        let k_index = self.first_k_index + self.k.thread_id();
        let mn_index = self.first_mn + self.row();
        let values: Vec<_> = (0..TILE / ROWS_PER_STEP)
            .map(|nth| {
                let mn_index = mn_index + nth * ROWS_PER_STEP;
                let in_bounds = k_index.lt(self.k_dim) & mn_index.lt(self.mn_extent);
                (mn_index, in_bounds, self.load_or_zero(mn_index, k_index, in_bounds))
            })
            .collect();
        for (mn_index, in_bounds, value) in values {
            self.k.if_then(in_bounds, || self.store_terms(mn_index, k_index, value, terms));
        }
    }

    /// Transposes a tile through shared memory.
    fn copy_transposed(&self, terms: u32) {
        let (k, x, y) = (self.k, self.k.thread_id(), self.row());
        let tile = k.shared::<f32>(TILE * PITCH, 4);
        for nth in 0..TILE / ROWS_PER_STEP {
            let (mn_index, line) =
                (self.first_mn + x, self.first_k_index + y + nth * ROWS_PER_STEP);
            let in_bounds = mn_index.lt(self.mn_extent) & line.lt(self.k_dim);
            let value = self.load_or_zero(line, mn_index, in_bounds);
            tile_element(tile, y + nth * ROWS_PER_STEP, x).store(value);
        }
        k.sync();
        for nth in 0..TILE / ROWS_PER_STEP {
            let (k_index, mn_index) =
                (self.first_k_index + x, self.first_mn + y + nth * ROWS_PER_STEP);
            let value = tile_element(tile, x, y + nth * ROWS_PER_STEP).load();
            let in_bounds = k_index.lt(self.k_dim) & mn_index.lt(self.mn_extent);
            k.if_then(in_bounds, || self.store_terms(mn_index, k_index, value, terms));
        }
    }

    fn store_terms<'a>(
        &'a self,
        mn_index: Val<'a, u32>,
        k_index: Val<'a, u32>,
        value: Val<'a, f32>,
        terms: u32,
    ) {
        let matrix = to_u64(self.k.block_id(2)) * self.out_stride;
        let at = matrix + to_u64(mn_index) * self.out_ld + to_u64(k_index);
        let high = round_to_tf32(value);
        self.to.at_wide(at).store(high);
        if terms == 2 {
            self.to.at_wide(at + self.term_stride).store(round_to_tf32(value - high));
        }
    }
}

fn tile_element<'k>(
    tile: Ptr<'k, Shared, f32>,
    row: Val<'k, u32>,
    column: Val<'k, u32>,
) -> Ptr<'k, Shared, f32> {
    tile.at(row * PITCH + column)
}

/// Rounds to the nearest TF32; values that would round to infinity are truncated.
fn round_to_tf32(value: Val<'_, f32>) -> Val<'_, f32> {
    let k = value.builder();
    let nearest: Val<'_, u32> = k.op(Opcode::new("cvt.rna.tf32.f32"), &[value.operand()]);
    let overflows = (nearest & 0x7fff_ffff).eq(0x7f80_0000);
    overflows.select(value.cast::<u32>() & 0xffff_e000, nearest).cast()
}
