//! The process of a rank, with the processes that it starts: a process group where there are some.

use std::io;
use std::process::{Child, Command};

/// A running rank. Dropping it kills it.
pub struct Process {
    child: Child,
}

/// How a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It is asked to end by this signal, which it can handle.
    Ask(i32),
    /// It ends at once.
    Kill,
}

impl Signal {
    /// The signal that asks a process to end.
    pub const TERMINATE: Self = Self::Ask(15);
}

impl Process {
    /// Starts the process of a command in a process group of its own.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        command.spawn().map(|child| Self { child })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns whether the process has ended, and then whether it succeeded. It is not reaped, so
    /// that the number of its group is not reused.
    #[cfg(unix)]
    pub fn success(&mut self) -> io::Result<Option<bool>> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.id()?), options)?;
        Ok(status.map(|status| status.exit_status() == Some(0)))
    }

    /// Returns whether the process has ended, and then whether it succeeded.
    #[cfg(not(unix))]
    pub fn success(&mut self) -> io::Result<Option<bool>> {
        Ok(self.child.try_wait()?.map(|status| status.success()))
    }

    /// Sends a signal to the group. It fails if all its processes have ended.
    #[cfg(unix)]
    pub fn send(&mut self, signal: Signal) -> io::Result<()> {
        use rustix::process::{Signal as Number, kill_process_group};

        let signal = match signal {
            Signal::Ask(number) => Number::from_named_raw(number).unwrap_or(Number::TERM),
            Signal::Kill => Number::KILL,
        };
        Ok(kill_process_group(self.id()?, signal)?)
    }

    /// Ends the process: this system has no signals.
    #[cfg(not(unix))]
    pub fn send(&mut self, _: Signal) -> io::Result<()> {
        self.child.kill()
    }

    #[cfg(unix)]
    fn id(&self) -> io::Result<rustix::process::Pid> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        id.ok_or_else(|| io::Error::other("the process has no number"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has ended and was waited for.
        if matches!(self.success(), Ok(None)) {
            let _ = self.send(Signal::Kill);
        }
        let _ = self.child.wait();
    }
}
