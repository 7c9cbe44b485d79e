//! Cooperative matrix products.
//!
//! `f16` is multiplied by tensor cores, which need a full warp. Where an instruction with twice the
//! K exists, a product is fused with the one that adds to its result. For `f32` tensor cores are
//! not accurate enough: lanes exchange their operands by shuffles. Partial warps do the same, with
//! zeros for inactive lanes.

use scry_ir::kir::{FragmentLayout, Inst, LaneBits, MatrixFragments, Stmt, Type, Value};

use super::subgroup::{FULL_MASK, Route};
use super::{Lowering, ptx_type};
use crate::asm::{Arg, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// The first architecture with `mma.sync.m16n8k16` for `f16`.
const M16N8K16_SM: u16 = 80;

/// The quad (group of four lanes) selects the row of `a` and `c`, and the column of `b`; the lane's
/// index in the quad selects a pair of neighbours in it.
const QUAD: LaneBits = LaneBits { shift: 2, scale: 1 };
const LANE_OF_QUAD: LaneBits = LaneBits { shift: 0, scale: 2 };

/// The fragments of `mma.sync.m16n8k8`, two along K and two along N for 16 × 16 elements.
pub(super) const FRAGMENTS: MatrixFragments = {
    let rows = FragmentLayout { row: QUAD, column: LANE_OF_QUAD, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns =
        FragmentLayout { row: LANE_OF_QUAD, column: QUAD, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows, has_load: true }
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

    /// Returns whether the result of a product is only used as the addend of the next one, so that
    /// both fuse into one instruction.
    pub(super) fn fuses_into_next(&self, value: Value, following: &[Stmt]) -> bool {
        let Some(product) = self.product(value) else { return false };
        let Some(Stmt::Let(next)) = following.first() else { return false };
        let results = (value.0..).map(Value).take(product.c.len());
        let adds_results = |next: &Product| next.c.into_iter().eq(results.clone());
        self.b.target().has(M16N8K16_SM)
            && self.ty(product.a[0]) == Type::F16
            && self.deferred_product(&product).is_none()
            && results.clone().all(|result| self.uses[result.index()] == 1)
            && self.product(*next).is_some_and(|next| adds_results(&next))
    }

    /// Returns the deferred product that this one is fused with, if there is one.
    fn deferred_product(&self, product: &Product) -> Option<Product> {
        let first = product.c[0];
        self.values[first.index()].is_none().then(|| self.product(first)).flatten()
    }

    /// Lowers a product, fused with a deferred one if there is one; stores the registers of the
    /// results in `values`.
    pub(super) fn multiply_add(&mut self, value: Value, product: Product) {
        let products: Vec<Product> =
            self.deferred_product(&product).into_iter().chain([product]).collect();
        let mask = self.active_mask(self.convergence.at_value(value));
        let results = match (self.ty(product.a[0]), mask) {
            (Type::F16, FULL_MASK) => self.multiply_on_tensor_cores(&products),
            (Type::F16, Operand::Reg(_)) => self.multiply_active_lanes(&products, mask),
            _ => self.multiply_by_shuffles(&products, mask),
        };
        for (nth, result) in (value.index()..).zip(results) {
            self.values[nth] = Some(result.into());
        }
    }

    /// Emits code that multiplies on tensor cores if the whole warp is active, else by shuffles.
    fn multiply_active_lanes(&mut self, products: &[Product], mask: Operand) -> [Reg; 4] {
        let ty = ptx_type(self.ty(products[0].c[0]));
        let results = self.four_registers(ty);
        let (partial, end) = (self.b.label(), self.b.label());
        let is_partial = self.b.compare("ne", PtxType::U32, mask, FULL_MASK);
        self.b.branch_if(is_partial, partial);
        let all = self.multiply_on_tensor_cores(products);
        self.assign_each(results, all);
        self.b.branch(end);
        self.b.place(partial);
        let part = self.multiply_by_shuffles(products, mask);
        self.assign_each(results, part);
        self.b.place(end);
        results
    }

    fn assign_each(&mut self, to: [Reg; 4], from: [Reg; 4]) {
        for (to, from) in to.into_iter().zip(from) {
            self.b.assign(to, from.into());
        }
    }

    fn multiply_on_tensor_cores(&mut self, products: &[Product]) -> [Reg; 4] {
        let accumulator_type = self.ty(products[0].c[0]);
        let left = self.pack(&products.iter().flat_map(|product| product.a).collect::<Vec<_>>());
        let right = self.pack(&products.iter().flat_map(|product| product.b).collect::<Vec<_>>());
        let addends = match accumulator_type {
            Type::F16 => self.pack(&products[0].c),
            _ => products[0].c.iter().map(|c| self.reg(*c)).collect(),
        };
        let results: Vec<Reg> = addends.iter().map(|_| self.b.reg(PtxType::B32)).collect();
        let shape = if products.len() == 1 { "m16n8k8" } else { "m16n8k16" };
        let opcode = Opcode::new("mma.sync.aligned").with(shape).with("row.col");
        let (c, a) = (ptx_type(accumulator_type), ptx_type(Type::F16));
        let opcode = opcode.ty(c).ty(a).ty(a).ty(c);
        let args = vec![vector(&results), vector(&left), vector(&right), vector(&addends)];
        self.b.require(6, 5);
        self.b.emit(opcode, args);
        match accumulator_type {
            Type::F16 => self.unpack([results[0], results[1]]),
            _ => [results[0], results[1], results[2], results[3]],
        }
    }

    /// Packs `f16` values, two per register.
    fn pack(&mut self, values: &[Value]) -> Vec<Reg> {
        let mut registers = Vec::with_capacity(values.len() / 2);
        for pair in values.chunks(2) {
            let elements: Vec<Reg> = pair.iter().map(|element| self.reg(*element)).collect();
            let register = self.b.reg(PtxType::B32);
            self.b.emit(Opcode::new("mov.b32"), vec![register.into(), vector(&elements)]);
            registers.push(register);
        }
        registers
    }

    fn unpack(&mut self, registers: [Reg; 2]) -> [Reg; 4] {
        let elements = self.four_registers(PtxType::F16);
        for (pair, register) in elements.chunks(2).zip(registers) {
            self.b.emit(Opcode::new("mov.b32"), vec![vector(pair), register.into()]);
        }
        elements
    }

    /// Emits FMAs of operands that are exchanged by shuffles, in `f32`.
    fn multiply_by_shuffles(&mut self, products: &[Product], mask: Operand) -> [Reg; 4] {
        let accumulator_type = self.ty(products[0].c[0]);
        let lane = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![lane.into(), "%laneid".into()]);
        let mut accumulators = self.emit_f32_each(products[0].c);
        for product in products {
            let (a, b) = (
                self.emit_f32_each(product.a),
                [self.emit_f32(product.b[0]), self.emit_f32(product.b[1])],
            );
            // One lane holds a pair of neighbours along K.
            for pair in 0..4 {
                let (row, columns) =
                    (self.row_source(lane, pair, mask), self.column_sources(lane, pair, mask));
                for nth in 0..2 {
                    let mut fetch = |register, from| self.fetch(register, from, mask);
                    let left = [fetch(a[nth], row), fetch(a[nth + 2], row)];
                    let right = [fetch(b[nth], columns[0]), fetch(b[nth], columns[1])];
                    self.add_products(&mut accumulators, left, right);
                }
            }
        }
        for value in &mut accumulators {
            *value = self.narrow(accumulator_type, *value);
        }
        accumulators
    }

    /// Adds the products of elements of two rows and two columns.
    fn add_products(&mut self, accumulators: &mut [Reg; 4], left: [Reg; 2], right: [Reg; 2]) {
        for (nth, accumulator) in accumulators.iter_mut().enumerate() {
            let operands = [left[nth / 2].into(), right[nth % 2].into(), (*accumulator).into()];
            *accumulator = self.b.typed("fma.rn", PtxType::F32, &operands);
        }
    }

    fn four_registers(&mut self, ty: PtxType) -> [Reg; 4] {
        [self.b.reg(ty), self.b.reg(ty), self.b.reg(ty), self.b.reg(ty)]
    }

    fn emit_f32_each(&mut self, values: [Value; 4]) -> [Reg; 4] {
        let [a, b, c, d] = values;
        [self.emit_f32(a), self.emit_f32(b), self.emit_f32(c), self.emit_f32(d)]
    }

    /// Converts to `f32`.
    fn emit_f32(&mut self, value: Value) -> Reg {
        let (ty, register) = (self.ty(value), self.reg(value));
        self.widen(ty, register)
    }

    /// Returns the lane that holds a pair of elements of the row of this lane: one of its quad.
    fn row_source(&mut self, lane: Reg, pair: u32, mask: Operand) -> Source {
        let route = Route::quad(Operand::u32(pair));
        if mask == FULL_MASK {
            return Source { route, is_active: None };
        }
        let first = self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(28)]);
        let from = self.b.typed("or", PtxType::B32, &[first.into(), Operand::u32(pair)]);
        Source { route, is_active: Some(self.is_lane_in(from, mask)) }
    }

    /// Returns the lanes that hold a pair of elements of the two columns of this lane. The columns
    /// are `2 * (lane % 4)` and the next one; the quad of a column is lanes `4 * column ..`.
    fn column_sources(&mut self, lane: Reg, pair: u32, mask: Operand) -> [Source; 2] {
        let mut column = |offset| {
            let lane_of_quad = self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(3)]);
            let operands = [lane_of_quad.into(), Operand::u32(8), Operand::u32(offset)];
            let from = self.b.typed("mad.lo", PtxType::U32, &operands);
            let is_active = (mask != FULL_MASK).then(|| self.is_lane_in(from, mask));
            Source { route: Route::lane(from.into()), is_active }
        };
        [column(pair), column(pair + 4)]
    }

    /// Returns whether a lane is in a mask.
    fn is_lane_in(&mut self, lane: Reg, set: Operand) -> Reg {
        let set = self.b.in_register(set);
        let bits = self.b.typed("shr", PtxType::U32, &[set.into(), lane.into()]);
        let bit = self.b.typed("and", PtxType::B32, &[bits.into(), Operand::u32(1)]);
        self.b.compare("ne", PtxType::U32, bit.into(), Operand::u32(0))
    }

    /// Reads a lane's value; zero if the lane is inactive.
    fn fetch(&mut self, value: Reg, from: Source, mask: Operand) -> Reg {
        let value = self.shuffle_wide(PtxType::F32, value, from.route, mask);
        match from.is_active {
            None => value,
            Some(is_active) => {
                self.b.select(PtxType::F32, is_active, value.into(), Operand::f32(0.0))
            }
        }
    }
}

/// The source lane of a fetch.
#[derive(Clone, Copy)]
struct Source {
    route: Route,
    /// A predicate: whether the lane is active; `None` if it always is.
    is_active: Option<Reg>,
}

/// Returns a vector argument.
pub(super) fn vector(registers: &[Reg]) -> Arg {
    Arg::Vector(registers.iter().map(|register| Operand::Reg(*register)).collect())
}
