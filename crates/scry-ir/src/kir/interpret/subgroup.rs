//! Operations on the active invocations of a subgroup.

use super::workgroup::Workgroup;
use super::{InterpretError, scalar};
use crate::kir::{
    BinaryOp, Const, GroupOperation, Reduction, ShuffleSource, SubgroupOp, Type, Value,
};

impl Workgroup<'_, '_> {
    /// Returns the active invocations of the same subgroup, in order.
    fn peers(&self, lane: u32, active: &[u32]) -> Vec<u32> {
        let own = self.subgroup_of(lane);
        active.iter().copied().filter(|other| self.subgroup_of(*other) == own).collect()
    }

    pub(super) fn lane_in_subgroup(&self, lane: u32) -> u32 {
        lane % self.interpreter.subgroup_size
    }

    /// Returns the result of a subgroup operation for an invocation.
    pub(super) fn subgroup_op(
        &self,
        lane: u32,
        op: SubgroupOp,
        active: &[u32],
    ) -> Result<Const, InterpretError> {
        let peers = self.peers(lane, active);
        match op {
            SubgroupOp::Ballot { value, word } => self.ballot(&peers, value, word),
            SubgroupOp::Reduce { op, group, value } => {
                let is_included = |other: &u32| match group {
                    GroupOperation::Reduce => true,
                    GroupOperation::InclusiveScan => *other <= lane,
                    GroupOperation::ExclusiveScan => *other < lane,
                };
                let peers: Vec<_> = peers.into_iter().filter(is_included).collect();
                self.reduce(&peers, op, value)
            }
            SubgroupOp::Shuffle { source, value } => {
                let source = self.source_lane(lane, source, &peers)?;
                let peer = peers.iter().find(|other| self.lane_in_subgroup(**other) == source);
                self.get(peer.copied().unwrap_or(lane), value)
            }
        }
    }

    fn ballot(&self, peers: &[u32], value: Value, word: u8) -> Result<Const, InterpretError> {
        let mut mask = 0;
        for peer in peers {
            let bit = self.lane_in_subgroup(*peer);
            if bit / 32 == u32::from(word) && self.get(*peer, value)?.bits != 0 {
                mask |= 1 << (bit % 32);
            }
        }
        Ok(Const::u32(mask))
    }

    fn reduce(&self, peers: &[u32], op: Reduction, value: Value) -> Result<Const, InterpretError> {
        let mut result = identity(op, self.kir.ty(value));
        for (nth, peer) in peers.iter().enumerate() {
            let own = self.get(*peer, value)?;
            result = if nth == 0 { own } else { scalar::binary(binary_op(op), result, own) };
        }
        // A reduction of a single value also canonicalises NaN.
        let is_float = result.ty.is_float();
        Ok(if is_float { scalar::float(result.ty, scalar::real(result)) } else { result })
    }

    /// Returns the lane, in its subgroup, that a shuffle reads.
    fn source_lane(
        &self,
        lane: u32,
        source: ShuffleSource,
        peers: &[u32],
    ) -> Result<u32, InterpretError> {
        let own = self.lane_in_subgroup(lane);
        let get = |value| Ok(self.get(lane, value)?.bits as u32);
        Ok(match source {
            ShuffleSource::First => self.lane_in_subgroup(peers[0]),
            ShuffleSource::Lane(value) => get(value)?,
            ShuffleSource::Xor(value) => own ^ get(value)?,
            ShuffleSource::Up(value) => own.wrapping_sub(get(value)?),
            ShuffleSource::Down(value) => own.wrapping_add(get(value)?),
            ShuffleSource::QuadLane(value) => (own & !3).saturating_add(get(value)?),
            ShuffleSource::QuadXor(mask) => own ^ u32::from(mask),
        })
    }

    /// Returns result `nth` of [`Inst::MultiplyFragments`](crate::kir::Inst::MultiplyFragments) for
    /// an invocation.
    pub(super) fn multiply_fragments(
        &self,
        lane: u32,
        nth: usize,
        [a, b, c]: [&[Value]; 3],
        active: &[u32],
    ) -> Result<Const, InterpretError> {
        let own = self.get(lane, c[nth])?;
        let peers = self.peers(lane, active);
        // The value of a lane; zero if the lane is inactive or missing.
        let element = |lane: u32, value: Value| {
            let peer = peers.iter().find(|peer| self.lane_in_subgroup(**peer) == lane);
            peer.map_or(Ok(0.0), |peer| self.get(*peer, value).map(scalar::real))
        };
        let lane = self.lane_in_subgroup(lane);
        // Results 2 and 3 are 8 rows below.
        let (row, column) = (lane / 4, lane % 4 * 2 + nth as u32 % 2);
        let mut accumulator = scalar::real(own);
        for k in 0..8u32 {
            let left = element(row * 4 + k / 2, a[nth / 2 * 2 + k as usize % 2])?;
            let right = element(column * 4 + k / 2, b[k as usize % 2])?;
            accumulator += left * right;
        }
        Ok(scalar::float(own.ty, accumulator))
    }
}

fn binary_op(op: Reduction) -> BinaryOp {
    match op {
        Reduction::Add => BinaryOp::Add,
        Reduction::Mul => BinaryOp::Mul,
        Reduction::Min => BinaryOp::Min,
        Reduction::Max => BinaryOp::Max,
        Reduction::And => BinaryOp::And,
        Reduction::Or => BinaryOp::Or,
        Reduction::Xor => BinaryOp::Xor,
    }
}

/// Returns the identity of a reduction.
fn identity(op: Reduction, ty: Type) -> Const {
    let ones = u64::MAX >> (64 - ty.bits());
    let sign = 1 << (ty.bits() - 1);
    let bits = match op {
        Reduction::Add | Reduction::Or | Reduction::Xor => 0,
        Reduction::And => ones,
        Reduction::Mul if ty.is_float() => return scalar::float(ty, 1.0),
        Reduction::Mul => 1,
        Reduction::Min if ty.is_float() => return scalar::float(ty, f64::INFINITY),
        Reduction::Max if ty.is_float() => return scalar::float(ty, f64::NEG_INFINITY),
        Reduction::Min if ty.is_signed() => ones ^ sign,
        Reduction::Min => ones,
        Reduction::Max if ty.is_signed() => sign,
        Reduction::Max => 0,
    };
    Const { ty, bits }
}
