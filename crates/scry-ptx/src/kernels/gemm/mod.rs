//! GEMM: the problem description, shared by all kernels that compute it.

mod dot;
mod epilogue;
mod ffma;
pub mod hopper;
mod memory;
mod mma;
mod multistage;
mod params;
mod plan;
mod rasterization;
mod reduce;
mod repack;
mod simple;
mod store;
mod tf32;

pub(in crate::kernels) use epilogue::silu;
pub use epilogue::{Activation, Epilogue};
pub use plan::Portfolio;
pub use simple::GemmKernel;

use super::PlanError;
use super::launch::{BufferAccess, BufferParameter};
use crate::types::PtxType;

/// Which dimension of a matrix is contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Rows are contiguous (C order).
    RowMajor,
    /// Columns are contiguous (Fortran order).
    ColMajor,
}

impl Layout {
    /// Returns the layout of the transposed matrix.
    #[must_use]
    pub const fn transposed(self) -> Self {
        match self {
            Self::RowMajor => Self::ColMajor,
            Self::ColMajor => Self::RowMajor,
        }
    }
}

/// The memory layout of a batch of matrices, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Row-major or column-major.
    pub order: Layout,
    /// The leading dimension: the stride from one row (or column) to the next.
    pub ld: u64,
    /// The stride from one matrix of the batch to the next. For operands it may be 0: all elements
    /// of the batch then use the same matrix.
    pub stride: u64,
}

impl MatrixLayout {
    /// Returns the layout of matrices without gaps.
    #[must_use]
    pub const fn packed(order: Layout, rows: u64, columns: u64) -> Self {
        let ld = match order {
            Layout::RowMajor => columns,
            Layout::ColMajor => rows,
        };
        Self { order, ld, stride: rows.saturating_mul(columns) }
    }

    /// Returns the length and the number of the lines of a matrix of this size: of its rows if it
    /// is row-major, else of its columns.
    #[must_use]
    pub const fn lines(&self, rows: u64, columns: u64) -> (u64, u64) {
        match self.order {
            Layout::RowMajor => (columns, rows),
            Layout::ColMajor => (rows, columns),
        }
    }

    /// Returns the number of elements from the first to the last one; `None` beyond 64 bits.
    fn extent(&self, rows: u64, columns: u64, batch: u64) -> Option<u64> {
        let (line, lines) = self.lines(rows, columns);
        if line == 0 || lines == 0 || batch == 0 {
            return Some(0);
        }
        let matrix = self.ld.checked_mul(lines - 1)?.checked_add(line)?;
        self.stride.checked_mul(batch - 1)?.checked_add(matrix)
    }
}

/// The precision of `f32` operands. 16-bit operands are always multiplied exactly; accumulators are
/// `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// `f32`.
    #[default]
    Full,
    /// TF32: operands truncated or rounded to 11 significant bits.
    Tf32,
    /// TF32x3: each operand as the sum of two TF32 terms, without the product of the two low terms;
    /// about as accurate as `f32`.
    Tf32x3,
}

/// A batched GEMM: for each `z`, `out[z, i, j] = activation(alpha * sum(a[z, i, l] * b[z, l, j]) +
/// beta * out[z, i, j] + bias[j])`.
///
/// Kernels bind the buffers `a`, `b`, `bias` if there is one, and `out`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// M: rows of `a` and `out`.
    pub m: u64,
    /// N: columns of `b` and `out`.
    pub n: u64,
    /// K: columns of `a`, rows of `b`.
    pub k: u64,
    /// Number of matrices.
    pub batch: u64,
    /// Type of `a` and `b`: `F16`, `Bf16` or `F32`.
    pub element: PtxType,
    /// Type of `out` and `bias`: that of the operands, or `F32`.
    pub output: PtxType,
    /// Precision of `f32` operands.
    pub precision: Precision,
    /// Layout of `a`, `m` × `k`.
    pub a: MatrixLayout,
    /// Layout of `b`, `k` × `n`.
    pub b: MatrixLayout,
    /// Layout of `out`, `m` × `n`.
    pub out: MatrixLayout,
    /// The epilogue.
    pub epilogue: Epilogue,
}

/// Maximum of `m`, `n`, `k` and the batch: TMA coordinates are signed 32-bit integers.
pub(in crate::kernels) const MAX_SIZE: u64 = (1 << 31) - 512;

impl Gemm {
    /// Returns one GEMM of row-major matrices without gaps; the result has the operands' type.
    #[must_use]
    pub const fn new(m: u64, n: u64, k: u64, element: PtxType) -> Self {
        Self {
            m,
            n,
            k,
            batch: 1,
            element,
            output: element,
            precision: Precision::Full,
            a: MatrixLayout::packed(Layout::RowMajor, m, k),
            b: MatrixLayout::packed(Layout::RowMajor, k, n),
            out: MatrixLayout::packed(Layout::RowMajor, m, n),
            epilogue: Epilogue::NONE,
        }
    }

    /// Returns the same GEMM with operands in these layouts, without gaps.
    #[must_use]
    pub const fn with_layouts(mut self, a: Layout, b: Layout) -> Self {
        self.a = MatrixLayout::packed(a, self.m, self.k);
        self.b = MatrixLayout::packed(b, self.k, self.n);
        self
    }

    /// Returns the transposed GEMM, `out^T = b^T * a^T`, on the same memory. The caller handles the
    /// bias, which is per row of the transposed result.
    #[must_use]
    pub(crate) fn transposed(self) -> Self {
        let flip =
            |layout: MatrixLayout| MatrixLayout { order: layout.order.transposed(), ..layout };
        let (m, n) = (self.n, self.m);
        Self { m, n, a: flip(self.b), b: flip(self.a), out: flip(self.out), ..self }
    }

    /// Whether there are no results.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.batch == 0
    }

    /// Returns the buffers that kernels bind, in order, with the minimum number of elements.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size or a stride is out of range, rows or results overlap, or a
    /// type is not supported.
    pub fn buffers(&self) -> Result<Vec<BufferParameter>, PlanError> {
        self.check_types()?;
        self.check_sizes()?;
        let Self { m, n, k, batch, element, output, .. } = *self;
        let read = BufferAccess::Read;
        let mut buffers = vec![
            BufferParameter {
                name: "a",
                access: read,
                element,
                len: extent("a", self.a, m, k, batch)?,
            },
            BufferParameter {
                name: "b",
                access: read,
                element,
                len: extent("b", self.b, k, n, batch)?,
            },
        ];
        if self.epilogue.bias {
            buffers.push(BufferParameter { name: "bias", access: read, element: output, len: n });
        }
        let len = extent("out", self.out, m, n, batch)?;
        self.check_results_disjoint()?;
        buffers.push(BufferParameter {
            name: "out",
            access: BufferAccess::Write,
            element: output,
            len,
        });
        Ok(buffers)
    }

    fn check_types(&self) -> Result<(), PlanError> {
        if !matches!(self.element, PtxType::F16 | PtxType::Bf16 | PtxType::F32) {
            let problem = self.element.name().to_owned();
            return Err(argument_error("element", problem, "matrices hold f16, bf16 or f32"));
        }
        if self.output != self.element && self.output != PtxType::F32 {
            let (from, to) = (self.element.name(), self.output.name());
            let help = "results have the type of the operands, or f32";
            return Err(argument_error("output", format!("{to} for operands of {from}"), help));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), PlanError> {
        let sizes = [("m", self.m), ("n", self.n), ("k", self.k), ("batch", self.batch)];
        match sizes.into_iter().find(|(_, size)| *size > MAX_SIZE) {
            Some((name, size)) => {
                let problem = format!("{size}, beyond {MAX_SIZE}");
                Err(argument_error(
                    name,
                    problem,
                    "split the product into several with smaller sizes",
                ))
            }
            None => Ok(()),
        }
    }

    /// Checks that no two results overlap.
    fn check_results_disjoint(&self) -> Result<(), PlanError> {
        let matrix = extent("out", self.out, self.m, self.n, 1)?;
        if self.batch > 1 && self.out.stride < matrix {
            let problem = format!("{}, less than the {matrix} of a result", self.out.stride);
            return Err(argument_error(
                "out.stride",
                problem,
                "results of a batch may not overlap",
            ));
        }
        Ok(())
    }
}

/// Returns the minimum number of elements of a buffer, if its rows do not overlap.
fn extent(
    name: &'static str,
    layout: MatrixLayout,
    rows: u64,
    columns: u64,
    batch: u64,
) -> Result<u64, PlanError> {
    let (line, lines) = layout.lines(rows, columns);
    if layout.ld < line && lines > 1 {
        let problem = format!("in rows or columns of {line} elements, with ld {}", layout.ld);
        return Err(argument_error(name, problem, "use an ld of at least that"));
    }
    layout.extent(rows, columns, batch).filter(|len| *len < 1 << 60).ok_or_else(|| {
        let problem =
            format!("{batch} matrices of {rows} by {columns}, together 2^60 elements or more");
        argument_error(name, problem, "reduce its sizes or strides")
    })
}

/// The help for a GEMM that is too large for a launch.
const SPLIT_PRODUCT: &str =
    "split the product into several, with a smaller batch or fewer rows or columns";

/// Returns the error for an unsupported GEMM. `problem` completes the sentence
/// "`argument` is".
pub(super) fn argument_error(
    argument: &'static str,
    problem: String,
    help: &'static str,
) -> PlanError {
    PlanError::Argument {
        kernel: "gemm".to_owned(),
        argument,
        problem: format!("is {problem}"),
        help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(gemm: &Gemm) -> Vec<u64> {
        gemm.buffers().unwrap().iter().map(|buffer| buffer.len).collect()
    }

    #[test]
    fn buffer_lengths_end_at_last_element() {
        let mut gemm = Gemm::new(3, 5, 7, PtxType::Bf16);
        assert_eq!(lens(&gemm), [21, 35, 15]);
        gemm.batch = 4;
        gemm.a.ld = 8;
        gemm.b.stride = 0;
        gemm.epilogue.bias = true;
        assert_eq!(lens(&gemm), [3 * 21 + 2 * 8 + 7, 35, 5, 60]);
        let gemm =
            Gemm::new(3, 5, 7, PtxType::F16).with_layouts(Layout::ColMajor, Layout::ColMajor);
        assert_eq!((gemm.a.ld, gemm.b.ld), (3, 7));
        assert_eq!(lens(&Gemm::new(0, 5, 7, PtxType::F16)), [0, 35, 0]);
    }

    #[test]
    fn transposed_product_uses_the_same_memory() {
        let gemm = Gemm::new(3, 5, 7, PtxType::F16);
        let transposed = gemm.transposed();
        assert_eq!((transposed.m, transposed.n), (5, 3));
        assert_eq!(transposed.a, MatrixLayout::packed(Layout::ColMajor, 5, 7));
        assert_eq!(transposed.out, MatrixLayout::packed(Layout::ColMajor, 5, 3));
        assert_eq!(transposed.transposed(), gemm);
    }

    #[test]
    fn unsupported_gemms_are_rejected() {
        let valid = Gemm::new(3, 5, 7, PtxType::F16);
        let error_text = |gemm: Gemm| gemm.buffers().unwrap_err().to_string();
        let mut gemm = Gemm { m: 1 << 31, ..valid };
        assert!(error_text(gemm).contains("m is 2147483648, beyond"), "{}", error_text(gemm));
        gemm = Gemm { element: PtxType::U32, ..valid };
        assert!(error_text(gemm).contains("element is u32"), "{}", error_text(gemm));
        gemm = Gemm { output: PtxType::Bf16, ..valid };
        assert!(
            error_text(gemm).contains("output is bf16 for operands of f16"),
            "{}",
            error_text(gemm)
        );
        gemm = valid;
        gemm.a.ld = 6;
        assert!(
            error_text(gemm).contains("a is in rows or columns of 7 elements, with ld 6"),
            "{}",
            error_text(gemm)
        );
        gemm = Gemm { batch: 2, ..valid };
        gemm.out.stride = 14;
        assert!(
            error_text(gemm).contains("out.stride is 14, less than the 15"),
            "{}",
            error_text(gemm)
        );
        gemm.out.stride = u64::MAX;
        assert!(
            error_text(gemm).contains("together 2^60 elements or more"),
            "{}",
            error_text(gemm)
        );
    }
}
