//! Subgroup operations.

use spirv::{Capability, Op, Scope};

use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::kir::{GroupOperation, Reduction, ShuffleSource, SubgroupOp, Type, Value};

impl Emitter<'_> {
    /// Emits a subgroup operation.
    pub(super) fn subgroup(&mut self, ty: Type, op: &SubgroupOp) -> Result<Id> {
        self.m.require(Capability::GroupNonUniform);
        match *op {
            SubgroupOp::Ballot { value, word } => Ok(self.ballot(value, word.into())),
            SubgroupOp::Reduce { op, group, value } => self.reduction(op, group, value),
            SubgroupOp::Shuffle { source, value } => Ok(self.shuffle(ty, source, value)),
        }
    }

    /// Broadcasts a word of the first active invocation of the subgroup.
    pub(super) fn of_first_lane(&mut self, word: Id) -> Id {
        self.m.require(Capability::GroupNonUniform);
        self.m.require(Capability::GroupNonUniformBallot);
        let scope = self.subgroup_scope();
        self.op(Op::GroupNonUniformBroadcastFirst, Type::U32, &[scope, word])
    }

    fn subgroup_scope(&mut self) -> Id {
        self.m.u32(Scope::Subgroup as u32)
    }

    fn ballot(&mut self, value: Value, word: u32) -> Id {
        self.m.require(Capability::GroupNonUniformBallot);
        let (scope, value) = (self.subgroup_scope(), self.value(value));
        let u32 = self.m.u32_ty();
        let vector = self.m.vector(u32, 4);
        let ballot = self.m.op(Op::GroupNonUniformBallot, vector, &[scope, value]);
        self.m.op(Op::CompositeExtract, u32, &[ballot, word])
    }

    fn reduction(&mut self, op: Reduction, group: GroupOperation, value: Value) -> Result<Id> {
        let ty = self.ty(value);
        let id = self.value(value);
        if ty == Type::Bool {
            return self.reduction_of_bools(op, group, id);
        }
        self.arithmetic_reduction(op, group, ty, id)
    }

    /// Emits a reduction of bools: a vote, or a reduction of them as the words 0 and 1.
    fn reduction_of_bools(&mut self, op: Reduction, group: GroupOperation, id: Id) -> Result<Id> {
        let vote = match (op, group) {
            (Reduction::And, GroupOperation::Reduce) => Op::GroupNonUniformAll,
            (Reduction::Or, GroupOperation::Reduce) => Op::GroupNonUniformAny,
            _ => {
                let [one, zero] = [1, 0].map(|word| self.m.u32(word));
                let word = self.op(Op::Select, Type::U32, &[id, one, zero]);
                let result = self.arithmetic_reduction(op, group, Type::U32, word)?;
                return Ok(self.op(Op::INotEqual, Type::Bool, &[result, zero]));
            }
        };
        self.m.require(Capability::GroupNonUniformVote);
        let scope = self.subgroup_scope();
        Ok(self.op(vote, Type::Bool, &[scope, id]))
    }

    fn arithmetic_reduction(
        &mut self,
        op: Reduction,
        group: GroupOperation,
        ty: Type,
        id: Id,
    ) -> Result<Id> {
        let Some(code) = opcode(op, ty) else { return not_covered(op, ty) };
        self.m.require(Capability::GroupNonUniformArithmetic);
        let scope = self.subgroup_scope();
        let group = match group {
            GroupOperation::Reduce => spirv::GroupOperation::Reduce,
            GroupOperation::InclusiveScan => spirv::GroupOperation::InclusiveScan,
            GroupOperation::ExclusiveScan => spirv::GroupOperation::ExclusiveScan,
        };
        Ok(self.op(code, ty, &[scope, group as u32, id]))
    }

    fn shuffle(&mut self, ty: Type, source: ShuffleSource, value: Value) -> Id {
        let (scope, id) = (self.subgroup_scope(), self.value(value));
        let (code, capability, by) = match source {
            ShuffleSource::First => {
                (Op::GroupNonUniformBroadcastFirst, Capability::GroupNonUniformBallot, None)
            }
            ShuffleSource::Lane(by) => {
                (Op::GroupNonUniformShuffle, Capability::GroupNonUniformShuffle, Some(by))
            }
            ShuffleSource::Xor(by) => {
                (Op::GroupNonUniformShuffleXor, Capability::GroupNonUniformShuffle, Some(by))
            }
            ShuffleSource::Up(by) => {
                (Op::GroupNonUniformShuffleUp, Capability::GroupNonUniformShuffleRelative, Some(by))
            }
            ShuffleSource::Down(by) => (
                Op::GroupNonUniformShuffleDown,
                Capability::GroupNonUniformShuffleRelative,
                Some(by),
            ),
            ShuffleSource::QuadLane(by) => {
                (Op::GroupNonUniformQuadBroadcast, Capability::GroupNonUniformQuad, Some(by))
            }
            ShuffleSource::QuadXor(by) => {
                self.m.require(Capability::GroupNonUniformQuad);
                let direction = self.m.u32(u32::from(by) - 1);
                return self.op(Op::GroupNonUniformQuadSwap, ty, &[scope, id, direction]);
            }
        };
        self.m.require(capability);
        let mut operands = vec![scope, id];
        operands.extend(by.map(|by| self.value(by)));
        self.op(code, ty, &operands)
    }
}

fn opcode(op: Reduction, ty: Type) -> Option<Op> {
    let [float, signed, unsigned] = match op {
        Reduction::Add => {
            [Op::GroupNonUniformFAdd, Op::GroupNonUniformIAdd, Op::GroupNonUniformIAdd]
        }
        Reduction::Mul => {
            [Op::GroupNonUniformFMul, Op::GroupNonUniformIMul, Op::GroupNonUniformIMul]
        }
        Reduction::Min => {
            [Op::GroupNonUniformFMin, Op::GroupNonUniformSMin, Op::GroupNonUniformUMin]
        }
        Reduction::Max => {
            [Op::GroupNonUniformFMax, Op::GroupNonUniformSMax, Op::GroupNonUniformUMax]
        }
        Reduction::And if ty.is_integer() => return Some(Op::GroupNonUniformBitwiseAnd),
        Reduction::Or if ty.is_integer() => return Some(Op::GroupNonUniformBitwiseOr),
        Reduction::Xor if ty.is_integer() => return Some(Op::GroupNonUniformBitwiseXor),
        _ => return None,
    };
    match ty {
        _ if ty.is_float() => Some(float),
        _ if ty.is_signed() => Some(signed),
        _ => Some(unsigned),
    }
}
