//! The free parts of a block of memory.

/// Which bytes of a block are free: offset and size of each part, by offset, no two touching.
pub(crate) struct Spans {
    free: Vec<(u64, u64)>,
    size: u64,
}

impl Spans {
    /// A block of `size` bytes, all free.
    pub(crate) fn new(size: u64) -> Self {
        Self { free: vec![(0, size)], size }
    }

    /// Takes bytes out of the smallest part that has room for them; `align` is a power of two.
    pub(crate) fn take(&mut self, size: u64, align: u64) -> Option<u64> {
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
        let (gap, rest) = (start - offset, offset + room - start - size);
        if rest > 0 {
            self.free.insert(at, (start + size, rest));
        }
        if gap > 0 {
            self.free.insert(at, (offset, gap));
        }
        Some(start)
    }

    /// Takes back what was taken.
    pub(crate) fn give(&mut self, offset: u64, size: u64) {
        let at = self.free.partition_point(|part| part.0 < offset);
        let joins_next = self.free.get(at).is_some_and(|next| offset + size == next.0);
        let before = at.checked_sub(1).filter(|&before| {
            let (start, size) = self.free[before];
            start + size == offset
        });
        let mut part = (offset, size);
        if joins_next {
            part.1 += self.free.remove(at).1;
        }
        match before {
            Some(before) => self.free[before].1 += part.1,
            None => self.free.insert(at, part),
        }
    }

    /// Whether nothing is taken.
    pub(crate) fn is_whole(&self) -> bool {
        self.free == [(0, self.size)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_part_with_room_is_taken_and_the_rest_stays_free() {
        let mut spans = Spans::new(100);
        assert_eq!(spans.take(40, 1), Some(0));
        assert_eq!(spans.take(10, 1), Some(40));
        assert_eq!(spans.take(51, 1), None);
        spans.give(0, 40);
        assert_eq!(spans.take(35, 16), Some(0));
        assert_eq!(spans.take(30, 16), Some(64), "48 is the first multiple with room before it");
        assert!(!spans.is_whole());
    }

    #[test]
    fn sizes_beyond_all_numbers_do_not_fit() {
        let mut spans = Spans::new(100);
        assert_eq!(spans.take(1, 1), Some(0));
        assert_eq!(spans.take(u64::MAX, 64), None);
    }

    /// Takes and gives at random; nothing overlaps, and at the end all is one part again.
    #[test]
    fn parts_never_overlap_and_grow_together_again() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut spans = Spans::new(4096);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for _ in 0..20_000 {
            if random(5) < 2 && !taken.is_empty() {
                let (offset, size) = taken.swap_remove(random(taken.len() as u64) as usize);
                spans.give(offset, size);
                continue;
            }
            let (size, align) = (1 + random(300), 1 << random(8));
            if let Some(offset) = spans.take(size, align) {
                assert!(offset.is_multiple_of(align) && offset + size <= 4096);
                let apart =
                    |other: &(u64, u64)| offset + size <= other.0 || other.0 + other.1 <= offset;
                assert!(taken.iter().all(apart), "{size} bytes at {offset} are taken twice");
                taken.push((offset, size));
            }
            let free: u64 = spans.free.iter().map(|part| part.1).sum();
            let used: u64 = taken.iter().map(|part| part.1).sum();
            assert_eq!(free + used, 4096);
        }
        taken.drain(..).for_each(|(offset, size)| spans.give(offset, size));
        assert!(spans.is_whole());
    }
}
