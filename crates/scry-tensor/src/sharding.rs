//! Launches on tensors above the device's limit of a binding: several launches, each of a shard of
//! the result, with the ranges of buffers that it accesses.
//!
//! A shard is contiguous in the result and begins where buffers may be bound. Operands are bound
//! from the last such position before their first element on; the rest of the distance is the
//! offset of their layout. So a launch of a shard is one of the same kernel with other sizes. Each
//! element is computed as by one launch of all, from the same operands in the same order.

use std::ops::Range;

use scry_gpu::UntypedBuffer;

use crate::dtype::DType;
use crate::expr::Map;
use crate::lower::{GatherAxis, RowProgram, RowWalk, merge_axes};
use crate::shape::Layout;

/// Offsets of bindings are multiples of this many bytes: WebGPU's requirement, so that results are
/// split alike on every device.
pub(crate) const ALIGNMENT: u64 = 256;

/// The most launches of a split one: preparing more would take longer than the device.
const MAX_SHARDS: usize = 4096;

/// A box of coordinates whose elements follow one another in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shard {
    /// The first coordinate along each axis.
    pub(crate) starts: Vec<usize>,
    /// The number of coordinates along each axis.
    pub(crate) sizes: Vec<usize>,
}

impl Shard {
    /// Returns the number of elements.
    pub(crate) fn count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Returns the position of the first element in the whole of these sizes.
    pub(crate) fn start(&self, sizes: &[usize]) -> usize {
        self.starts.iter().zip(sizes).fold(0, |sum, (start, size)| sum * size + start)
    }

    /// Returns the bytes of elements of a type in the whole of these sizes, in whole words.
    pub(crate) fn bytes(&self, sizes: &[usize], dtype: DType) -> Range<u64> {
        let start = (self.start(sizes) * dtype.size()) as u64;
        start..start + ((self.count() * dtype.size()) as u64).next_multiple_of(4)
    }

    /// Returns the layout of the elements of an operand with the shape of the result.
    pub(crate) fn of(&self, layout: &Layout) -> Layout {
        let axes = self.starts.iter().zip(&self.sizes).enumerate();
        axes.fold(layout.clone(), |layout, (axis, (start, size))| {
            layout.slice(axis, *start as i64, 1, *size)
        })
    }
}

/// Splits the coordinates of a result in halves until each shard fits. Along an axis, shards begin
/// at multiples of its unit. Returns `None` if one that cannot be split does not fit, or if there
/// are too many.
pub(crate) fn split(
    sizes: &[usize],
    unit: &dyn Fn(usize) -> usize,
    fits: &dyn Fn(&Shard) -> bool,
) -> Option<Vec<Shard>> {
    let (mut shards, mut rest) = (Vec::new(), Vec::new());
    rest.push(Shard { starts: vec![0; sizes.len()], sizes: sizes.to_vec() });
    while let Some(shard) = rest.pop() {
        if fits(&shard) {
            shards.push(shard);
            continue;
        }
        if shards.len() + rest.len() >= MAX_SHARDS {
            return None;
        }
        let axis = shard.sizes.iter().position(|size| *size > 1)?;
        let size = shard.sizes[axis];
        let first = size.div_ceil(2).next_multiple_of(unit(axis));
        if first >= size {
            return None;
        }
        let (mut before, mut after) = (shard.clone(), shard);
        before.sizes[axis] = first;
        after.starts[axis] += first;
        after.sizes[axis] = size - first;
        rest.extend([after, before]);
    }
    Some(shards)
}

/// Returns how many strides of a number of bytes there are between positions where a buffer may be
/// bound.
pub(crate) fn unit(stride: u64) -> usize {
    // The alignment is a power of two, and so is its greatest common divisor with the stride.
    let divisor = if stride == 0 { ALIGNMENT } else { 1 << stride.trailing_zeros().min(8) };
    (ALIGNMENT / divisor) as usize
}

/// Returns the unit of an axis of a result: shards must begin where its buffer may be bound.
pub(crate) fn result_unit(sizes: &[usize], axis: usize, dtype: DType) -> usize {
    unit((sizes[axis + 1..].iter().product::<usize>() * dtype.size()) as u64)
}

/// Returns the bytes of a buffer that are bound for elements from the first to the last position.
/// Positions out of the buffer are those of other pieces of a joined tensor: what is loaded there
/// is not used.
fn bound(first: i64, last: i64, dtype: DType, buffer: u64) -> Range<u64> {
    let (size, all) = (dtype.size() as u64, buffer / dtype.size() as u64);
    let within = |position: i64| u64::try_from(position).unwrap_or(0).min(all.saturating_sub(1));
    let start = within(first) * size / ALIGNMENT * ALIGNMENT;
    start..((within(last) + 1) * size).next_multiple_of(4).min(buffer)
}

/// Returns the first and the last position of strides from an offset.
fn extent(offset: i64, axes: impl Iterator<Item = (usize, i64)>) -> (i64, i64) {
    axes.fold((offset, offset), |(first, last), (size, stride)| {
        let distance = (size as i64 - 1) * stride;
        (first + distance.min(0), last + distance.max(0))
    })
}

/// Returns the bytes of an operand that are bound for a layout.
fn bound_layout(
    layout: &Layout,
    gathered: Option<GatherAxis>,
    dtype: DType,
    buffer: u64,
) -> Range<u64> {
    let axes = layout.shape.iter().copied().zip(layout.strides.iter().copied());
    let gathered = gathered.map(|axis| (axis.size.max(1), axis.stride));
    let (first, last) = extent(layout.offset, axes.chain(gathered));
    bound(first, last, dtype, buffer)
}

/// The launch of a shard of a map.
pub(crate) struct MapShard {
    pub(crate) shard: Shard,
    /// The bytes of the result.
    pub(crate) result: Range<u64>,
    /// The bytes of each operand, and the layout in them.
    pub(crate) operands: Vec<(Range<u64>, Layout)>,
}

/// The launches of a map.
pub(crate) struct MapShards {
    /// The sizes of the result, of which shards are parts: axes that need not be apart are merged.
    pub(crate) sizes: Vec<usize>,
    pub(crate) shards: Vec<MapShard>,
}

/// Splits a map. Returns `None` if it cannot be split into shards with bindings of at most `limit`
/// bytes.
pub(crate) fn split_map(
    map: &Map,
    sizes: &[usize],
    operands: &[(&UntypedBuffer, Layout)],
    gathered: Option<GatherAxis>,
    limit: u64,
) -> Option<MapShards> {
    let layouts: Vec<Layout> = operands.iter().map(|(_, layout)| layout.clone()).collect();
    let (sizes, layouts) = match map.needs_axes() {
        true => (sizes.to_vec(), layouts),
        false => merge_axes(sizes, &layouts),
    };
    let bind = |shard: &Shard| {
        let mut parts = Vec::with_capacity(operands.len());
        for (n, ((buffer, _), layout)) in operands.iter().zip(&layouts).enumerate() {
            let dtype = map.operands[n];
            let gathered = gathered.filter(|_| map.is_gathered(n));
            let mut layout = shard.of(layout);
            let range = bound_layout(&layout, gathered, dtype, buffer.byte_size());
            layout.offset -= range.start as i64 / dtype.size() as i64;
            parts.push((range, layout));
        }
        let result = shard.bytes(&sizes, map.output);
        MapShard { shard: shard.clone(), result, operands: parts }
    };
    let length = |range: &Range<u64>| range.end - range.start;
    let fits = |shard: &Shard| {
        let MapShard { result, operands, .. } = bind(shard);
        length(&result) <= limit && operands.iter().all(|(range, _)| length(range) <= limit)
    };
    let shards = split(&sizes, &|axis| result_unit(&sizes, axis, map.output), &fits)?;
    let shards = shards.iter().map(bind).collect();
    Some(MapShards { sizes, shards })
}

/// The launch of some rows of a row kernel.
pub(crate) struct RowShard {
    pub(crate) rows: u32,
    pub(crate) walks: Vec<RowWalk>,
    /// The bytes of each result.
    pub(crate) results: Vec<Range<u64>>,
    /// The bytes of each operand.
    pub(crate) operands: Vec<Range<u64>>,
}

/// Splits the rows of a row kernel, whose results have a number of bytes for each row: see
/// [`split_map`].
pub(crate) fn split_rows(
    program: &RowProgram,
    (rows, walks): (u32, &[RowWalk]),
    (row_bytes, buffers): (&[u64], &[u64]),
    limit: u64,
) -> Option<Vec<RowShard>> {
    let bind = |shard: &Shard| -> Option<RowShard> {
        let (first, count) = (shard.starts[0], shard.sizes[0]);
        let mut moved: Vec<RowWalk> = Vec::with_capacity(walks.len());
        for walk in walks {
            moved.push(walk.skip_rows(first)?);
        }
        let mut operands = Vec::with_capacity(buffers.len());
        for (n, buffer) in buffers.iter().enumerate() {
            let is_own =
                |(access, _): &(usize, &RowWalk)| program.accesses[*access].operand as usize == n;
            let own = moved.iter().enumerate().filter(is_own);
            let extents = own.map(|(_, walk)| walk.extent(count));
            let all = extents.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let (first, last) = all?;
            operands.push(bound(first, last, program.operands[n], *buffer));
        }
        for (access, walk) in program.accesses.iter().zip(&mut moved) {
            let n = access.operand as usize;
            walk.move_back(operands[n].start / program.operands[n].size() as u64);
        }
        let written = |bytes: &u64| {
            let start = first as u64 * bytes;
            start..start + (count as u64 * bytes).next_multiple_of(4)
        };
        let results = row_bytes.iter().map(written).collect();
        Some(RowShard { rows: count as u32, walks: moved, results, operands })
    };
    let length = |range: &Range<u64>| range.end - range.start;
    let fits = |shard: &Shard| {
        bind(shard)
            .is_some_and(|it| it.results.iter().chain(&it.operands).all(|it| length(it) <= limit))
    };
    // Rows along several axes are split between coordinates of the first one.
    let inner = walks.iter().map(RowWalk::inner_rows).try_fold(1usize, common_multiple)?;
    let mut units = row_bytes.iter().map(|bytes| unit(*bytes));
    let unit = units.try_fold(inner, common_multiple)?;
    let shards = split(&[rows as usize], &|_| unit, &fits)?;
    shards.iter().map(bind).collect()
}

/// Returns the least common multiple.
fn common_multiple(a: usize, b: usize) -> Option<usize> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
}

/// Returns a range of the bytes of a buffer.
pub(crate) fn slice(buffer: &UntypedBuffer, range: &Range<u64>) -> scry_gpu::Result<UntypedBuffer> {
    if *range == (0..buffer.byte_size()) {
        return Ok(buffer.clone());
    }
    buffer.view_as(None)?.slice(range.start as usize..range.end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_the_result_in_order() {
        let sizes = [5, 3, 700];
        for limit in [1024u64, 4096, 10_000] {
            let fits = |shard: &Shard| (shard.count() * 4) as u64 <= limit;
            let unit = |axis| result_unit(&sizes, axis, DType::F32);
            let shards = split(&sizes, &unit, &fits);
            // Rows of 2800 bytes begin at multiples of 256 bytes only every 16 rows.
            let Some(shards) = shards else {
                assert!(limit < 4 * 700 * 16);
                continue;
            };
            let mut next = 0;
            for shard in &shards {
                let bytes = shard.bytes(&sizes, DType::F32);
                assert_eq!(bytes.start, next);
                assert!(bytes.start % ALIGNMENT == 0 && bytes.end - bytes.start <= limit);
                next = bytes.end;
            }
            assert_eq!(next, 5 * 3 * 700 * 4);
        }
        let sizes = [5, 3, 704];
        let fits = |shard: &Shard| shard.count() * 4 <= 1024;
        let shards = split(&sizes, &|axis| result_unit(&sizes, axis, DType::F32), &fits).unwrap();
        assert_eq!(shards.iter().map(Shard::count).sum::<usize>(), 5 * 3 * 704);
        assert!(shards.iter().all(|it| it.start(&sizes) * 4 % 256 == 0));
    }

    #[test]
    fn shards_are_not_too_many() {
        let count = |rows: usize| {
            let fits = |shard: &Shard| shard.count() <= 64;
            split(&[rows, 64], &|_| 1, &fits).map(|shards| shards.len())
        };
        assert_eq!(count(MAX_SHARDS), Some(MAX_SHARDS));
        assert_eq!(count(MAX_SHARDS * 2), None);
    }

    #[test]
    fn units_are_distances_of_alignment() {
        let units = [0, 4, 12, 20, 64, 256, 768, 1 << 20].map(unit);
        assert_eq!(units, [1, 64, 64, 64, 4, 1, 1, 1]);
    }
}
