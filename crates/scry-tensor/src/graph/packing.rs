//! Packs blocks of memory, each with a size and a lifetime, into few arenas.
//!
//! Blocks are placed one after the other, each where its arena grows least, then in the smallest
//! gap. The order decides how well they fit, so several are tried, and then the best one is
//! improved: a block that made an arena grow is placed earlier. All is deterministic. Arenas that
//! exist already cost nothing: blocks that fit into them are not packed better.

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
    /// Blocks whose placement made an arena grow, other than the first of an arena.
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
    let sorted = |key: fn(&Block) -> u64| {
        let mut order = by_time.clone();
        order.sort_by_key(|block| std::cmp::Reverse(key(&blocks[*block])));
        order
    };
    let orders = [
        by_time.clone(),
        sorted(|block| block.bytes),
        sorted(|block| block.bytes * block.lifetime()),
        sorted(Block::lifetime),
    ];
    let mut best: Option<(Packing, Vec<usize>)> = None;
    for order in orders {
        let packing = place_all(blocks, &order, max_arena);
        if packing.fits(kept) {
            return packing;
        }
        if best.as_ref().is_none_or(|(known, _)| packing.bytes() < known.bytes()) {
            best = Some((packing, order));
        }
        if best.as_ref().is_some_and(|(known, _)| known.bytes() == bound) {
            break;
        }
    }
    let Some((packing, order)) = best else { return Packing::default() };
    improve(blocks, (packing, order), (bound, kept), max_arena)
}

/// Changes the order of blocks while that helps, for a number of attempts that large plans can
/// afford.
fn improve(
    blocks: &[Block],
    (mut best, mut order): (Packing, Vec<usize>),
    (bound, kept): (u64, &[u64]),
    max_arena: u64,
) -> Packing {
    let attempts = (400_000 / (blocks.len() * blocks.len()).max(1)).min(400);
    let mut state = 1u32;
    let mut below = |n: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % n.max(1)
    };
    for _ in 0..attempts {
        if best.bytes() == bound || best.grown.is_empty() || best.fits(kept) {
            break;
        }
        let mut changed = order.clone();
        let moved = best.grown[below(best.grown.len())];
        if let Some(at) = changed.iter().position(|it| *it == moved) {
            let to = below(at + 1);
            changed.remove(at);
            changed.insert(to, moved);
        }
        if below(2) == 0 {
            changed.swap(below(blocks.len()), below(blocks.len()));
        }
        let packing = place_all(blocks, &changed, max_arena);
        if packing.bytes() <= best.bytes() {
            (best, order) = (packing, changed);
        }
    }
    best
}

fn place_all(blocks: &[Block], order: &[usize], max_arena: u64) -> Packing {
    let places = vec![(usize::MAX, 0); blocks.len()];
    let mut packing = Packing { places, ..Packing::default() };
    // The placed blocks of each arena.
    let mut placed: Vec<Vec<usize>> = Vec::new();
    for position in order {
        let block = &blocks[*position];
        let is_apart = |other: &usize| block.apart.contains(other);
        let arenas = (0..placed.len()).filter(|arena| !placed[*arena].iter().any(is_apart));
        let choice = |arena: usize| {
            let (offset, gap) = packing.gap(blocks, block, &placed[arena], packing.arenas[arena]);
            let growth = (offset + block.bytes).saturating_sub(packing.arenas[arena]);
            (growth, gap, arena, offset)
        };
        let fits = |(_, _, _, offset): &(u64, u64, usize, u64)| offset + block.bytes <= max_arena;
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
