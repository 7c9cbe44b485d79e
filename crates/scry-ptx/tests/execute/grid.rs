//! Executes launches: one block after another, and the warps of a block from barrier to barrier.

use std::fmt;

use super::code::{Module, Space};
use super::memory::{Access, Region, Regions, write_le};
use super::warp::{LANES, State, ThreadError, Warp, lanes};

/// Instructions of a warp before the next warp is scheduled.
const SLICE: u32 = 4096;

/// Default clock ticks per instruction of a thread: many, so that loops poll after few iterations.
pub const TICKS: u64 = 1 << 14;

/// Multiprocessors of the device: blocks are distributed evenly.
const MULTIPROCESSORS: u32 = 4;

/// A launch.
pub struct Launch<'a> {
    pub module: &'a Module,
    pub text: &'a str,
    pub grid: [u32; 3],
    pub params: Regions,
    /// Instructions of all threads together before cancellation is requested, and the maximum after
    /// that.
    pub budget: [u64; 2],
    /// The address of the cancellation word, which is the newest cancelled epoch, and the epoch of
    /// this launch.
    pub stop: (u64, u64),
    /// Ticks of the clock for an instruction of a thread.
    pub ticks: u64,
}

/// A read of the cancellation word by a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    pub block: [u32; 3],
    /// Ticks since the block began.
    pub ticks: u64,
}

/// How a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Normal,
    Cancelled,
}

/// The error of a launch.
#[derive(Debug)]
pub struct Fault {
    /// Whether the only error is that the kernel did not terminate after cancellation.
    pub not_terminating: bool,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The state of a launch, and of the block that is executed.
pub struct SharedState<'a> {
    pub global: &'a mut Regions,
    pub params: Regions,
    pub shared: Regions,
    pub block: [u32; 3],
    pub grid: [u32; 3],
    /// Instructions of all threads so far, with overheads.
    executed: u64,
    /// Ticks of the clock for each of them.
    ticks: u64,
    /// Warps of a block.
    warps: usize,
    /// The clock at the start of the block.
    block_start: u64,
    /// The address of the word that is polled.
    stop: u64,
    polls: Vec<Poll>,
}

impl SharedState<'_> {
    /// Counts an instruction of some threads, with an overhead as of 16 threads.
    pub fn count_instruction(&mut self, threads: u32) {
        self.executed += u64::from(16 + threads);
    }

    pub fn clock(&self) -> u64 {
        self.executed * self.ticks
    }

    /// Returns the linear index of the block in the grid, x first.
    fn linear_block(&self) -> u32 {
        let [x, y, z] = self.block;
        (z * self.grid[1] + y) * self.grid[0] + x
    }

    pub fn multiprocessor(&self) -> u32 {
        self.linear_block() % MULTIPROCESSORS
    }

    /// Returns the number of warps of earlier blocks on the same multiprocessor.
    pub fn first_warp(&self) -> usize {
        (self.linear_block() / MULTIPROCESSORS) as usize * self.warps
    }

    /// Records a read of global memory if it is a poll: once for a warp, whose threads read
    /// together.
    pub fn record_poll(&mut self, address: u64) {
        let poll = Poll { block: self.block, ticks: self.clock() - self.block_start };
        if address == self.stop && self.polls.last() != Some(&poll) {
            self.polls.push(poll);
        }
    }
}

impl Launch<'_> {
    /// Executes all blocks on global memory.
    pub fn run(&self, global: &mut Regions) -> Result<(End, Vec<Poll>), Fault> {
        let params = self.params.clone();
        let [width, height, depth] = self.grid;
        let mut shared = SharedState {
            global,
            params,
            shared: Regions::default(),
            block: [0; 3],
            grid: self.grid,
            executed: 0,
            ticks: self.ticks,
            warps: (self.module.block.iter().product::<u32>() as usize).div_ceil(LANES),
            block_start: 0,
            stop: self.stop.0,
            polls: Vec::new(),
        };
        let mut end = End::Normal;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    shared.block = [x, y, z];
                    shared.block_start = shared.clock();
                    self.block(&mut shared, &mut end)?;
                }
            }
        }
        Ok((end, shared.polls))
    }

    fn block(&self, shared: &mut SharedState<'_>, end: &mut End) -> Result<(), Fault> {
        let variables = self.module.variables.iter();
        let arrays = variables.filter(|variable| variable.space == Space::Shared);
        let arrays = arrays.map(|v| Region::undefined(&v.name, v.address, v.bytes));
        shared.shared = Regions(arrays.collect());
        let threads = self.module.block.iter().product::<u32>() as usize;
        let mut warps: Vec<Warp<'_>> = (0..threads)
            .step_by(LANES)
            .map(|first| Warp::new(self.module, first, (threads - first).min(LANES)))
            .collect();
        while warps.iter().any(|warp| warp.live() != 0) {
            for warp in &mut warps {
                warp.run(shared, SLICE)
                    .map_err(|error| self.fault_at(shared.block, warp, &error))?;
                self.cancel_after_budget(shared, warp, end)?;
            }
            if warps.iter().all(|warp| warp.lanes_in(State::Ready) == 0) {
                self.release(shared.block, &mut warps)?;
            }
        }
        Ok(())
    }

    /// Releases the barrier if all threads have arrived.
    fn release(&self, block: [u32; 3], warps: &mut [Warp<'_>]) -> Result<(), Fault> {
        let mut barrier = None;
        for warp in warps.iter() {
            for lane in lanes(warp.live()) {
                let (at, state) = (warp.next[lane], warp.state[lane]);
                let what = match (state, *barrier.get_or_insert(at)) {
                    (State::AtBarrier, other) if at == other => continue,
                    (State::AtBarrier, other) => {
                        let other = self.module.code[other].line + 1;
                        format!("the thread waits at a barrier while others wait at line {other}")
                    }
                    _ => "the thread waits for threads that do not arrive".to_owned(),
                };
                return Err(self.fault_at(block, warp, &ThreadError { lane, at, what }));
            }
        }
        for warp in warps {
            for lane in lanes(warp.live()) {
                warp.move_to(1 << lane, warp.next[lane] + 1);
            }
        }
        Ok(())
    }

    /// Requests cancellation after the budget, and fails if the kernel continues.
    fn cancel_after_budget(
        &self,
        shared: &mut SharedState<'_>,
        warp: &Warp<'_>,
        end: &mut End,
    ) -> Result<(), Fault> {
        let [before, after] = self.budget;
        if shared.executed > before && *end == End::Normal {
            *end = End::Cancelled;
            let (address, epoch) = self.stop;
            let word = shared.global.access(address, 8, Access::Write);
            write_le(word.expect("the cancellation word is in global memory"), epoch);
        }
        if shared.executed <= before + after {
            return Ok(());
        }
        let (lane, executed) = (lanes(warp.live()).next().unwrap_or(0), shared.executed);
        let what =
            format!("{executed} instructions, {after} of them after cancellation was requested");
        let error = ThreadError { lane, at: warp.next[lane], what };
        Err(Fault { not_terminating: true, ..self.fault_at(shared.block, warp, &error) })
    }

    /// Returns the fault of an error, with a description of its location.
    fn fault_at(&self, block: [u32; 3], warp: &Warp<'_>, error: &ThreadError) -> Fault {
        let line = self.module.code.get(error.at).map_or(0, |inst| inst.line);
        let text = self.text.lines().nth(line).unwrap_or_default().trim();
        let [width, height, _] = self.module.block.map(|size| size as usize);
        let thread = warp.first + error.lane;
        let thread = [thread % width, thread / width % height, thread / width / height];
        let what = &error.what;
        let text =
            format!("block {block:?}, thread {thread:?}, line {}: `{text}`: {what}", line + 1);
        Fault { not_terminating: false, text }
    }
}
