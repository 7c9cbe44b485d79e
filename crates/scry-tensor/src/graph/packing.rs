//! Packs blocks of memory, each with a size and a lifetime, into few arenas.
//!
//! Blocks are placed one after the other, each where its arena grows least, then in the arena with
//! the smallest gap or with the largest one. The order decides how well they fit, so several are
//! tried, and then the best one is improved: a block that made an arena grow is placed earlier. All
//! is deterministic. Arenas that exist already cost nothing: blocks that fit into them are not
//! packed better.

/// A block, for the kernels from the first to the last one that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes, a multiple of the alignment of offsets.
    pub(super) bytes: u64,
    pub(super) first: usize,
    pub(super) last: usize,
    /// Blocks that must be in other arenas.
    pub(super) apart: Vec<usize>,
}

impl Block {
    /// Returns the number of kernels for which it is kept.
    fn lifetime(&self) -> u64 {
        (self.last - self.first + 1) as u64
    }
}

/// Where blocks are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Packing {
    /// The arena and the offset of each block.
    pub(super) places: Vec<(usize, u64)>,
    /// The bytes of each arena.
    pub(super) arenas: Vec<u64>,
    /// Blocks whose placement made an arena grow.
    grown: Vec<usize>,
}

/// Returns the largest sum of blocks in use at one time.
pub(super) fn peak(blocks: &[Block]) -> u64 {
    let used_at = |at: usize| {
        let used = blocks.iter().filter(|it| (it.first..=it.last).contains(&at));
        used.map(|it| it.bytes).sum()
    };
    // The sum only grows where a block begins.
    blocks.iter().map(|block| used_at(block.first)).max().unwrap_or(0)
}

/// Packs blocks, in arenas of at most `max_arena` bytes if no block is larger. There are arenas of
/// `kept` bytes, the largest first.
pub(super) fn pack(blocks: &[Block], max_arena: u64, kept: &[u64]) -> Packing {
    let bound = peak(blocks);
    let by_time: Vec<usize> = (0..blocks.len()).collect();
    // From the end as well: operands are then placed after the results that must be apart.
    let from_end: Vec<usize> = by_time.iter().rev().copied().collect();
    let sorted = |order: &[usize], key: fn(&Block) -> u64| {
        let mut order = order.to_vec();
        order.sort_by_key(|block| std::cmp::Reverse(key(&blocks[*block])));
        order
    };
    let keys: [fn(&Block) -> u64; 3] =
        [|block| block.bytes, |block| block.bytes * block.lifetime(), Block::lifetime];
    let orders = [by_time, from_end].into_iter().flat_map(|order: Vec<usize>| {
        let sorted = keys.map(|key| sorted(&order, key));
        let orders = std::iter::once(order).chain(sorted);
        let both =
            |order: Vec<usize>| [Gap::Smallest, Gap::Largest].map(|gap| (order.clone(), gap));
        orders.flat_map(both).map(|(order, gap)| Sequence { order, gap })
    });
    let mut best: Vec<(Packing, Sequence)> = Vec::new();
    for sequence in orders {
        let packing = sequence.place(blocks, max_arena);
        if packing.fits(kept) || packing.bytes() == bound {
            return packing;
        }
        let known = best.first().map_or(u64::MAX, |(known, _)| known.bytes());
        if packing.bytes() < known {
            best.clear();
        }
        if packing.bytes() <= known {
            best.push((packing, sequence));
        }
    }
    improve(blocks, best, (bound, kept), max_arena)
}

/// The order in which blocks are placed, and where.
#[derive(Clone)]
struct Sequence {
    order: Vec<usize>,
    gap: Gap,
}

/// The gap that a block is placed in, of those in different arenas that grow as little.
#[derive(Clone, Copy)]
enum Gap {
    Smallest,
    Largest,
}

/// Changes the orders of the best packings, which have one size, while that helps, for a number of
/// attempts that large plans can afford.
fn improve(
    blocks: &[Block],
    mut all: Vec<(Packing, Sequence)>,
    (bound, kept): (u64, &[u64]),
    max_arena: u64,
) -> Packing {
    let attempts = (400_000 / (blocks.len() * blocks.len()).max(1)).min(400);
    let mut state = 1u32;
    let mut below = |n: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % n.max(1)
    };
    for attempt in 0..attempts {
        let count = all.len();
        let Some((best, sequence)) = all.get_mut(attempt % count.max(1)) else { break };
        if best.bytes() == bound || best.grown.is_empty() || best.fits(kept) {
            break;
        }
        let mut changed = sequence.clone();
        let order = &mut changed.order;
        let moved = best.grown[below(best.grown.len())];
        if let Some(at) = order.iter().position(|it| *it == moved) {
            let to = below(at + 1);
            order.remove(at);
            order.insert(to, moved);
        }
        if below(2) == 0 {
            order.swap(below(blocks.len()), below(blocks.len()));
        }
        let packing = changed.place(blocks, max_arena);
        if packing.bytes() <= best.bytes() {
            (*best, *sequence) = (packing, changed);
        }
    }
    let packings = all.into_iter().map(|(packing, _)| packing);
    packings.min_by_key(|it| (!it.fits(kept), it.bytes())).unwrap_or_default()
}

impl Sequence {
    /// Places all blocks, in arenas of at most `max_arena` bytes if no block is larger.
    fn place(&self, blocks: &[Block], max_arena: u64) -> Packing {
        let places = vec![(usize::MAX, 0); blocks.len()];
        let mut packing = Packing { places, ..Packing::default() };
        // The placed blocks of each arena.
        let mut placed: Vec<Vec<usize>> = Vec::new();
        for position in &self.order {
            let block = &blocks[*position];
            let is_apart = |other: &usize| block.apart.contains(other);
            let arenas = (0..placed.len()).filter(|arena| !placed[*arena].iter().any(is_apart));
            let choice = |arena: usize| {
                let (offset, gap) =
                    packing.gap(blocks, block, &placed[arena], packing.arenas[arena]);
                let growth = (offset + block.bytes).saturating_sub(packing.arenas[arena]);
                let rank = match self.gap {
                    Gap::Smallest => gap,
                    Gap::Largest => u64::MAX - gap,
                };
                (growth, rank, arena, offset)
            };
            let fits =
                |(_, _, _, offset): &(u64, u64, usize, u64)| offset + block.bytes <= max_arena;
            let best = arenas.map(choice).filter(fits).min();
            let (arena, offset) = best.map_or((placed.len(), 0), |(_, _, arena, at)| (arena, at));
            if arena == placed.len() {
                placed.push(Vec::new());
                packing.arenas.push(0);
            }
            let end = offset + block.bytes;
            if end > packing.arenas[arena] {
                packing.grown.push(*position);
                packing.arenas[arena] = end;
            }
            placed[arena].push(*position);
            packing.places[*position] = (arena, offset);
        }
        packing
    }
}

impl Packing {
    /// Returns the bytes of all arenas.
    pub(super) fn bytes(&self) -> u64 {
        self.arenas.iter().sum()
    }

    /// Returns whether there is an arena, of those that are kept, for each.
    fn fits(&self, kept: &[u64]) -> bool {
        let mut arenas = self.arenas.clone();
        arenas.sort_unstable_by(|a, b| b.cmp(a));
        arenas.len() <= kept.len() && arenas.iter().zip(kept).all(|(arena, kept)| arena <= kept)
    }

    /// Returns the offset and the size of the smallest gap of an arena that holds a block for its
    /// lifetime; else the end of what is in use.
    fn gap(&self, blocks: &[Block], block: &Block, placed: &[usize], len: u64) -> (u64, u64) {
        let overlaps = |other: &&usize| {
            let other = &blocks[**other];
            other.first <= block.last && block.first <= other.last
        };
        let range = |other: &usize| (self.places[*other].1, blocks[*other].bytes);
        let mut used: Vec<(u64, u64)> = placed.iter().filter(overlaps).map(range).collect();
        used.sort_unstable();
        let (mut end, mut best) = (0, None);
        for (offset, bytes) in used.into_iter().chain([(len, 0)]) {
            let gap = offset.saturating_sub(end);
            if gap >= block.bytes && best.is_none_or(|(_, size)| gap < size) {
                best = Some((end, gap));
            }
            end = end.max(offset + bytes);
        }
        // Without a gap, after all that is in use; `end` may be that of the arena.
        best.unwrap_or_else(|| {
            let used = placed.iter().filter(overlaps).map(range);
            (used.map(|(offset, bytes)| offset + bytes).max().unwrap_or(0), block.bytes)
        })
    }
}
