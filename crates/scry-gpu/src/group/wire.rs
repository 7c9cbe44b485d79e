//! Reading and writing a TCP connection, with deadlines and without trust in stated sizes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use super::wait::{Ended, Wait};

/// The largest part of a message that is read into memory that was allocated for it in advance.
const CHUNK: usize = 1 << 20;

/// A connection between two ranks.
#[derive(Debug)]
pub(super) struct Wire(TcpStream);

/// Why a connection cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other side has closed it.
    Closed,
    /// Nothing arrived, or was accepted, in time.
    Late,
    /// The program has interrupted the wait.
    Interrupted,
    /// The system reported an error.
    Failed(String),
}

impl Broken {
    /// Returns how the connection ended, as the predicate of a sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Closed => "was closed".to_owned(),
            Self::Late => "made no progress in time".to_owned(),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::Failed(error) => format!("failed: {error}"),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
            WouldBlock,
        };
        match error.kind() {
            UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected => {
                Self::Closed
            }
            WouldBlock | TimedOut => Self::Late,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Wire {
    /// Prepares a connection.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        // Accepted streams inherit this from their listener on some systems.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Returns a handle that can end reads and writes of other threads.
    pub(super) fn closer(&self) -> io::Result<Closer> {
        self.0.try_clone().map(Closer)
    }

    /// Writes `bytes`; the limit of `wait` is that of each megabyte.
    pub(super) fn write(&mut self, bytes: &[u8], wait: &Wait<'_>) -> Result<(), Broken> {
        bytes.chunks(CHUNK).try_for_each(|chunk| self.write_chunk(chunk, wait))
    }

    fn write_chunk(&mut self, mut bytes: &[u8], wait: &Wait<'_>) -> Result<(), Broken> {
        let start = Instant::now();
        while !bytes.is_empty() {
            self.0.set_write_timeout(Some(wait.slice(start)))?;
            match self.0.write(bytes) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match Broken::from(error) {
                    Broken::Late => {}
                    other => return Err(other),
                },
            }
            match wait.ended(start) {
                Some(_) if bytes.is_empty() => {}
                Some(Ended::Interrupt) => return Err(Broken::Interrupted),
                Some(Ended::Limit) => return Err(Broken::Late),
                None => {}
            }
        }
        Ok(())
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        // It fails if the other side has closed the connection already.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Fills `bytes`; waits without limit.
    pub(super) fn read_at_leisure(&mut self, bytes: &mut [u8]) -> Result<(), Broken> {
        self.0.set_read_timeout(None)?;
        self.0.read_exact(bytes).map_err(Broken::from)
    }

    /// Fills `bytes` within the limit of `wait`.
    pub(super) fn read(&mut self, bytes: &mut [u8], wait: &Wait<'_>) -> Result<(), Broken> {
        let (start, mut filled) = (Instant::now(), 0);
        while filled < bytes.len() {
            self.0.set_read_timeout(Some(wait.slice(start)))?;
            match self.0.read(&mut bytes[filled..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match Broken::from(error) {
                    Broken::Late => {}
                    other => return Err(other),
                },
            }
            match wait.ended(start) {
                Some(_) if filled == bytes.len() => {}
                Some(Ended::Interrupt) => return Err(Broken::Interrupted),
                Some(Ended::Limit) => return Err(Broken::Late),
                None => {}
            }
        }
        Ok(())
    }

    /// Reads `len` bytes. The memory grows with what arrives, whatever length was stated; the limit
    /// of `wait` is that of each megabyte.
    pub(super) fn read_vec(&mut self, len: usize, wait: &Wait<'_>) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let filled = bytes.len();
            bytes.resize(filled + CHUNK.min(len - filled), 0);
            self.read(&mut bytes[filled..], wait)?;
        }
        Ok(bytes)
    }
}

/// Ends the use of a connection by other threads.
#[derive(Debug)]
pub(super) struct Closer(TcpStream);

impl Closer {
    pub(super) fn close(&self) {
        // It fails if the other side has closed the connection already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::super::wait::SLICE;
    use super::*;

    fn pair() -> (Wire, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
        let address = listener.local_addr().expect("it is bound");
        let other = TcpStream::connect(address).expect("it listens");
        let stream = listener.accept().expect("it was connected to").0;
        (Wire::new(stream).expect("it is open"), other)
    }

    fn within<'a>(limit: Duration) -> Wait<'a> {
        Wait { limit, interrupted: &|| false }
    }

    /// The other side states more than any memory, sends 3 bytes and ends.
    #[test]
    fn memory_grows_with_what_arrives() {
        let (mut wire, mut other) = pair();
        other.write_all(&[1, 2, 3]).expect("it is open");
        drop(other);
        let read = wire.read_vec(usize::MAX >> 1, &within(Duration::from_secs(10)));
        assert_eq!(read, Err(Broken::Closed));
    }

    #[test]
    fn slow_senders_are_waited_for() {
        let (mut wire, mut other) = pair();
        let sender = thread::spawn(move || {
            for byte in 0..5 {
                other.write_all(&[byte]).expect("it is open");
                thread::sleep(SLICE / 2);
            }
            other
        });
        let read = wire.read_vec(5, &within(Duration::from_secs(10)));
        assert_eq!(read, Ok(vec![0, 1, 2, 3, 4]));
        drop(sender.join());
    }

    #[test]
    fn silence_and_interrupts_end_a_read() {
        let (mut wire, _other) = pair();
        let start = Instant::now();
        let limit = Duration::from_millis(80);
        assert_eq!(wire.read_vec(1, &within(limit)), Err(Broken::Late));
        assert!(start.elapsed() >= limit, "{:?}", start.elapsed());
        let interrupted = Wait { limit: Duration::from_secs(60), interrupted: &|| true };
        assert_eq!(wire.read_vec(1, &interrupted), Err(Broken::Interrupted));
    }

    /// The other side reads nothing of more than the buffers of any system hold.
    #[test]
    fn stalls_and_interrupts_end_a_write() {
        let data = vec![0; 64 << 20];
        let (mut wire, _other) = pair();
        assert_eq!(wire.write(&data, &within(Duration::from_millis(80))), Err(Broken::Late));
        let (mut wire, _other) = pair();
        let interrupted = Wait { limit: Duration::from_secs(60), interrupted: &|| true };
        assert_eq!(wire.write(&data, &interrupted), Err(Broken::Interrupted));
    }

    #[test]
    fn slow_readers_are_waited_for() {
        let (mut wire, mut other) = pair();
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            thread::sleep(2 * SLICE);
            other.read_to_end(&mut read).map(|_| read)
        });
        let data: Vec<u8> = (0..20_000_000u32).map(|index| (index % 251) as u8).collect();
        assert_eq!(wire.write(&data, &within(Duration::from_secs(60))), Ok(()));
        drop(wire);
        let read = reader.join().expect("no panic").expect("it is open");
        assert!(read == data, "{} bytes", read.len());
    }

    #[test]
    fn closers_end_reads_of_other_threads() {
        let (mut wire, _other) = pair();
        let closer = wire.closer().expect("it is open");
        let reader = thread::spawn(move || wire.read_at_leisure(&mut [0]));
        thread::sleep(Duration::from_millis(20));
        closer.close();
        assert_eq!(reader.join().expect("no panic"), Err(Broken::Closed));
    }
}
