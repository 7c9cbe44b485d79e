//! Row kernels: maps and reductions of rows in one kernel, such as softmax and layer norm.
//!
//! The elements form rows. A step is a map for each element, a map for each row, or a reduction of
//! the elements of each row; the result of the last step is stored, and those of some maps of
//! elements; no step between is stored. A thread group computes a row, and a workgroup a few rows.
//! On GPUs, invocations hold rows of up to 2048 words in registers; elements of longer rows that
//! several reductions need are computed again by each, and read from caches.

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::Map;
use crate::shape::Layout;

/// Invocations of a workgroup: WebGPU's default limit.
pub(crate) const WORKGROUP: u32 = 256;

/// The most columns of a row. With the most threads, each accumulates 32 terms of a sum, and 8
/// merges follow: the error is within the bound of the kernel library, 48 units.
pub(crate) const MAX_COLUMNS: usize = 8192;

/// The most elements in memory that an invocation holds in registers.
const MAX_HELD_VALUES: usize = 48;

/// What a row kernel reduces a row to. The results are those of the kernel library, except for the
/// order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowReduction {
    Sum,
    Mean,
    Min,
    Max,
}

/// An operand of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowSource {
    /// Elements in memory, by position in [`RowProgram::accesses`].
    Memory(u32),
    /// The result of an earlier step.
    Step(u32),
}

/// A step of a row kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RowStep {
    /// A map of each element of a row.
    Elements(Arc<Map>, Vec<RowSource>),
    /// A map of each row.
    Row(Arc<Map>, Vec<RowSource>),
    /// A reduction of the elements of each row, of a type.
    Reduce(RowReduction, DType, RowSource),
}

/// How an operand in memory is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowAccess {
    /// The operand, by position in [`RowProgram::operands`].
    pub(crate) operand: u32,
    /// The number of strides along rows; 0 if all rows have the same elements.
    pub(crate) row_rank: u32,
    /// The number of strides within a row; 0 if it has one element.
    pub(crate) column_rank: u32,
    /// Whether the elements of a row follow one another.
    pub(crate) is_packed: bool,
}

/// What a row kernel computes. Equal programs have equal kernels: sizes and strides are arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowProgram {
    /// The element types of the operands in memory, each a buffer.
    pub(crate) operands: Vec<DType>,
    pub(crate) accesses: Vec<RowAccess>,
    /// The steps; the last one is the result.
    pub(crate) steps: Vec<RowStep>,
    /// Other steps that are results, maps of elements.
    pub(crate) stored: Vec<u32>,
    /// The invocations of a row, a power of two.
    pub(crate) threads: u32,
    /// The words of a row that an invocation holds in registers, the last ones of which a row may
    /// not have; 0 if it loops over words.
    pub(crate) held: u32,
    /// The adjacent elements that an invocation computes together, those of a word of each result.
    pub(crate) width: u32,
}

/// The strides of one access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowWalk {
    offset: u32,
    /// Sizes and strides, wrapping; the last one is the innermost.
    rows: Vec<[u32; 2]>,
    columns: Vec<[u32; 2]>,
}

/// What a kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) program: RowProgram,
    /// Whether the parameters are in a buffer.
    pub(crate) in_buffer: bool,
}

/// The sizes and strides of one launch.
#[derive(Debug, Clone)]
pub(crate) struct RowIteration<'i> {
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) walks: &'i [RowWalk],
    /// Bits of the arguments of all steps.
    pub(crate) arguments: &'i [u32],
}

impl RowStep {
    /// Returns the element type of the result.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Elements(map, _) | Self::Row(map, _) => map.output,
            Self::Reduce(_, dtype, _) => *dtype,
        }
    }

    pub(crate) fn sources(&self) -> &[RowSource] {
        match self {
            Self::Elements(_, sources) | Self::Row(_, sources) => sources,
            Self::Reduce(_, _, source) => std::slice::from_ref(source),
        }
    }

    /// Returns the map of the step, if it is one.
    pub(crate) fn map(&self) -> Option<&Map> {
        match self {
            Self::Elements(map, _) | Self::Row(map, _) => Some(map),
            Self::Reduce(..) => None,
        }
    }
}

impl RowProgram {
    /// Returns how many invocations a row of `columns` elements has, `width` at a time: a few
    /// numbers, so that sizes share kernels. Processors have few lanes, and merge states slowly:
    /// there an invocation reduces up to 32 words.
    pub(crate) fn threads(columns: usize, width: u32, is_cpu: bool) -> u32 {
        let words = columns as u32 / width;
        match (words, is_cpu) {
            (0..=4, _) | (0..=32, true) => 1,
            (0..=32, _) | (0..=256, true) => 8,
            (0..=256, _) => 32,
            _ => WORKGROUP,
        }
    }

    /// Returns how many words an invocation holds in registers, of rows with this many words and
    /// `values` elements in memory for each; 0 if they are too many.
    pub(crate) fn held(words: usize, threads: u32, values: usize) -> u32 {
        let count = words.div_ceil(threads as usize);
        let fits = threads > 1 && count * values <= MAX_HELD_VALUES;
        match count {
            0..=4 if fits => count as u32,
            5..=6 if fits => 6,
            7..=8 if fits => 8,
            _ => 0,
        }
    }

    /// Returns how many words an invocation has at least, if it holds `held`.
    pub(crate) fn least_words(held: u32) -> u32 {
        if held > 4 { held - 2 } else { held.saturating_sub(1) }
    }

    /// Returns the rows of a workgroup.
    pub(crate) fn rows_per_workgroup(&self) -> u32 {
        WORKGROUP / self.threads
    }

    /// Returns the bytes of a row of each result, the last step first.
    pub(crate) fn row_bytes(&self, columns: usize) -> Vec<u64> {
        let stored = self.stored.iter().filter_map(|step| self.steps.get(*step as usize));
        let bytes = |step: &RowStep| {
            let elements = match step {
                RowStep::Elements(..) => columns,
                RowStep::Row(..) | RowStep::Reduce(..) => 1,
            };
            (elements * step.dtype().size()) as u64
        };
        self.steps.last().into_iter().chain(stored).map(bytes).collect()
    }

    /// Returns how many reductions precede each step, one after another.
    pub(crate) fn levels(&self) -> Vec<usize> {
        let mut levels: Vec<usize> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of = |source: &RowSource| match source {
                RowSource::Memory(_) => 0,
                RowSource::Step(step) => levels[*step as usize],
            };
            let level = step.sources().iter().map(of).max().unwrap_or(0);
            levels.push(level + usize::from(matches!(step, RowStep::Reduce(..))));
        }
        levels
    }

    /// Returns the number of floating-point operations for a row.
    pub(crate) fn flops(&self, columns: u64) -> u64 {
        let of = |step: &RowStep| match step {
            RowStep::Elements(map, _) => columns * map.flops() as u64,
            RowStep::Row(map, _) => map.flops() as u64,
            RowStep::Reduce(..) => columns,
        };
        self.steps.iter().map(of).sum()
    }
}

impl RowWalk {
    /// Returns the walk through a layout whose first axes, up to `split`, are those of rows.
    pub(crate) fn new(layout: &Layout, split: usize) -> Self {
        let part = |axes: std::ops::Range<usize>| {
            let shape = layout.shape[axes.clone()].to_vec().into();
            let part = Layout { shape, strides: layout.strides[axes].to_vec(), offset: 0 };
            let runs = part.runs();
            match part.strides.iter().all(|stride| *stride == 0) {
                true => Vec::new(),
                // A single row or column needs no kernel of its own.
                false if runs.is_empty() => vec![[1, 1]],
                // Positions wrap, as those of maps do: see `iteration`.
                false => runs.iter().map(|(size, stride)| [*size as u32, *stride as u32]).collect(),
            }
        };
        let rank = layout.shape.rank();
        Self { offset: layout.offset as u32, rows: part(0..split), columns: part(split..rank) }
    }

    /// Returns the number of rows for each coordinate of the first axis.
    pub(crate) fn inner_rows(&self) -> usize {
        self.rows.iter().skip(1).map(|[size, _]| *size as usize).product()
    }

    /// Returns the walk from a row on, a multiple of [`inner_rows`](Self::inner_rows); `None` if
    /// it is not one.
    pub(crate) fn skip_rows(&self, row: usize) -> Option<Self> {
        let mut moved = self.clone();
        if let Some([_, stride]) = self.rows.first() {
            let inner = self.inner_rows();
            let distance = (row / inner) as u32;
            moved.offset = self.offset.wrapping_add(distance.wrapping_mul(*stride));
            if !row.is_multiple_of(inner) {
                return None;
            }
        }
        Some(moved)
    }

    /// Returns the first and the last position of a number of rows.
    pub(crate) fn extent(&self, rows: usize) -> (i64, i64) {
        let inner = self.inner_rows();
        let outer = self.rows.first().map(|[_, stride]| (rows.div_ceil(inner), *stride));
        let others = self.rows.iter().skip(1).chain(&self.columns);
        let others = others.map(|[size, stride]| (*size as usize, *stride));
        let offset = i64::from(self.offset);
        outer.into_iter().chain(others).fold((offset, offset), |(first, last), (size, stride)| {
            // A negative stride is its two's complement.
            let distance = (size as i64 - 1) * i64::from(stride.cast_signed());
            (first + distance.min(0), last + distance.max(0))
        })
    }

    /// Makes positions those from another one on.
    pub(crate) fn move_back(&mut self, distance: u64) {
        self.offset = self.offset.wrapping_sub(distance as u32);
    }

    /// Returns how an operand is accessed.
    pub(crate) fn access(&self, operand: u32) -> RowAccess {
        RowAccess {
            operand,
            row_rank: self.rows.len() as u32,
            column_rank: self.columns.len() as u32,
            is_packed: matches!(self.columns[..], [[_, 1]]),
        }
    }
}

impl RowIteration<'_> {
    /// Returns the parameters of the kernel, in the order in which `row_kernel` reads them.
    pub(crate) fn parameters(&self, width: u32) -> Vec<u32> {
        let mut parameters = vec![self.rows, self.columns / width];
        for walk in self.walks {
            parameters.push(walk.offset);
            parameters.extend(walk.rows.iter().chain(&walk.columns).flatten());
        }
        parameters.extend(self.arguments);
        // See `Scalar::Opaque`.
        parameters.push(0);
        parameters
    }
}
