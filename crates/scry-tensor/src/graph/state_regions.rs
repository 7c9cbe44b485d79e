//! Elements of a state that a write changes, as ranges of memory or rows.

use scry_gpu::UntypedBuffer;

use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::op::{Part, View};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape};

/// The largest number of contiguous ranges that one write of a state copies.
pub(super) const MAX_RANGES: usize = 1024;

/// Returns the layout, in a state, of the elements at an index.
pub(super) fn region(call: Call, parts: &[Part], shape: &Shape) -> Result<Layout> {
    let whole = Layout::contiguous(shape.clone());
    let region = View::Index(parts.to_vec()).layout(call, &whole, None)?;
    Ok(region.unwrap_or(whole))
}

/// Returns where the contiguous ranges of a layout start, in row-major order, and their length, in
/// elements. At most one more than [`MAX_RANGES`] are listed.
pub(super) fn ranges(layout: &Layout) -> (Vec<usize>, usize) {
    if layout.shape.contains(&0) {
        return (Vec::new(), 0);
    }
    let (mut inner, mut len) = (layout.shape.rank(), 1usize);
    while inner > 0 {
        let (size, stride) = (layout.shape[inner - 1], layout.strides[inner - 1]);
        if size > 1 && stride != len as i64 {
            break;
        }
        len *= size;
        inner -= 1;
    }
    let mut starts = vec![layout.offset];
    for axis in 0..inner {
        let (size, stride) = (layout.shape[axis] as i64, layout.strides[axis]);
        let next = starts.iter().flat_map(|start| (0..size).map(move |at| start + at * stride));
        starts = next.take(MAX_RANGES + 1).collect();
    }
    (starts.into_iter().map(|start| start as usize).collect(), len)
}

/// Pairs of ranges, from packed new elements to a state, to be copied.
pub(super) fn copies(
    region: &Layout,
    size: usize,
    from: &UntypedBuffer,
    to: &UntypedBuffer,
) -> scry_gpu::Result<Vec<(UntypedBuffer, UntypedBuffer)>> {
    let (starts, len) = ranges(region);
    let pair = |(n, start): (usize, &usize)| {
        let from = from.slice(n * len * size..(n + 1) * len * size)?;
        Ok((from, to.slice(start * size..(start + len) * size)?))
    };
    starts.iter().enumerate().map(pair).collect()
}

/// New rows of a state, and the indices of the rows that they replace.
pub(super) struct Rows<'r> {
    pub(super) new: &'r UntypedBuffer,
    pub(super) indices: &'r UntypedBuffer,
    pub(super) dtype: DType,
    pub(super) indices_dtype: DType,
}

impl Rows<'_> {
    /// Prepares the write of rows to a state of `[rows, columns, count]`.
    pub(super) fn prepare(
        &self,
        runtime: &Runtime,
        state: &UntypedBuffer,
        [rows, columns, count]: [usize; 3],
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let dtype = self.dtype.of_buffer();
        let (new, state) = (self.new.view_as(dtype)?, state.view_as(dtype)?);
        let indices = self.indices.view_as(self.indices_dtype.of_buffer())?;
        runtime.library().scatter_rows(&new, &indices, &state, rows, columns, count)
    }
}
