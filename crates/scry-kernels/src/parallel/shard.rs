//! Which part of an axis a rank has.

use std::ops::Range;

/// Returns the part of `len` features, heads or rows that rank `rank` of `world_size` has: they are
/// distributed in order of rank, and the first `len % world_size` ranks have one more than the
/// others. With fewer than `world_size`, the last ranks have none.
///
/// ```
/// use scry_kernels::shard;
///
/// assert_eq!([0, 1, 2].map(|rank| shard(8, rank, 3)), [0..3, 3..6, 6..8]);
/// assert_eq!(shard(1, 2, 3), 1..1);
/// ```
///
/// # Panics
/// If `rank` is not less than `world_size`.
#[must_use]
pub fn shard(len: usize, rank: usize, world_size: usize) -> Range<usize> {
    assert!(rank < world_size, "shard: rank {rank} is not one of {world_size} ranks");
    let (part, more) = (len / world_size, len % world_size);
    let start = rank * part + rank.min(more);
    start..start + part + usize::from(rank < more)
}

#[cfg(test)]
mod tests {
    use super::shard;

    #[test]
    fn shards_partition_the_axis() {
        for world_size in 1..=9 {
            for len in [0, 1, 7, 8, 9, 1000, usize::MAX] {
                let shards: Vec<_> =
                    (0..world_size).map(|rank| shard(len, rank, world_size)).collect();
                assert_eq!((shards[0].start, shards[world_size - 1].end), (0, len));
                assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start));
                let longest = shards.iter().map(|it| it.len()).max();
                assert_eq!(longest, Some(len.div_ceil(world_size)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "rank 3 is not one of 3 ranks")]
    fn ranks_are_checked() {
        let _ = shard(10, 3, 3);
    }
}
