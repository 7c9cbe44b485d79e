//! Messages between the ranks of several processes, once they have authenticated.
//!
//! ```text
//! request: kind u8 | limit in ms u64 | call [16] | data, as long as the call says
//!          kind u8 | progress, or messages
//! reply:   kind u8 | length u64 | result, or fault
//! fault:   kind u8 | ranks u32 | rank u32 … | problem: length u32, UTF-8 | help: as problem
//! ```
//!
//! Numbers are little-endian; data is in the byte order of the hosts, which is the same on all that
//! have supported devices. A request without a call (a rank that leaves) has zeros in its place.

use std::time::Duration;

use super::fault::Fault;
use super::progress::{MESSAGES_SIZE, Messages, PROGRESS_SIZE, Progress};
use super::wait::Wait;
use super::wire::{Broken, Wire};
use crate::api::error::GroupFault;
use crate::core::collective::{Call, ENCODED_SIZE};

const REQUEST_SIZE: usize = 1 + PROGRESS_SIZE;
const CALL_END: usize = 9 + ENCODED_SIZE;
const REPLY_SIZE: usize = 9;

/// The largest fault in bytes; longer texts are shortened.
const MAX_FAULT: usize = 64 << 10;
const MAX_TEXT: usize = 16 << 10;

/// The kinds of faults by their number in messages.
const FAULTS: [GroupFault; 6] = [
    GroupFault::Absent,
    GroupFault::Lost,
    GroupFault::Unresponsive,
    GroupFault::Mismatch,
    GroupFault::Token,
    GroupFault::Network,
];

/// What a rank asks of the coordinator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A call; its data follows.
    Call { call: Call, limit: Duration },
    /// How far its device is; the answer is a reply without data.
    Progress(Progress),
    /// The messages between it and another rank; without an answer.
    Messages(Messages),
    /// It makes no more calls.
    Leave,
    /// Its device failed, and the group ends.
    DeviceFailed,
    /// The program has interrupted its wait, and the group ends.
    Interrupted,
}

/// Returns the bytes of a request without data.
pub(super) fn encode_request(request: &Request) -> [u8; REQUEST_SIZE] {
    let mut bytes = [0; REQUEST_SIZE];
    match request {
        Request::Call { call, limit } => {
            bytes[0] = 1;
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
            bytes[1..9].copy_from_slice(&limit.to_le_bytes());
            bytes[9..CALL_END].copy_from_slice(&call.encode());
        }
        Request::Progress(progress) => {
            bytes[0] = 5;
            bytes[1..].copy_from_slice(&progress.encode());
        }
        Request::Messages(messages) => {
            bytes[0] = 6;
            bytes[1..=MESSAGES_SIZE].copy_from_slice(&messages.encode());
        }
        Request::Leave => bytes[0] = 2,
        Request::DeviceFailed => bytes[0] = 3,
        Request::Interrupted => bytes[0] = 4,
    }
    bytes
}

/// Reads a request without data; `None` if it is not one of a group of `world` ranks.
pub(super) fn read_request(wire: &mut Wire, world: usize) -> Result<Option<Request>, Broken> {
    let mut bytes = [0; REQUEST_SIZE];
    wire.read_at_leisure(&mut bytes)?;
    Ok(decode_request(&bytes, world))
}

fn decode_request(bytes: &[u8; REQUEST_SIZE], world: usize) -> Option<Request> {
    match bytes[0] {
        1 => {
            let limit = u64::from_le_bytes(bytes[1..9].try_into().ok()?);
            let call = Call::decode(bytes[9..CALL_END].try_into().ok()?, world)?;
            Some(Request::Call { call, limit: Duration::from_millis(limit) })
        }
        2 => Some(Request::Leave),
        3 => Some(Request::DeviceFailed),
        4 => Some(Request::Interrupted),
        5 => Progress::decode(bytes[1..].try_into().ok()?, world).map(Request::Progress),
        6 => {
            let messages = bytes[1..=MESSAGES_SIZE].try_into().ok()?;
            Messages::decode(messages, world).map(Request::Messages)
        }
        _ => None,
    }
}

/// Writes the result of a call.
pub(super) fn write_reply(
    wire: &mut Wire,
    result: &Result<&[u8], Fault>,
    wait: &Wait<'_>,
) -> Result<(), Broken> {
    let encoded;
    let (kind, content) = match result {
        Ok(data) => (0, *data),
        Err(fault) => {
            encoded = encode_fault(fault);
            (1, &encoded[..])
        }
    };
    let mut header = [kind; REPLY_SIZE];
    header[1..].copy_from_slice(&(content.len() as u64).to_le_bytes());
    wire.write(&header, wait)?;
    wire.write(content, wait)
}

/// Reads the result of a call, of which `expected` bytes are received; `Ok(None)` if the reply is
/// not valid.
pub(super) fn read_reply(
    wire: &mut Wire,
    expected: usize,
    wait: &Wait<'_>,
) -> Result<Option<Result<Vec<u8>, Fault>>, Broken> {
    let mut header = [0; REPLY_SIZE];
    wire.read(&mut header, wait)?;
    let length = header[1..].try_into().map_or(u64::MAX, u64::from_le_bytes);
    match (header[0], usize::try_from(length)) {
        (0, Ok(length)) if length == expected => {
            wire.read_vec(length, wait).map(|data| Some(Ok(data)))
        }
        (1, Ok(length)) if length <= MAX_FAULT => {
            let bytes = wire.read_vec(length, wait)?;
            Ok(decode_fault(&bytes).map(Err))
        }
        _ => Ok(None),
    }
}

fn encode_fault(fault: &Fault) -> Vec<u8> {
    let kind = FAULTS.iter().position(|kind| *kind == fault.kind).unwrap_or(0);
    let mut bytes = vec![kind as u8];
    let number = |bytes: &mut Vec<u8>, value: usize| bytes.extend((value as u32).to_le_bytes());
    let ranks = &fault.ranks[..fault.ranks.len().min(MAX_TEXT / 4)];
    number(&mut bytes, ranks.len());
    ranks.iter().for_each(|rank| number(&mut bytes, *rank));
    for text in [&fault.problem, &fault.help] {
        let text = &text[..text.floor_char_boundary_within(MAX_TEXT)];
        number(&mut bytes, text.len());
        bytes.extend(text.as_bytes());
    }
    bytes
}

fn decode_fault(bytes: &[u8]) -> Option<Fault> {
    let (kind, mut rest) = bytes.split_first()?;
    let kind = *FAULTS.get(usize::from(*kind))?;
    let count = number(&mut rest)?;
    let mut ranks = Vec::new();
    for _ in 0..count {
        ranks.push(number(&mut rest)?);
    }
    let (problem, help) = (text(&mut rest)?, text(&mut rest)?);
    rest.is_empty().then_some(Fault { kind, ranks, problem, help })
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes) as usize)
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

/// Shortening of texts.
trait Shorten {
    /// Returns the largest index of a character's start that is at most `limit`.
    fn floor_char_boundary_within(&self, limit: usize) -> usize;
}

impl Shorten for String {
    fn floor_char_boundary_within(&self, limit: usize) -> usize {
        let end = self.len().min(limit);
        (0..=end).rev().find(|index| self.is_char_boundary(*index)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::dtype::DType;
    use crate::core::collective::Operation;

    #[test]
    fn requests_are_decoded() {
        let call =
            Call { operation: Operation::AllGather, dtype: DType::U8, count: 9, on_devices: false };
        let limit = Duration::from_millis(1234);
        for request in [
            Request::Call { call, limit },
            Request::Progress(Progress { submitted: 3, oldest: None }),
            Request::Messages(Messages { peer: 1, sent: 3, received: u64::MAX }),
            Request::Leave,
            Request::DeviceFailed,
            Request::Interrupted,
        ] {
            assert_eq!(decode_request(&encode_request(&request), 2), Some(request));
        }
        assert_eq!(decode_request(&[0; REQUEST_SIZE], 2), None);
        assert_eq!(decode_request(&[0xff; REQUEST_SIZE], 2), None);
    }

    #[test]
    fn faults_are_decoded() {
        for kind in FAULTS {
            let fault = Fault::new(kind, [1, 70_000], "problem: ü", "help");
            assert_eq!(decode_fault(&encode_fault(&fault)), Some(fault));
        }
    }

    #[test]
    fn long_texts_are_shortened() {
        let long = Fault::new(GroupFault::Lost, vec![7; 9999], "ü".repeat(20_000), "help");
        let bytes = encode_fault(&long);
        assert!(bytes.len() <= MAX_FAULT, "{}", bytes.len());
        let short = decode_fault(&bytes).expect("it is valid");
        assert!(long.problem.starts_with(&short.problem) && short.problem.len() == MAX_TEXT);
    }

    #[test]
    fn damaged_faults_are_rejected() {
        let fault = encode_fault(&Fault::new(GroupFault::Lost, [1], "problem", "help"));
        for length in 0..fault.len() {
            assert_eq!(decode_fault(&fault[..length]), None, "{length} bytes");
        }
        let mut many_ranks = fault.clone();
        many_ranks[1..5].fill(0xff);
        assert_eq!(decode_fault(&many_ranks), None);
        assert_eq!(decode_fault(&[fault, vec![0]].concat()), None, "a byte too many");
    }
}
