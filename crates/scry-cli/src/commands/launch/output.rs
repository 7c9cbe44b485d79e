//! The output of the ranks: whole lines that begin with the rank.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The longest line in bytes; longer ones are printed in parts.
const MAX_LINE: u64 = 64 << 10;

/// Where the lines of a stream are printed.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    Stdout,
    Stderr,
}

/// Prints the lines of a stream of a rank on a thread, until the stream ends. If standard output is
/// closed, sets `is_closed`.
pub fn forward(
    stream: impl Read + Send + 'static,
    rank: u32,
    target: Target,
    is_closed: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let is_closed = is_closed.clone();
    thread::spawn(move || {
        let print = |line: &[u8]| match target {
            Target::Stdout => write(io::stdout().lock(), line),
            Target::Stderr => write(io::stderr().lock(), line),
        };
        let outcome = copy_lines(stream, &format!("[{rank}] "), print);
        if outcome.is_err() {
            is_closed.store(true, Ordering::Relaxed);
        }
    })
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
