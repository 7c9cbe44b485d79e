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
    /// The time limit, once it has passed.
    pub exceeded: Option<Duration>,
}

/// Bytes of an encoded report.
pub(super) const PROGRESS_SIZE: usize = 25 + ENCODED_SIZE;

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
        bytes[25..].copy_from_slice(&oldest.call.encode());
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
                let call = Call::decode(bytes[25..].try_into().ok()?, world)?;
                let exceeded = Some(number(17)?).filter(|limit| *limit > 0);
                let exceeded = exceeded.map(Duration::from_millis);
                Some(Unfinished { call, number: number(9)?, exceeded })
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
        let unfinished = |exceeded| Some(Unfinished { call, number: 7, exceeded });
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
        let oldest = Some(Unfinished { call, number: 7, exceeded: None });
        let bytes = Progress { submitted: 8, oldest }.encode();
        assert_eq!(Progress::decode(&bytes, 1), None, "the root is not in the group");
    }
}
