//! Functions over the active invocations of a subgroup.

use super::workgroup::Workgroup;
use super::{InterpretError, scalar};
use crate::kir::{BinaryOp, Const, Extent, Reduction, ShuffleSource, SubgroupOp, Type, Value};

impl Workgroup<'_, '_> {
    /// Returns the active invocations of the same subgroup, in order.
    fn peers(&self, lane: u32, active: &[u32]) -> Vec<u32> {
        let own = self.subgroup_of(lane);
        active.iter().copied().filter(|other| self.subgroup_of(*other) == own).collect()
    }

    fn lane_in_subgroup(&self, lane: u32) -> u32 {
        lane % self.interpreter.subgroup_size
    }

    pub(super) fn exchange(
        &self,
        lane: u32,
        op: SubgroupOp,
        active: &[u32],
    ) -> Result<Const, InterpretError> {
        let peers = self.peers(lane, active);
        match op {
            SubgroupOp::Ballot { value, word } => self.ballot(&peers, value, word),
            SubgroupOp::Reduce { op, extent, value } => {
                let counted = |other: &u32| match extent {
                    Extent::All => true,
                    Extent::Inclusive => *other <= lane,
                    Extent::Exclusive => *other < lane,
                };
                let peers: Vec<_> = peers.into_iter().filter(counted).collect();
                self.reduce(&peers, op, value)
            }
            SubgroupOp::Shuffle { source, value } => {
                let wanted = self.source(lane, source, &peers)?;
                let found = peers.iter().find(|other| self.lane_in_subgroup(**other) == wanted);
                self.get(found.copied().unwrap_or(lane), value)
            }
        }
    }

    fn ballot(&self, peers: &[u32], value: Value, word: u8) -> Result<Const, InterpretError> {
        let mut set = 0;
        for peer in peers {
            let at = self.lane_in_subgroup(*peer);
            if at / 32 == u32::from(word) && self.get(*peer, value)?.bits != 0 {
                set |= 1 << (at % 32);
            }
        }
        Ok(Const::u32(set))
    }

    fn reduce(&self, peers: &[u32], op: Reduction, value: Value) -> Result<Const, InterpretError> {
        let mut result = identity(op, self.kir.ty(value));
        for (nth, peer) in peers.iter().enumerate() {
            let own = self.get(*peer, value)?;
            result = if nth == 0 { own } else { scalar::binary(operation(op), result, own) };
        }
        // A reduction of a single value also canonicalises NaN.
        let float = result.ty.is_float();
        Ok(if float { scalar::float(result.ty, scalar::real(result)) } else { result })
    }

    /// Returns the lane that a shuffle reads.
    fn source(
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

    /// Returns the `nth` result of a matrix product for an invocation.
    pub(super) fn multiply_add(
        &self,
        lane: u32,
        nth: usize,
        [a, b, c]: [&[Value]; 3],
        active: &[u32],
    ) -> Result<Const, InterpretError> {
        let own = self.get(lane, c[nth])?;
        let peers = self.peers(lane, active);
        let held = |at: u32, value: Value| {
            let holder = peers.iter().find(|peer| self.lane_in_subgroup(**peer) == at);
            holder.map_or(Ok(0.0), |holder| self.get(*holder, value).map(scalar::real))
        };
        let at = self.lane_in_subgroup(lane);
        let (row, column) = (at / 4, at % 4 * 2 + nth as u32 % 2);
        let mut sum = scalar::real(own);
        for k in 0..8u32 {
            let left = held(row * 4 + k / 2, a[nth / 2 * 2 + k as usize % 2])?;
            let right = held(column * 4 + k / 2, b[k as usize % 2])?;
            sum += left * right;
        }
        Ok(scalar::float(own.ty, sum))
    }
}

fn operation(op: Reduction) -> BinaryOp {
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
