//! Subgroup operations; a subgroup is a warp.
//!
//! In uniform control flow of the block they use the full lane mask. Elsewhere they first query the
//! active lanes, and each `.sync` instruction uses that mask. All of these lanes have the same
//! mask, so that their control flow stays uniform.

use scry_ir::kir::{ShuffleSource, SubgroupOp, Type, Value};

use super::{Lowering, ptx_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// All lanes of a warp.
pub(super) const FULL_MASK: Operand = Operand::u32(u32::MAX);

/// The source of a shuffle: mode, second operand, and clamp.
#[derive(Clone, Copy)]
pub(super) struct Route {
    mode: &'static str,
    by: Operand,
    bounds: u32,
}

impl Route {
    /// Reads the lane of an index.
    pub(super) const fn lane(lane: Operand) -> Self {
        Self { mode: "idx", by: lane, bounds: 31 }
    }

    /// Reads the lane at an XOR mask.
    pub(super) const fn xor(by: Operand) -> Self {
        Self { mode: "bfly", by, bounds: 31 }
    }

    /// Reads a lane of the own group of four.
    pub(super) const fn quad(lane: Operand) -> Self {
        // The segment mask preserves the bits of a lane that identify its group.
        Self { mode: "idx", by: lane, bounds: 0b11100 << 8 | 31 }
    }

    /// Reads the lane at a negative offset.
    pub(super) const fn up(by: Operand) -> Self {
        Self { mode: "up", by, bounds: 0 }
    }
}

impl Lowering<'_> {
    /// Lowers a subgroup operation.
    pub(super) fn subgroup(&mut self, value: Value, op: &SubgroupOp) -> Operand {
        let together = self.convergence.at(value);
        match *op {
            SubgroupOp::Ballot { word: 1.., .. } => Operand::u32(0),
            SubgroupOp::Ballot { value, word: 0 } => {
                let (mask, pred) = (self.lane_mask(together), self.reg(value));
                self.vote(pred, mask).into()
            }
            SubgroupOp::Reduce { op, extent, value } => {
                self.reduce(op, extent, value, together).into()
            }
            SubgroupOp::Shuffle { source, value } => {
                let mask = self.lane_mask(together);
                let route = self.route(source, together, mask);
                self.shuffle(value, route, mask).into()
            }
        }
    }

    /// Returns the lane mask of an instruction: the full mask, or the active lanes.
    pub(super) fn lane_mask(&mut self, together: bool) -> Operand {
        if together { FULL_MASK } else { self.active() }
    }

    /// Returns the mask of active lanes.
    pub(super) fn active(&mut self) -> Operand {
        self.b.op(PtxType::B32, Opcode::new("activemask.b32"), &[]).into()
    }

    /// Returns the mask of lanes for which a predicate is true.
    pub(super) fn vote(&mut self, pred: Reg, mask: Operand) -> Reg {
        self.b.op(PtxType::B32, Opcode::new("vote.sync.ballot.b32"), &[pred.into(), mask])
    }

    fn route(&mut self, source: ShuffleSource, together: bool, mask: Operand) -> Route {
        match source {
            ShuffleSource::First if together => Route::lane(Operand::u32(0)),
            ShuffleSource::First => Route::lane(self.lowest(mask).into()),
            ShuffleSource::Lane(lane) => Route::lane(self.value(lane)),
            ShuffleSource::Xor(by) => Route::xor(self.value(by)),
            ShuffleSource::Up(by) => Route::up(self.value(by)),
            ShuffleSource::Down(by) => Route { mode: "down", by: self.value(by), bounds: 31 },
            ShuffleSource::QuadLane(lane) => Route::quad(self.value(lane)),
            ShuffleSource::QuadXor(by) => Route::xor(Operand::u32(by.into())),
        }
    }

    /// Returns the index of the lowest set bit.
    pub(super) fn lowest(&mut self, mask: Operand) -> Reg {
        let reversed = self.b.typed("brev", PtxType::B32, &[mask]);
        self.b.typed("clz", PtxType::B32, &[reversed.into()])
    }

    fn shuffle(&mut self, value: Value, route: Route, mask: Operand) -> Reg {
        // 16-bit floats are exchanged as untyped bits.
        let ty = match self.ty(value) {
            Type::F16 | Type::I16 => Type::U16,
            other => other,
        };
        let register = self.reg(value);
        let wide = self.widen(ty, register);
        let got = self.shuffle_wide(wide_type(ty), wide, route, mask);
        self.narrow(ty, got)
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

    /// Returns another lane's value, and whether that lane is active.
    pub(super) fn shuffle_known(
        &mut self,
        ty: PtxType,
        value: Reg,
        route: Route,
        mask: Operand,
    ) -> (Reg, Reg) {
        let known = self.b.reg(PtxType::Pred);
        if ty.size() == 4 {
            return (self.shuffle_word(Some(known), value, route, mask), known);
        }
        let [low, high] = self.halves(value);
        let low = self.shuffle_word(Some(known), low, route, mask);
        let high = self.shuffle_word(None, high, route, mask);
        (self.join([low, high]), known)
    }

    fn shuffle_word(&mut self, known: Option<Reg>, value: Reg, route: Route, mask: Operand) -> Reg {
        let result = self.b.reg(PtxType::B32);
        let first = match known {
            Some(known) => Arg::Pair(Some(result), known),
            None => result.into(),
        };
        let by = Arg::Operand(route.by);
        let bounds = Arg::Operand(Operand::u32(route.bounds));
        let opcode = Opcode::new("shfl.sync").with(route.mode).with("b32");
        self.b.emit(opcode, vec![first, value.into(), by, bounds, Arg::Operand(mask)]);
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

    /// Widens a value to 32 or 64 bits for shuffles and sums: integers are extended, `f16` becomes
    /// `f32`.
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
