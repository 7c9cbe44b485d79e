//! A submitted batch with timed launches.

use std::sync::Arc;
use std::time::Duration;

use crate::api::error::Result;
use crate::core::command::Command;
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::handles::SubmissionIndex;

/// A submission with timed launches. The times of internal launches, which the core adds for copies
/// and for indirect launches, are not returned.
pub(crate) struct TimedSubmission {
    context: Arc<Context>,
    pub submission: SubmissionIndex,
    /// For each launch, whether the caller requested it.
    is_user_launch: Vec<bool>,
}

impl TimedSubmission {
    /// Submits commands with a timer for each launch; `None` if there are none.
    pub(crate) fn submit(context: &Arc<Context>, list: CommandList) -> Result<Option<Self>> {
        let is_user_launch = |command: &Command| match command {
            Command::Dispatch(dispatch) => Some(dispatch.is_launch()),
            _ => None,
        };
        let is_user_launch = list.commands.iter().filter_map(is_user_launch).collect();
        let submission = context.submit_list(list, true)?;
        let timed = |submission| Self { context: context.clone(), submission, is_user_launch };
        Ok(submission.map(timed))
    }

    /// Returns the duration of each launch that the caller made, once the submission is done.
    pub(crate) fn times(self) -> Result<Vec<Duration>> {
        let Self { context, submission, is_user_launch } = self;
        let times = context.note_loss(context.driver.timings(submission))?;
        let launches = times.into_iter().zip(is_user_launch).filter(|(_, is_user)| *is_user);
        Ok(launches.map(|(time, _)| time).collect())
    }
}
