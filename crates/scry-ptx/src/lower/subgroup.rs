//! Subgroup operations; a subgroup is a warp.
//!
//! In control flow that is uniform over the block they use the full lane mask; reductions and
//! matrix products use that of the lanes that exist. Elsewhere they first query the active lanes,
//! and each `.sync` instruction uses that mask. All active lanes have the same mask, so branches on
//! it keep them converged.

use scry_ir::kir::{ShuffleSource, SubgroupOp, Type, Value};

use super::{Lowering, ptx_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// All lanes of a warp.
pub(super) const FULL_MASK: Operand = Operand::u32(u32::MAX);

/// The source lane of a shuffle, as operands of `shfl.sync`.
#[derive(Clone, Copy)]
pub(super) struct Route {
    mode: &'static str,
    /// The source lane, offset or XOR mask.
    by: Operand,
    /// The clamp value in bits 0 to 4, and the segment mask in bits 8 to 12.
    clamp: u32,
}

impl Route {
    /// Reads the lane with an index.
    pub(super) const fn lane(lane: Operand) -> Self {
        Self { mode: "idx", by: lane, clamp: 31 }
    }

    /// Reads the lane whose index is that of this lane XOR a mask.
    pub(super) const fn xor(by: Operand) -> Self {
        Self { mode: "bfly", by, clamp: 31 }
    }

    /// Reads a lane of this lane's quad (group of four), by its index in the quad.
    pub(super) const fn quad(lane: Operand) -> Self {
        // The segment mask keeps the bits of the lane index that identify the quad.
        Self { mode: "idx", by: lane, clamp: 0b11100 << 8 | 31 }
    }

    /// Reads the lane at a negative offset.
    pub(super) const fn up(by: Operand) -> Self {
        Self { mode: "up", by, clamp: 0 }
    }
}

impl Lowering<'_> {
    /// Lowers a subgroup operation.
    pub(super) fn subgroup(&mut self, value: Value, op: &SubgroupOp) -> Operand {
        let converged = self.convergence.at_value(value);
        match *op {
            SubgroupOp::Ballot { word: 1.., .. } => Operand::u32(0),
            SubgroupOp::Ballot { value, word: 0 } => {
                let (mask, pred) = (self.lane_mask(converged), self.reg(value));
                self.vote(pred, mask).into()
            }
            SubgroupOp::Reduce { op, group, value } => {
                self.reduce(op, group, value, converged).into()
            }
            SubgroupOp::Shuffle { source, value } => {
                let mask = self.lane_mask(converged);
                let route = self.route(source, converged, mask);
                self.shuffle(value, route, mask).into()
            }
        }
    }

    /// Returns the lane mask of an instruction: all lanes, which may include some that the last
    /// warp of the block lacks, or the active lanes.
    pub(super) fn lane_mask(&mut self, converged: bool) -> Operand {
        if converged { FULL_MASK } else { self.active_lanes() }
    }

    /// Returns the mask of active lanes.
    pub(super) fn active_lanes(&mut self) -> Operand {
        self.b.op(PtxType::B32, Opcode::new("activemask.b32"), &[]).into()
    }

    /// Returns the mask of lanes for which a predicate is true.
    pub(super) fn vote(&mut self, pred: Reg, mask: Operand) -> Reg {
        self.b.op(PtxType::B32, Opcode::new("vote.sync.ballot.b32"), &[pred.into(), mask])
    }

    fn route(&mut self, source: ShuffleSource, converged: bool, mask: Operand) -> Route {
        match source {
            ShuffleSource::First if converged => Route::lane(Operand::u32(0)),
            ShuffleSource::First => Route::lane(self.lowest_lane(mask).into()),
            ShuffleSource::Lane(lane) => Route::lane(self.value(lane)),
            ShuffleSource::Xor(by) => Route::xor(self.value(by)),
            ShuffleSource::Up(by) => Route::up(self.value(by)),
            ShuffleSource::Down(by) => Route { mode: "down", by: self.value(by), clamp: 31 },
            ShuffleSource::QuadLane(lane) => Route::quad(self.value(lane)),
            ShuffleSource::QuadXor(by) => Route::xor(Operand::u32(by.into())),
        }
    }

    /// Returns the index of the lowest set bit.
    pub(super) fn lowest_lane(&mut self, mask: Operand) -> Reg {
        let reversed = self.b.typed("brev", PtxType::B32, &[mask]);
        self.b.typed("clz", PtxType::B32, &[reversed.into()])
    }

    fn shuffle(&mut self, value: Value, route: Route, mask: Operand) -> Reg {
        // 16-bit values are exchanged as unsigned integers, which keeps their bits: a conversion of
        // `f16` to `f32` could change NaNs.
        let ty = match self.ty(value) {
            Type::F16 | Type::I16 => Type::U16,
            other => other,
        };
        let register = self.reg(value);
        let wide = self.widen(ty, register);
        let shuffled = self.shuffle_wide(wide_type(ty), wide, route, mask);
        self.narrow(ty, shuffled)
    }

    /// Returns another lane's value of 32 or 64 bits.
    pub(super) fn shuffle_wide(
        &mut self,
        ty: PtxType,
        value: Reg,
        route: Route,
        mask: Operand,
    ) -> Reg {
        if ty.size() == 4 {
            return self.shuffle_word(None, value, route, mask);
        }
        let [low, high] = self.halves(value);
        let low = self.shuffle_word(None, low, route, mask);
        let high = self.shuffle_word(None, high, route, mask);
        self.join([low, high])
    }

    /// Returns another lane's value, and whether its index is in range (the predicate of
    /// `shfl.sync`).
    pub(super) fn shuffle_in_range(
        &mut self,
        ty: PtxType,
        value: Reg,
        route: Route,
        mask: Operand,
    ) -> (Reg, Reg) {
        let is_in_range = self.b.reg(PtxType::Pred);
        if ty.size() == 4 {
            return (self.shuffle_word(Some(is_in_range), value, route, mask), is_in_range);
        }
        let [low, high] = self.halves(value);
        let low = self.shuffle_word(Some(is_in_range), low, route, mask);
        let high = self.shuffle_word(None, high, route, mask);
        (self.join([low, high]), is_in_range)
    }

    /// Emits a shuffle of 32 bits.
    fn shuffle_word(
        &mut self,
        is_in_range: Option<Reg>,
        value: Reg,
        route: Route,
        mask: Operand,
    ) -> Reg {
        let result = self.b.reg(PtxType::B32);
        let first = match is_in_range {
            Some(is_in_range) => Arg::Pair(Some(result), is_in_range),
            None => result.into(),
        };
        let by = Arg::Operand(route.by);
        let clamp = Arg::Operand(Operand::u32(route.clamp));
        let opcode = Opcode::new("shfl.sync").with(route.mode).with("b32");
        self.b.emit(opcode, vec![first, value.into(), by, clamp, Arg::Operand(mask)]);
        result
    }

    /// Splits 64 bits into words, the low one first.
    fn halves(&mut self, value: Reg) -> [Reg; 2] {
        let halves = [self.b.reg(PtxType::B32), self.b.reg(PtxType::B32)];
        let words = Arg::Vector(halves.map(Operand::Reg).to_vec());
        self.b.emit(Opcode::new("mov.b64"), vec![words, value.into()]);
        halves
    }

    fn join(&mut self, halves: [Reg; 2]) -> Reg {
        let result = self.b.reg(PtxType::B64);
        let words = Arg::Vector(halves.map(Operand::Reg).to_vec());
        self.b.emit(Opcode::new("mov.b64"), vec![result.into(), words]);
        result
    }

    /// Widens a value to 32 or 64 bits for shuffles and reductions: integers are extended, `f16`
    /// becomes `f32`.
    pub(super) fn widen(&mut self, ty: Type, register: Reg) -> Reg {
        match ty {
            Type::Bool => {
                let (one, zero) = (Operand::u32(1), Operand::u32(0));
                self.b.select(PtxType::U32, register, one, zero)
            }
            Type::I16 | Type::U16 | Type::F16 => {
                self.b.convert("", wide_type(ty), ptx_type(ty), register.into())
            }
            _ => register,
        }
    }

    /// Narrows a widened value to its type.
    pub(super) fn narrow(&mut self, ty: Type, wide: Reg) -> Reg {
        match ty {
            Type::Bool => self.b.compare("ne", PtxType::U32, wide.into(), Operand::u32(0)),
            Type::I16 | Type::U16 => self.b.convert("", ptx_type(ty), wide_type(ty), wide.into()),
            Type::F16 => self.b.convert("rn", PtxType::F16, PtxType::F32, wide.into()),
            _ => wide,
        }
    }
}

/// Returns the type of a widened value.
pub(super) const fn wide_type(ty: Type) -> PtxType {
    match ty {
        Type::Bool | Type::U16 => PtxType::U32,
        Type::I16 => PtxType::S32,
        Type::F16 => PtxType::F32,
        other => ptx_type(other),
    }
}
