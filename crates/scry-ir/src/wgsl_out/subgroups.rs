//! Subgroup operations.

use super::Emitter;
use super::fields::COMPONENTS;
use super::integers16;
use crate::kir::{GroupOperation, Reduction, ShuffleSource, SubgroupOp, Type, Value};

impl Emitter<'_> {
    pub(super) fn subgroup(&mut self, op: SubgroupOp) -> String {
        match op {
            SubgroupOp::Ballot { value, word } => {
                let component = COMPONENTS[usize::from(word) % 4];
                format!("subgroupBallot({}).{component}", self.operand(value))
            }
            SubgroupOp::Reduce { op, group, value } => {
                let function = reduction(op, group, self.kir.ty(value) == Type::Bool);
                let full = format!("{function}({})", self.operand(value));
                let ty = self.kir.ty(value);
                match integers16::is_16_bit(ty) && integers16::may_overflow_in_subgroup(op) {
                    true => integers16::wrapped(ty, &full),
                    false => full,
                }
            }
            SubgroupOp::Shuffle { source, value } => self.shuffle(source, value),
        }
    }

    fn shuffle(&mut self, source: ShuffleSource, value: Value) -> String {
        // bools are exchanged as `u32`.
        let is_bool = self.kir.ty(value) == Type::Bool;
        let operand = self.operand(value);
        let x = if is_bool { format!("u32({operand})") } else { operand };
        let call = match source {
            ShuffleSource::First => format!("subgroupBroadcastFirst({x})"),
            ShuffleSource::Lane(lane) => format!("subgroupShuffle({x}, {})", self.amount(lane)),
            ShuffleSource::Xor(mask) => format!("subgroupShuffleXor({x}, {})", self.amount(mask)),
            ShuffleSource::Up(by) => format!("subgroupShuffleUp({x}, {})", self.amount(by)),
            ShuffleSource::Down(by) => format!("subgroupShuffleDown({x}, {})", self.amount(by)),
            ShuffleSource::QuadLane(lane) => self.quad_broadcast(&x, lane),
            ShuffleSource::QuadXor(1) => format!("quadSwapX({x})"),
            ShuffleSource::QuadXor(2) => format!("quadSwapY({x})"),
            ShuffleSource::QuadXor(_) => format!("quadSwapDiagonal({x})"),
        };
        if is_bool { format!("bool({call})") } else { call }
    }

    /// Returns the operand for a lane, mask or delta. A constant above 127, an error in WGSL,
    /// becomes a `let`.
    fn amount(&mut self, value: Value) -> String {
        let operand = self.operand(value);
        match self.kir.constant(value) {
            Some(constant) if constant.bits > 127 => self.temporary(&operand),
            _ => operand,
        }
    }

    /// Returns a broadcast within quads: a shuffle if the lane is not a constant, as
    /// `quadBroadcast` requires one.
    fn quad_broadcast(&mut self, x: &str, lane: Value) -> String {
        let operand = self.operand(lane);
        if self.kir.constant(lane).is_some_and(|lane| lane.bits < 4) {
            return format!("quadBroadcast({x}, {operand})");
        }
        let own_lane = self.builtin(crate::kir::Builtin::SubgroupLane);
        let lane = self.temporary(&format!("({own_lane} & ~3u) + {operand}"));
        format!("subgroupShuffle({x}, {lane})")
    }
}

fn reduction(op: Reduction, group: GroupOperation, bools: bool) -> &'static str {
    match (op, group) {
        (Reduction::Add, GroupOperation::Reduce) => "subgroupAdd",
        (Reduction::Add, GroupOperation::InclusiveScan) => "subgroupInclusiveAdd",
        (Reduction::Add, GroupOperation::ExclusiveScan) => "subgroupExclusiveAdd",
        (Reduction::Mul, GroupOperation::Reduce) => "subgroupMul",
        (Reduction::Mul, GroupOperation::InclusiveScan) => "subgroupInclusiveMul",
        (Reduction::Mul, GroupOperation::ExclusiveScan) => "subgroupExclusiveMul",
        (Reduction::Min, _) => "subgroupMin",
        (Reduction::Max, _) => "subgroupMax",
        (Reduction::And, _) if bools => "subgroupAll",
        (Reduction::Or, _) if bools => "subgroupAny",
        (Reduction::And, _) => "subgroupAnd",
        (Reduction::Or, _) => "subgroupOr",
        (Reduction::Xor, _) => "subgroupXor",
    }
}
