//! The results of a collective whose ranks have all contributed.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::arithmetic::reduce;
use crate::core::collective::{Call, Operation};

/// The bytes that one rank receives; ranks share what is the same for them.
#[derive(Debug, Clone)]
pub(super) struct Received {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Received {
    /// All of `bytes`.
    pub(super) fn all(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { bytes: Arc::new(bytes), range }
    }

    /// Nothing.
    pub(super) fn nothing() -> Self {
        Self::all(Vec::new())
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self { bytes: self.bytes.clone(), range }
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Returns what each rank receives. `contributions` are in order of rank, each as long as the call
/// says; they are dropped.
pub(super) fn results(call: &Call, mut contributions: Vec<Vec<u8>>) -> Vec<Received> {
    let world = contributions.len();
    if call.on_devices {
        return vec![Received::nothing(); world];
    }
    let part = call.part();
    let of_rank = |rank: usize| rank * part..(rank + 1) * part;
    match call.operation {
        Operation::AllReduce(op) => {
            vec![Received::all(reduce(op, call.dtype, &contributions)); world]
        }
        Operation::Broadcast { root } => {
            vec![Received::all(contributions.swap_remove(root)); world]
        }
        Operation::Reduce { op, root } => {
            let mut results = vec![Received::nothing(); world];
            results[root] = Received::all(reduce(op, call.dtype, &contributions));
            results
        }
        Operation::AllGather => vec![Received::all(contributions.concat()); world],
        Operation::ReduceScatter(op) => {
            let all = Received::all(reduce(op, call.dtype, &contributions));
            (0..world).map(|rank| all.part(of_rank(rank))).collect()
        }
        Operation::AllToAll => {
            let for_rank = |rank| {
                let parts: Vec<&[u8]> =
                    contributions.iter().map(|sent| &sent[of_rank(rank)]).collect();
                Received::all(parts.concat())
            };
            (0..world).map(for_rank).collect()
        }
        Operation::Barrier | Operation::Send { .. } | Operation::Recv { .. } => {
            vec![Received::nothing(); world]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::dtype::DType;
    use crate::api::reduce_op::ReduceOp;

    /// Two elements for each of three ranks; rank `r` sends `10 r`, `10 r + 1` and so on.
    fn received(operation: Operation, count: usize) -> Vec<Vec<u8>> {
        let sent = |rank: u8| (0..6).map(|index| 10 * rank + index).take(count).collect();
        let contributions = (0..3).map(sent).collect();
        let call = Call { operation, dtype: DType::U8, count: 2, on_devices: false };
        results(&call, contributions).iter().map(|it| it.to_vec()).collect()
    }

    #[test]
    fn each_operation_distributes_its_result() {
        let sum = Operation::AllReduce(ReduceOp::Sum);
        assert_eq!(received(sum, 2), vec![vec![30, 33]; 3]);
        assert_eq!(received(Operation::Broadcast { root: 2 }, 2), vec![vec![20, 21]; 3]);
        let reduce = Operation::Reduce { op: ReduceOp::Max, root: 1 };
        assert_eq!(received(reduce, 2), [vec![], vec![20, 21], vec![]]);
        assert_eq!(received(Operation::AllGather, 2), vec![vec![0, 1, 10, 11, 20, 21]; 3]);
        let scatter = Operation::ReduceScatter(ReduceOp::Min);
        assert_eq!(received(scatter, 6), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(
            received(Operation::AllToAll, 6),
            [[0, 1, 10, 11, 20, 21], [2, 3, 12, 13, 22, 23], [4, 5, 14, 15, 24, 25]]
        );
    }
}
