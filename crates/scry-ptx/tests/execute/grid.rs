//! A launch: blocks are executed sequentially, and the warps of a block from barrier to barrier.

use std::fmt;

use super::code::{Module, Space};
use super::memory::{Access, Region, Regions, put};
use super::warp::{LANES, State, Stray, Warp, lanes};

/// Instructions of a warp before the next one is scheduled.
const SLICE: u32 = 4096;

/// Default clock ticks per instruction of a thread: many, so that loops poll often here.
pub const TICKS: u64 = 1 << 14;

/// Multiprocessors of the device: blocks are distributed evenly.
const MULTIPROCESSORS: u32 = 4;

/// A launch.
pub struct Launch<'a> {
    pub module: &'a Module,
    pub text: &'a str,
    pub grid: [u32; 3],
    pub params: Regions,
    /// Instructions of all threads together before cancellation is requested, and those that
    /// the kernel may execute after it.
    pub budget: [u64; 2],
    /// The address of the newest cancelled epoch, and the epoch of this launch.
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
pub enum Ended {
    ByItself,
    /// By cancellation.
    WhenAsked,
}

/// The error of a launch.
#[derive(Debug)]
pub struct Fault {
    /// Whether the only error is that the kernel did not end in time.
    pub endless: bool,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The state that the threads of a block share, and that of all blocks.
pub struct Shared<'a> {
    pub global: &'a mut Regions,
    pub params: Regions,
    pub shared: Regions,
    pub block: [u32; 3],
    pub grid: [u32; 3],
    executed: u64,
    ticks: u64,
    /// Warps of a block.
    warps: usize,
    /// When the block began.
    began: u64,
    /// The address of the word that is polled.
    stop: u64,
    polls: Vec<Poll>,
}

impl Shared<'_> {
    /// Counts an instruction of some threads, plus an overhead worth 16 threads.
    pub fn count(&mut self, threads: u32) {
        self.executed += u64::from(16 + threads);
    }

    pub fn clock(&self) -> u64 {
        self.executed * self.ticks
    }

    /// The number of the block in the grid, x first.
    fn nth_block(&self) -> u32 {
        let [x, y, z] = self.block;
        (z * self.grid[1] + y) * self.grid[0] + x
    }

    pub fn multiprocessor(&self) -> u32 {
        self.nth_block() % MULTIPROCESSORS
    }

    /// The warps of earlier blocks on the same multiprocessor.
    pub fn first_warp(&self) -> usize {
        (self.nth_block() / MULTIPROCESSORS) as usize * self.warps
    }

    /// Notes a read, if it is a poll. The threads of a warp read together.
    pub fn note_read(&mut self, address: u64) {
        let poll = Poll { block: self.block, ticks: self.clock() - self.began };
        if address == self.stop && self.polls.last() != Some(&poll) {
            self.polls.push(poll);
        }
    }
}

impl Launch<'_> {
    /// Executes all blocks on global memory.
    pub fn run(&self, global: &mut Regions) -> Result<(Ended, Vec<Poll>), Fault> {
        let params = self.params.clone();
        let [width, height, depth] = self.grid;
        let mut shared = Shared {
            global,
            params,
            shared: Regions::default(),
            block: [0; 3],
            grid: self.grid,
            executed: 0,
            ticks: self.ticks,
            warps: (self.module.block.iter().product::<u32>() as usize).div_ceil(LANES),
            began: 0,
            stop: self.stop.0,
            polls: Vec::new(),
        };
        let mut ended = Ended::ByItself;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    shared.block = [x, y, z];
                    shared.began = shared.clock();
                    self.block(&mut shared, &mut ended)?;
                }
            }
        }
        Ok((ended, shared.polls))
    }

    fn block(&self, shared: &mut Shared<'_>, ended: &mut Ended) -> Result<(), Fault> {
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
                warp.run(shared, SLICE).map_err(|stray| self.fault(shared.block, warp, &stray))?;
                self.watch(shared, warp, ended)?;
            }
            if warps.iter().all(|warp| warp.are(State::Ready) == 0) {
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
                let wrong = match (state, *barrier.get_or_insert(at)) {
                    (State::AtBarrier, other) if at == other => continue,
                    (State::AtBarrier, other) => {
                        let other = self.module.code[other].line + 1;
                        format!("a barrier is waited for while others wait at line {other}")
                    }
                    _ => "the thread waits for threads that never come".to_owned(),
                };
                return Err(self.fault(block, warp, &Stray { lane, at, what: wrong }));
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
    fn watch(
        &self,
        shared: &mut Shared<'_>,
        warp: &Warp<'_>,
        ended: &mut Ended,
    ) -> Result<(), Fault> {
        let [asked, most] = self.budget;
        if shared.executed > asked && *ended == Ended::ByItself {
            *ended = Ended::WhenAsked;
            let (address, epoch) = self.stop;
            let word = shared.global.access(address, 8, Access::Write);
            put(word.expect("the word is among the memory"), epoch);
        }
        if shared.executed <= asked + most {
            return Ok(());
        }
        let (lane, executed) = (lanes(warp.live()).next().unwrap_or(0), shared.executed);
        let what = format!("{executed} instructions, {most} of them after it was asked to end");
        let stray = Stray { lane, at: warp.next[lane], what };
        Err(Fault { endless: true, ..self.fault(shared.block, warp, &stray) })
    }

    /// Describes a fault with its location.
    fn fault(&self, block: [u32; 3], warp: &Warp<'_>, stray: &Stray) -> Fault {
        let line = self.module.code.get(stray.at).map_or(0, |inst| inst.line);
        let text = self.text.lines().nth(line).unwrap_or_default().trim();
        let [width, height, _] = self.module.block.map(|size| size as usize);
        let thread = warp.first + stray.lane;
        let thread = [thread % width, thread / width % height, thread / width / height];
        let what = &stray.what;
        let text =
            format!("block {block:?}, thread {thread:?}, line {}: `{text}`: {what}", line + 1);
        Fault { endless: false, text }
    }
}
