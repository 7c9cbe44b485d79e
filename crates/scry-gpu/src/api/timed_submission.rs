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
    pub(crate) fn submit(context: &Arc<Context>, mut list: CommandList) -> Result<Option<Self>> {
        list.expand_replays();
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
        let Self { context, submission, is_user_launch } = &self;
        let times = context.note_loss(context.driver.timings(*submission))?;
        let launches = times.into_iter().zip(is_user_launch).filter(|(_, is_user)| **is_user);
        Ok(launches.map(|(time, _)| time).collect())
    }
}

impl Drop for TimedSubmission {
    fn drop(&mut self) {
        // No effect if the times were read.
        self.context.driver.discard_timings(self.submission);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{null_info, observed};

    #[test]
    fn unread_times_are_discarded() {
        let (gpu, _) = observed(null_info());
        let kernel = gpu.compile("@compute @workgroup_size(1) fn nothing() {}").unwrap();
        let submit = || gpu.batch().run(&kernel, &[], 1).unwrap().start_timed().unwrap().unwrap();
        let (read, unread) = (submit(), submit());
        let submission = unread.submission;
        assert_eq!(read.times().unwrap().len(), 1);
        drop(unread);
        let text = gpu.context.driver.timings(submission).unwrap_err().to_string();
        assert!(text.contains("its times were read or discarded"), "{text}");
    }
}
