//! Allocates ranges of a block of memory: best fit, with merging of free ranges.

/// Free ranges of a block: offset and size, sorted by offset; adjacent ranges are merged.
pub(crate) struct FreeRanges {
    free: Vec<(u64, u64)>,
    size: u64,
}

impl FreeRanges {
    /// Creates the free ranges of an unused block of `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        Self { free: vec![(0, size)], size }
    }

    /// Allocates bytes from the smallest range that fits; `align` is a power of two.
    pub(crate) fn allocate(&mut self, size: u64, align: u64) -> Option<u64> {
        let mut best: Option<usize> = None;
        for (at, (offset, room)) in self.free.iter().enumerate() {
            let gap = offset.next_multiple_of(align) - offset;
            let fits = gap.checked_add(size).is_some_and(|wanted| wanted <= *room);
            if fits && best.is_none_or(|best| *room < self.free[best].1) {
                best = Some(at);
            }
        }
        let at = best?;
        let (offset, room) = self.free.remove(at);
        let start = offset.next_multiple_of(align);
        let (gap, remainder) = (start - offset, offset + room - start - size);
        if remainder > 0 {
            self.free.insert(at, (start + size, remainder));
        }
        if gap > 0 {
            self.free.insert(at, (offset, gap));
        }
        Some(start)
    }

    /// Frees an allocated range.
    pub(crate) fn release(&mut self, offset: u64, size: u64) {
        let at = self.free.partition_point(|range| range.0 < offset);
        let joins_next = self.free.get(at).is_some_and(|next| offset + size == next.0);
        let before = at.checked_sub(1).filter(|&before| {
            let (start, size) = self.free[before];
            start + size == offset
        });
        let mut range = (offset, size);
        if joins_next {
            range.1 += self.free.remove(at).1;
        }
        match before {
            Some(before) => self.free[before].1 += range.1,
            None => self.free.insert(at, range),
        }
    }

    /// Returns whether the whole block is free.
    pub(crate) fn is_unused(&self) -> bool {
        self.free == [(0, self.size)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_fitting_range_is_split() {
        let mut ranges = FreeRanges::new(100);
        assert_eq!(ranges.allocate(40, 1), Some(0));
        assert_eq!(ranges.allocate(10, 1), Some(40));
        assert_eq!(ranges.allocate(51, 1), None);
        ranges.release(0, 40);
        assert_eq!(ranges.allocate(35, 16), Some(0));
        assert_eq!(
            ranges.allocate(30, 16),
            Some(64),
            "64 is the first multiple of 16 in the free range from 50 on"
        );
        assert!(!ranges.is_unused());
    }

    #[test]
    fn overflowing_sizes_do_not_fit() {
        let mut ranges = FreeRanges::new(100);
        assert_eq!(ranges.allocate(1, 1), Some(0));
        assert_eq!(ranges.allocate(u64::MAX, 64), None);
    }

    /// Random allocations and frees never overlap, and at the end all ranges are merged.
    #[test]
    fn random_ranges_never_overlap_and_merge() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut ranges = FreeRanges::new(4096);
        let mut allocated: Vec<(u64, u64)> = Vec::new();
        for _ in 0..20_000 {
            if random(5) < 2 && !allocated.is_empty() {
                let (offset, size) = allocated.swap_remove(random(allocated.len() as u64) as usize);
                ranges.release(offset, size);
                continue;
            }
            let (size, align) = (1 + random(300), 1 << random(8));
            if let Some(offset) = ranges.allocate(size, align) {
                assert!(offset.is_multiple_of(align) && offset + size <= 4096);
                let disjoint =
                    |other: &(u64, u64)| offset + size <= other.0 || other.0 + other.1 <= offset;
                assert!(
                    allocated.iter().all(disjoint),
                    "{size} bytes at {offset} are allocated twice"
                );
                allocated.push((offset, size));
            }
            let free: u64 = ranges.free.iter().map(|range| range.1).sum();
            let used: u64 = allocated.iter().map(|range| range.1).sum();
            assert_eq!(free + used, 4096);
        }
        allocated.drain(..).for_each(|(offset, size)| ranges.release(offset, size));
        assert!(ranges.is_unused());
    }
}
