//! Resolves the resource ids of steps, and executes the result.

use std::sync::Arc;
use std::time::Duration;

use scry_cpu::{CancelToken, Cancelled, Code, Machine, MemoryRange};
use scry_ir::runnable_workgroups;

use super::compile::{Body, Kernel};
use super::host_function;
use super::memory::Block;
use crate::core::clock::Instant;
use crate::core::command::{BoundBuffer, BufferRange, Command, Dispatch, Groups, Step};
use crate::core::driver::{KernelMark, MemoryMark};
use crate::core::id::Slots;

/// Approximate bytes that are filled or copied per nanosecond.
const BYTES_PER_NANOSECOND: u64 = 8;

/// The resources that steps refer to by id.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) blocks: &'a Slots<MemoryMark, Arc<Block>>,
    pub(super) kernels: &'a Slots<KernelMark, Arc<Kernel>>,
}

/// A range of an allocation, which it keeps alive.
struct BlockRange {
    block: Arc<Block>,
    bytes: MemoryRange,
}

/// A launch of a kernel, with everything that it uses.
struct Launch {
    kernel: Arc<Kernel>,
    bindings: Vec<MemoryRange>,
    /// The allocations of the bindings, and whether the kernel may write to them.
    blocks: Vec<(Arc<Block>, bool)>,
    groups: Workgroups,
    immediates: Vec<u8>,
}

/// Workgroups of a launch along x, y and z.
enum Workgroups {
    Direct([u32; 3]),
    /// Read when the launch is executed. Boxed, so that direct launches stay small.
    Indirect(Box<BlockRange>),
}

/// A command with resolved resources.
enum Operation {
    Fill {
        dst: BlockRange,
        pattern: u32,
    },
    Copy {
        src: BlockRange,
        dst: BlockRange,
    },
    Launch(Launch),
    /// The operations of a recording.
    Recorded(Arc<Operations>),
}

/// Resolved steps that can be executed repeatedly.
pub(super) struct Operations {
    list: Vec<Operation>,
    /// Approximate time on one thread; `None` if it depends on data.
    cost: Option<Duration>,
}

/// Resolves steps. Returns an error text if a resource does not exist or does not fit.
pub(super) fn resolve(tables: Tables<'_>, steps: &[Step]) -> Result<Operations, String> {
    // One allocation, too large only by the number of barriers. A `filter_map` has no lower bound
    // of its size, so that `collect` would allocate repeatedly.
    let mut list = Vec::with_capacity(steps.len());
    for step in steps {
        if let Step::Run(command) = step {
            list.push(tables.operation(command)?);
        }
    }
    let cost = list.iter().map(Operation::cost).sum::<Option<Duration>>();
    Ok(Operations { list, cost })
}

impl Tables<'_> {
    fn operation(self, command: &Command) -> Result<Operation, String> {
        Ok(match command {
            Command::Fill { dst, pattern } => {
                Operation::Fill { dst: self.range(*dst)?, pattern: *pattern }
            }
            Command::Copy { src, dst } => {
                Operation::Copy { src: self.range(*src)?, dst: self.range(*dst)? }
            }
            Command::Dispatch(dispatch) => Operation::Launch(self.launch(dispatch)?),
        })
    }

    fn range(self, range: BufferRange) -> Result<BlockRange, String> {
        let missing = || format!("{range:?} does not exist");
        let block = self.blocks.get(range.memory).ok_or_else(missing)?;
        let bytes = block.range(range.offset, range.size).ok_or_else(missing)?;
        Ok(BlockRange { block: block.clone(), bytes })
    }

    fn launch(self, dispatch: &Dispatch) -> Result<Launch, String> {
        let kernel = self.kernels.get(dispatch.kernel).ok_or("the kernel does not exist")?.clone();
        if kernel.bindings != dispatch.bindings.len() {
            let (expected, actual) = (kernel.bindings, dispatch.bindings.len());
            return Err(format!("{actual} bindings for a kernel with {expected}"));
        }
        let mut launch = Launch {
            kernel,
            bindings: Vec::with_capacity(dispatch.bindings.len()),
            blocks: Vec::with_capacity(dispatch.bindings.len()),
            groups: self.workgroups(&dispatch.groups)?,
            immediates: dispatch.immediates.clone(),
        };
        for BoundBuffer { range, writes } in &dispatch.bindings {
            let BlockRange { block, bytes } = self.range(*range)?;
            launch.bindings.push(bytes);
            launch.blocks.push((block, *writes));
        }
        if let (Body::Code(code), Workgroups::Direct(groups)) =
            (&launch.kernel.body, &launch.groups)
            && launch.of_code(code, *groups).workgroups().is_none()
        {
            let [x, y, z] = groups;
            return Err(format!("{x} × {y} × {z} workgroups are too many to execute"));
        }
        Ok(launch)
    }

    fn workgroups(self, groups: &Groups) -> Result<Workgroups, String> {
        match groups {
            Groups::Direct(groups) => Ok(Workgroups::Direct(*groups)),
            Groups::Indirect(counts) if counts.size == Groups::SIZE => {
                Ok(Workgroups::Indirect(Box::new(self.range(**counts)?)))
            }
            Groups::Indirect(counts) => {
                Err(format!("{} bytes are not workgroup counts", counts.size))
            }
        }
    }
}

impl Launch {
    /// Returns the launch of a compiled kernel, as scry-cpu runs it.
    fn of_code<'l>(&'l self, code: &'l Code, groups: [u32; 3]) -> scry_cpu::Launch<'l> {
        scry_cpu::Launch { code, bindings: &self.bindings, groups, immediates: &self.immediates }
    }

    fn run(&self, machine: &Machine, stop: &CancelToken) -> Result<(), Cancelled> {
        self.blocks.iter().filter(|(_, writes)| *writes).for_each(|(block, _)| block.touch());
        let groups = self.groups();
        match &self.kernel.body {
            // SAFETY: `self.blocks` keeps the memory alive. Operations are executed one after the
            // other, and the core keeps the host from accessing the memory that they use. The
            // kernel was compiled from a program, whose IR is valid.
            Body::Code(code) => unsafe { machine.run(&self.of_code(code, groups), stop) },
            Body::Function(_, _) if stop.requested() => Err(Cancelled),
            Body::Function(name, function) => {
                let bindings = self.bindings.iter().zip(&self.blocks);
                let bindings = bindings.map(|(range, (_, writes))| (*range, *writes));
                // SAFETY: as above. The core rejects launches whose written bindings overlap
                // others.
                unsafe {
                    let function = (name.as_str(), function);
                    host_function::call(machine, function, bindings, &self.immediates, groups);
                }
                Ok(())
            }
        }
    }

    /// Returns the workgroup counts; those of an indirect launch are read now.
    fn groups(&self) -> [u32; 3] {
        match &self.groups {
            Workgroups::Direct(groups) => *groups,
            Workgroups::Indirect(counts) => {
                let mut bytes = [0; Groups::SIZE as usize];
                // SAFETY: `counts` keeps the memory alive. Operations are executed one after the
                // other, and the core keeps the host from accessing the memory that they use.
                unsafe { counts.bytes.read(&mut bytes) };
                let (counts, _) = bytes.as_chunks();
                let counts = [0, 1, 2].map(|axis| u32::from_ne_bytes(counts[axis]));
                runnable_workgroups(self.kernel.workgroup_size, counts)
            }
        }
    }

    /// Returns the approximate time on one thread; `None` if it depends on data.
    fn cost(&self) -> Option<Duration> {
        match (&self.kernel.body, &self.groups) {
            (Body::Code(code), Workgroups::Direct(groups)) => self.of_code(code, *groups).cost(),
            _ => None,
        }
    }
}

impl Operation {
    fn cost(&self) -> Option<Duration> {
        match self {
            Self::Fill { dst, .. } | Self::Copy { dst, .. } => {
                Some(Duration::from_nanos(dst.bytes.size() as u64 / BYTES_PER_NANOSECOND))
            }
            Self::Launch(launch) => launch.cost(),
            Self::Recorded(recorded) => recorded.cost,
        }
    }

    /// Executes the operation. Returns the duration if `timed` and the operation is a launch; those
    /// of a recording are not timed.
    fn run(
        &self,
        machine: &Machine,
        stop: &CancelToken,
        timed: bool,
    ) -> Result<Option<Duration>, Cancelled> {
        match self {
            Self::Fill { dst, pattern } => fill(machine, dst, *pattern),
            Self::Copy { src, dst } => copy(machine, src, dst),
            Self::Launch(launch) => {
                let start = timed.then(Instant::now);
                launch.run(machine, stop)?;
                return Ok(start.map(|start| start.elapsed()));
            }
            Self::Recorded(recorded) => _ = recorded.run(machine, stop, false)?,
        }
        Ok(None)
    }
}

fn fill(machine: &Machine, dst: &BlockRange, pattern: u32) {
    if pattern == 0 && dst.block.is_untouched() {
        // The memory is zero already: a write would only make the system allocate its pages.
        return;
    }
    dst.block.touch();
    // SAFETY: `dst` keeps the memory alive. Operations are executed one after the other, and the
    // core keeps the host from accessing the memory that they use.
    unsafe { machine.fill(dst.bytes, pattern) };
}

fn copy(machine: &Machine, src: &BlockRange, dst: &BlockRange) {
    dst.block.touch();
    // SAFETY: as in `fill`; the core guarantees that the ranges do not overlap.
    unsafe { machine.copy(src.bytes, dst.bytes) };
}

impl Operations {
    /// Returns an empty list.
    pub(super) fn empty() -> Self {
        Self { list: Vec::new(), cost: Some(Duration::ZERO) }
    }

    /// Appends operations.
    pub(super) fn append(&mut self, later: Self) {
        self.cost = self.cost.zip(later.cost).map(|(cost, more)| cost + more);
        self.list.extend(later.list);
    }

    /// Appends the operations of a recording.
    pub(super) fn append_recorded(&mut self, recorded: Arc<Self>) {
        self.cost = self.cost.zip(recorded.cost).map(|(cost, more)| cost + more);
        self.list.push(Operation::Recorded(recorded));
    }

    /// Returns the approximate time on one thread; `None` if it depends on data.
    pub(super) fn cost(&self) -> Option<Duration> {
        self.cost
    }

    /// Executes the operations in order; returns the duration of each launch if `timed`. After a
    /// cancellation launches are skipped, but transfers are not, so that data uploaded by another
    /// thread is not lost.
    pub(super) fn run(
        &self,
        machine: &Machine,
        stop: &CancelToken,
        timed: bool,
    ) -> Result<Vec<Duration>, Cancelled> {
        let mut times = Vec::new();
        let mut outcome = Ok(());
        for operation in &self.list {
            match operation.run(machine, stop, timed) {
                Ok(time) => times.extend(time),
                Err(stopped) => outcome = Err(stopped),
            }
        }
        outcome.map(|()| times)
    }
}
