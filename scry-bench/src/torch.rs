//! A PyTorch process that executes one measurement at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The process. It reads requests from its input, and answers each with a line.
pub struct Torch {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Version of PyTorch, and its device.
    pub name: String,
}

impl Torch {
    /// Starts the interpreter `python` with the source text `program`.
    pub fn start(python: &str, program: &str) -> Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| {
            format!("{python} cannot be started; name a Python with PyTorch by --python")
        })?;
        let requests = child.stdin.take().context("its input is a pipe")?;
        let answers = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut torch = Self { child, requests, answers, name: String::new() };
        torch.name = torch.line().context("PyTorch did not start")?;
        Ok(torch)
    }

    /// Returns the seconds of one measurement; `name` and `numbers` are the function of the program
    /// to measure, and its arguments.
    pub fn measure(&mut self, name: &str, numbers: &[usize]) -> Result<f64> {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        writeln!(self.requests, "{name} {}", numbers.join(" "))?;
        self.requests.flush()?;
        self.line()?
            .parse()
            .with_context(|| format!("PyTorch's answer to `{name}` is not a number"))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "PyTorch exited: see its messages above");
        Ok(line.trim().to_owned())
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        // The process has nothing to finish. Killing it fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
