//! A list of commands under construction, and everything that it must keep alive.

use std::any::Any;
use std::mem::take;
use std::sync::Arc;

use crate::core::command::{BufferRange, Command};
use crate::core::driver_recording::DriverRecording;
use crate::core::memory::Memory;
use crate::core::report::Reports;

/// An object that a submission keeps alive until it is done.
pub(crate) type Retained = Arc<dyn Any + Send + Sync>;

/// How a list of commands first uses a range of bytes that is written before the list runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstUse {
    /// No command accesses them.
    None,
    /// Commands read some of them, and overwrite only bytes that were read before. A launch with
    /// write access may read.
    Read,
    /// A command overwrites some of them before they are read.
    Overwrite,
}

/// A replay of a recording without failure reports, between commands of a list.
#[derive(Clone)]
pub(crate) struct Replay {
    /// The number of commands before it.
    pub position: usize,
    pub recorded: Arc<DriverRecording>,
}

/// Commands in order, with what they use.
#[derive(Clone, Default)]
pub(crate) struct CommandList {
    pub commands: Vec<Command>,
    /// The replays between them, in order.
    pub replays: Vec<Replay>,
    /// Each allocation that the commands access.
    pub memories: Vec<Arc<Memory>>,
    /// Everything else that must outlive the execution, such as kernels.
    pub retained: Vec<Retained>,
    /// Whether the host reads what the commands wrote into `Readback` memory.
    pub read_by_host: bool,
    /// The failure reports of the launches.
    pub reports: Reports,
}

impl CommandList {
    /// Appends a command that uses `memories`.
    pub(crate) fn push<'a>(
        &mut self,
        command: Command,
        memories: impl IntoIterator<Item = &'a Arc<Memory>>,
    ) {
        self.commands.push(command);
        memories.into_iter().for_each(|memory| self.retain_memory(memory));
    }

    /// Keeps an allocation alive. Consecutive commands that use it add it only once.
    pub(crate) fn retain_memory(&mut self, memory: &Arc<Memory>) {
        let is_latest = |latest| Arc::ptr_eq(latest, memory);
        if !self.memories.last().is_some_and(is_latest) {
            self.memories.push(memory.clone());
        }
    }

    /// Keeps another object alive.
    pub(crate) fn retain<T: Send + Sync + 'static>(&mut self, object: &Arc<T>) {
        let is_latest =
            |latest: &Retained| std::ptr::addr_eq(Arc::as_ptr(latest), Arc::as_ptr(object));
        if !self.retained.last().is_some_and(is_latest) {
            self.retained.push(object.clone());
        }
    }

    /// Returns the number of launches that the caller requested.
    pub(crate) fn launch_count(&self) -> u64 {
        let is_launch = |command: &&Command| match command {
            Command::Dispatch(dispatch) => dispatch.is_launch(),
            _ => false,
        };
        let replayed = self.replays.iter().map(|replay| replay.recorded.launches());
        self.commands.iter().filter(is_launch).count() as u64 + replayed.sum::<u64>()
    }

    /// Returns whether there is nothing to execute.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.replays.is_empty()
    }

    /// Returns the replays that precede the command at a position, and follow the one before it.
    pub(crate) fn replays_at(&self, position: usize) -> &[Replay] {
        let start = self.replays.partition_point(|replay| replay.position < position);
        let end = self.replays.partition_point(|replay| replay.position <= position);
        &self.replays[start..end]
    }

    /// Returns the commands, with those of the replays of some recordings.
    fn all_commands(
        &self,
        includes: impl Fn(&DriverRecording) -> bool,
    ) -> impl Iterator<Item = &Command> {
        let mut replays = self.replays.iter().peekable();
        (0..=self.commands.len()).flat_map(move |position| {
            let mut found: Vec<&[Command]> = Vec::new();
            while let Some(Replay { recorded, .. }) =
                replays.next_if(|replay| replay.position == position)
            {
                if includes(recorded) {
                    found.push(&recorded.list().commands);
                }
            }
            found.into_iter().flatten().chain(self.commands.get(position))
        })
    }

    /// Replaces the replays by the commands of their recordings.
    pub(crate) fn expand_replays(&mut self) {
        if self.replays.is_empty() {
            return;
        }
        let commands: Vec<Command> = self.all_commands(|_| true).cloned().collect();
        // The launches that have reports move: no recording has any.
        for reporting in &mut self.reports.launches {
            let replays = self.replays.iter();
            let before = replays.take_while(|it| it.position <= reporting.command_index);
            reporting.command_index += before.map(|it| it.recorded.command_count()).sum::<usize>();
        }
        for Replay { recorded, .. } in take(&mut self.replays) {
            self.memories.extend_from_slice(&recorded.list().memories);
        }
        self.commands = commands;
    }

    /// Returns the current lengths, for [`CommandList::truncate`].
    pub(crate) fn lengths(&self) -> [usize; 5] {
        let Self { commands, replays, memories, retained, reports, .. } = self;
        [commands.len(), replays.len(), memories.len(), retained.len(), reports.len()]
    }

    /// Removes everything appended since [`CommandList::lengths`] returned `lengths`.
    pub(crate) fn truncate(&mut self, lengths: [usize; 5]) {
        let [commands, replays, memories, retained, reports] = lengths;
        self.commands.truncate(commands);
        self.replays.truncate(replays);
        self.memories.truncate(memories);
        self.retained.truncate(retained);
        self.reports.truncate(reports);
    }

    /// Returns the fills that zero uninitialised allocations, except those that the first commands
    /// overwrite entirely.
    pub(crate) fn zero_fills(&self) -> Vec<Command> {
        let mut fills: Vec<Command> = Vec::new();
        let replays = self.replays.iter().filter(|replay| !replay.recorded.is_initialised());
        let replayed = replays.flat_map(|replay| &replay.recorded.list().memories);
        let memories = self.memories.iter().chain(replayed);
        for memory in memories.filter(|memory| !memory.is_initialised()) {
            let dst = memory.whole();
            let fill = Command::Fill { dst, pattern: 0 };
            if !fills.contains(&fill) && !self.first_use_overwrites(dst) {
                fills.push(fill);
            }
        }
        fills
    }

    /// Marks every allocation of the list as initialised.
    pub(crate) fn mark_initialised(&self) {
        self.memories.iter().for_each(|memory| memory.mark_initialised());
    }

    /// Returns how the list first uses a range of bytes.
    pub(crate) fn first_use(&self, range: BufferRange) -> FirstUse {
        // The subranges that no command has accessed so far.
        let mut untouched = vec![(range.offset, range.end())];
        let mut found = FirstUse::None;
        for command in &self.commands {
            let overwritten = command.overwrites();
            command.for_each_access(|access, writes| {
                let touches = |(start, end): &(u64, u64)| {
                    access.memory == range.memory && access.offset < *end && *start < access.end()
                };
                if found == FirstUse::Overwrite || !untouched.iter().any(touches) {
                    return;
                }
                found = match writes && overwritten == Some(access) {
                    true => FirstUse::Overwrite,
                    false => FirstUse::Read,
                };
                let outside_access = |(start, end): (u64, u64)| {
                    [(start, end.min(access.offset)), (start.max(access.end()), end)]
                };
                untouched =
                    untouched.drain(..).flat_map(outside_access).filter(|(a, b)| a < b).collect();
            });
            if found == FirstUse::Overwrite || untouched.is_empty() {
                break;
            }
        }
        found
    }

    /// Returns whether the first commands that access an allocation overwrite it from start to end.
    fn first_use_overwrites(&self, whole: BufferRange) -> bool {
        let mut covered = whole.offset;
        for command in self.all_commands(|recorded| recorded.uses(whole.memory)) {
            let (mut used, mut read) = (false, false);
            command.for_each_access(|range, writes| {
                used |= range.memory == whole.memory;
                read |= range.memory == whole.memory && !writes;
            });
            match command.overwrites() {
                _ if !used => continue,
                Some(dst) if !read && dst.offset == covered => covered = dst.end(),
                _ => return false,
            }
            if covered == whole.end() {
                return true;
            }
        }
        false
    }
}
