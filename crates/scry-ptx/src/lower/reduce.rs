//! Subgroup reductions and scans.
//!
//! Bools use votes. Integers of up to 32 bits use `redux.sync` where it exists. Otherwise a full
//! warp needs five shuffle steps, each of which doubles the number of lanes reduced; any other set
//! of active lanes is processed lane by lane.

use scry_ir::kir::{Extent, Reduction, Type, Value};

use super::Lowering;
use super::subgroup::{FULL_MASK, Route, wide_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// The first architecture with `redux.sync`.
const REDUX: u16 = 80;

/// The combining operation of a reduction.
#[derive(Clone, Copy)]
struct Sum {
    op: Reduction,
    /// The type of the computation.
    ty: PtxType,
    /// The identity element.
    identity: Operand,
}

impl Lowering<'_> {
    /// Reduces or scans the values of the active lanes.
    pub(super) fn reduce(
        &mut self,
        op: Reduction,
        extent: Extent,
        value: Value,
        together: bool,
    ) -> Reg {
        let ty = self.ty(value);
        let mask = self.active_mask(together);
        let register = self.reg(value);
        if ty == Type::Bool {
            return self.reduce_bools(op, extent, register, mask);
        }
        let wide = self.widen(ty, register);
        let sum = Sum { op, ty: wide_type(ty), identity: identity(op, ty) };
        let reduced = match self.redux(&sum, extent) {
            Some(opcode) => self.b.op(sum.ty, opcode, &[wide.into(), mask]),
            None => self.sum_up(&sum, extent, wide, mask),
        };
        self.narrow(ty, reduced)
    }

    /// The mask of active lanes.
    pub(super) fn active_mask(&mut self, together: bool) -> Operand {
        let threads = self.threads();
        match (together, threads) {
            (true, _) if threads.is_multiple_of(32) => FULL_MASK,
            (true, 1..32) => Operand::u32((1 << threads) - 1),
            (true, _) => {
                let always = self.b.compare("eq", PtxType::U32, Operand::u32(0), Operand::u32(0));
                self.vote(always, FULL_MASK).into()
            }
            (false, _) => self.active(),
        }
    }

    /// Reduces bools by votes and the number of set lanes.
    fn reduce_bools(&mut self, op: Reduction, extent: Extent, value: Reg, mask: Operand) -> Reg {
        let votes = self.vote(value, mask);
        let votes = self.within(extent, votes.into());
        match op {
            Reduction::Xor => {
                let count = self.b.typed("popc", PtxType::B32, &[votes]);
                let odd = self.b.typed("and", PtxType::B32, &[count.into(), Operand::u32(1)]);
                self.b.compare("ne", PtxType::U32, odd.into(), Operand::u32(0))
            }
            Reduction::And | Reduction::Mul | Reduction::Min => {
                let voters = self.within(extent, mask);
                self.b.compare("eq", PtxType::U32, votes, voters)
            }
            Reduction::Or | Reduction::Add | Reduction::Max => {
                self.b.compare("ne", PtxType::U32, votes, Operand::u32(0))
            }
        }
    }

    /// Returns the lanes of a mask that contribute to a reduction.
    fn within(&mut self, extent: Extent, set: Operand) -> Operand {
        match self.before(extent) {
            None => set,
            Some(before) => self.b.typed("and", PtxType::B32, &[set, before.into()]).into(),
        }
    }

    /// Returns the lanes that a scan includes; `None` for a reduction.
    fn before(&mut self, extent: Extent) -> Option<Reg> {
        let name = match extent {
            Extent::All => return None,
            Extent::Inclusive => "%lanemask_le",
            Extent::Exclusive => "%lanemask_lt",
        };
        let mask = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![mask.into(), name.into()]);
        Some(mask)
    }

    /// Returns the `redux.sync` opcode, if it supports the reduction.
    fn redux(&self, sum: &Sum, extent: Extent) -> Option<Opcode> {
        let fits = extent == Extent::All
            && matches!(sum.ty, PtxType::U32 | PtxType::S32)
            && sum.op != Reduction::Mul
            && self.b.target().has(REDUX);
        fits.then(|| Opcode::new("redux.sync").with(name(sum.op)).ty(sum.operands()))
    }

    fn sum_up(&mut self, sum: &Sum, extent: Extent, value: Reg, mask: Operand) -> Reg {
        if let Operand::Imm { bits, .. } = mask {
            return match bits == u64::from(u32::MAX) {
                true => self.shuffle_tree(sum, extent, value),
                false => self.lane_by_lane(sum, extent, value, mask),
            };
        }
        let result = self.b.reg(sum.ty);
        let (some, end) = (self.b.label(), self.b.label());
        let not_all = self.b.compare("ne", PtxType::U32, mask, FULL_MASK);
        self.b.branch_if(not_all, some);
        let all = self.shuffle_tree(sum, extent, value);
        self.b.assign(result, all.into());
        self.b.branch(end);
        self.b.place(some);
        let part = self.lane_by_lane(sum, extent, value, mask);
        self.b.assign(result, part.into());
        self.b.place(end);
        result
    }

    /// Reduces or scans a full warp by shuffle steps.
    fn shuffle_tree(&mut self, sum: &Sum, extent: Extent, value: Reg) -> Reg {
        let mut steps = [Operand::u32(1); 5];
        for (nth, step) in steps.iter_mut().enumerate() {
            *step = Operand::u32(1 << nth);
        }
        if extent == Extent::All {
            return steps.into_iter().fold(value, |value, step| {
                let other = self.shuffle_wide(sum.ty, value, Route::xor(step), FULL_MASK);
                self.combine(sum, value, other)
            });
        }
        let scan = steps.into_iter().fold(value, |value, step| {
            let (other, known) = self.shuffle_known(sum.ty, value, Route::up(step), FULL_MASK);
            let more = self.combine(sum, other, value);
            self.b.select(sum.ty, known, more.into(), value.into())
        });
        if extent == Extent::Inclusive {
            return scan;
        }
        let before = Route::up(Operand::u32(1));
        let (other, known) = self.shuffle_known(sum.ty, scan, before, FULL_MASK);
        self.b.select(sum.ty, known, other.into(), sum.identity)
    }

    /// Reduces or scans the lanes of a mask one by one, in order.
    fn lane_by_lane(&mut self, sum: &Sum, extent: Extent, value: Reg, mask: Operand) -> Reg {
        let result = self.b.copy(sum.ty, sum.identity);
        let rest = self.b.copy(PtxType::U32, mask);
        let counted = self.before(extent);
        let (top, end) = (self.b.label(), self.b.label());
        self.b.place(top);
        let lane = self.lowest(rest.into());
        let other = self.shuffle_wide(sum.ty, value, Route::lane(lane.into()), mask);
        let more = self.combine(sum, result, other);
        let less = self.b.typed("sub", PtxType::U32, &[rest.into(), Operand::u32(1)]);
        let next = self.b.typed("and", PtxType::B32, &[rest.into(), less.into()]);
        match counted {
            None => self.b.assign(result, more.into()),
            Some(counted) => self.assign_counted(result, more, [rest, next, counted]),
        }
        self.b.assign(rest, next.into());
        let done = self.b.compare("eq", PtxType::U32, rest.into(), Operand::u32(0));
        self.b.leave_if(done, end);
        self.b.branch(top);
        self.b.place(end);
        result
    }

    /// Assigns `more` to `result` if the lowest lane of `rest` without `next` is in `counted`.
    fn assign_counted(&mut self, result: Reg, more: Reg, [rest, next, counted]: [Reg; 3]) {
        let bit = self.b.typed("xor", PtxType::B32, &[rest.into(), next.into()]);
        let bit = self.b.typed("and", PtxType::B32, &[bit.into(), counted.into()]);
        let counts = self.b.compare("ne", PtxType::U32, bit.into(), Operand::u32(0));
        let opcode = Opcode::typed("mov", result.class().ty());
        let args: Vec<Arg> = vec![result.into(), more.into()];
        self.b.emit_if(counts, true, opcode, args);
    }

    fn combine(&mut self, sum: &Sum, a: Reg, b: Reg) -> Reg {
        let name = match sum.op {
            Reduction::Mul if !sum.is_float() => "mul.lo",
            other => name(other),
        };
        let opcode = Opcode::typed(name, sum.operands());
        self.b.op(sum.ty, opcode, &[a.into(), b.into()])
    }
}

impl Sum {
    const fn is_float(&self) -> bool {
        matches!(self.ty, PtxType::F32 | PtxType::F64)
    }

    /// Returns the type in the opcode: untyped bits for bitwise operations.
    const fn operands(&self) -> PtxType {
        match self.op {
            Reduction::And | Reduction::Or | Reduction::Xor => self.ty.to_bits(),
            _ => self.ty,
        }
    }
}

const fn name(op: Reduction) -> &'static str {
    match op {
        Reduction::Add => "add",
        Reduction::Mul => "mul",
        Reduction::Min => "min",
        Reduction::Max => "max",
        Reduction::And => "and",
        Reduction::Or => "or",
        Reduction::Xor => "xor",
    }
}

/// Returns the identity element of a reduction, as a widened value.
fn identity(op: Reduction, ty: Type) -> Operand {
    if ty.is_float() { float_identity(op, ty) } else { integer_identity(op, ty) }
}

fn float_identity(op: Reduction, ty: Type) -> Operand {
    let number = match op {
        Reduction::Mul => 1.0,
        Reduction::Min => f64::INFINITY,
        Reduction::Max => f64::NEG_INFINITY,
        _ => 0.0,
    };
    match ty {
        Type::F64 => Operand::f64(number),
        _ => Operand::f32(number as f32),
    }
}

fn integer_identity(op: Reduction, ty: Type) -> Operand {
    let ones = u64::MAX >> (64 - ty.bits());
    let bits = match op {
        Reduction::Add | Reduction::Or | Reduction::Xor => 0,
        Reduction::Mul => 1,
        Reduction::And => ones,
        // The maximum, and the minimum.
        Reduction::Min if ty.is_signed() => ones >> 1,
        Reduction::Max if ty.is_signed() => extended(ones ^ (ones >> 1), ty),
        Reduction::Min => ones,
        Reduction::Max => 0,
    };
    Operand::Imm { bits, ty: wide_type(ty) }
}

/// Returns the minimum integer of a type, sign-extended.
const fn extended(least: u64, ty: Type) -> u64 {
    let unused = 64 - ty.bits();
    (((least << unused) as i64) >> unused) as u64
}
