//! Threads of a warp, each with a program counter of its own.
//!
//! The threads at the earliest instruction are executed first, so that divergent threads reconverge
//! as soon as possible. A collective instruction waits for the threads in its mask.

use super::code::{Address, Atomic, Inst, Module, Op, Operand, Reg, Space, Special};
use super::grid::Shared;
use super::memory::{Access, Region, Regions, put, word};

/// Threads of a warp.
pub const LANES: usize = 32;

/// Warps that a multiprocessor holds at once.
const WARPS: u64 = 64;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    /// It waits for the threads that an instruction of the warp names.
    AtCollective,
    AtBarrier,
    Ended,
}

/// Undefined behaviour and its thread.
#[derive(Debug)]
pub struct Stray {
    pub lane: usize,
    pub at: usize,
    pub what: String,
}

/// The threads of a warp.
pub struct Warp<'m> {
    pub module: &'m Module,
    /// The values of each register.
    registers: Vec<[u64; LANES]>,
    /// The lanes that have a value, by register.
    known: Vec<u32>,
    /// The next instruction of each thread.
    pub next: [usize; LANES],
    pub state: [State; LANES],
    /// Memory of each thread.
    locals: Vec<Regions>,
    /// The thread of the first lane, by its position in the block.
    pub first: usize,
}

/// The lanes of a set, the lowest first.
pub fn lanes(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

impl<'m> Warp<'m> {
    pub fn new(module: &'m Module, first: usize, threads: usize) -> Self {
        let mut state = [State::Ended; LANES];
        state[..threads].fill(State::Ready);
        let locals = module.variables.iter().filter(|variable| variable.space == Space::Local);
        let locals = locals.map(|v| Region::undefined(&v.name, v.address, v.bytes)).collect();
        let count = module.registers.len();
        Self {
            module,
            registers: vec![[0; LANES]; count],
            known: vec![0; count],
            next: [0; LANES],
            state,
            locals: vec![Regions(locals); threads],
            first,
        }
    }

    /// The lanes in a state.
    pub fn are(&self, state: State) -> u32 {
        (0..LANES).filter(|lane| self.state[*lane] == state).map(|lane| 1 << lane).sum()
    }

    /// The lanes that have not ended.
    pub fn live(&self) -> u32 {
        !self.are(State::Ended)
    }

    /// Executes instructions until no thread is ready, or this many have been executed.
    pub fn run(&mut self, shared: &mut Shared<'_>, slice: u32) -> Result<(), Stray> {
        let mut left = slice;
        while left > 0 {
            let (ready, waiting) = (self.are(State::Ready), self.are(State::AtCollective));
            match lanes(ready).map(|lane| self.next[lane]).min() {
                Some(at) => self.from(at, ready | waiting, shared, &mut left)?,
                None if self.retry(waiting, shared, &mut left)? => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Executes instructions for those of some lanes that are at one of them.
    fn from(
        &mut self,
        at: usize,
        of: u32,
        shared: &mut Shared<'_>,
        left: &mut u32,
    ) -> Result<(), Stray> {
        let group: u32 =
            lanes(of).filter(|lane| self.next[*lane] == at).map(|lane| 1 << lane).sum();
        let others = lanes(self.live() & !group).map(|lane| self.next[lane]);
        let until = others.filter(|next| *next > at).min().unwrap_or(usize::MAX);
        self.together(group, at, until, shared, left)
    }

    /// Retries the waiting lanes: those that they wait for may have ended. Returns false if all of
    /// them still wait.
    fn retry(
        &mut self,
        waiting: u32,
        shared: &mut Shared<'_>,
        left: &mut u32,
    ) -> Result<bool, Stray> {
        let mut places: Vec<usize> = lanes(waiting).map(|lane| self.next[lane]).collect();
        places.dedup();
        for at in places {
            self.from(at, self.are(State::AtCollective), shared, left)?;
        }
        Ok(self.are(State::AtCollective) != waiting || self.are(State::Ready) != 0)
    }

    /// Executes instructions for a group of lanes while they stay converged, and no other lane
    /// reaches the same instruction.
    fn together(
        &mut self,
        group: u32,
        mut at: usize,
        until: usize,
        shared: &mut Shared<'_>,
        left: &mut u32,
    ) -> Result<(), Stray> {
        let module = self.module;
        loop {
            let Some(inst) = module.code.get(at) else {
                let what = "the kernel is left without `ret`".to_owned();
                return Err(Stray { lane: group.trailing_zeros() as usize, at: at - 1, what });
            };
            *left = left.saturating_sub(1);
            shared.count(group.count_ones());
            let acting =
                self.acting(inst, group).map_err(|(lane, what)| Stray { lane, at, what })?;
            at += 1;
            if !self.control(&inst.op, group, acting, at) {
                let done = self.execute(inst, acting, shared);
                let done = done.map_err(|(lane, what)| Stray { lane, at: at - 1, what })?;
                if done == acting && at < until && *left > 0 {
                    continue;
                }
                self.move_to(group, at);
                self.wait(acting & !done, State::AtCollective, at - 1);
            }
            return Ok(());
        }
    }

    /// The lanes for which the guard of an instruction holds.
    fn acting(&self, inst: &Inst, group: u32) -> Result<u32, (usize, String)> {
        let Some((pred, holds)) = inst.guard else { return Ok(group) };
        let values = self.read(pred, group)?;
        Ok(lanes(group).filter(|lane| (values[*lane] & 1 == 1) == holds).map(|n| 1 << n).sum())
    }

    /// Executes control flow; returns false for all other instructions. `next` is the following
    /// instruction.
    fn control(&mut self, op: &Op, group: u32, acting: u32, next: usize) -> bool {
        match op {
            Op::Branch(to) => self.move_to(acting, *to),
            Op::Return => lanes(acting).for_each(|lane| self.state[lane] = State::Ended),
            Op::Barrier => self.wait(acting, State::AtBarrier, next - 1),
            _ => return false,
        }
        self.move_to(group & !acting, next);
        true
    }

    pub fn move_to(&mut self, group: u32, next: usize) {
        for lane in lanes(group) {
            (self.next[lane], self.state[lane]) = (next, State::Ready);
        }
    }

    fn wait(&mut self, group: u32, state: State, at: usize) {
        for lane in lanes(group) {
            (self.next[lane], self.state[lane]) = (at, state);
        }
    }

    /// Executes an instruction for some lanes; returns those that need not wait for others.
    fn execute(
        &mut self,
        inst: &Inst,
        acting: u32,
        shared: &mut Shared<'_>,
    ) -> Result<u32, (usize, String)> {
        match &inst.op {
            Op::Alu { alu, to, from, count } => {
                let mut operands = [[0; LANES]; 3];
                for (operand, from) in operands.iter_mut().zip(&from[..*count]) {
                    *operand = self.operand(*from, acting)?;
                }
                let mut results = [0; LANES];
                for lane in lanes(acting) {
                    let result = alu.compute(operands.map(|values| values[lane]));
                    results[lane] = result.map_err(|what| (lane, what.to_owned()))?;
                }
                self.write(*to, acting, &results);
            }
            Op::Special(to, special) => {
                let values = std::array::from_fn(|lane| self.special(*special, lane, shared));
                self.write(*to, acting, &values);
            }
            Op::Pack(to, parts) => {
                let mut whole = [0; LANES];
                let mut shift = 0;
                for part in parts {
                    let values = self.read(*part, acting)?;
                    lanes(acting).for_each(|lane| whole[lane] |= values[lane] << shift);
                    shift += self.module.registers[part.0];
                }
                self.write(*to, acting, &whole);
            }
            Op::Unpack(parts, from) => {
                let mut values = *self.read(*from, acting)?;
                for part in parts {
                    self.write(*part, acting, &values);
                    let bits = self.module.registers[part.0];
                    lanes(acting).for_each(|lane| values[lane] >>= bits);
                }
            }
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                lanes(acting).try_for_each(|lane| {
                    self.memory(&inst.op, lane, shared).map_err(|what| (lane, what))
                })?;
            }
            _ => return self.collective(&inst.op, acting),
        }
        Ok(acting)
    }

    fn special(&self, special: Special, lane: usize, shared: &Shared<'_>) -> u64 {
        let thread = (self.first + lane) as u32;
        let [width, height, _] = self.module.block;
        let below = (1u64 << lane) - 1;
        match special {
            Special::Thread(0) => (thread % width).into(),
            Special::Thread(1) => (thread / width % height).into(),
            Special::Thread(_) => (thread / width / height).into(),
            Special::Block(axis) => shared.block[axis].into(),
            Special::Blocks(axis) => shared.grid[axis].into(),
            Special::Lane => lane as u64,
            Special::LanesBelow => below,
            Special::LanesUpTo => below << 1 | 1,
            Special::Clock => shared.clock(),
            Special::Warp => (shared.first_warp() + self.first / LANES) as u64 % WARPS,
            Special::Multiprocessor => shared.multiprocessor().into(),
        }
    }

    /// One thread's access to memory.
    fn memory(&mut self, op: &Op, lane: usize, shared: &mut Shared<'_>) -> Result<(), String> {
        match op {
            Op::Load { space, constant, bytes, to, address } => {
                let access = if *constant { Access::ReadConstant } else { Access::Read };
                let size = bytes * to.len() as u32;
                let found = self.touch(*space, *address, lane, size, access, shared)?;
                let values: Vec<u64> = found.chunks(*bytes as usize).map(word).collect();
                to.iter().zip(values).for_each(|(to, value)| self.set(*to, lane, value));
            }
            Op::Store { space, bytes, values, address } => {
                let get = |value: &Operand| self.get(*value, lane);
                let values: Vec<u64> = values.iter().map(get).collect::<Result<_, _>>()?;
                let size = bytes * values.len() as u32;
                let place = self.touch(*space, *address, lane, size, Access::Write, shared)?;
                let places = place.chunks_mut(*bytes as usize);
                places.zip(values).for_each(|(place, value)| put(place, value));
            }
            Op::Atomic { op, space, bytes, to, from, address } => {
                let [a, b] = [self.get(from[0], lane)?, self.get(from[1], lane)?];
                let place = self.touch(*space, *address, lane, *bytes, Access::Change, shared)?;
                let old = word(place);
                let new = match op {
                    Atomic::Exchange => a,
                    Atomic::CompareExchange if old == a & (u64::MAX >> (64 - 8 * bytes)) => b,
                    Atomic::CompareExchange => old,
                    Atomic::Alu(alu) => alu.compute([old, a, 0])?,
                };
                put(place, new);
                if let Some(to) = to {
                    self.set(*to, lane, old);
                }
            }
            other => unreachable!("{other:?} is no access to memory"),
        }
        Ok(())
    }

    /// The bytes of an access, which are checked.
    fn touch<'a>(
        &'a mut self,
        space: Space,
        address: Address,
        lane: usize,
        size: u32,
        access: Access,
        shared: &'a mut Shared<'_>,
    ) -> Result<&'a mut [u8], String> {
        let address = self.get(address.base, lane)?.wrapping_add_signed(address.offset);
        if space == Space::Global && access == Access::Read {
            shared.note_read(address);
        }
        let regions = match space {
            Space::Global => &mut shared.global,
            Space::Shared => &mut shared.shared,
            Space::Param => &mut shared.params,
            Space::Local => &mut self.locals[lane],
        };
        regions.access(address, size, access)
    }
}

/// Registers.
impl Warp<'_> {
    /// The values of a register, which some lanes read.
    pub fn read(&self, reg: Reg, acting: u32) -> Result<&[u64; LANES], (usize, String)> {
        let missing = acting & !self.known[reg.0];
        if missing != 0 {
            let what = "a register is read that holds nothing yet".to_owned();
            return Err((missing.trailing_zeros() as usize, what));
        }
        Ok(&self.registers[reg.0])
    }

    pub fn operand(&self, from: Operand, acting: u32) -> Result<[u64; LANES], (usize, String)> {
        match from {
            Operand::Bits(bits) => Ok([bits; LANES]),
            Operand::Reg(reg) => self.read(reg, acting).copied(),
        }
    }

    pub fn write(&mut self, to: Reg, acting: u32, values: &[u64; LANES]) {
        lanes(acting).for_each(|lane| self.set(to, lane, values[lane]));
    }

    fn get(&self, from: Operand, lane: usize) -> Result<u64, String> {
        match from {
            Operand::Bits(bits) => Ok(bits),
            Operand::Reg(reg) => {
                self.read(reg, 1 << lane).map(|values| values[lane]).map_err(|(_, what)| what)
            }
        }
    }

    fn set(&mut self, to: Reg, lane: usize, value: u64) {
        self.registers[to.0][lane] = value & (u64::MAX >> (64 - self.module.registers[to.0]));
        self.known[to.0] |= 1 << lane;
    }
}
