//! Plain kernels for what depends on all earlier elements: rows are split into chunks, each of one
//! invocation.

use scry_gpu::{PreparedLaunch, Result};

use super::rows::RowMatrix;
use super::scan::{Scan, ScanKind};
use crate::elements;
use crate::operation::Preparation;
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// Invocations that occupy a processor.
const INVOCATIONS: u64 = 256;

/// The fewest elements of a chunk.
const MIN_CHUNK: u64 = 16;

/// The most elements of a chunk: half of the iterations that are safe.
const MAX_CHUNK: u64 = plain::MAX_ITERATIONS / 2;

/// The fewest elements for which a second launch is worth it.
const MIN_LEN: u64 = 1 << 16;

/// Chunks of a row that is scanned by one workgroup.
const WORKGROUP: u64 = 256;

pub(super) const SHAPE: &str = include_str!("../shaders/plain/chunks.wgsl");

pub(super) const SUM_BEFORE: &str = include_str!("../shaders/plain/sum_before.wgsl");

/// How rows are split.
pub(super) struct PlainChunks {
    rows: u64,
    columns: u64,
    /// Chunks of a row.
    pub(super) count: u64,
    /// Elements of a chunk.
    len: u64,
}

impl PlainChunks {
    pub(super) fn new(matrix: &RowMatrix) -> Self {
        let wanted = match (matrix.rows, matrix.len()) {
            (1, ..MIN_LEN) => WORKGROUP,
            (8.., ..MIN_LEN) => 1,
            (rows, _) => INVOCATIONS.div_ceil(rows.max(1)),
        };
        let wanted = wanted.max(matrix.columns.div_ceil(MAX_CHUNK));
        let count = wanted.min(matrix.columns / MIN_CHUNK).max(1);
        let len = matrix.columns.div_ceil(count).max(1);
        // Chunks that are a large power of two apart would share few sets of the caches.
        let len = if count > 1 && len.is_multiple_of(256) { len + 16 } else { len };
        let count = matrix.columns.div_ceil(len).max(1);
        Self { rows: matrix.rows, columns: matrix.columns, count, len }
    }

    /// Returns whether loops are short enough: over a chunk, and over the chunks of a row.
    pub(super) fn suits(matrix: &RowMatrix) -> bool {
        matrix.columns / MAX_CHUNK < plain::MAX_ITERATIONS
    }

    /// Returns the chunks of all rows.
    pub(super) fn total(&self) -> u64 {
        self.rows * self.count
    }

    /// Returns the immediates of [`SHAPE`].
    pub(super) fn immediates(&self) -> Immediates {
        let sizes = [self.rows, self.columns, self.count, self.len];
        sizes.into_iter().fold(Immediates::default(), |all, size| all.u32(size as u32))
    }
}

/// Prepares the scan: the sums of chunks, if rows have several, and then the chunks.
pub(super) fn scan(it: &Scan, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let matrix = &it.matrix;
    let chunks = PlainChunks::new(matrix);
    let has_chunks = chunks.count > 1;
    let constants = format!(
        "const EXCLUSIVE = {};\nconst HAS_CHUNKS = {has_chunks};\n",
        it.kind == ScanKind::Exclusive,
    );
    let prelude = elements::prelude(matrix.dtype);
    let kernel = include_str!("../shaders/plain/scan_chunks.wgsl");
    let [x, y] = [0, 1].map(|nth| &preparation.buffers[nth]);
    let launch = |source: &[&str], buffers: &[_]| {
        preparation.plain(source, buffers, chunks.immediates(), chunks.total())
    };
    if !has_chunks {
        const NO_SUMS: &str = "fn sum_before(chunk: u32) -> Computed { return Computed(0); }\n";
        return Ok(vec![launch(&[prelude, SHAPE, NO_SUMS, &constants, kernel], &[x, y])?]);
    }
    if matrix.rows == 1 && chunks.count <= WORKGROUP {
        let workgroup = include_str!("../shaders/plain/scan_workgroup.wgsl");
        return Ok(vec![preparation.wgsl(&WgslLaunch {
            source: &[prelude, SHAPE, &constants, workgroup],
            buffers: &[x, y],
            immediates: chunks.immediates(),
            workgroups: [1; 3],
        })?]);
    }
    // Only integers are scanned by plain kernels.
    let sums = preparation.kernels.scratch_of(0, matrix.dtype, chunks.total())?;
    const SUM: &str = "alias Sum = Computed;\n";
    let sum = include_str!("../shaders/plain/sum_chunks.wgsl");
    Ok(vec![
        launch(&[prelude, SHAPE, sum], &[x, &sums])?,
        launch(&[prelude, SHAPE, &constants, SUM, SUM_BEFORE, kernel], &[x, y, &sums])?,
    ])
}
