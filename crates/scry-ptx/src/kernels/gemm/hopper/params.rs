//! The launch parameters, in the order in which the kernel declares them.

use super::schedule::Schedule;
use super::variant::{Store, WARP_ROWS, tensor_element};
use super::{BiasAxis, HopperGemm, Major, producer, tiles};
use crate::kernels::gemm::{Gemm, Layout, MatrixLayout};
use crate::kernels::{BufferAccess, BufferParameter, Parameter, TensorMapSpec};
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

/// An operand in memory. In TF32x3 the matrices of the low terms follow those of the high terms.
struct Operand {
    layout: MatrixLayout,
    line: u64,
    lines: u64,
    /// Matrices per term.
    matrices: u64,
    /// Matrices in total.
    count: u64,
    /// Whether it has one matrix per element of the batch.
    batched: bool,
    /// Elements of a tile along the contiguous and the other dimension (the TMA box).
    tile: [u32; 2],
}

impl HopperGemm {
    /// Returns the operand of a layout; `outer` is its size along M or N.
    fn operand(&self, layout: &MatrixLayout, major: Major, outer: u64, tile: [u32; 2]) -> Operand {
        let Gemm { k: inner, batch, .. } = self.gemm;
        let (line, lines) = if major == Major::K { (inner, outer) } else { (outer, inner) };
        let batched = layout.stride != 0;
        let matrices = if batched { batch } else { 1 };
        let stride = if batched { layout.stride } else { layout.ld * lines };
        let layout = MatrixLayout { stride, ..*layout };
        let count = matrices * u64::from(self.variant.terms);
        Operand { layout, line, lines, matrices, count, batched, tile }
    }

    fn operands(&self) -> [Operand; 2] {
        let Self { gemm, variant, .. } = self;
        [
            self.operand(&gemm.a, variant.a, gemm.m, producer::a_box(variant)),
            self.operand(&gemm.b, variant.b, gemm.n, producer::b_box(variant)),
        ]
    }

    /// Returns the elements per row of results. TMA stores are rounded up to 16 bytes, for which
    /// the rows of partial results are padded.
    fn line(&self) -> u64 {
        let chunk = u64::from(16 / self.variant.output.size());
        match self.variant.store {
            Store::Tiles => self.gemm.n.next_multiple_of(chunk),
            _ => self.gemm.n,
        }
    }

    /// Returns the kernel's buffers.
    pub(super) fn buffers(&self) -> Vec<BufferParameter> {
        let Gemm { m, n, batch, element, out, .. } = self.gemm;
        let read =
            |name, element, len| BufferParameter { name, access: BufferAccess::Read, element, len };
        let [a, b] = self
            .operands()
            .map(|operand| extent(&operand.layout, operand.lines, operand.line, operand.count));
        let mut buffers = vec![read("a", element, a), read("b", element, b)];
        let element = self.variant.output;
        match self.variant.epilogue.bias {
            BiasAxis::None => {}
            BiasAxis::Columns => buffers.push(read("bias", element, n)),
            BiasAxis::Rows => buffers.push(read("bias", element, m)),
        }
        let (lines, line) = if out.order == Layout::RowMajor { (m, self.line()) } else { (n, m) };
        let len = extent(&out, lines, line, batch * u64::from(self.division.splits));
        buffers.push(BufferParameter { name: "out", access: BufferAccess::Write, element, len });
        buffers
    }

    /// Returns the kernel's parameters.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let Self { gemm, variant, .. } = self;
        let mut parameters = self.division_parameters();
        let operands = self.operands();
        for (nth, operand) in operands.iter().enumerate() {
            let Operand { layout, line, lines, count, tile, .. } = operand;
            let map = tensor_map(layout, variant.element, [*line, *lines, *count], *tile);
            parameters.push(Parameter::TensorMap(nth, map));
        }
        parameters.extend(operands.iter().map(|operand| Parameter::U32(operand.batched.into())));
        let matrices = operands.iter().map(|operand| Parameter::U32(operand.matrices as u32));
        parameters.extend(matrices);
        let bias = variant.epilogue.bias != BiasAxis::None;
        parameters.extend(self.out_parameters(if bias { 3 } else { 2 }));
        parameters.extend(bias.then_some(Parameter::Pointer(2)));
        let epilogue = &gemm.epilogue;
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend([gemm.m as u32, gemm.n as u32].map(Parameter::U32));
        parameters
    }

    fn division_parameters(&self) -> Vec<Parameter> {
        let (rows, columns) = tiles(&self.gemm, &self.variant.tile);
        let stages = self.gemm.k.div_ceil(self.variant.k_dim().into()) as u32;
        let split_stages = stages.div_ceil(self.division.splits * self.variant.tile.split_k);
        let batch = self.gemm.batch as u32;
        Schedule::parameters(&self.division, [rows, columns], batch, [stages, split_stages])
    }

    fn out_parameters(&self, at: usize) -> Vec<Parameter> {
        let Gemm { m, batch, out, .. } = self.gemm;
        match self.variant.store {
            Store::Tiles => {
                let size = [self.line(), m, batch * u64::from(self.division.splits)];
                let tile = [self.variant.staged_columns(), WARP_ROWS];
                vec![Parameter::TensorMap(at, tensor_map(&out, self.variant.output, size, tile))]
            }
            Store::Lanes | Store::Cluster(_) => {
                vec![Parameter::Pointer(at), Parameter::U64(out.ld), Parameter::U64(out.stride)]
            }
        }
    }
}

/// Returns the elements of `count` matrices of `lines` lines.
fn extent(layout: &MatrixLayout, lines: u64, line: u64, count: u64) -> u64 {
    let layout = MatrixLayout { order: Layout::RowMajor, ..*layout };
    layout.extent(lines, line, count).expect("the product's buffers were checked")
}

/// Returns the tensor map of matrices that TMA copies tile by tile.
fn tensor_map(
    layout: &MatrixLayout,
    element: PtxType,
    size: [u64; 3],
    tile: [u32; 2],
) -> TensorMapSpec {
    let bytes = u64::from(element.size());
    // The stride of a single row or matrix is unused; any valid one will do.
    let stride_bytes = |stride: u64, count: u64| if count > 1 { stride * bytes } else { 16 };
    TensorMapSpec {
        element: tensor_element(element),
        offset: 0,
        dims: size.to_vec(),
        strides: vec![stride_bytes(layout.ld, size[1]), stride_bytes(layout.stride, size[2])],
        tile: vec![tile[0], tile[1], 1],
        swizzle: Swizzle::B128,
    }
}
