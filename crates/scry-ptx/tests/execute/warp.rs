//! The threads of a warp, each with its own program counter.
//!
//! The threads at the earliest instruction are executed first, so that divergent threads reconverge
//! as soon as possible. A collective instruction waits for the threads in its mask.

use super::code::{Address, Atomic, Inst, Module, Op, Operand, Reg, Space, Special};
use super::grid::SharedState;
use super::memory::{Access, Region, Regions, read_le, write_le};

/// Threads of a warp.
pub const LANES: usize = 32;

/// Maximum resident warps of a multiprocessor.
const MAX_RESIDENT_WARPS: u64 = 64;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    /// It waits at a collective instruction for the threads in the mask.
    AtCollective,
    AtBarrier,
    Exited,
}

/// Undefined behaviour, with the thread and the instruction that it occurred at.
#[derive(Debug)]
pub struct ThreadError {
    pub lane: usize,
    pub at: usize,
    pub what: String,
}

/// The threads of a warp.
pub struct Warp<'m> {
    pub module: &'m Module,
    /// The values of each register.
    registers: Vec<[u64; LANES]>,
    /// The lanes in which each register has been written.
    initialised: Vec<u32>,
    /// The next instruction of each thread.
    pub next: [usize; LANES],
    pub state: [State; LANES],
    /// Memory of each thread.
    locals: Vec<Regions>,
    /// Linear index in the block of the thread in lane 0.
    pub first: usize,
}

/// Iterates over the lanes of a set, the lowest first.
pub fn lanes(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

impl<'m> Warp<'m> {
    pub fn new(module: &'m Module, first: usize, threads: usize) -> Self {
        let mut state = [State::Exited; LANES];
        state[..threads].fill(State::Ready);
        let locals = module.variables.iter().filter(|variable| variable.space == Space::Local);
        let locals = locals.map(|v| Region::undefined(&v.name, v.address, v.bytes)).collect();
        let count = module.registers.len();
        Self {
            module,
            registers: vec![[0; LANES]; count],
            initialised: vec![0; count],
            next: [0; LANES],
            state,
            locals: vec![Regions(locals); threads],
            first,
        }
    }

    /// Returns the lanes in a state.
    pub fn lanes_in(&self, state: State) -> u32 {
        (0..LANES).filter(|lane| self.state[*lane] == state).map(|lane| 1 << lane).sum()
    }

    /// Returns the lanes that have not exited.
    pub fn live(&self) -> u32 {
        !self.lanes_in(State::Exited)
    }

    /// Executes instructions until no thread is ready, or this many have been executed.
    pub fn run(&mut self, shared: &mut SharedState<'_>, slice: u32) -> Result<(), ThreadError> {
        let mut remaining = slice;
        while remaining > 0 {
            let (ready, waiting) =
                (self.lanes_in(State::Ready), self.lanes_in(State::AtCollective));
            match lanes(ready).map(|lane| self.next[lane]).min() {
                Some(at) => self.run_from(at, ready | waiting, shared, &mut remaining)?,
                None if self.retry(waiting, shared, &mut remaining)? => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Executes instructions from `at` on, for those of the candidate lanes that are there.
    fn run_from(
        &mut self,
        at: usize,
        candidates: u32,
        shared: &mut SharedState<'_>,
        remaining: &mut u32,
    ) -> Result<(), ThreadError> {
        let group: u32 =
            lanes(candidates).filter(|lane| self.next[*lane] == at).map(|lane| 1 << lane).sum();
        let others = lanes(self.live() & !group).map(|lane| self.next[lane]);
        let limit = others.filter(|next| *next > at).min().unwrap_or(usize::MAX);
        self.run_converged(group, at, limit, shared, remaining)
    }

    /// Retries the collective instructions of the waiting lanes: lanes that they wait for may have
    /// exited. Returns false if all of them still wait.
    fn retry(
        &mut self,
        waiting: u32,
        shared: &mut SharedState<'_>,
        remaining: &mut u32,
    ) -> Result<bool, ThreadError> {
        let mut positions: Vec<usize> = lanes(waiting).map(|lane| self.next[lane]).collect();
        positions.dedup();
        for at in positions {
            self.run_from(at, self.lanes_in(State::AtCollective), shared, remaining)?;
        }
        Ok(self.lanes_in(State::AtCollective) != waiting || self.lanes_in(State::Ready) != 0)
    }

    /// Executes instructions for a group of lanes while they stay converged, and no other lane
    /// reaches the same instruction.
    fn run_converged(
        &mut self,
        group: u32,
        mut at: usize,
        limit: usize,
        shared: &mut SharedState<'_>,
        remaining: &mut u32,
    ) -> Result<(), ThreadError> {
        let module = self.module;
        loop {
            let Some(inst) = module.code.get(at) else {
                let what = "the kernel ends without `ret`".to_owned();
                return Err(ThreadError {
                    lane: group.trailing_zeros() as usize,
                    at: at - 1,
                    what,
                });
            };
            *remaining = remaining.saturating_sub(1);
            shared.count_instruction(group.count_ones());
            let active =
                self.active(inst, group).map_err(|(lane, what)| ThreadError { lane, at, what })?;
            at += 1;
            if !self.control(&inst.op, group, active, at) {
                let completed = self.execute(inst, active, shared);
                let completed =
                    completed.map_err(|(lane, what)| ThreadError { lane, at: at - 1, what })?;
                if completed == active && at < limit && *remaining > 0 {
                    continue;
                }
                self.move_to(group, at);
                self.wait(active & !completed, State::AtCollective, at - 1);
            }
            return Ok(());
        }
    }

    /// Returns the lanes of a group for which the guard of an instruction is true.
    fn active(&self, inst: &Inst, group: u32) -> Result<u32, (usize, String)> {
        let Some((pred, holds)) = inst.guard else { return Ok(group) };
        let values = self.read(pred, group)?;
        Ok(lanes(group).filter(|lane| (values[*lane] & 1 == 1) == holds).map(|n| 1 << n).sum())
    }

    /// Executes control flow; returns false for all other instructions. `next` is the following
    /// instruction.
    fn control(&mut self, op: &Op, group: u32, active: u32, next: usize) -> bool {
        match op {
            Op::Branch(to) => self.move_to(active, *to),
            Op::Return => lanes(active).for_each(|lane| self.state[lane] = State::Exited),
            Op::Hint => self.move_to(active, next),
            Op::Barrier => self.wait(active, State::AtBarrier, next - 1),
            _ => return false,
        }
        self.move_to(group & !active, next);
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

    /// Executes an instruction for some lanes; returns those for which it completed. The others
    /// wait at a collective instruction.
    fn execute(
        &mut self,
        inst: &Inst,
        active: u32,
        shared: &mut SharedState<'_>,
    ) -> Result<u32, (usize, String)> {
        match &inst.op {
            Op::Alu { alu, to, from, count } => {
                let mut operands = [[0; LANES]; 3];
                for (operand, from) in operands.iter_mut().zip(&from[..*count]) {
                    *operand = self.operand(*from, active)?;
                }
                let mut results = [0; LANES];
                for lane in lanes(active) {
                    let result = alu.compute(operands.map(|values| values[lane]));
                    results[lane] = result.map_err(|what| (lane, what.to_owned()))?;
                }
                self.write(*to, active, &results);
            }
            Op::Special(to, special) => {
                let values = std::array::from_fn(|lane| self.special(*special, lane, shared));
                self.write(*to, active, &values);
            }
            Op::Pack(to, parts) => {
                let mut packed = [0; LANES];
                let mut shift = 0;
                for part in parts {
                    let values = self.read(*part, active)?;
                    lanes(active).for_each(|lane| packed[lane] |= values[lane] << shift);
                    shift += self.module.registers[part.0];
                }
                self.write(*to, active, &packed);
            }
            Op::Unpack(parts, from) => {
                let mut values = *self.read(*from, active)?;
                for part in parts {
                    self.write(*part, active, &values);
                    let bits = self.module.registers[part.0];
                    lanes(active).for_each(|lane| values[lane] >>= bits);
                }
            }
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                lanes(active).try_for_each(|lane| {
                    self.memory(&inst.op, lane, shared).map_err(|what| (lane, what))
                })?;
            }
            _ => return self.collective(&inst.op, active, shared),
        }
        Ok(active)
    }

    fn special(&self, special: Special, lane: usize, shared: &SharedState<'_>) -> u64 {
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
            // At 2 GHz, some time after the device's start.
            Special::GlobalTimer => (1 << 40) + shared.clock() / 2,
            Special::Warp => (shared.first_warp() + self.first / LANES) as u64 % MAX_RESIDENT_WARPS,
            Special::Multiprocessor => shared.multiprocessor().into(),
        }
    }

    /// One thread's access to memory.
    fn memory(&mut self, op: &Op, lane: usize, shared: &mut SharedState<'_>) -> Result<(), String> {
        match op {
            Op::Load { space, constant, bytes, to, address } => {
                let access = if *constant { Access::ReadConstant } else { Access::Read };
                let size = bytes * to.len() as u32;
                let found = self.access_memory(*space, *address, lane, size, access, shared)?;
                let values: Vec<u64> = found.chunks(*bytes as usize).map(read_le).collect();
                to.iter().zip(values).for_each(|(to, value)| self.set(*to, lane, value));
            }
            Op::Store { space, bytes, values, address } => {
                let get = |value: &Operand| self.get(*value, lane);
                let values: Vec<u64> = values.iter().map(get).collect::<Result<_, _>>()?;
                let size = bytes * values.len() as u32;
                let found =
                    self.access_memory(*space, *address, lane, size, Access::Write, shared)?;
                let chunks = found.chunks_mut(*bytes as usize);
                chunks.zip(values).for_each(|(chunk, value)| write_le(chunk, value));
            }
            Op::Atomic { op, space, bytes, to, from, address } => {
                let [a, b] = [self.get(from[0], lane)?, self.get(from[1], lane)?];
                let found =
                    self.access_memory(*space, *address, lane, *bytes, Access::ReadWrite, shared)?;
                let old = read_le(found);
                let new = match op {
                    Atomic::Exchange => a,
                    Atomic::CompareExchange if old == a & (u64::MAX >> (64 - 8 * bytes)) => b,
                    Atomic::CompareExchange => old,
                    Atomic::Alu(alu) => alu.compute([old, a, 0])?,
                };
                write_le(found, new);
                if let Some(to) = to {
                    self.set(*to, lane, old);
                }
            }
            other => unreachable!("{other:?} is not an access to memory"),
        }
        Ok(())
    }

    /// Checks an access; returns its bytes.
    pub fn access_memory<'a>(
        &'a mut self,
        space: Space,
        address: Address,
        lane: usize,
        size: u32,
        access: Access,
        shared: &'a mut SharedState<'_>,
    ) -> Result<&'a mut [u8], String> {
        let address = self.get(address.base, lane)?.wrapping_add_signed(address.offset);
        if space == Space::Global && access == Access::Read {
            shared.record_poll(address);
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
    /// Returns the values of a register; fails if it is uninitialised in one of the active lanes.
    pub fn read(&self, reg: Reg, active: u32) -> Result<&[u64; LANES], (usize, String)> {
        let missing = active & !self.initialised[reg.0];
        if missing != 0 {
            let what = "the register is read before it is written".to_owned();
            return Err((missing.trailing_zeros() as usize, what));
        }
        Ok(&self.registers[reg.0])
    }

    pub fn operand(&self, from: Operand, active: u32) -> Result<[u64; LANES], (usize, String)> {
        match from {
            Operand::Bits(bits) => Ok([bits; LANES]),
            Operand::Reg(reg) => self.read(reg, active).copied(),
        }
    }

    pub fn write(&mut self, to: Reg, active: u32, values: &[u64; LANES]) {
        lanes(active).for_each(|lane| self.set(to, lane, values[lane]));
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
        self.initialised[to.0] |= 1 << lane;
    }
}
