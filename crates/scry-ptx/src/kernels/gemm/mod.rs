//! Products of matrices: what is computed, for all kernels that do.

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

pub use epilogue::{Activation, Epilogue};
pub use simple::GemmKernel;

use super::PlanError;
use super::launch::{BufferAccess, BufferParameter};
use crate::types::PtxType;

/// Which neighbours lie one after the other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Those of a row.
    Rows,
    /// Those of a column.
    Columns,
}

impl Order {
    /// The order of the transposed matrix.
    #[must_use]
    pub const fn flipped(self) -> Self {
        match self {
            Self::Rows => Self::Columns,
            Self::Columns => Self::Rows,
        }
    }
}

/// How the matrices of a batch lie in memory, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Which neighbours lie one after the other.
    pub order: Order,
    /// From one row, or column, to the next.
    pub leading: u64,
    /// From one matrix of a batch to the next: 0 where all are the same one, which operands only
    /// may be.
    pub stride: u64,
}

impl Layout {
    /// Matrices without gaps.
    #[must_use]
    pub const fn packed(order: Order, rows: u64, columns: u64) -> Self {
        let leading = match order {
            Order::Rows => columns,
            Order::Columns => rows,
        };
        Self { order, leading, stride: rows.saturating_mul(columns) }
    }

    /// Elements that lie one after the other in a matrix of this size, and how many such lines
    /// there are.
    #[must_use]
    pub const fn lines(&self, rows: u64, columns: u64) -> (u64, u64) {
        match self.order {
            Order::Rows => (columns, rows),
            Order::Columns => (rows, columns),
        }
    }

    /// Elements from the first one to behind the last one; none if that is beyond 64 bits.
    fn extent(&self, rows: u64, columns: u64, batch: u64) -> Option<u64> {
        let (line, lines) = self.lines(rows, columns);
        if line == 0 || lines == 0 || batch == 0 {
            return Some(0);
        }
        let matrix = self.leading.checked_mul(lines - 1)?.checked_add(line)?;
        self.stride.checked_mul(batch - 1)?.checked_add(matrix)
    }
}

/// How exactly operands in f32 are multiplied. Others are always multiplied exactly; sums
/// are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As f32.
    #[default]
    Full,
    /// Cut or rounded to 11 significant bits before.
    Tf32,
    /// Each as a sum of two numbers of 11 significant bits, of which the product of the small
    /// ones is left out: about as exact as f32.
    Tf32x3,
}

/// A product, for each `z` of a batch: `out[z, i, j] =
/// activation(alpha * sum(a[z, i, l] * b[z, l, j]) + beta * out[z, i, j] + bias[j])`.
///
/// Kernels take the buffers `a`, `b`, `bias` if there is one, and `out`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Rows of `a` and `out`.
    pub m: u64,
    /// Columns of `b` and `out`.
    pub n: u64,
    /// Columns of `a`, rows of `b`.
    pub k: u64,
    /// Number of products.
    pub batch: u64,
    /// Type of `a` and `b`: `F16`, `Bf16` or `F32`.
    pub element: PtxType,
    /// Type of `out` and `bias`: that of the operands, or `F32`.
    pub output: PtxType,
    /// How exactly f32 is multiplied.
    pub precision: Precision,
    /// Where `a` lies, `m` rows of `k` columns.
    pub a: Layout,
    /// Where `b` lies, `k` rows of `n` columns.
    pub b: Layout,
    /// Where `out` lies, `m` rows of `n` columns.
    pub out: Layout,
    /// What becomes of the sums.
    pub epilogue: Epilogue,
}

/// No side may be longer: coordinates are signed numbers of 32 bits.
const LONGEST: u64 = (1 << 31) - 512;

impl Gemm {
    /// One product of matrices without gaps, row by row; the result has the type of the operands.
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
            a: Layout::packed(Order::Rows, m, k),
            b: Layout::packed(Order::Rows, k, n),
            out: Layout::packed(Order::Rows, m, n),
            epilogue: Epilogue::NONE,
        }
    }

    /// The same with operands in these orders, without gaps.
    #[must_use]
    pub const fn with_orders(mut self, a: Order, b: Order) -> Self {
        self.a = Layout::packed(a, self.m, self.k);
        self.b = Layout::packed(b, self.k, self.n);
        self
    }

    /// The transposed product, `out^T = b^T * a^T`, from and to the same memory. It has no bias,
    /// which would be one of rows.
    #[must_use]
    pub(crate) fn flipped(self) -> Self {
        let flip = |layout: Layout| Layout { order: layout.order.flipped(), ..layout };
        let (m, n) = (self.n, self.m);
        Self { m, n, a: flip(self.b), b: flip(self.a), out: flip(self.out), ..self }
    }

    /// Whether nothing is computed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.batch == 0
    }

    /// The buffers that kernels take, in order, with the elements that they must have.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a side or a distance does not fit, lines or results overlap,
    /// or a type is none that matrices have.
    pub fn buffers(&self) -> Result<Vec<BufferParameter>, PlanError> {
        self.check_types()?;
        self.check_sides()?;
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
        self.check_apart()?;
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
            return Err(refusal("element", problem, "matrices hold f16, bf16 or f32"));
        }
        if self.output != self.element && self.output != PtxType::F32 {
            let (from, to) = (self.element.name(), self.output.name());
            let help = "results have the type of the operands, or f32";
            return Err(refusal("output", format!("{to} for operands of {from}"), help));
        }
        Ok(())
    }

    fn check_sides(&self) -> Result<(), PlanError> {
        let sides = [("m", self.m), ("n", self.n), ("k", self.k), ("batch", self.batch)];
        match sides.into_iter().find(|(_, side)| *side > LONGEST) {
            Some((name, side)) => {
                let problem = format!("{side}, beyond {LONGEST}");
                Err(refusal(name, problem, "compute the product in parts"))
            }
            None => Ok(()),
        }
    }

    /// No two results lie in the same place.
    fn check_apart(&self) -> Result<(), PlanError> {
        let matrix = extent("out", self.out, self.m, self.n, 1)?;
        if self.batch > 1 && self.out.stride < matrix {
            let problem = format!("{}, less than the {matrix} of a result", self.out.stride);
            return Err(refusal("out.stride", problem, "results of a batch may not overlap"));
        }
        Ok(())
    }
}

/// Elements that a buffer must have, if lines do not overlap.
fn extent(
    name: &'static str,
    layout: Layout,
    rows: u64,
    columns: u64,
    batch: u64,
) -> Result<u64, PlanError> {
    let (line, lines) = layout.lines(rows, columns);
    if layout.leading < line && lines > 1 {
        let problem = format!("in lines of {line} elements, {} apart", layout.leading);
        return Err(refusal(name, problem, "lines may not overlap"));
    }
    layout.extent(rows, columns, batch).filter(|len| *len < 1 << 60).ok_or_else(|| {
        let problem = format!("{batch} matrices of {rows} by {columns}, at these distances,");
        refusal(name, problem + " beyond 64 bits of addresses", "no device has that memory")
    })
}

/// A product that is refused.
pub(super) fn refusal(argument: &'static str, problem: String, help: &'static str) -> PlanError {
    PlanError::Argument { kernel: "gemm".to_owned(), argument, problem, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(gemm: &Gemm) -> Vec<u64> {
        gemm.buffers().unwrap().iter().map(|buffer| buffer.len).collect()
    }

    #[test]
    fn buffers_are_as_long_as_their_last_element_needs() {
        let mut gemm = Gemm::new(3, 5, 7, PtxType::Bf16);
        assert_eq!(lens(&gemm), [21, 35, 15]);
        gemm.batch = 4;
        gemm.a.leading = 8;
        gemm.b.stride = 0;
        gemm.epilogue.bias = true;
        assert_eq!(lens(&gemm), [3 * 21 + 2 * 8 + 7, 35, 5, 60]);
        let gemm = Gemm::new(3, 5, 7, PtxType::F16).with_orders(Order::Columns, Order::Columns);
        assert_eq!((gemm.a.leading, gemm.b.leading), (3, 7));
        assert_eq!(lens(&Gemm::new(0, 5, 7, PtxType::F16)), [0, 35, 0]);
    }

    #[test]
    fn the_transposed_product_lies_in_the_same_memory() {
        let gemm = Gemm::new(3, 5, 7, PtxType::F16);
        let flipped = gemm.flipped();
        assert_eq!((flipped.m, flipped.n), (5, 3));
        assert_eq!(flipped.a, Layout::packed(Order::Columns, 5, 7));
        assert_eq!(flipped.out, Layout::packed(Order::Columns, 5, 3));
        assert_eq!(flipped.flipped(), gemm);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = Gemm::new(3, 5, 7, PtxType::F16);
        let said = |gemm: Gemm| gemm.buffers().unwrap_err().to_string();
        let mut gemm = Gemm { m: 1 << 31, ..good };
        assert!(said(gemm).contains("m is 2147483648, beyond"), "{}", said(gemm));
        gemm = Gemm { element: PtxType::U32, ..good };
        assert!(said(gemm).contains("element is u32"), "{}", said(gemm));
        gemm = Gemm { output: PtxType::Bf16, ..good };
        assert!(said(gemm).contains("output is bf16 for operands of f16"), "{}", said(gemm));
        gemm = good;
        gemm.a.leading = 6;
        assert!(said(gemm).contains("a is in lines of 7 elements, 6 apart"), "{}", said(gemm));
        gemm = Gemm { batch: 2, ..good };
        gemm.out.stride = 14;
        assert!(said(gemm).contains("out.stride is 14, less than the 15"), "{}", said(gemm));
        gemm.out.stride = u64::MAX;
        assert!(said(gemm).contains("beyond 64 bits"), "{}", said(gemm));
    }
}
