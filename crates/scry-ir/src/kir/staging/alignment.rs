//! Powers of two that are known to divide values.

use crate::kir::for_each_stmt;
use crate::kir::{BinaryOp, Inst, Kir, ShuffleSource, Stmt, SubgroupOp, Type, Value, Var};

/// More than the bits of any value: that of zero.
const ZERO: u32 = 64;

/// The low bits of each value and each variable that are known to be zero. Integers wrap, which
/// keeps divisors that are powers of two.
pub(super) struct Alignment {
    values: Vec<u32>,
    vars: Vec<u32>,
}

impl Alignment {
    /// Analyses a kernel: assumes that variables are zero, as they are at first, and takes back
    /// what assignments contradict, until nothing changes.
    pub(super) fn of(kir: &Kir) -> Self {
        let mut known = Self { values: Vec::new(), vars: vec![ZERO; kir.vars.len()] };
        loop {
            known.values.clear();
            for at in 0..kir.values.len() {
                let bits = known.computed(kir, Value(at as u32));
                known.values.push(bits);
            }
            if !known.weaken(kir) {
                return known;
            }
        }
    }

    /// Returns how many low bits of a value are known to be zero.
    pub(super) fn zero_bits(&self, value: Value) -> u32 {
        self.values.get(value.index()).copied().unwrap_or(0)
    }

    /// Lowers variables to what is assigned to them; returns whether any changed.
    fn weaken(&mut self, kir: &Kir) -> bool {
        let mut changed = false;
        for_each_stmt(&kir.body, &mut |stmt| {
            if let Stmt::Set(Var(var), value) = stmt {
                let assigned = self.values[value.index()];
                let known = &mut self.vars[*var as usize];
                changed |= assigned < *known;
                *known = assigned.min(*known);
            }
        });
        changed
    }

    /// Returns the zero bits of a value from those of its operands, which have smaller numbers.
    fn computed(&self, kir: &Kir, value: Value) -> u32 {
        if !matches!(kir.ty(value), Type::U32 | Type::I32) {
            return 0;
        }
        let of = |operand: Value| if operand < value { self.values[operand.index()] } else { 0 };
        match *kir.inst(value) {
            Inst::Const(constant) if constant.bits == 0 => ZERO,
            Inst::Const(constant) => constant.bits.trailing_zeros(),
            Inst::Get(var) => self.vars[var.index()],
            Inst::Bitcast(a) => of(a),
            Inst::Select(_, a, b) => of(a).min(of(b)),
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value }) => {
                of(value)
            }
            Inst::Binary(op, a, b) => match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor => of(a).min(of(b)),
                BinaryOp::Min | BinaryOp::Max => of(a).min(of(b)),
                BinaryOp::And => of(a).max(of(b)),
                BinaryOp::Mul => (of(a) + of(b)).min(ZERO),
                BinaryOp::Shl => {
                    let by = kir.constant(b).map_or(0, |by| by.bits as u32 & 31);
                    (of(a) + by).min(ZERO)
                }
                _ => 0,
            },
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kir::{Builder, Builtin};

    #[test]
    fn factors_and_sums_are_known() {
        let mut b = Builder::new("aligned", [32, 1, 1]);
        let id = b.builtin(Builtin::SubgroupId);
        let [three, eight, sixty_four] = [3, 8, 64].map(|value| b.u32(value));
        let tile = b.binary(BinaryOp::Mul, id, sixty_four);
        let sum = b.binary(BinaryOp::Add, tile, eight);
        let shifted = b.binary(BinaryOp::Shl, sum, three);
        let odd = b.binary(BinaryOp::Add, shifted, three);
        let known = Alignment::of(b.kir());
        let bits = [id, tile, sum, shifted, odd].map(|value| known.zero_bits(value));
        assert_eq!(bits, [0, 6, 3, 6, 0]);
    }

    #[test]
    fn variables_have_the_bits_of_all_assignments() {
        let mut b = Builder::new("counter", [32, 1, 1]);
        let (counter, start) = (b.var(Type::U32), b.var(Type::U32));
        let [sixteen, twelve, end] = [16, 12, 160].map(|value| b.u32(value));
        b.set(start, twelve);
        let mut read = Vec::new();
        b.count(sixteen, end, |b, _, _| {
            let before = b.get(counter);
            let first = b.get(start);
            let after = b.binary(BinaryOp::Add, before, sixteen);
            let mixed = b.binary(BinaryOp::Add, after, first);
            b.set(start, mixed);
            b.set(counter, after);
            read = vec![before, first];
        });
        let kir = b.finish();
        let known = Alignment::of(&kir);
        assert_eq!(read.iter().map(|value| known.zero_bits(*value)).collect::<Vec<_>>(), [4, 2]);
    }
}
