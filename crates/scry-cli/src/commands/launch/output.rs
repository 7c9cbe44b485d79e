//! The output of the ranks: whole lines that begin with the rank.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::report::Failure;

/// The longest line in bytes; longer ones are printed in parts.
const MAX_LINE: u64 = 64 << 10;

/// How long streams that print nothing are waited for after the end of all ranks: children that the
/// ranks left behind may hold them open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Where the lines of a stream are printed.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    Stdout,
    Stderr,
}

/// The streams of all ranks.
#[derive(Default)]
pub struct Output {
    streams: Vec<JoinHandle<()>>,
    progress: Arc<Progress>,
}

/// What the threads that print have done.
#[derive(Default)]
struct Progress {
    lines: AtomicU64,
    /// Number of threads that are writing a line, possibly to a slow reader.
    writing: AtomicUsize,
    /// The first failure to write a line.
    failure: OnceLock<(Target, io::Error)>,
}

impl Output {
    /// Prints the lines of a stream of a rank on a thread, until the stream ends.
    pub fn forward(&mut self, stream: impl Read + Send + 'static, rank: u32, target: Target) {
        let progress = self.progress.clone();
        self.streams.push(thread::spawn(move || {
            let print = |line: &[u8]| progress.print(target, line);
            if let Err(error) = copy_lines(stream, &format!("[{rank}] "), print) {
                // Only the first failure is reported.
                let _ = progress.failure.set((target, error));
            }
        }));
    }

    /// Returns whether a line could not be printed.
    pub fn has_failed(&self) -> bool {
        self.progress.failure.get().is_some()
    }

    /// Waits for the last output of ranks that have ended, however slowly it is read, unless
    /// `is_interrupted`. Fails if a line could not be printed.
    pub fn finish(&self, mut is_interrupted: impl FnMut() -> bool) -> Result<(), Failure> {
        let (mut lines, mut since) = (0, Instant::now());
        while self.streams.iter().any(|stream| !stream.is_finished()) && !is_interrupted() {
            let printed = self.progress.lines.load(Ordering::Relaxed);
            if printed != lines || self.progress.writing.load(Ordering::Relaxed) > 0 {
                (lines, since) = (printed, Instant::now());
            }
            if since.elapsed() >= LAST_OUTPUT {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        match self.progress.failure.get() {
            None => Ok(()),
            Some((_, error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(Failure::BrokenPipe)
            }
            Some((target, error)) => Err(Failure::Runtime(format!("{}: {error}", target.name()))),
        }
    }
}

impl Progress {
    fn print(&self, target: Target, line: &[u8]) -> io::Result<()> {
        self.writing.fetch_add(1, Ordering::Relaxed);
        let outcome = match target {
            Target::Stdout => write(io::stdout().lock(), line),
            Target::Stderr => write(io::stderr().lock(), line),
        };
        self.lines.fetch_add(1, Ordering::Relaxed);
        self.writing.fetch_sub(1, Ordering::Relaxed);
        outcome
    }
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }
}

fn write(mut out: impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.flush()
}

/// Prints each line after `prefix`, and the last one with a line break. Ends if `print` fails.
fn copy_lines(
    stream: impl Read,
    prefix: &str,
    print: impl Fn(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = prefix.as_bytes().to_vec();
        // An error of the stream is its end: the process is gone.
        match stream.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        print(&line)?;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn lines(text: &[u8]) -> Vec<u8> {
        let printed = RefCell::new(Vec::new());
        let print = |line: &[u8]| {
            printed.borrow_mut().extend_from_slice(line);
            Ok(())
        };
        copy_lines(text, "[3] ", print).unwrap();
        printed.into_inner()
    }

    #[test]
    fn every_line_has_the_rank() {
        assert_eq!(lines(b"a\n\nb"), b"[3] a\n[3] \n[3] b\n");
        assert_eq!(lines(b""), b"");
        assert_eq!(lines(b"\xff\n"), b"[3] \xff\n", "not only UTF-8");
    }

    #[test]
    fn long_lines_are_printed_in_parts() {
        let printed = lines(&vec![b'x'; MAX_LINE as usize + 1]);
        assert_eq!(printed.iter().filter(|byte| **byte == b'\n').count(), 2);
    }
}
