//! Reference GEMM kernels: one result per thread. They support all types, layouts and strides, and
//! are the reference for tests of the fast kernels.
//!
//! The naive kernel reads a row and a column from global memory for each result, and depends on the
//! caches. The tiled one stages square tiles of both operands in shared memory, so that each
//! element is read once per tile of results instead of once per row or column.

use super::epilogue::EpilogueScalars;
use super::memory::{load_element, store_element, to_u64};
use super::rasterization::{BlockTile, Division, TileOrder, block_tile};
use super::{Gemm, Layout, MatrixLayout, argument_error};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Val};
use crate::types::PtxType;

/// Rows and columns per block of the naive kernel.
const NAIVE_BLOCK: [u32; 2] = [8, 32];

/// A GEMM kernel with one result per thread.
///
/// ```
/// use scry_ptx::kernels::{PtxKernel, gemm::GemmKernel};
///
/// let kernel = GemmKernel::tiled(1000, 500, 300, 16)?;
/// assert_eq!(kernel.launch().grid, [63 * 32, 1, 1]);
/// assert!(kernel.emit_ptx().contains(".visible .entry gemm_tiled16_f32"));
/// # Ok::<(), scry_ptx::kernels::PlanError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GemmKernel {
    gemm: Gemm,
    buffers: Vec<BufferParameter>,
    /// Side of the square tiles in shared memory, if any.
    tile: Option<u32>,
}

impl GemmKernel {
    /// Creates a naive `f32` GEMM `out = a * b`: `m` × `k` by `k` × `n`, all row-major, one result
    /// per thread.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size is out of range.
    pub fn naive(m: u64, n: u64, k: u64) -> Result<Self, PlanError> {
        Self::of(&Gemm::new(m, n, k, PtxType::F32), None)
    }

    /// Creates the same GEMM with square tiles in shared memory, of 8, 16 or 32 elements a side.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size is out of range, or the tile has none of these sizes.
    pub fn tiled(m: u64, n: u64, k: u64, tile: u32) -> Result<Self, PlanError> {
        Self::of(&Gemm::new(m, n, k, PtxType::F32), Some(tile))
    }

    /// Creates a kernel for any GEMM: tiled if a tile size is given, else naive. It always computes
    /// in `f32`.
    ///
    /// # Errors
    /// As [`GemmKernel::tiled`] and [`Gemm::buffers`].
    pub fn of(gemm: &Gemm, tile: Option<u32>) -> Result<Self, PlanError> {
        if let Some(tile) = tile.filter(|tile| !matches!(tile, 8 | 16 | 32)) {
            return Err(argument_error(
                "tile",
                tile.to_string(),
                "use tiles of 8, 16 or 32 elements a side",
            ));
        }
        let kernel = Self { gemm: *gemm, buffers: gemm.buffers()?, tile };
        match kernel.division().grid() {
            Some(_) => Ok(kernel),
            None => {
                let problem = format!("{} by {}, too many blocks", gemm.m, gemm.n);
                Err(argument_error(
                    "out",
                    problem,
                    "split the product into several with fewer rows or columns",
                ))
            }
        }
    }

    /// Returns the rows and columns per block.
    fn block_size(&self) -> [u32; 2] {
        self.tile.map_or(NAIVE_BLOCK, |tile| [tile, tile])
    }

    fn division(&self) -> Division {
        Division::new(&self.gemm, self.block_size(), 1, 1)
    }
}

/// Returns the row, column and batch strides, in elements.
fn strides(layout: &MatrixLayout) -> [u64; 3] {
    match layout.order {
        Layout::RowMajor => [layout.ld, 1, layout.stride],
        Layout::ColMajor => [1, layout.ld, layout.stride],
    }
}

impl PtxKernel for GemmKernel {
    fn name(&self) -> String {
        let Gemm { element, output, epilogue, .. } = &self.gemm;
        let name = match self.tile {
            None => Name::new("gemm_naive"),
            Some(tile) => Name::new(format_args!("gemm_tiled{tile}")),
        };
        epilogue.append_to(name.types(*element, *output), false).build()
    }

    fn default_target(&self) -> Target {
        if self.gemm.output == PtxType::Bf16 { Target::SM_80 } else { Target::SM_75 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let [rows, columns] = self.block_size();
        typed::kernel(&self.name(), target, [rows * columns, 1, 1], |k| {
            let params = Params::declare(k, self);
            let at = block_tile(k, &params.order, self.block_size());
            let (row, column) = (k.thread_id() / columns, k.thread_id() % columns);
            let sum = match self.tile {
                Some(tile) => params.accumulate_tiled(&at, row, column, tile),
                None => params.accumulate(&at, row, column),
            };
            params.store_result(self, &at, [at.row + row, at.column + column], sum);
        })
    }

    fn launch(&self) -> LaunchShape {
        let [rows, columns] = self.block_size();
        LaunchShape {
            grid: self.division().grid().expect("it was checked when the kernel was made"),
            block: [rows * columns, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let Gemm { m, n, k, a, b, out, epilogue, .. } = &self.gemm;
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend([*m, *n, *k].map(|size| Parameter::U32(size as u32)));
        let strides = [a, b, out].map(strides);
        parameters.extend(strides.as_flattened().iter().map(|n| Parameter::U64(*n)));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend(self.division().parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// A matrix as values of a kernel.
#[derive(Clone, Copy)]
struct Matrix<'k> {
    base: Ptr<'k, Global, u8>,
    element: PtxType,
    /// Row, column and batch stride, in elements.
    strides: [Val<'k, u64>; 3],
}

impl<'k> Matrix<'k> {
    fn address(
        &self,
        batch: Val<'k, u32>,
        row: Val<'k, u32>,
        column: Val<'k, u32>,
    ) -> Ptr<'k, Global, u8> {
        let [row_stride, column_stride, batch_stride] = self.strides;
        let element = to_u64(batch) * batch_stride
            + to_u64(row) * row_stride
            + to_u64(column) * column_stride;
        self.base.at_wide(element * u64::from(self.element.size()))
    }

    fn load(&self, batch: Val<'k, u32>, row: Val<'k, u32>, column: Val<'k, u32>) -> Val<'k, f32> {
        load_element(self.address(batch, row, column), self.element, true)
    }
}

/// The kernel's parameters.
struct Params<'k> {
    k: &'k KernelBuilder,
    a: Matrix<'k>,
    b: Matrix<'k>,
    bias: Option<Ptr<'k, Global, u8>>,
    out: Matrix<'k>,
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    k_dim: Val<'k, u32>,
    scalars: EpilogueScalars<'k>,
    order: TileOrder<'k>,
}

impl<'k> Params<'k> {
    fn declare(k: &'k KernelBuilder, kernel: &GemmKernel) -> Self {
        let Gemm { element, output, epilogue, .. } = kernel.gemm;
        let (a, b) = (k.pointer_param("a"), k.pointer_param("b"));
        let bias = epilogue.bias.then(|| k.pointer_param("bias"));
        let out = k.pointer_param("out");
        let [m, n, k_dim] = ["m", "n", "k"].map(|name| k.scalar_param(name));
        let matrix = |name: &str, base, element| {
            let stride = |of: &str| k.scalar_param(&format!("{name}_{of}_stride"));
            Matrix { base, element, strides: ["row", "column", "batch"].map(stride) }
        };
        Self {
            k,
            a: matrix("a", a, element),
            b: matrix("b", b, element),
            bias,
            out: matrix("out", out, output),
            m,
            n,
            k_dim,
            scalars: EpilogueScalars {
                alpha: k.scalar_param("alpha"),
                beta: k.scalar_param("beta"),
            },
            order: TileOrder::declare(k),
        }
    }

    /// Accumulates a result from global memory. Coordinates beyond the end are clamped to the last
    /// result.
    fn accumulate(
        &self,
        at: &BlockTile<'k>,
        row: Val<'k, u32>,
        column: Val<'k, u32>,
    ) -> Val<'k, f32> {
        let (row, column) = ((at.row + row).min(self.m - 1), (at.column + column).min(self.n - 1));
        let sum = self.k.var::<f32>(0.0);
        self.k.for_range(0, self.k_dim, 1, |k_index| {
            let a = self.a.load(at.batch, row, k_index);
            sum.set(a.mul_add(self.b.load(at.batch, k_index, column), sum.get()));
        });
        sum.get()
    }

    /// Accumulates a result tile by tile of the operands.
    fn accumulate_tiled(
        &self,
        at: &BlockTile<'k>,
        row: Val<'k, u32>,
        column: Val<'k, u32>,
        tile: u32,
    ) -> Val<'k, f32> {
        let k = self.k;
        let (a, b) = (k.shared::<f32>(tile * tile, 16), k.shared::<f32>(tile * tile, 16));
        let own_index = row * tile + column;
        let sum = k.var::<f32>(0.0);
        k.for_range(0, self.k_dim, tile, |first| {
            a.at(own_index).store(self.load_or_zero(
                &self.a,
                at,
                [at.row + row, first + column],
                [self.m, self.k_dim],
            ));
            b.at(own_index).store(self.load_or_zero(
                &self.b,
                at,
                [first + row, at.column + column],
                [self.k_dim, self.n],
            ));
            k.sync();
            for k_index in 0..tile {
                let (a, b) = (a.at(row * tile).at(k_index), b.at(column).at(k_index * tile));
                sum.set(a.load().mul_add(b.load(), sum.get()));
            }
            k.sync();
        });
        sum.get()
    }

    /// Loads an element of a matrix, or 0 out of bounds.
    fn load_or_zero(
        &self,
        matrix: &Matrix<'k>,
        at: &BlockTile<'k>,
        [row, column]: [Val<'k, u32>; 2],
        [rows, columns]: [Val<'k, u32>; 2],
    ) -> Val<'k, f32> {
        let value = self.k.var::<f32>(0.0);
        self.k.if_then(row.lt(rows) & column.lt(columns), || {
            value.set(matrix.load(at.batch, row, column));
        });
        value.get()
    }

    /// Stores a result if it is in bounds.
    fn store_result(
        &self,
        kernel: &GemmKernel,
        at: &BlockTile<'k>,
        [row, column]: [Val<'k, u32>; 2],
        sum: Val<'k, f32>,
    ) {
        let (Matrix { element, .. }, epilogue) = (self.out, &kernel.gemm.epilogue);
        self.k.if_then(row.lt(self.m) & column.lt(self.n), || {
            let to = self.out.address(at.batch, row, column);
            let bias = self.bias.map(|bias| {
                let bytes = to_u64(column) * u64::from(element.size());
                load_element(bias.at_wide(bytes), element, true)
            });
            let previous = epilogue.reads_out().then(|| load_element(to, element, false));
            let value = self.scalars.finish(epilogue.activation, sum, previous, bias);
            store_element(to, element, value);
        });
    }
}
