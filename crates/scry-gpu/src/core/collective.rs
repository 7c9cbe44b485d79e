//! A call of a collective as data: what the ranks compare, and what is sent between processes.

use std::fmt;

use crate::api::dtype::DType;
use crate::api::reduce_op::ReduceOp;

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat {
    pub rank: usize,
    pub world: usize,
}

/// A collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    AllReduce(ReduceOp),
    Broadcast { root: usize },
    Reduce { op: ReduceOp, root: usize },
    AllGather,
    ReduceScatter(ReduceOp),
    AllToAll,
    Barrier,
    Send { to: usize },
    Recv { from: usize },
}

/// A call of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub operation: Operation,
    pub dtype: DType,
    /// Number of elements: of both buffers, or of the part of one rank where the buffers differ in
    /// length.
    pub count: usize,
    /// Whether the devices execute the call: the ranks compare it, and exchange no data.
    pub on_devices: bool,
}

/// Returns whether collectives support an element type.
pub(crate) fn is_supported(dtype: DType) -> bool {
    !matches!(dtype, DType::I8 | DType::I16 | DType::U16)
}

/// Bytes of an encoded call.
pub(crate) const ENCODED_SIZE: usize = 16;

impl Operation {
    /// Returns the lengths of source and destination in units of [`Call::count`].
    pub(crate) fn lengths(self, world: usize) -> (usize, usize) {
        match self {
            Self::AllReduce(_) | Self::Broadcast { .. } | Self::Reduce { .. } => (1, 1),
            Self::AllGather => (1, world),
            Self::ReduceScatter(_) => (world, 1),
            Self::AllToAll => (world, world),
            Self::Barrier => (0, 0),
            Self::Send { .. } => (1, 0),
            Self::Recv { .. } => (0, 1),
        }
    }

    /// Returns whether `rank` contributes its source, and whether its destination is written.
    pub(crate) fn takes_part(self, rank: usize) -> (bool, bool) {
        match self {
            Self::Broadcast { root } => (rank == root, true),
            Self::Reduce { root, .. } => (true, rank == root),
            _ => (true, true),
        }
    }

    /// Returns whether all ranks make the call.
    pub(crate) fn is_collective(self) -> bool {
        !matches!(self, Self::Send { .. } | Self::Recv { .. })
    }

    /// Returns the reduction.
    pub(crate) fn op(self) -> Option<ReduceOp> {
        match self {
            Self::AllReduce(op) | Self::Reduce { op, .. } | Self::ReduceScatter(op) => Some(op),
            _ => None,
        }
    }

    /// Returns the rank that the call names.
    pub(crate) fn peer(self) -> Option<usize> {
        match self {
            Self::Broadcast { root } | Self::Reduce { root, .. } => Some(root),
            Self::Send { to: peer } | Self::Recv { from: peer } => Some(peer),
            _ => None,
        }
    }
}

impl Call {
    /// Returns the bytes that `rank` contributes; `None` if there are too many to be addressed.
    pub(crate) fn contributed(&self, seat: Seat) -> Option<usize> {
        let (length, _) = self.operation.lengths(seat.world);
        self.bytes(length, self.operation.takes_part(seat.rank).0)
    }

    /// Returns the bytes that `rank` receives; `None` as for [`Call::contributed`].
    pub(crate) fn received(&self, seat: Seat) -> Option<usize> {
        let (_, length) = self.operation.lengths(seat.world);
        self.bytes(length, self.operation.takes_part(seat.rank).1)
    }

    fn bytes(&self, length: usize, takes_part: bool) -> Option<usize> {
        match takes_part {
            true if !self.on_devices => {
                self.count.checked_mul(self.dtype.size())?.checked_mul(length)
            }
            _ => Some(0),
        }
    }

    /// Returns the bytes of the part of one rank.
    pub(crate) fn part(&self) -> usize {
        self.count * self.dtype.size()
    }

    pub(crate) fn encode(&self) -> [u8; ENCODED_SIZE] {
        let (code, op) = match self.operation {
            Operation::AllReduce(op) => (0, Some(op)),
            Operation::Broadcast { .. } => (1, None),
            Operation::Reduce { op, .. } => (2, Some(op)),
            Operation::AllGather => (3, None),
            Operation::ReduceScatter(op) => (4, Some(op)),
            Operation::AllToAll => (5, None),
            Operation::Barrier => (6, None),
            Operation::Send { .. } => (7, None),
            Operation::Recv { .. } => (8, None),
        };
        let index = |op| ReduceOp::ALL.iter().position(|it| *it == op);
        let dtype = DType::ALL.iter().position(|it| *it == self.dtype);
        let mut bytes = [0; ENCODED_SIZE];
        bytes[0] = code;
        bytes[1] = op.and_then(index).unwrap_or(0) as u8;
        bytes[2] = dtype.unwrap_or(0) as u8;
        bytes[3] = self.on_devices.into();
        let peer = self.operation.peer().unwrap_or(0) as u32;
        bytes[4..8].copy_from_slice(&peer.to_le_bytes());
        bytes[8..].copy_from_slice(&(self.count as u64).to_le_bytes());
        bytes
    }

    /// Returns the call of a rank of another process; `None` if no rank of a group of `world` ranks
    /// makes such a call.
    pub(crate) fn decode(bytes: &[u8; ENCODED_SIZE], world: usize) -> Option<Self> {
        let op = *ReduceOp::ALL.get(usize::from(bytes[1]))?;
        let dtype = *DType::ALL.get(usize::from(bytes[2]))?;
        let peer = u32::from_le_bytes(bytes[4..8].try_into().ok()?) as usize;
        let count = u64::from_le_bytes(bytes[8..].try_into().ok()?);
        let operation = match bytes[0] {
            0 => Operation::AllReduce(op),
            1 => Operation::Broadcast { root: peer },
            2 => Operation::Reduce { op, root: peer },
            3 => Operation::AllGather,
            4 => Operation::ReduceScatter(op),
            5 => Operation::AllToAll,
            6 => Operation::Barrier,
            7 => Operation::Send { to: peer },
            8 => Operation::Recv { from: peer },
            _ => return None,
        };
        let count = usize::try_from(count).ok()?;
        // All buffers of the group, so that no later computation overflows.
        count.checked_mul(dtype.size())?.checked_mul(world)?;
        let is_valid = peer < world && is_supported(dtype) && bytes[3] < 2;
        is_valid.then_some(Self { operation, dtype, count, on_devices: bytes[3] == 1 })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllReduce(op) => write!(f, "all_reduce({op})"),
            Self::Broadcast { root } => write!(f, "broadcast(root {root})"),
            Self::Reduce { op, root } => write!(f, "reduce({op}, root {root})"),
            Self::AllGather => f.write_str("all_gather"),
            Self::ReduceScatter(op) => write!(f, "reduce_scatter({op})"),
            Self::AllToAll => f.write_str("all_to_all"),
            Self::Barrier => f.write_str("barrier"),
            Self::Send { to } => write!(f, "send to rank {to}"),
            Self::Recv { from } => write!(f, "recv from rank {from}"),
        }
    }
}

impl fmt::Display for Call {
    /// Writes `all_reduce(sum) of 8 f32`, with the number of elements of one rank's part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Operation::Barrier => self.operation.fmt(f),
            operation => write!(f, "{operation} of {} {}", self.count, self.dtype),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Operation> {
        let reductions = ReduceOp::ALL.into_iter();
        let mut all: Vec<_> = reductions
            .flat_map(|op| {
                [
                    Operation::AllReduce(op),
                    Operation::Reduce { op, root: 2 },
                    Operation::ReduceScatter(op),
                ]
            })
            .collect();
        all.extend([
            Operation::Broadcast { root: 1 },
            Operation::AllGather,
            Operation::AllToAll,
            Operation::Barrier,
            Operation::Send { to: 2 },
            Operation::Recv { from: 0 },
        ]);
        all
    }

    #[test]
    fn encoded_calls_are_decoded() {
        for operation in all() {
            for dtype in [DType::U8, DType::BF16, DType::F64] {
                let call = Call { operation, dtype, count: 77, on_devices: dtype == DType::U8 };
                assert_eq!(Call::decode(&call.encode(), 3), Some(call));
            }
        }
    }

    #[test]
    fn impossible_calls_are_rejected() {
        let operation = Operation::Send { to: 2 };
        let valid = Call { operation, dtype: DType::F32, count: 5, on_devices: false };
        let with = |index: usize, byte: u8| {
            let mut bytes = valid.encode();
            bytes[index] = byte;
            Call::decode(&bytes, 3)
        };
        assert_eq!(with(0, 7), Some(valid));
        assert_eq!(with(0, 9), None, "operation");
        assert_eq!(with(1, 5), None, "reduction");
        assert_eq!(with(2, 12), None, "element type");
        assert_eq!(with(2, 1), None, "i8");
        assert_eq!(with(3, 2), None, "flag");
        assert_eq!(with(4, 3), None, "rank");
        assert_eq!(with(15, 0x80), None, "length");
    }

    #[test]
    fn roots_alone_contribute_or_receive() {
        let bytes = |operation, rank| {
            let call = Call { operation, dtype: DType::F64, count: 5, on_devices: false };
            let seat = Seat { rank, world: 3 };
            (call.contributed(seat), call.received(seat))
        };
        let broadcast = Operation::Broadcast { root: 1 };
        assert_eq!(bytes(broadcast, 1), (Some(40), Some(40)));
        assert_eq!(bytes(broadcast, 2), (Some(0), Some(40)));
        let reduce = Operation::Reduce { op: ReduceOp::Sum, root: 1 };
        assert_eq!(bytes(reduce, 1), (Some(40), Some(40)));
        assert_eq!(bytes(reduce, 0), (Some(40), Some(0)));
        assert_eq!(bytes(Operation::AllGather, 0), (Some(40), Some(120)));
        assert_eq!(bytes(Operation::ReduceScatter(ReduceOp::Max), 0), (Some(120), Some(40)));
        assert_eq!(bytes(Operation::AllToAll, 0), (Some(120), Some(120)));
        assert_eq!(bytes(Operation::Recv { from: 1 }, 0), (Some(0), Some(40)));
        let announced =
            Call { operation: broadcast, dtype: DType::F64, count: 5, on_devices: true };
        let seat = Seat { rank: 1, world: 3 };
        assert_eq!((announced.contributed(seat), announced.received(seat)), (Some(0), Some(0)));
    }

    #[test]
    fn calls_are_described() {
        let text = |operation| {
            Call { operation, dtype: DType::F32, count: 8, on_devices: false }.to_string()
        };
        assert_eq!(text(Operation::AllReduce(ReduceOp::Sum)), "all_reduce(sum) of 8 f32");
        assert_eq!(text(Operation::Broadcast { root: 1 }), "broadcast(root 1) of 8 f32");
        assert_eq!(text(Operation::Send { to: 2 }), "send to rank 2 of 8 f32");
        assert_eq!(text(Operation::Barrier), "barrier");
    }
}
