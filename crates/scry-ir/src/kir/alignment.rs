//! Alignment analysis: powers of two that divide values.

use super::{
    BinaryOp, Inst, Kir, MatrixPlace, MatrixType, ShuffleSource, Stmt, SubgroupOp, Type, Value,
    Var, for_each_stmt,
};

/// Bytes to which instructions for whole matrices require lines to be aligned: rows of row-major
/// matrices, else columns. Lines of all matrix types are at least this long.
pub(super) const MATRIX_ALIGNMENT: u32 = 16;

/// The alignment of zero, all of whose bits are zero: at least the width of every type.
const ZERO: u32 = 64;

/// For each value and each variable, the number of low bits that are certainly zero. Wrapping does
/// not change them.
pub(super) struct Alignment {
    values: Vec<u32>,
    vars: Vec<u32>,
}

/// Which parts of a matrix's address are multiples of [`MATRIX_ALIGNMENT`].
pub(super) struct MatrixAlignment {
    /// Whether the constant offset of the array is one.
    pub(super) offset: bool,
    /// Whether the index, counted from that offset, certainly is one.
    pub(super) index: bool,
    /// Whether the stride certainly is one.
    pub(super) stride: bool,
}

impl Alignment {
    /// Analyses a kernel. Variables are first assumed to be zero, which is their initial value; the
    /// assumption is weakened by each assignment, until nothing changes.
    pub(super) fn analyse(kir: &Kir) -> Self {
        let mut alignment = Self { values: Vec::new(), vars: vec![ZERO; kir.vars.len()] };
        loop {
            alignment.values.clear();
            for i in 0..kir.values.len() {
                let bits = alignment.result_zero_bits(kir, Value(i as u32));
                alignment.values.push(bits);
            }
            if !alignment.weaken(kir) {
                return alignment;
            }
        }
    }

    /// Returns how many low bits of a value are certainly zero.
    fn zero_bits(&self, value: Value) -> u32 {
        self.values.get(value.index()).copied().unwrap_or(0)
    }

    /// Returns the alignment of a matrix. Its operands are values of the analysed kernel, or
    /// broadcasts of them, which were added to the kernel since.
    pub(super) fn of_matrix(
        &self,
        kir: &Kir,
        place: &MatrixPlace,
        ty: MatrixType,
    ) -> MatrixAlignment {
        let zero_bits = |value: Value| match *kir.inst(value) {
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value }) => {
                self.zero_bits(value)
            }
            _ => self.zero_bits(value),
        };
        let size = ty.element.ty().size();
        let required = (MATRIX_ALIGNMENT / size).trailing_zeros();
        let elements = (place.array.stride / size).max(1).trailing_zeros();
        let array = place.array.index.map_or(u32::BITS, |index| zero_bits(index) + elements);
        MatrixAlignment {
            offset: place.array.offset.is_multiple_of(MATRIX_ALIGNMENT),
            index: array.min(zero_bits(place.index)) >= required,
            stride: zero_bits(place.stride) >= required,
        }
    }

    /// Reduces the zero bits of variables to those of the values assigned to them; returns whether
    /// any changed.
    fn weaken(&mut self, kir: &Kir) -> bool {
        let mut changed = false;
        for_each_stmt(&kir.body, &mut |stmt| {
            if let Stmt::Set(Var(var), value) = stmt {
                let assigned = self.values[value.index()];
                let bits = &mut self.vars[*var as usize];
                changed |= assigned < *bits;
                *bits = assigned.min(*bits);
            }
        });
        changed
    }

    /// Derives the zero bits of a value from those of its operands. Operands with larger numbers,
    /// whose bits are not computed yet, are assumed to have none.
    fn result_zero_bits(&self, kir: &Kir, value: Value) -> u32 {
        if !matches!(kir.ty(value), Type::U32 | Type::I32) {
            return 0;
        }
        let bits = |operand: Value| if operand < value { self.values[operand.index()] } else { 0 };
        match *kir.inst(value) {
            Inst::Const(constant) if constant.bits == 0 => ZERO,
            Inst::Const(constant) => constant.bits.trailing_zeros(),
            Inst::Get(var) => self.vars[var.index()],
            Inst::Bitcast(a) => bits(a),
            Inst::Select(_, a, b) => bits(a).min(bits(b)),
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value }) => {
                bits(value)
            }
            Inst::Binary(op, a, b) => match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor => {
                    bits(a).min(bits(b))
                }
                BinaryOp::Min | BinaryOp::Max => bits(a).min(bits(b)),
                BinaryOp::And => bits(a).max(bits(b)),
                BinaryOp::Mul => (bits(a) + bits(b)).min(ZERO),
                BinaryOp::Shl => {
                    let by = kir.constant(b).map_or(0, |by| by.bits as u32 & 31);
                    (bits(a) + by).min(ZERO)
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
    fn products_and_sums_have_zero_bits() {
        let mut b = Builder::new("aligned", [32, 1, 1]);
        let id = b.builtin(Builtin::SubgroupId);
        let [three, eight, sixty_four] = [3, 8, 64].map(|value| b.u32(value));
        let tile = b.binary(BinaryOp::Mul, id, sixty_four);
        let sum = b.binary(BinaryOp::Add, tile, eight);
        let shifted = b.binary(BinaryOp::Shl, sum, three);
        let odd = b.binary(BinaryOp::Add, shifted, three);
        let alignment = Alignment::analyse(b.kir());
        let bits = [id, tile, sum, shifted, odd].map(|value| alignment.zero_bits(value));
        assert_eq!(bits, [0, 6, 3, 6, 0]);
    }

    #[test]
    fn every_assignment_weakens_a_variable() {
        let mut b = Builder::new("counter", [32, 1, 1]);
        let (counter, start) = (b.var(Type::U32), b.var(Type::U32));
        let [sixteen, twelve, end] = [16, 12, 160].map(|value| b.u32(value));
        b.set(start, twelve);
        let mut read = Vec::new();
        b.for_range(sixteen, end, |b, _, _| {
            let before = b.get(counter);
            let first = b.get(start);
            let after = b.binary(BinaryOp::Add, before, sixteen);
            let mixed = b.binary(BinaryOp::Add, after, first);
            b.set(start, mixed);
            b.set(counter, after);
            read = vec![before, first];
        });
        let kir = b.finish();
        let alignment = Alignment::analyse(&kir);
        let bits: Vec<_> = read.iter().map(|value| alignment.zero_bits(*value)).collect();
        assert_eq!(bits, [4, 2]);
    }
}
