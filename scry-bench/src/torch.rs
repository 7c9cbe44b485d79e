//! A PyTorch process that executes one measurement at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The process.
pub struct Torch {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Version and device.
    pub name: String,
}

impl Torch {
    /// Starts it with this interpreter and program.
    pub fn start(python: &str, program: &str) -> Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| {
            format!("{python} cannot be started; name a Python with PyTorch by --python")
        })?;
        let to = child.stdin.take().context("its input is a pipe")?;
        let from = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut torch = Self { child, to, from, name: String::new() };
        torch.name = torch.line().context("PyTorch did not start")?;
        Ok(torch)
    }

    /// Seconds of a measurement, by its name in the program.
    pub fn measure(&mut self, name: &str, numbers: &[usize]) -> Result<f64> {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        writeln!(self.to, "{name} {}", numbers.join(" "))?;
        self.to.flush()?;
        self.line()?.parse().with_context(|| format!("what PyTorch said of `{name}` is no number"))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.from.read_line(&mut line)? > 0, "PyTorch ended: see what it wrote above");
        Ok(line.trim().to_owned())
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        // The process exits when its input closes, else it is killed. Errors are ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
