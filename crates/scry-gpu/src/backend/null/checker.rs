//! Checks submissions against the rules of the core, by a simple implementation independent of it.

use crate::core::command::{Barrier, BufferRange, Command, Groups, Stages, Step};

/// The commands that a later command may have to wait for.
#[derive(Default)]
pub(crate) struct Checker {
    history: Vec<Executed>,
}

struct Executed {
    stage: Stages,
    accesses: Vec<(BufferRange, bool)>,
    /// The stages whose later commands wait for this one, because of a barrier.
    visible_to: Stages,
}

impl Checker {
    /// Checks a step against everything before it.
    pub(crate) fn check(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Barrier(barrier) => {
                self.apply_barrier(*barrier);
                Ok(())
            }
            Step::Run(command) => {
                check_command(command)?;
                self.check_order(command)
            }
        }
    }

    fn apply_barrier(&mut self, barrier: Barrier) {
        for executed in &mut self.history {
            if barrier.before.contains(executed.stage) {
                executed.visible_to |= barrier.after;
            }
        }
        let device_stages = Stages::COMPUTE | Stages::TRANSFER;
        self.history.retain(|executed| !executed.visible_to.contains(device_stages));
    }

    /// Checks that the command waits for every command that it has a hazard with.
    fn check_order(&mut self, command: &Command) -> Result<(), String> {
        let mut accesses = Vec::new();
        command.for_each_access(|range, writes| accesses.push((range, writes)));
        let stage = command.stage();
        for earlier in self.history.iter().filter(|e| !e.visible_to.contains(stage)) {
            for (a, a_writes) in &earlier.accesses {
                for (b, b_writes) in &accesses {
                    if overlap(a, b) && (*a_writes || *b_writes) {
                        return Err(format!("{command:?} does not wait for an access to {a:?}"));
                    }
                }
            }
        }
        self.history.push(Executed { stage, accesses, visible_to: Stages::empty() });
        Ok(())
    }
}

fn overlap(a: &BufferRange, b: &BufferRange) -> bool {
    a.memory == b.memory && a.offset < b.end() && b.offset < a.end()
}

/// Checks the rules for a single command.
fn check_command(command: &Command) -> Result<(), String> {
    let is_valid = match command {
        Command::Fill { dst, .. } => dst.offset % 4 == 0 && dst.size % 4 == 0 && dst.size > 0,
        Command::Copy { src, dst } => src.size == dst.size && src.size > 0 && !overlap(src, dst),
        Command::Dispatch(dispatch) => {
            are_groups_valid(&dispatch.groups)
                && dispatch.bindings.iter().all(|bound| bound.range.size > 0)
                && dispatch.immediates.len() % 4 == 0
        }
    };
    if is_valid { Ok(()) } else { Err(format!("{command:?} is invalid")) }
}

fn are_groups_valid(groups: &Groups) -> bool {
    match groups {
        Groups::Direct(counts) => counts.iter().all(|count| *count > 0),
        Groups::Indirect(counts) => counts.size == Groups::SIZE && counts.offset % 4 == 0,
    }
}
