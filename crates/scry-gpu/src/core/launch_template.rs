//! The commands of a launch that is encoded once and appended to many lists.

use std::mem::take;
use std::sync::Arc;

use crate::api::error::Result;
use crate::core::command::{BoundBuffer, Command};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::handles::MemoryKind;
use crate::core::memory::Memory;
use crate::core::report::ReportingLaunch;

/// An encoded launch without its failure reports: each copy of the launch reserves its own.
pub(crate) struct LaunchTemplate {
    list: CommandList,
}

impl LaunchTemplate {
    /// Stores the commands of one launch, as encoded by
    /// [`encode::dispatch`](crate::core::encode::dispatch).
    pub(crate) fn new(mut list: CommandList) -> Self {
        for reporting in &list.reports.launches {
            if let Command::Dispatch(dispatch) = &mut list.commands[reporting.command_index] {
                // The report is the last binding.
                dispatch.bindings.pop();
            }
        }
        let blocks = take(&mut list.reports.blocks);
        let has_no_reports =
            |memory: &Arc<Memory>| !blocks.iter().any(|block| Arc::ptr_eq(block, memory));
        list.memories.retain(has_no_reports);
        Self { list }
    }

    /// Appends a copy of the commands, which were encoded for the same device.
    pub(crate) fn append_to(&self, context: &Arc<Context>, list: &mut CommandList) -> Result<()> {
        let Self { list: CommandList { commands, memories, retained, reports, .. } } = self;
        memories.iter().for_each(|memory| list.retain_memory(memory));
        let mut reports = reports.launches.iter().peekable();
        for (at, command) in commands.iter().enumerate() {
            let mut command = command.clone();
            if let (Command::Dispatch(dispatch), Some(reporting)) =
                (&mut command, reports.next_if(|reporting| reporting.command_index == at))
            {
                let reporting =
                    ReportingLaunch { command_index: list.commands.len(), ..reporting.clone() };
                let (memory, range) =
                    list.reports.add(reporting, context.info.binding_alignment, |size| {
                        context.allocate(MemoryKind::Device, size, "reports of launches")
                    })?;
                dispatch.bindings.push(BoundBuffer { range, writes: true });
                list.retain_memory(&memory);
            }
            list.commands.push(command);
        }
        list.retained.extend(retained.iter().cloned());
        Ok(())
    }
}
