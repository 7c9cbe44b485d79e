//! Converts `f32` operands for tensor cores: K-major, rounded to TF32, or split into two TF32
//! terms.

use super::memory::wide;
use super::{Layout, MatrixLayout};
use crate::asm::Opcode;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Shared, ToOperand, Val};
use crate::types::PtxType;

/// Rows and columns of a block's tile.
const SIDE: u32 = 32;
/// Rows of a tile that are copied at the same time.
const AT_ONCE: u32 = 8;
/// Row pitch in shared memory, padded against bank conflicts.
const PADDED: u32 = SIDE + 1;

/// Rounds an operand to TF32 or splits it into two terms, K-major.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// Its layout.
    pub layout: MatrixLayout,
    /// Whether it is K-major already.
    pub inner: bool,
    /// Elements along K.
    pub k_dim: u64,
    /// Elements along M or N.
    pub outer: u64,
    /// Number of matrices.
    pub batch: u64,
    /// TF32 terms per element: 1 or 2.
    pub terms: u32,
}

impl Split {
    /// Creates the operand from its sizes along M or N, and along K.
    pub(super) fn new(
        layout: MatrixLayout,
        [outer, k_dim]: [u64; 2],
        inner: bool,
        batch: u64,
    ) -> Self {
        let batch = if layout.stride == 0 { 1 } else { batch };
        Self { layout, inner, k_dim, outer, batch, terms: 1 }
    }

    /// Returns the leading dimension of the result.
    fn ld(&self) -> u64 {
        self.k_dim.next_multiple_of(SIDE.into())
    }

    /// Returns the layout of the result: the matrices of the high terms, then those of the low
    /// terms.
    pub(super) fn target(&self) -> MatrixLayout {
        let inner = if self.inner { self.layout.order } else { self.layout.order.transposed() };
        let stride = if self.layout.stride == 0 { 0 } else { self.matrix() };
        MatrixLayout { order: inner, ld: self.ld(), stride }
    }

    fn matrix(&self) -> u64 {
        self.ld() * self.outer
    }

    /// Returns the bytes of the result.
    pub(super) fn bytes(&self) -> u64 {
        4 * self.matrix() * self.batch * u64::from(self.terms)
    }

    fn tiles(&self) -> [u64; 2] {
        [self.k_dim, self.outer].map(|side| side.div_ceil(SIDE.into()))
    }

    /// Whether the number of tiles is in range.
    pub(super) fn fits(&self) -> bool {
        let [across, down] = self.tiles();
        across * down < 1 << 31 && self.batch <= 65535
    }

    fn len(&self) -> u64 {
        let (line, lines) =
            if self.inner { (self.k_dim, self.outer) } else { (self.outer, self.k_dim) };
        let packed = MatrixLayout { order: Layout::RowMajor, ..self.layout };
        packed.extent(lines, line, self.batch).expect("the product's buffers were checked")
    }
}

/// The kernel's parameters, and the block's tile.
struct Move<'k> {
    k: &'k Code,
    from: Ptr<'k, Global, f32>,
    to: Ptr<'k, Global, f32>,
    ld: Val<'k, u64>,
    stride: Val<'k, u64>,
    to_ld: Val<'k, u64>,
    to_matrix: Val<'k, u64>,
    to_part: Val<'k, u64>,
    k_dim: Val<'k, u32>,
    outer: Val<'k, u32>,
    /// First element along K.
    first_k_index: Val<'k, u32>,
    /// First element along M or N.
    first_outer: Val<'k, u32>,
}

impl PtxKernel for Split {
    fn name(&self) -> String {
        let major = if self.inner { "kmajor" } else { "mnmajor" };
        Name::new(format_args!("gemm_split{}", self.terms)).with(major).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [SIDE, AT_ONCE, 1], |k| {
            let it = Move::new(k);
            match self.inner {
                true => it.lines(self.terms),
                false => it.transposed(self.terms),
            }
        })
    }

    fn launch(&self) -> LaunchShape {
        let [across, down] = self.tiles();
        LaunchShape {
            grid: [(across * down) as u32, 1, self.batch as u32],
            block: [SIDE, AT_ONCE, 1],
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
                name: "parts",
                access: BufferAccess::Write,
                element: PtxType::B8,
                len: bytes,
            },
        ];
        let matrix = self.matrix();
        let sizes = [self.layout.ld, self.layout.stride, self.ld(), matrix, matrix * self.batch];
        let mut parameters = vec![Parameter::Pointer(0), Parameter::Pointer(1)];
        parameters.extend(sizes.map(Parameter::U64));
        parameters.extend([self.k_dim, self.outer].map(|side| Parameter::U32(side as u32)));
        KernelInterface { buffers, parameters }
    }
}

impl<'k> Move<'k> {
    fn new(k: &'k Code) -> Self {
        let (from, to) = (k.pointer("from"), k.pointer("to"));
        let [ld, stride, to_ld, to_matrix, to_part] =
            ["leading", "stride", "to_leading", "to_matrix", "to_part"].map(|name| k.number(name));
        let (k_dim, outer): (Val<'_, u32>, _) = (k.number("depth"), k.number("outer"));
        let across = (k_dim + (SIDE - 1)) / SIDE;
        let down = k.block_id(0) / across;
        let first_k_index = (k.block_id(0) - down * across) * SIDE;
        Self {
            k,
            from,
            to,
            ld,
            stride,
            to_ld,
            to_matrix,
            to_part,
            k_dim,
            outer,
            first_k_index,
            first_outer: down * SIDE,
        }
    }

    fn row(&self) -> Val<'k, u32> {
        self.k.special("%tid.y")
    }

    /// Loads the element at a position of a row; 0 out of bounds.
    fn read<'a>(
        &'a self,
        line: Val<'a, u32>,
        nth: Val<'a, u32>,
        within: Val<'a, bool>,
    ) -> Val<'a, f32> {
        let at = wide(self.k.block_id(2)) * self.stride + wide(line) * self.ld + wide(nth);
        let value = self.k.var::<f32>(0.0);
        self.k.when(within, || value.set(self.from.at_wide(at).load_constant()));
        value.get()
    }

    /// Converts a tile that is K-major already.
    fn lines(&self, terms: u32) {
        let k_index = self.first_k_index + self.k.thread_id();
        let outer = self.first_outer + self.row();
        let values: Vec<_> = (0..SIDE / AT_ONCE)
            .map(|nth| {
                let outer = outer + nth * AT_ONCE;
                let within = k_index.lt(self.k_dim) & outer.lt(self.outer);
                (outer, within, self.read(outer, k_index, within))
            })
            .collect();
        for (outer, within, value) in values {
            self.k.when(within, || self.write(outer, k_index, value, terms));
        }
    }

    /// Transposes a tile through shared memory.
    fn transposed(&self, terms: u32) {
        let (k, x, y) = (self.k, self.k.thread_id(), self.row());
        let tile = k.shared::<f32>(SIDE * PADDED, 4);
        for nth in 0..SIDE / AT_ONCE {
            let (outer, line) = (self.first_outer + x, self.first_k_index + y + nth * AT_ONCE);
            let within = outer.lt(self.outer) & line.lt(self.k_dim);
            let value = self.read(line, outer, within);
            place(tile, y + nth * AT_ONCE, x).store(value);
        }
        k.sync();
        for nth in 0..SIDE / AT_ONCE {
            let (k_index, outer) = (self.first_k_index + x, self.first_outer + y + nth * AT_ONCE);
            let value = place(tile, x, y + nth * AT_ONCE).load();
            let within = k_index.lt(self.k_dim) & outer.lt(self.outer);
            k.when(within, || self.write(outer, k_index, value, terms));
        }
    }

    fn write<'a>(
        &'a self,
        outer: Val<'a, u32>,
        k_index: Val<'a, u32>,
        value: Val<'a, f32>,
        terms: u32,
    ) {
        let matrix = wide(self.k.block_id(2)) * self.to_matrix;
        let at = matrix + wide(outer) * self.to_ld + wide(k_index);
        let big = rounded(value);
        self.to.at_wide(at).store(big);
        if terms == 2 {
            self.to.at_wide(at + self.to_part).store(rounded(value - big));
        }
    }
}

fn place<'k>(
    tile: Ptr<'k, Shared, f32>,
    row: Val<'k, u32>,
    column: Val<'k, u32>,
) -> Ptr<'k, Shared, f32> {
    tile.at(row * PADDED + column)
}

/// Rounds to the nearest TF32; values too large for that are truncated.
fn rounded(value: Val<'_, f32>) -> Val<'_, f32> {
    let k = value.code();
    let nearest: Val<'_, u32> = k.op(Opcode::new("cvt.rna.tf32.f32"), &[value.operand()]);
    let overflown = (nearest & 0x7fff_ffff).equals(0x7f80_0000);
    overflown.select(value.cast::<u32>() & 0xffff_e000, nearest).cast()
}
