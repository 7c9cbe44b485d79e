//! Subgroup reductions and scans.
//!
//! Bools use votes. Integers of up to 32 bits are reduced by `redux.sync` where that exists, except
//! for products. Otherwise a full warp needs five shuffle steps, each of which doubles the number
//! of lanes that a result combines, and an exclusive scan one more; any other set of active lanes
//! is processed lane by lane.

use scry_ir::kir::{GroupOperation, Reduction, Type, Value};

use super::Lowering;
use super::subgroup::{FULL_MASK, Route, wide_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// The first architecture with `redux.sync`.
const REDUX_SM: u16 = 80;

/// The operation that combines two values in a reduction or scan.
#[derive(Clone, Copy)]
struct Reducer {
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
        group: GroupOperation,
        value: Value,
        converged: bool,
    ) -> Reg {
        let ty = self.ty(value);
        let mask = self.active_mask(converged);
        let register = self.reg(value);
        if ty == Type::Bool {
            return self.reduce_bools(op, group, register, mask);
        }
        let widened = self.widen(ty, register);
        let reducer = Reducer { op, ty: wide_type(ty), identity: identity(op, ty) };
        let reduced = match self.redux(&reducer, group) {
            Some(opcode) => self.b.op(reducer.ty, opcode, &[widened.into(), mask]),
            None => self.reduce_by_shuffles(&reducer, group, widened, mask),
        };
        self.narrow(ty, reduced)
    }

    /// Returns the mask of exactly the active lanes, without those that the last warp of the block
    /// lacks.
    pub(super) fn active_mask(&mut self, converged: bool) -> Operand {
        let threads = self.thread_count();
        match (converged, threads) {
            (true, _) if threads.is_multiple_of(32) => FULL_MASK,
            (true, 1..32) => Operand::u32((1 << threads) - 1),
            (true, _) => {
                let always = self.b.compare("eq", PtxType::U32, Operand::u32(0), Operand::u32(0));
                self.vote(always, FULL_MASK).into()
            }
            (false, _) => self.active_lanes(),
        }
    }

    /// Reduces or scans bools, by the set of lanes whose bool is true.
    fn reduce_bools(
        &mut self,
        op: Reduction,
        group: GroupOperation,
        value: Reg,
        mask: Operand,
    ) -> Reg {
        let votes = self.vote(value, mask);
        let votes = self.contributing_lanes(group, votes.into());
        match op {
            Reduction::Xor => {
                let count = self.b.typed("popc", PtxType::B32, &[votes]);
                let odd = self.b.typed("and", PtxType::B32, &[count.into(), Operand::u32(1)]);
                self.b.compare("ne", PtxType::U32, odd.into(), Operand::u32(0))
            }
            Reduction::And | Reduction::Mul | Reduction::Min => {
                let voters = self.contributing_lanes(group, mask);
                self.b.compare("eq", PtxType::U32, votes, voters)
            }
            Reduction::Or | Reduction::Add | Reduction::Max => {
                self.b.compare("ne", PtxType::U32, votes, Operand::u32(0))
            }
        }
    }

    /// Returns the lanes of a set that contribute to this lane's result.
    fn contributing_lanes(&mut self, group: GroupOperation, set: Operand) -> Operand {
        match self.scan_lanes(group) {
            None => set,
            Some(lanes) => self.b.typed("and", PtxType::B32, &[set, lanes.into()]).into(),
        }
    }

    /// Returns the lanes that contribute to this lane's result of a scan; `None` for a reduction.
    fn scan_lanes(&mut self, group: GroupOperation) -> Option<Reg> {
        let name = match group {
            GroupOperation::Reduce => return None,
            GroupOperation::InclusiveScan => "%lanemask_le",
            GroupOperation::ExclusiveScan => "%lanemask_lt",
        };
        let mask = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![mask.into(), name.into()]);
        Some(mask)
    }

    /// Returns the `redux.sync` opcode, if it supports the reduction.
    fn redux(&self, reducer: &Reducer, group: GroupOperation) -> Option<Opcode> {
        let fits = group == GroupOperation::Reduce
            && matches!(reducer.ty, PtxType::U32 | PtxType::S32)
            && reducer.op != Reduction::Mul
            && self.b.target().has(REDUX_SM);
        fits.then(|| {
            Opcode::new("redux.sync").with(opcode_name(reducer.op)).ty(reducer.opcode_type())
        })
    }

    /// Reduces or scans by shuffles; if `mask` is only known at run time, with code for both cases.
    fn reduce_by_shuffles(
        &mut self,
        reducer: &Reducer,
        group: GroupOperation,
        value: Reg,
        mask: Operand,
    ) -> Reg {
        if let Operand::Imm { bits, .. } = mask {
            return match bits == u64::from(u32::MAX) {
                true => self.shuffle_tree(reducer, group, value),
                false => self.lane_by_lane(reducer, group, value, mask),
            };
        }
        let result = self.b.reg(reducer.ty);
        let (partial, end) = (self.b.label(), self.b.label());
        let is_partial = self.b.compare("ne", PtxType::U32, mask, FULL_MASK);
        self.b.branch_if(is_partial, partial);
        let all = self.shuffle_tree(reducer, group, value);
        self.b.assign(result, all.into());
        self.b.branch(end);
        self.b.place(partial);
        let part = self.lane_by_lane(reducer, group, value, mask);
        self.b.assign(result, part.into());
        self.b.place(end);
        result
    }

    /// Reduces or scans a full warp by shuffle steps.
    fn shuffle_tree(&mut self, reducer: &Reducer, group: GroupOperation, value: Reg) -> Reg {
        let mut steps = [Operand::u32(1); 5];
        for (nth, step) in steps.iter_mut().enumerate() {
            *step = Operand::u32(1 << nth);
        }
        if group == GroupOperation::Reduce {
            return steps.into_iter().fold(value, |value, step| {
                let other = self.shuffle_wide(reducer.ty, value, Route::xor(step), FULL_MASK);
                self.combine(reducer, value, other)
            });
        }
        let scan = steps.into_iter().fold(value, |value, step| {
            let (other, is_in_range) =
                self.shuffle_in_range(reducer.ty, value, Route::up(step), FULL_MASK);
            let combined = self.combine(reducer, other, value);
            self.b.select(reducer.ty, is_in_range, combined.into(), value.into())
        });
        if group == GroupOperation::InclusiveScan {
            return scan;
        }
        let previous = Route::up(Operand::u32(1));
        let (other, is_in_range) = self.shuffle_in_range(reducer.ty, scan, previous, FULL_MASK);
        self.b.select(reducer.ty, is_in_range, other.into(), reducer.identity)
    }

    /// Reduces or scans the lanes of a mask one by one, in order.
    fn lane_by_lane(
        &mut self,
        reducer: &Reducer,
        group: GroupOperation,
        value: Reg,
        mask: Operand,
    ) -> Reg {
        let result = self.b.copy(reducer.ty, reducer.identity);
        let remaining = self.b.copy(PtxType::U32, mask);
        let included = self.scan_lanes(group);
        let (top, end) = (self.b.label(), self.b.label());
        self.b.place(top);
        let lane = self.lowest_lane(remaining.into());
        let other = self.shuffle_wide(reducer.ty, value, Route::lane(lane.into()), mask);
        let combined = self.combine(reducer, result, other);
        let minus_one = self.b.typed("sub", PtxType::U32, &[remaining.into(), Operand::u32(1)]);
        let next = self.b.typed("and", PtxType::B32, &[remaining.into(), minus_one.into()]);
        match included {
            None => self.b.assign(result, combined.into()),
            Some(included) => {
                self.assign_if_included(result, combined, [remaining, next, included])
            }
        }
        self.b.assign(remaining, next.into());
        let done = self.b.compare("eq", PtxType::U32, remaining.into(), Operand::u32(0));
        self.b.break_if(done, end);
        self.b.branch(top);
        self.b.place(end);
        result
    }

    /// Assigns `combined` to `result` if the lane that `remaining` has, but `next` has not, is in
    /// `included`.
    fn assign_if_included(
        &mut self,
        result: Reg,
        combined: Reg,
        [remaining, next, included]: [Reg; 3],
    ) {
        let bit = self.b.typed("xor", PtxType::B32, &[remaining.into(), next.into()]);
        let bit = self.b.typed("and", PtxType::B32, &[bit.into(), included.into()]);
        let counts = self.b.compare("ne", PtxType::U32, bit.into(), Operand::u32(0));
        let opcode = Opcode::typed("mov", result.class().ty());
        let args: Vec<Arg> = vec![result.into(), combined.into()];
        self.b.emit_if(counts, true, opcode, args);
    }

    fn combine(&mut self, reducer: &Reducer, a: Reg, b: Reg) -> Reg {
        let name = match reducer.op {
            Reduction::Mul if !reducer.is_float() => "mul.lo",
            other => opcode_name(other),
        };
        let opcode = Opcode::typed(name, reducer.opcode_type());
        self.b.op(reducer.ty, opcode, &[a.into(), b.into()])
    }
}

impl Reducer {
    const fn is_float(&self) -> bool {
        matches!(self.ty, PtxType::F32 | PtxType::F64)
    }

    /// Returns the type in the opcode: untyped bits for bitwise operations.
    const fn opcode_type(&self) -> PtxType {
        match self.op {
            Reduction::And | Reduction::Or | Reduction::Xor => self.ty.to_bits(),
            _ => self.ty,
        }
    }
}

/// Returns the name of a reduction in opcodes.
const fn opcode_name(op: Reduction) -> &'static str {
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
        // The maximum and the minimum of the type.
        Reduction::Min if ty.is_signed() => ones >> 1,
        Reduction::Max if ty.is_signed() => sign_extended(ones ^ (ones >> 1), ty),
        Reduction::Min => ones,
        Reduction::Max => 0,
    };
    Operand::Imm { bits, ty: wide_type(ty) }
}

/// Sign-extends an integer of a type to 64 bits.
const fn sign_extended(bits: u64, ty: Type) -> u64 {
    let unused = 64 - ty.bits();
    (((bits << unused) as i64) >> unused) as u64
}
