//! Loads and stores.

use std::cell::Cell;

use super::frame::Frame;
use super::scratch::Coefficients;
use super::shared::InShared;
use crate::access::{Region, Shared};
use crate::code::{Access, Area, At, Index};
use crate::lanes::{BLOCK, Bits, Block, Tier};

/// The indices of a block of lanes.
#[derive(Clone, Copy)]
pub(super) enum Indices {
    /// The first, and how far it is from one to the next; none wraps.
    Run { first: u32, step: u32 },
    /// One for each.
    Each([u32; BLOCK]),
}

/// The indices of all lanes, as far as they are known before looking at blocks.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    /// Each lane is `step` above the one before; none wraps.
    Flat { first: u32, step: u32 },
    /// Blocks lie in rows along x.
    Rows(Rows),
    /// Anything affine.
    Affine(Coefficients),
    /// Whatever stands in this register.
    Lanes(u32),
}

/// The first index of each block, and how far it is from one lane to the next.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    first: u32,
    step: u32,
    /// From one block to the next in a row.
    along: u32,
    /// From one row to the next.
    across: u32,
    /// Blocks of a row: two to this power.
    power: u32,
    /// From one workgroup to the next.
    beyond: u32,
    /// Blocks of a workgroup: two to this power.
    group: u32,
}

impl Rows {
    #[inline(always)]
    fn origin(&self, block: usize) -> u32 {
        let block = block as u32;
        let (group, block) = (block >> self.group, block & ((1 << self.group) - 1));
        let (row, nth) = (block >> self.power, block & ((1 << self.power) - 1));
        self.first
            .wrapping_add(group.wrapping_mul(self.beyond))
            .wrapping_add(row.wrapping_mul(self.across))
            .wrapping_add(nth.wrapping_mul(self.along))
    }
}

impl Rows {
    /// The first index of a block, if none of the block wraps.
    #[inline(always)]
    fn run(&self, block: usize) -> Option<u32> {
        let first = self.origin(block);
        let last = i64::from(first) + i64::from(self.step as i32) * (BLOCK as i64 - 1);
        (0..=i64::from(u32::MAX)).contains(&last).then_some(first)
    }

    /// The indices of a block, whether they wrap or not.
    fn indices(&self, block: usize) -> Indices {
        let (first, step) = (self.origin(block), self.step);
        match self.run(block) {
            Some(first) => Indices::Run { first, step },
            None => Indices::Each(each(Indices::Run { first, step })),
        }
    }
}

/// Where a memory begins, and how far it is to that of the next workgroup of the group.
#[derive(Clone, Copy)]
struct Start {
    first: u64,
    apart: u64,
    /// Blocks of a workgroup: two to this power.
    group: u32,
}

impl Start {
    /// Where it begins for the lanes of a block.
    #[inline(always)]
    fn of(&self, block: usize) -> u64 {
        self.first + ((block as u32) >> self.group) as u64 * self.apart
    }
}

/// Whether lines of these elements are worth code of their own: most kernels use 32 bits.
const fn has_lines<B: Bits>() -> bool {
    size_of::<B>() == size_of::<u32>()
}

/// Indices as those of rows, and whether one block follows the other; none if they are on no line.
fn line(pattern: &Pattern) -> Option<(Rows, bool)> {
    match *pattern {
        Pattern::Flat { first, step } => {
            let along = step.wrapping_mul(BLOCK as u32);
            let power = u32::BITS - 1;
            let rows = Rows { first, step, along, across: 0, power, beyond: 0, group: power };
            Some((rows, true))
        }
        Pattern::Rows(rows) => Some((rows, false)),
        Pattern::Affine(_) | Pattern::Lanes(_) => None,
    }
}

/// What loads read and stores write.
pub(super) trait Memory<B> {
    /// What a place's stride and offset count: one element, in their unit.
    const ELEMENT: u64;

    fn get(&self, place: u64) -> B;
    fn set(&self, place: u64, value: B);
    fn get_run(&self, place: u64, step: u64) -> [B; BLOCK];
    /// Reads whole registers, if that is possible at once; whether it was done.
    fn get_all(&self, place: u64, to: &[Block<B>]) -> bool;
    /// Writes whole registers, if that is possible at once; whether it was done.
    fn set_all(&self, place: u64, from: &[Block<B>]) -> bool;
    fn set_run(&self, place: u64, step: u64, values: [B; BLOCK]);
}

impl<B: Shared> Memory<B> for Region {
    const ELEMENT: u64 = size_of::<B>() as u64;

    #[inline(always)]
    fn get(&self, place: u64) -> B {
        self.get(place)
    }

    #[inline(always)]
    fn set(&self, place: u64, value: B) {
        self.set(place, value);
    }

    #[inline(always)]
    fn get_run(&self, place: u64, step: u64) -> [B; BLOCK] {
        self.get_run(place, step)
    }

    #[inline(always)]
    fn get_all(&self, place: u64, to: &[Block<B>]) -> bool {
        self.get_all(place, to)
    }

    #[inline(always)]
    fn set_all(&self, place: u64, from: &[Block<B>]) -> bool {
        self.set_all(place, from)
    }

    #[inline(always)]
    fn set_run(&self, place: u64, step: u64, values: [B; BLOCK]) {
        self.set_run(place, step, values);
    }
}

/// A place of one index.
pub(super) fn place(at: &At, index: u32) -> u64 {
    u64::from(index) * u64::from(at.stride) + u64::from(at.offset)
}

/// How far it is from one lane's place to the next one's, modulo 2^64: indices may go down.
#[inline(always)]
fn distance(step: u32, stride: u32) -> u64 {
    i64::from(step as i32).wrapping_mul(stride.into()) as u64
}

/// The place of a lane.
#[inline(always)]
pub(super) fn forth(first: u64, step: u64, lane: usize) -> u64 {
    first.wrapping_add(step.wrapping_mul(lane as u64))
}

impl Frame<'_> {
    /// A load whose place is the same for all lanes.
    pub(super) fn load_scalar(&self, access: &Access) {
        match access.ty.size() {
            1 => self.load_scalar_of::<u8>(access),
            2 => self.load_scalar_of::<u16>(access),
            4 => self.load_scalar_of::<u32>(access),
            _ => self.load_scalar_of::<u64>(access),
        }
    }

    fn load_scalar_of<B: InShared>(&self, access: &Access) {
        let index = match access.at.index {
            Index::Scalar(scalar) => self.scalar(scalar) as u32,
            _ => 0,
        };
        let first = place(&access.at, index);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let value: B = match access.at.area {
                Area::Binding(binding) => {
                    self.regions[binding as usize].get(first + nth * size_of::<B>() as u64)
                }
                Area::Shared(start) => {
                    let cells = B::cells(&self.scratch.shared);
                    Memory::get(cells, u64::from(start) + first + nth)
                }
                Area::Local { .. } => B::ZERO,
            };
            self.set_scalar(to, value.widen());
        }
    }

    pub(super) fn load(&self, access: &Access) {
        match access.ty.size() {
            1 => self.load_of::<u8>(access),
            2 => self.load_of::<u16>(access),
            4 => self.load_words(access),
            _ => self.load_of::<u64>(access),
        }
    }

    /// Most of what kernels touch: wide moves are worth having.
    fn load_words(&self, access: &Access) {
        match self.tier {
            Tier::Base => self.load_of::<u32>(access),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the tier is only made where the processor has the features.
            Tier::Avx2 => unsafe { avx2::load_words(self, access) },
        }
    }

    #[inline(always)]
    fn load_of<B: InShared>(&self, access: &Access) {
        match access.at.area {
            Area::Binding(binding) => {
                let start = Start { first: 0, apart: 0, group: 31 };
                self.load_from::<B, _>(access, &self.regions[binding as usize], start);
            }
            Area::Shared(start) => {
                let start = self.shared_start::<B>(start);
                self.load_from::<B, _>(access, B::cells(&self.scratch.shared), start);
            }
            Area::Local { start, len } => self.load_local::<B>(access, start, len),
        }
    }

    #[inline(always)]
    fn load_from<B: Bits, M: Memory<B> + ?Sized>(&self, access: &Access, memory: &M, start: Start) {
        let pattern = self.pattern(&access.at.index);
        if const { has_lines::<B>() }
            && let Some((rows, flat)) = line(&pattern)
        {
            return self.load_line(access, memory, start, &rows, flat);
        }
        self.load_scattered(access, &pattern, memory, start);
    }

    /// A load whose indices grow evenly within each block, and with `flat` from one block to the
    /// next.
    fn load_line<B: Bits, M: Memory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: Start,
        rows: &Rows,
        flat: bool,
    ) {
        let file = B::file(self.files());
        let step = distance(rows.step, access.at.stride);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let nth = nth * M::ELEMENT;
            let place = |block| start.of(block) + nth + place(&access.at, rows.origin(block));
            let to = &file[to as usize + self.lanes.first..to as usize + self.lanes.end];
            if step == 0 {
                for (block, to) in self.blocks().zip(to) {
                    to.set([memory.get(place(block)); BLOCK]);
                }
            } else if !flat
                || start.apart != 0
                || step != M::ELEMENT
                || !memory.get_all(place(self.lanes.first), to)
            {
                for (block, to) in self.blocks().zip(to) {
                    to.set(match rows.run(block) {
                        Some(_) => memory.get_run(place(block), step),
                        None => {
                            let begin = start.of(block) + nth;
                            let indices = each(rows.indices(block));
                            gather(memory, begin, &access.at, &indices)
                        }
                    });
                }
            }
        }
    }

    /// A load whose indices follow no line.
    fn load_scattered<B: Bits, M: Memory<B> + ?Sized>(
        &self,
        access: &Access,
        pattern: &Pattern,
        memory: &M,
        start: Start,
    ) {
        let file = B::file(self.files());
        let at = &access.at;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let offset = start.of(block) + nth * M::ELEMENT;
                let values = match indices {
                    Indices::Run { first, step: 0 } => {
                        [memory.get(offset + place(at, first)); BLOCK]
                    }
                    Indices::Run { first, step } => {
                        memory.get_run(offset + place(at, first), distance(step, at.stride))
                    }
                    Indices::Each(indices) => gather(memory, offset, at, &indices),
                };
                file[to as usize + block].set(values);
            }
        }
    }

    pub(super) fn store(&self, access: &Access) {
        match access.ty.size() {
            1 => self.store_of::<u8>(access),
            2 => self.store_of::<u16>(access),
            4 => self.store_words(access),
            _ => self.store_of::<u64>(access),
        }
    }

    /// Most of what kernels touch: wide moves are worth having.
    fn store_words(&self, access: &Access) {
        match self.tier {
            Tier::Base => self.store_of::<u32>(access),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the tier is only made where the processor has the features.
            Tier::Avx2 => unsafe { avx2::store_words(self, access) },
        }
    }

    #[inline(always)]
    fn store_of<B: InShared>(&self, access: &Access) {
        match access.at.area {
            Area::Binding(binding) => {
                let start = Start { first: 0, apart: 0, group: 31 };
                self.store_to::<B, _>(access, &self.regions[binding as usize], start);
            }
            Area::Shared(start) => {
                let start = self.shared_start::<B>(start);
                self.store_to::<B, _>(access, B::cells(&self.scratch.shared), start);
            }
            Area::Local { start, len } => self.store_local::<B>(access, start, len),
        }
    }

    #[inline(always)]
    fn store_to<B: Bits, M: Memory<B> + ?Sized>(&self, access: &Access, memory: &M, start: Start) {
        let pattern = self.pattern(&access.at.index);
        if const { has_lines::<B>() }
            && let Some((rows, flat)) = line(&pattern)
            && rows.step != 0
        {
            return self.store_line(access, memory, start, &rows, flat);
        }
        self.store_scattered(access, &pattern, memory, start);
    }

    /// A store whose indices grow as those of [`Frame::load_line`] do.
    fn store_line<B: Bits, M: Memory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: Start,
        rows: &Rows,
        flat: bool,
    ) {
        let file = B::file(self.files());
        let step = distance(rows.step, access.at.stride);
        for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
            let nth = nth * M::ELEMENT;
            let place = |block| start.of(block) + nth + place(&access.at, rows.origin(block));
            let line = flat && start.apart == 0 && step == M::ELEMENT;
            let whole = line && from.step == 1 && self.lanes.dense;
            let blocks = from.at(self.lanes.first)..from.at(self.lanes.end);
            if whole && memory.set_all(place(self.lanes.first), &file[blocks]) {
                continue;
            }
            for block in self.blocks() {
                let values = file[from.at(block)].get();
                let active = self.active(block);
                if active == [1; BLOCK] && rows.run(block).is_some() {
                    memory.set_run(place(block), step, values);
                    continue;
                }
                let indices = each(rows.indices(block));
                let begin = start.of(block) + nth;
                for lane in 0..BLOCK {
                    if active[lane] != 0 {
                        memory.set(
                            begin + super::memory::place(&access.at, indices[lane]),
                            values[lane],
                        );
                    }
                }
            }
        }
    }

    /// A store whose indices follow no line, or are all the same.
    fn store_scattered<B: Bits, M: Memory<B> + ?Sized>(
        &self,
        access: &Access,
        pattern: &Pattern,
        memory: &M,
        start: Start,
    ) {
        let file = B::file(self.files());
        let at = &access.at;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let offset = start.of(block) + nth * M::ELEMENT;
                let values = file[from.at(block)].get();
                match indices {
                    Indices::Run { first, step } if step != 0 && active == [1; BLOCK] => {
                        memory.set_run(
                            offset + place(at, first),
                            distance(step, at.stride),
                            values,
                        );
                    }
                    _ => {
                        let indices = each(indices);
                        for lane in 0..BLOCK {
                            if active[lane] != 0 {
                                memory.set(offset + place(at, indices[lane]), values[lane]);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Where an array of workgroup memory begins.
    fn shared_start<B: InShared>(&self, start: u32) -> Start {
        if self.code.group.batch == 1 {
            return Start { first: start.into(), apart: 0, group: 31 };
        }
        let apart = B::elements(self.code.shared) as u64;
        Start { first: start.into(), apart, group: self.group_power() }
    }

    /// Blocks of a workgroup, of several: two to this power.
    fn group_power(&self) -> u32 {
        (self.code.group.invocations() / BLOCK).trailing_zeros()
    }

    /// The place of an element for the lanes of a block: each workgroup has memory of its own.
    pub(super) fn own_place<B: InShared>(&self, area: Area, block: usize, place: u64) -> u64 {
        match area {
            Area::Shared(_) => place + self.shared_start::<B>(0).of(block),
            Area::Binding(_) | Area::Local { .. } => place,
        }
    }

    /// What is known of an index.
    pub(super) fn pattern(&self, index: &Index) -> Pattern {
        match *index {
            Index::None => Pattern::Flat { first: 0, step: 0 },
            Index::Scalar(scalar) => Pattern::Flat { first: self.scalar(scalar) as u32, step: 0 },
            Index::Lanes(start) => Pattern::Lanes(start),
            Index::Affine(affine) => {
                let coefficients = self.coefficients(affine);
                if coefficients.linear {
                    self.affine_pattern(coefficients)
                } else {
                    Pattern::Lanes(affine.lanes)
                }
            }
        }
    }

    fn affine_pattern(&self, coefficients: Coefficients) -> Pattern {
        let group = self.code.group;
        let [width, height, depth] = group.size;
        let Coefficients { base: first, step: [x, y, z, beyond], .. } = coefficients;
        let row = x.wrapping_mul(width);
        // What leads from the end of a slice to the next one, if rows follow each other there too.
        let slice = y.wrapping_mul(height);
        let even = depth == 1 || z == slice;
        let whole = x.wrapping_mul(group.invocations() as u32);
        let flat = even && (height == 1 && depth == 1 || y == row);
        let reach = u64::from(x) * (self.lanes.end * BLOCK) as u64;
        if flat
            && (group.batch == 1 || beyond == whole)
            && u64::from(first) + reach <= u64::from(u32::MAX)
        {
            return Pattern::Flat { first, step: x };
        }
        let blocks = width / BLOCK as u32;
        if self.rows && even && blocks.is_power_of_two() {
            let along = x.wrapping_mul(BLOCK as u32);
            let power = blocks.trailing_zeros();
            // Of several workgroups, each has a power of two of blocks; one alone has all.
            let group = if group.batch == 1 { 31 } else { self.group_power() };
            let rows = Rows { first, step: x, along, across: y, power, beyond, group };
            return Pattern::Rows(rows);
        }
        Pattern::Affine(coefficients)
    }

    /// The indices of a block of lanes.
    #[inline(always)]
    pub(super) fn indices(&self, pattern: &Pattern, block: usize) -> Indices {
        match pattern {
            Pattern::Flat { first, step } => {
                Indices::Run { first: first + step * (block * BLOCK) as u32, step: *step }
            }
            Pattern::Rows(rows) => rows.indices(block),
            Pattern::Affine(coefficients) => run_of(self.block_of(coefficients, block)),
            Pattern::Lanes(start) => run_of(u32::file(self.files())[*start as usize + block].get()),
        }
    }

    /// Local memory lies as registers do: all lanes of element 0, then all of element 1, and so on.
    fn load_local<B: Bits>(&self, access: &Access, start: u32, len: u32) {
        let file = B::file(self.files());
        let pattern = self.pattern(&access.at.index);
        for block in self.blocks() {
            let indices = each(self.indices(&pattern, block));
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let mut values = [B::ZERO; BLOCK];
                for lane in 0..BLOCK {
                    let element = place(&access.at, indices[lane]) + nth;
                    if let Some(of_block) = self.local(file, start, len, element, block) {
                        values[lane] = of_block.get()[lane];
                    }
                }
                file[to as usize + block].set(values);
            }
        }
    }

    fn store_local<B: Bits>(&self, access: &Access, start: u32, len: u32) {
        let file = B::file(self.files());
        let pattern = self.pattern(&access.at.index);
        for block in self.blocks() {
            let indices = each(self.indices(&pattern, block));
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let values = file[from.at(block)].get();
                for lane in (0..BLOCK).filter(|lane| active[*lane] != 0) {
                    let element = place(&access.at, indices[lane]) + nth;
                    if let Some(to) = self.local(file, start, len, element, block) {
                        let lanes: &Cell<[B]> = to;
                        lanes.as_slice_of_cells()[lane].set(values[lane]);
                    }
                }
            }
        }
    }

    /// A block of lanes of an element of a local array.
    #[inline(always)]
    fn local<'f, B: Bits>(
        &self,
        file: &'f [Block<B>],
        start: u32,
        len: u32,
        element: u64,
        block: usize,
    ) -> Option<&'f Block<B>> {
        let blocks = self.code.group.lanes().div_ceil(BLOCK);
        (element < u64::from(len))
            .then(|| &file[start as usize + element as usize * blocks + block])
    }
}

/// Reads a block, element by element.
#[inline(never)]
fn gather<B: Bits, M: Memory<B> + ?Sized>(
    memory: &M,
    start: u64,
    at: &At,
    indices: &[u32; BLOCK],
) -> [B; BLOCK] {
    let mut values = [B::ZERO; BLOCK];
    for (value, index) in values.iter_mut().zip(indices) {
        *value = memory.get(start + place(at, *index));
    }
    values
}

/// The indices of each lane.
#[inline(always)]
pub(super) fn each(indices: Indices) -> [u32; BLOCK] {
    match indices {
        Indices::Each(indices) => indices,
        Indices::Run { first, step } => {
            std::array::from_fn(|lane| first.wrapping_add(step.wrapping_mul(lane as u32)))
        }
    }
}

/// Whether indices are all the same, or each one above the one before, as those of neighbours
/// often are.
#[inline(always)]
fn run_of(lanes: [u32; BLOCK]) -> Indices {
    let first = lanes[0];
    let (mut same, mut next) = (true, true);
    for (lane, index) in lanes.into_iter().enumerate() {
        same &= index == first;
        next &= index == first.wrapping_add(lane as u32);
    }
    if same {
        Indices::Run { first, step: 0 }
    } else if next && first <= u32::MAX - BLOCK as u32 {
        Indices::Run { first, step: 1 }
    } else {
        Indices::Each(lanes)
    }
}

/// The same, compiled for AVX2. Whoever calls these has to know that the processor has it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Access, Frame};

    // SAFETY: the caller knows that the processor has the feature.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load_words(frame: &Frame<'_>, access: &Access) {
        frame.load_of::<u32>(access);
    }

    // SAFETY: the caller knows that the processor has the feature.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn store_words(frame: &Frame<'_>, access: &Access) {
        frame.store_of::<u32>(access);
    }
}
