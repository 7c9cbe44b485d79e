//! Subgroup operations.

use naga::{CollectiveOperation, Direction, GatherMode, SubgroupOperation};

use super::Lower;
use super::frame::{Expr, Operand};
use crate::ShaderError;
use crate::kir::{Const, GroupOperation, Reduction, ShuffleSource, SubgroupOp};

impl Lower<'_> {
    /// Lowers a ballot: four words with one bit per lane, which is set if its condition is true.
    pub(super) fn lower_ballot(
        &mut self,
        predicate: Option<Expr>,
        result: Expr,
    ) -> Result<(), ShaderError> {
        let value = match predicate {
            Some(predicate) => self.scalar(predicate)?,
            None => self.constant(Const::bool(true)),
        };
        let words = (0..4).map(|word| self.builder.subgroup(SubgroupOp::Ballot { value, word }));
        let words = words.collect();
        self.define(result, Operand::Values(words));
        Ok(())
    }

    /// Lowers a shuffle or broadcast.
    pub(super) fn lower_shuffle(
        &mut self,
        mode: GatherMode,
        argument: Expr,
        result: Expr,
    ) -> Result<(), ShaderError> {
        let source = self.shuffle_source(mode)?;
        self.apply_to_components(argument, result, &|value| SubgroupOp::Shuffle { source, value })
    }

    fn shuffle_source(&mut self, mode: GatherMode) -> Result<ShuffleSource, ShaderError> {
        Ok(match mode {
            GatherMode::BroadcastFirst => ShuffleSource::First,
            GatherMode::Broadcast(lane) | GatherMode::Shuffle(lane) => {
                ShuffleSource::Lane(self.index(lane)?)
            }
            GatherMode::ShuffleDown(delta) => ShuffleSource::Down(self.index(delta)?),
            GatherMode::ShuffleUp(delta) => ShuffleSource::Up(self.index(delta)?),
            GatherMode::ShuffleXor(mask) => ShuffleSource::Xor(self.index(mask)?),
            GatherMode::QuadBroadcast(lane) => ShuffleSource::QuadLane(self.index(lane)?),
            GatherMode::QuadSwap(Direction::X) => ShuffleSource::QuadXor(1),
            GatherMode::QuadSwap(Direction::Y) => ShuffleSource::QuadXor(2),
            GatherMode::QuadSwap(Direction::Diagonal) => ShuffleSource::QuadXor(3),
        })
    }

    /// Lowers a reduction or a scan.
    pub(super) fn lower_reduction(
        &mut self,
        op: SubgroupOperation,
        collective: CollectiveOperation,
        argument: Expr,
        result: Expr,
    ) -> Result<(), ShaderError> {
        let op = reduction(op);
        let group = match collective {
            CollectiveOperation::Reduce => GroupOperation::Reduce,
            CollectiveOperation::InclusiveScan => GroupOperation::InclusiveScan,
            CollectiveOperation::ExclusiveScan => GroupOperation::ExclusiveScan,
        };
        self.apply_to_components(argument, result, &|value| SubgroupOp::Reduce { op, group, value })
    }

    /// Applies an operation to each component.
    fn apply_to_components(
        &mut self,
        argument: Expr,
        result: Expr,
        op: &dyn Fn(crate::kir::Value) -> SubgroupOp,
    ) -> Result<(), ShaderError> {
        let values = self.values(argument)?;
        let values = values.iter().map(|value| self.builder.subgroup(op(*value))).collect();
        self.define(result, Operand::Values(values));
        Ok(())
    }
}

fn reduction(op: SubgroupOperation) -> Reduction {
    match op {
        SubgroupOperation::Add => Reduction::Add,
        SubgroupOperation::Mul => Reduction::Mul,
        SubgroupOperation::Min => Reduction::Min,
        SubgroupOperation::Max => Reduction::Max,
        SubgroupOperation::All | SubgroupOperation::And => Reduction::And,
        SubgroupOperation::Any | SubgroupOperation::Or => Reduction::Or,
        SubgroupOperation::Xor => Reduction::Xor,
    }
}
