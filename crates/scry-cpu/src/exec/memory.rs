//! Loads and stores.

use std::cell::Cell;

use super::frame::Frame;
use super::scratch::Coefficients;
use super::shared::InShared;
use crate::access::{Region, Shared};
use crate::code::{Access, Area, At, Index};
use crate::lanes::{BLOCK, Bits, Block};

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
    /// Blocks lie in rows along x, and no lane wraps.
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
}

impl Rows {
    #[inline(always)]
    fn origin(&self, block: usize) -> u32 {
        let block = block as u32;
        let (row, nth) = (block >> self.power, block & ((1 << self.power) - 1));
        self.first
            .wrapping_add(row.wrapping_mul(self.across))
            .wrapping_add(nth.wrapping_mul(self.along))
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
            Some((Rows { first, step, along, across: 0, power: u32::BITS - 1 }, true))
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
    pub(super) fn load(&self, access: &Access) {
        match (access.ty.size(), access.at.area) {
            (4, _) => self.load_of::<u32>(access),
            (2, Area::Binding(binding)) => {
                self.load_from::<u16, _>(access, &self.regions[binding as usize], 0);
            }
            (8, Area::Binding(binding)) => {
                self.load_from::<u64, _>(access, &self.regions[binding as usize], 0);
            }
            _ => self.load_rare(access),
        }
    }

    fn load_of<B: InShared>(&self, access: &Access) {
        match access.at.area {
            Area::Binding(binding) => {
                self.load_from::<B, _>(access, &self.regions[binding as usize], 0);
            }
            Area::Shared(start) => {
                self.load_from::<B, _>(access, B::cells(&self.scratch.shared), start.into());
            }
            Area::Local { start, len } => self.load_local::<B>(access, start, len),
        }
    }

    fn load_from<B: Bits, M: Memory<B> + ?Sized>(&self, access: &Access, memory: &M, start: u64) {
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
        start: u64,
        rows: &Rows,
        flat: bool,
    ) {
        let file = B::file(self.files());
        let step = distance(rows.step, access.at.stride);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let start = start + nth * M::ELEMENT;
            let place = |block| start + place(&access.at, rows.origin(block));
            let to = &file[to as usize + self.lanes.first..to as usize + self.lanes.end];
            if step == 0 {
                for (block, to) in self.blocks().zip(to) {
                    to.set([memory.get(place(block)); BLOCK]);
                }
            } else if step != M::ELEMENT {
                for (block, to) in self.blocks().zip(to) {
                    to.set(memory.get_run(place(block), step));
                }
            } else if !flat || !memory.get_all(place(self.lanes.first), to) {
                for (block, to) in self.blocks().zip(to) {
                    to.set(memory.get_run(place(block), M::ELEMENT));
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
        start: u64,
    ) {
        let file = B::file(self.files());
        let at = &access.at;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let offset = start + nth * M::ELEMENT;
                let values = match indices {
                    Indices::Run { first, step: 0 } => {
                        [memory.get(offset + place(at, first)); BLOCK]
                    }
                    Indices::Run { first, step } => {
                        memory.get_run(offset + place(at, first), distance(step, at.stride))
                    }
                    Indices::Each(indices) => {
                        let mut values = [B::ZERO; BLOCK];
                        for lane in 0..BLOCK {
                            values[lane] = memory.get(offset + place(at, indices[lane]));
                        }
                        values
                    }
                };
                file[to as usize + block].set(values);
            }
        }
    }

    pub(super) fn store(&self, access: &Access) {
        match (access.ty.size(), access.at.area) {
            (4, _) => self.store_of::<u32>(access),
            (2, Area::Binding(binding)) => {
                self.store_to::<u16, _>(access, &self.regions[binding as usize], 0);
            }
            (8, Area::Binding(binding)) => {
                self.store_to::<u64, _>(access, &self.regions[binding as usize], 0);
            }
            _ => self.store_rare(access),
        }
    }

    fn store_of<B: InShared>(&self, access: &Access) {
        match access.at.area {
            Area::Binding(binding) => {
                self.store_to::<B, _>(access, &self.regions[binding as usize], 0);
            }
            Area::Shared(start) => {
                self.store_to::<B, _>(access, B::cells(&self.scratch.shared), start.into());
            }
            Area::Local { start, len } => self.store_local::<B>(access, start, len),
        }
    }

    fn store_to<B: Bits, M: Memory<B> + ?Sized>(&self, access: &Access, memory: &M, start: u64) {
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
        start: u64,
        rows: &Rows,
        flat: bool,
    ) {
        let file = B::file(self.files());
        let step = distance(rows.step, access.at.stride);
        for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
            let start = start + nth * M::ELEMENT;
            let place = |block| start + place(&access.at, rows.origin(block));
            let whole = flat && from.step == 1 && step == M::ELEMENT && self.lanes.dense;
            let blocks = from.at(self.lanes.first)..from.at(self.lanes.end);
            if whole && memory.set_all(place(self.lanes.first), &file[blocks]) {
                continue;
            }
            for block in self.blocks() {
                let values = file[from.at(block)].get();
                if self.lanes.dense || self.active(block) == [1; BLOCK] {
                    memory.set_run(place(block), step, values);
                } else {
                    let (active, place) = (self.active(block), place(block));
                    for lane in 0..BLOCK {
                        if active[lane] != 0 {
                            memory.set(forth(place, step, lane), values[lane]);
                        }
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
        start: u64,
    ) {
        let file = B::file(self.files());
        let at = &access.at;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let offset = start + nth * M::ELEMENT;
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
        let [width, height, depth] = self.code.group.size;
        let Coefficients { base: first, step: [x, y, z, group], .. } = coefficients;
        let row = x.wrapping_mul(width);
        // What leads from the end of a slice to the next one, if rows follow each other there too.
        let slice = y.wrapping_mul(height);
        let even = (depth == 1 || z == slice)
            && (self.code.group.batch == 1 || group == slice.wrapping_mul(depth));
        let reach = u64::from(x) * (self.lanes.end * BLOCK) as u64;
        let flat = even && (height == 1 && depth == 1 || y == row);
        let single = height == 1 && depth == 1 && (self.code.group.batch == 1 || group == row);
        if (flat || single) && u64::from(first) + reach <= u64::from(u32::MAX) {
            return Pattern::Flat { first, step: x };
        }
        let blocks = width / BLOCK as u32;
        if self.rows
            && even
            && blocks.is_power_of_two()
            && self.range(coefficients, false).is_some()
        {
            let along = x.wrapping_mul(BLOCK as u32);
            let power = blocks.trailing_zeros();
            return Pattern::Rows(Rows { first, step: x, along, across: y, power });
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
            Pattern::Rows(rows) => Indices::Run { first: rows.origin(block), step: rows.step },
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
    pub(super) fn local<'f, B: Bits>(
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
