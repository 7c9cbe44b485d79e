//! Cooperative matrix products.
//!
//! 16-bit floats are multiplied by tensor cores, which need a full warp; an addition that follows a
//! product is fused into it where an instruction exists. For `f32` tensor cores are not accurate
//! enough: lanes exchange their operands by shuffles. Partial warps do the same, with zeros for
//! inactive lanes.

use scry_ir::kir::{FragmentLayout, Inst, LaneBits, MatrixFragments, Stmt, Type, Value};

use super::subgroup::{FULL_MASK, Route};
use super::{Lowering, ptx_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// The first architecture with MMAs of twice K.
const DOUBLE: u16 = 80;

/// Lanes in groups of four, one for each row (or column), which hold pairs of neighbours in it.
const GROUP: LaneBits = LaneBits { shift: 2, scale: 1 };
const PAIR: LaneBits = LaneBits { shift: 0, scale: 2 };

/// The fragments of `mma.sync.m16n8k8`, two along K and two along N for 16 × 16 elements.
pub(super) const FRAGMENTS: MatrixFragments = {
    let rows = FragmentLayout { row: GROUP, column: PAIR, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns = FragmentLayout { row: PAIR, column: GROUP, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows }
};

/// The operands of `a * b + c`.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) a: [Value; 4],
    pub(super) b: [Value; 2],
    pub(super) c: [Value; 4],
}

impl Lowering<'_> {
    fn product(&self, value: Value) -> Option<Product> {
        match *self.kir.inst(value) {
            Inst::MultiplyFragments { a, b, c } => Some(Product { a, b, c }),
            _ => None,
        }
    }

    /// Returns whether a product is only an addend of the next one, so that both fuse into one
    /// instruction.
    pub(super) fn fuses_into_next(&self, value: Value, following: &[Stmt]) -> bool {
        let Some(product) = self.product(value) else { return false };
        let Some(Stmt::Let(next)) = following.first() else { return false };
        let results = (value.0..).map(Value).take(product.c.len());
        let added = |next: &Product| next.c.into_iter().eq(results.clone());
        self.b.target().has(DOUBLE)
            && self.ty(product.a[0]) == Type::F16
            && self.first_half(&product).is_none()
            && results.clone().all(|result| self.uses[result.index()] == 1)
            && self.product(*next).is_some_and(|next| added(&next))
    }

    /// Returns the deferred product that this one is fused with.
    fn first_half(&self, product: &Product) -> Option<Product> {
        let first = product.c[0];
        self.values[first.index()].is_none().then(|| self.product(first)).flatten()
    }

    /// Multiplies and adds matrices; stores the results.
    pub(super) fn multiply_add(&mut self, value: Value, product: Product) {
        let steps: Vec<Product> = self.first_half(&product).into_iter().chain([product]).collect();
        let mask = self.active_mask(self.convergence.at(value));
        let results = match (self.ty(product.a[0]), mask) {
            (Type::F16, FULL_MASK) => self.by_tensor_cores(&steps),
            (Type::F16, Operand::Reg(_)) => self.by_active_lanes(&steps, mask),
            _ => self.by_exchange(&steps, mask),
        };
        for (nth, result) in (value.index()..).zip(results) {
            self.values[nth] = Some(result.into());
        }
    }

    /// Multiplies on tensor cores if the whole warp is active, else by exchange.
    fn by_active_lanes(&mut self, steps: &[Product], mask: Operand) -> [Reg; 4] {
        let ty = ptx_type(self.ty(steps[0].c[0]));
        let results = self.four(ty);
        let (some, end) = (self.b.label(), self.b.label());
        let not_all = self.b.compare("ne", PtxType::U32, mask, FULL_MASK);
        self.b.branch_if(not_all, some);
        let all = self.by_tensor_cores(steps);
        self.assign_each(results, all);
        self.b.branch(end);
        self.b.place(some);
        let part = self.by_exchange(steps, mask);
        self.assign_each(results, part);
        self.b.place(end);
        results
    }

    fn assign_each(&mut self, to: [Reg; 4], from: [Reg; 4]) {
        for (to, from) in to.into_iter().zip(from) {
            self.b.assign(to, from.into());
        }
    }

    fn by_tensor_cores(&mut self, steps: &[Product]) -> [Reg; 4] {
        let sum = self.ty(steps[0].c[0]);
        let left = self.packed(&steps.iter().flat_map(|step| step.a).collect::<Vec<_>>());
        let right = self.packed(&steps.iter().flat_map(|step| step.b).collect::<Vec<_>>());
        let added = match sum {
            Type::F16 => self.packed(&steps[0].c),
            _ => steps[0].c.iter().map(|c| self.reg(*c)).collect(),
        };
        let results: Vec<Reg> = added.iter().map(|_| self.b.reg(PtxType::B32)).collect();
        let shape = if steps.len() == 1 { "m16n8k8" } else { "m16n8k16" };
        let opcode = Opcode::new("mma.sync.aligned").with(shape).with("row.col");
        let (accumulators, operands) = (ptx_type(sum), ptx_type(Type::F16));
        let opcode = opcode.ty(accumulators).ty(operands).ty(operands).ty(accumulators);
        let args = vec![vector(&results), vector(&left), vector(&right), vector(&added)];
        self.b.require(6, 5);
        self.b.emit(opcode, args);
        match sum {
            Type::F16 => self.unpacked([results[0], results[1]]),
            _ => [results[0], results[1], results[2], results[3]],
        }
    }

    /// Packs 16-bit floats, two per register.
    fn packed(&mut self, values: &[Value]) -> Vec<Reg> {
        let mut registers = Vec::with_capacity(values.len() / 2);
        for pair in values.chunks(2) {
            let halves: Vec<Reg> = pair.iter().map(|half| self.reg(*half)).collect();
            let register = self.b.reg(PtxType::B32);
            self.b.emit(Opcode::new("mov.b32"), vec![register.into(), vector(&halves)]);
            registers.push(register);
        }
        registers
    }

    fn unpacked(&mut self, registers: [Reg; 2]) -> [Reg; 4] {
        let halves = self.four(PtxType::F16);
        for (pair, register) in halves.chunks(2).zip(registers) {
            self.b.emit(Opcode::new("mov.b32"), vec![vector(pair), register.into()]);
        }
        halves
    }

    /// Multiplies with operands exchanged by shuffles.
    fn by_exchange(&mut self, steps: &[Product], mask: Operand) -> [Reg; 4] {
        let sum = self.ty(steps[0].c[0]);
        let lane = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![lane.into(), "%laneid".into()]);
        let mut sums = self.floats(steps[0].c);
        for step in steps {
            let (a, b) = (self.floats(step.a), [self.float(step.b[0]), self.float(step.b[1])]);
            for pair in 0..4 {
                let (rows, columns) = (self.row(lane, pair, mask), self.columns(lane, pair, mask));
                for nth in 0..2 {
                    let mut fetch = |register, from| self.fetch(register, from, mask);
                    let left = [fetch(a[nth], rows), fetch(a[nth + 2], rows)];
                    let right = [fetch(b[nth], columns[0]), fetch(b[nth], columns[1])];
                    self.add_products(&mut sums, left, right);
                }
            }
        }
        for value in &mut sums {
            *value = self.narrow(sum, *value);
        }
        sums
    }

    /// Adds the products of two rows and two columns.
    fn add_products(&mut self, sums: &mut [Reg; 4], left: [Reg; 2], right: [Reg; 2]) {
        for (nth, sum) in sums.iter_mut().enumerate() {
            let operands = [left[nth / 2].into(), right[nth % 2].into(), (*sum).into()];
            *sum = self.b.typed("fma.rn", PtxType::F32, &operands);
        }
    }

    fn four(&mut self, ty: PtxType) -> [Reg; 4] {
        [self.b.reg(ty), self.b.reg(ty), self.b.reg(ty), self.b.reg(ty)]
    }

    fn floats(&mut self, values: [Value; 4]) -> [Reg; 4] {
        let [a, b, c, d] = values;
        [self.float(a), self.float(b), self.float(c), self.float(d)]
    }

    /// Converts to `f32`.
    fn float(&mut self, value: Value) -> Reg {
        let (ty, register) = (self.ty(value), self.reg(value));
        self.widen(ty, register)
    }

    /// Returns the lane that holds a pair of the left operand's row.
    fn row(&mut self, lane: Reg, pair: u32, mask: Operand) -> Source {
        let route = Route::quad(Operand::u32(pair));
        if mask == FULL_MASK {
            return Source { route, is_there: None };
        }
        let group = self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(28)]);
        let from = self.b.typed("or", PtxType::B32, &[group.into(), Operand::u32(pair)]);
        Source { route, is_there: Some(self.is_in(from, mask)) }
    }

    /// Returns the lanes that hold a pair of the right operand's two columns.
    fn columns(&mut self, lane: Reg, pair: u32, mask: Operand) -> [Source; 2] {
        let mut column = |at| {
            let within = self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(3)]);
            let sizes = [within.into(), Operand::u32(8), Operand::u32(at)];
            let from = self.b.typed("mad.lo", PtxType::U32, &sizes);
            let is_there = (mask != FULL_MASK).then(|| self.is_in(from, mask));
            Source { route: Route::lane(from.into()), is_there }
        };
        [column(pair), column(pair + 4)]
    }

    /// Returns whether a lane is in a mask.
    fn is_in(&mut self, lane: Reg, set: Operand) -> Reg {
        let set = self.b.in_register(set);
        let bits = self.b.typed("shr", PtxType::U32, &[set.into(), lane.into()]);
        let bit = self.b.typed("and", PtxType::B32, &[bits.into(), Operand::u32(1)]);
        self.b.compare("ne", PtxType::U32, bit.into(), Operand::u32(0))
    }

    /// Reads a lane's value; zero if the lane is inactive.
    fn fetch(&mut self, value: Reg, from: Source, mask: Operand) -> Reg {
        let got = self.shuffle_wide(PtxType::F32, value, from.route, mask);
        match from.is_there {
            None => got,
            Some(there) => self.b.select(PtxType::F32, there, got.into(), Operand::f32(0.0)),
        }
    }
}

/// The source lane of a fetch, and a predicate for whether it is active unless that is known.
#[derive(Clone, Copy)]
struct Source {
    route: Route,
    is_there: Option<Reg>,
}

/// Returns a vector argument.
fn vector(registers: &[Reg]) -> Arg {
    Arg::Vector(registers.iter().map(|register| Operand::Reg(*register)).collect())
}
