//! How far the devices of a group are in the calls that they execute.

use std::time::Duration;

use crate::core::collective::{Call, ENCODED_SIZE};

/// What a rank reports about the calls that its device executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The number of collectives that the rank has submitted, those between two ranks not counted.
    pub submitted: u64,
    /// The oldest call that is not done.
    pub oldest: Option<Unfinished>,
}

/// A call that a device has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub call: Call,
    /// The number of collectives that the rank had submitted with this one, from 1.
    pub number: u64,
    /// Of a message, its number among those between the two ranks in the same direction, from 1;
    /// else 0.
    pub message: u64,
    /// The time limit, once it has passed.
    pub exceeded: Option<Duration>,
}

/// The messages between a rank and another one, `peer`, as far as the rank has submitted its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Messages {
    pub peer: usize,
    pub sent: u64,
    pub received: u64,
}

/// Bytes of an encoded report.
pub(super) const PROGRESS_SIZE: usize = CALL_START + ENCODED_SIZE;

const CALL_START: usize = 33;

/// Bytes of encoded [`Messages`].
pub(super) const MESSAGES_SIZE: usize = 24;

impl Messages {
    pub(super) fn encode(&self) -> [u8; MESSAGES_SIZE] {
        let mut bytes = [0; MESSAGES_SIZE];
        for (at, number) in [self.peer as u64, self.sent, self.received].into_iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns the messages of a rank of another process; `None` if no rank of a group of `world`
    /// ranks sends it.
    pub(super) fn decode(bytes: &[u8; MESSAGES_SIZE], world: usize) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let peer = usize::try_from(number(0)?).ok().filter(|peer| *peer < world)?;
        Some(Self { peer, sent: number(8)?, received: number(16)? })
    }
}

impl Progress {
    pub(super) fn encode(&self) -> [u8; PROGRESS_SIZE] {
        let mut bytes = [0; PROGRESS_SIZE];
        bytes[..8].copy_from_slice(&self.submitted.to_le_bytes());
        let Some(oldest) = &self.oldest else { return bytes };
        bytes[8] = 1;
        bytes[9..17].copy_from_slice(&oldest.number.to_le_bytes());
        let exceeded = oldest
            .exceeded
            .map_or(0, |limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1));
        bytes[17..25].copy_from_slice(&exceeded.to_le_bytes());
        bytes[25..CALL_START].copy_from_slice(&oldest.message.to_le_bytes());
        bytes[CALL_START..].copy_from_slice(&oldest.call.encode());
        bytes
    }

    /// Returns the report of a rank of another process; `None` if no rank of a group of `world`
    /// ranks sends it.
    pub(super) fn decode(bytes: &[u8; PROGRESS_SIZE], world: usize) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let submitted = number(0)?;
        let oldest = match bytes[8] {
            0 => None,
            1 => {
                let call = Call::decode(bytes[CALL_START..].try_into().ok()?, world)?;
                let exceeded = Some(number(17)?).filter(|limit| *limit > 0);
                let exceeded = exceeded.map(Duration::from_millis);
                let message = number(25)?;
                Some(Unfinished { call, number: number(9)?, message, exceeded })
            }
            _ => return None,
        };
        Some(Self { submitted, oldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::dtype::DType;
    use crate::core::collective::Operation;

    #[test]
    fn reports_are_decoded() {
        let operation = Operation::Broadcast { root: 1 };
        let call = Call { operation, dtype: DType::F16, count: 9, on_devices: true };
        let unfinished = |exceeded| Some(Unfinished { call, number: 7, message: 3, exceeded });
        for oldest in [None, unfinished(None), unfinished(Some(Duration::from_millis(1500)))] {
            let progress = Progress { submitted: 8, oldest };
            assert_eq!(Progress::decode(&progress.encode(), 2), Some(progress));
        }
    }

    #[test]
    fn impossible_reports_are_rejected() {
        assert_eq!(Progress::decode(&[0xff; PROGRESS_SIZE], 2), None);
        let operation = Operation::Broadcast { root: 1 };
        let call = Call { operation, dtype: DType::F16, count: 9, on_devices: true };
        let oldest = Some(Unfinished { call, number: 7, message: 0, exceeded: None });
        let bytes = Progress { submitted: 8, oldest }.encode();
        assert_eq!(Progress::decode(&bytes, 1), None, "the root is not in the group");
        let bytes = Messages { peer: 2, sent: 1, received: 0 }.encode();
        assert_eq!(Messages::decode(&bytes, 2), None, "the peer is not in the group");
    }
}
