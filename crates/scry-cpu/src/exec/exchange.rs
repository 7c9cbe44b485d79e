//! Ballots, reductions and shuffles between the invocations of a subgroup.

use scry_ir::kir::{BinaryOp, GroupOperation, Reduction, Type};

use super::frame::Frame;
use crate::SUBGROUP_SIZE;
use crate::code::SubgroupExchange;
use crate::lanes::{BLOCK, Bits, LaneOp, Src};
use crate::ops;

/// Lanes of a subgroup.
pub(super) const SIZE: usize = SUBGROUP_SIZE as usize;

/// The lanes of a subgroup: their positions, their values, and whether they are active.
pub(super) struct Members {
    first: usize,
    pub(super) values: [u64; SIZE],
    active: [bool; SIZE],
}

impl Frame<'_> {
    pub(super) fn exchange(&self, ty: Type, exchange: SubgroupExchange, d: u32, value: Src) {
        self.for_each_subgroup(&mut |first, end| {
            let members = self.members(ty, value, first, end);
            match exchange {
                SubgroupExchange::Ballot { word } => self.ballot(&members, word, d),
                SubgroupExchange::Reduce { op, group } => self.reduce(ty, &members, op, group, d),
                _ => self.shuffle(ty, &members, exchange, d),
            }
        });
    }

    /// Calls `visit` for each subgroup of the workgroups that have active lanes, with its first
    /// lane and with the end of the lanes of its workgroup.
    pub(super) fn for_each_subgroup(&self, visit: &mut dyn FnMut(usize, usize)) {
        let workgroup = self.code.lane_layout.invocations();
        let lanes = self.lanes.first * BLOCK..self.lanes.end * BLOCK;
        let workgroups = lanes.start / workgroup..lanes.end.div_ceil(workgroup);
        for workgroup_start in workgroups.map(|number| number * workgroup) {
            let mut first = workgroup_start;
            let end = (workgroup_start + workgroup).min(self.code.lane_layout.lanes());
            while first < end {
                visit(first, end);
                first += SIZE;
            }
        }
    }

    /// Returns the lanes of the subgroup at `first`, up to `end`.
    pub(super) fn members(&self, ty: Type, value: Src, first: usize, end: usize) -> Members {
        let mask = u8::file(self.files());
        let mut members = Members { first, values: [0; SIZE], active: [false; SIZE] };
        for (number, lane) in (first..end).take(SIZE).enumerate() {
            let (block, within) = (lane / BLOCK, lane % BLOCK);
            members.active[number] = mask[self.lanes.mask as usize + block].get()[within] != 0;
            // Inactive lanes may hold values of an earlier kernel, which must not be visible.
            if members.active[number] {
                members.values[number] = self.files().lane(ty.size(), value.at(block), within);
            }
        }
        members
    }

    /// Writes the result of one lane of a subgroup, if it is active.
    pub(super) fn write_result(
        &self,
        ty: Type,
        members: &Members,
        d: u32,
        number: usize,
        value: u64,
    ) {
        if members.active[number] {
            let lane = members.first + number;
            self.files().set_lane(ty.size(), d as usize + lane / BLOCK, lane % BLOCK, value);
        }
    }

    fn ballot(&self, members: &Members, word: u8, d: u32) {
        // A subgroup has 32 lanes, so that the other words of the ballot are 0.
        let votes = (0..SIZE).filter(|lane| members.active[*lane] && members.values[*lane] != 0);
        let set = votes.fold(0u32, |set, lane| set | 1 << lane);
        for number in 0..SIZE {
            self.write_result(
                Type::U32,
                members,
                d,
                number,
                if word == 0 { set.into() } else { 0 },
            );
        }
    }

    fn reduce(&self, ty: Type, members: &Members, op: Reduction, group: GroupOperation, d: u32) {
        let Some(combine) = combine_op(op, ty) else { return };
        let mut accumulator = identity(op, ty);
        let mut results = [0; SIZE];
        for number in (0..SIZE).filter(|number| members.active[*number]) {
            let before = accumulator;
            accumulator = combine.scalar(self.isa, [accumulator, members.values[number], 0]);
            results[number] =
                if group == GroupOperation::ExclusiveScan { before } else { accumulator };
        }
        for (number, result) in results.into_iter().enumerate() {
            let result = if group == GroupOperation::Reduce { accumulator } else { result };
            self.write_result(ty, members, d, number, result);
        }
    }

    fn shuffle(&self, ty: Type, members: &Members, exchange: SubgroupExchange, d: u32) {
        let first = members.active.iter().position(|active| *active).unwrap_or(0);
        for number in 0..SIZE {
            let operand = |source: Src| self.lane_u32(source, members.first + number) as usize;
            let from = match exchange {
                SubgroupExchange::Lane(lane) => operand(lane),
                SubgroupExchange::Xor(mask) => number ^ operand(mask),
                SubgroupExchange::Up(delta) => number.wrapping_sub(operand(delta)),
                SubgroupExchange::Down(delta) => number.wrapping_add(operand(delta)),
                SubgroupExchange::QuadLane(lane) => (number & !3) | (operand(lane) & 3),
                SubgroupExchange::QuadXor(mask) => number ^ usize::from(mask),
                SubgroupExchange::First
                | SubgroupExchange::Ballot { .. }
                | SubgroupExchange::Reduce { .. } => first,
            };
            self.write_result(ty, members, d, number, members.values[from % SIZE]);
        }
    }

    /// Returns the `u32` operand of a lane; an arbitrary number for lanes beyond the last, which
    /// are never active.
    fn lane_u32(&self, source: Src, lane: usize) -> u32 {
        let block = u32::file(self.files()).get(source.at(lane / BLOCK));
        block.map_or(0, |block| block.get()[lane % BLOCK])
    }
}

/// Returns the operation that combines two values of a reduction.
fn combine_op(op: Reduction, ty: Type) -> Option<&'static dyn LaneOp> {
    let op = match op {
        Reduction::Add => BinaryOp::Add,
        Reduction::Mul => BinaryOp::Mul,
        Reduction::Min => BinaryOp::Min,
        Reduction::Max => BinaryOp::Max,
        Reduction::And => BinaryOp::And,
        Reduction::Or => BinaryOp::Or,
        Reduction::Xor => BinaryOp::Xor,
    };
    ops::scalar_binary(op, ty)
}

/// Returns the identity of a reduction.
fn identity(op: Reduction, ty: Type) -> u64 {
    let ones = u64::MAX >> (64 - ty.bits());
    let (infinity, sign) = match ty {
        Type::F16 => (0x7c00, 0x8000),
        Type::F32 => (u64::from(f32::INFINITY.to_bits()), 1 << 31),
        _ => (f64::INFINITY.to_bits(), 1 << 63),
    };
    let one = match ty {
        Type::F16 => 0x3c00,
        Type::F32 => u64::from(1f32.to_bits()),
        Type::F64 => 1f64.to_bits(),
        _ => 1,
    };
    match op {
        Reduction::Add | Reduction::Or | Reduction::Xor => 0,
        Reduction::Mul => one,
        Reduction::And => ones,
        Reduction::Min if ty.is_float() => infinity,
        Reduction::Max if ty.is_float() => infinity | sign,
        // The maximum and the minimum of a signed integer.
        Reduction::Min if ty.is_signed() => ones >> 1,
        Reduction::Max if ty.is_signed() => ones ^ (ones >> 1),
        Reduction::Min => ones,
        Reduction::Max => 0,
    }
}
