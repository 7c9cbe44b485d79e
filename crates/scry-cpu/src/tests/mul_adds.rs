//! Tests of multiply-adds with operands and results in memory, with all kinds of indices, and with
//! writes between them. All numbers are small integers, so that nothing is rounded.

use std::ops::Range;

use scry_ir::kir::{
    Access, AddressSpace, AtomicOp, BinaryOp, Builder, Const, Kir, Place, Stmt, Type, Value, Var,
};

use super::random_kernels::Random;
use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise};

/// Limit below which integers are exact in f32.
const EXACT_LIMIT: u32 = 1 << 24;

/// Returns small integers as f32; another `salt` selects other integers.
pub(super) fn small(salt: u32, count: usize) -> Vec<u8> {
    let number = |bits: &u32| ((bits.wrapping_add(salt) >> 7) % 17) as f32 - 8.0;
    bytes(&noise(count).iter().map(|bits| number(bits).to_bits()).collect::<Vec<_>>())
}

/// A kernel under construction, with two buffers that are read, one that is written, and workgroup
/// memory. The generator tracks bounds of absolute values, to keep all numbers exact.
struct MulAddGenerator {
    b: Builder,
    random: Random,
    shared: AddressSpace,
    /// Indices of loads. The first two are the global and the local index.
    indices: Vec<Value>,
    /// Visible values, each with its bound.
    visible: Vec<(Value, u32)>,
    sum: Var,
    /// Bound of the values in the output and in workgroup memory.
    stored_bound: u32,
    /// Bound of the variable.
    sum_bound: u32,
}

impl MulAddGenerator {
    fn new(shape: [u32; 3], seed: u64) -> Self {
        let mut b = Builder::new("sums", shape);
        b.buffer(Access::Read);
        b.buffer(Access::Read);
        b.buffer(Access::ReadWrite);
        let shared = b.workgroup_array(Type::F32, shape.iter().product());
        let [number, local, x, y] =
            [b.global_index(), b.local_index(), b.local_id(0), b.local_id(1)];
        let fifty = b.u32(50);
        let back = b.binary(BinaryOp::Sub, fifty, number);
        let rows = b.mul(y, fifty);
        let row = b.add(rows, x);
        let clamped = b.clamped(number, 0, 0, 4);
        let one = b.constant(Const::f32(1.0));
        let sum = b.var(Type::F32);
        Self {
            b,
            random: Random { state: seed },
            shared,
            indices: vec![number, local, x, y, rows, row, back, clamped],
            visible: vec![(one, 1)],
            sum,
            stored_bound: 8,
            sum_bound: 0,
        }
    }

    /// Adds a load. Returns the value and its bound.
    fn load(&mut self) -> (Value, u32) {
        let (space, index, bound) = match self.random.below(8) {
            0 => (AddressSpace::Binding(2), self.indices[0], self.stored_bound),
            1 => (self.shared, self.indices[1], self.stored_bound),
            n => (AddressSpace::Binding(n as u32 % 2), self.random.pick(&self.indices), 8),
        };
        (self.b.load(Type::F32, Place::new(space, Some(index), 4, 0), 1)[0], bound)
    }

    /// Returns a value and its bound.
    fn operand(&mut self) -> (Value, u32) {
        match self.random.below(5) {
            0 => self.random.pick(&self.visible[self.visible.len() - 1..]),
            1 => self.random.pick(&self.visible),
            2 => (self.b.get(self.sum), self.sum_bound),
            _ => self.load(),
        }
    }

    /// Adds a multiply-add, a product or a difference, unless it may be inexact.
    fn compute(&mut self) {
        let [(x, x_bound), (y, y_bound), (z, z_bound)] = [0; 3].map(|_| self.operand());
        let product_bound = x_bound.saturating_mul(y_bound);
        let bound = product_bound.saturating_add(z_bound);
        if bound >= EXACT_LIMIT {
            return;
        }
        let value = match self.random.below(6) {
            0 => (self.b.fma(x, y, z), bound),
            1 => (self.b.mul(x, y), product_bound),
            2 => (self.b.binary(BinaryOp::Sub, x, z), x_bound + z_bound),
            n => {
                let product = self.b.mul(x, y);
                let op = if n == 3 { BinaryOp::Add } else { BinaryOp::Sub };
                let (a, b) = if n == 4 { (z, product) } else { (product, z) };
                (self.b.binary(op, a, b), bound)
            }
        };
        self.visible.push(value);
    }

    fn store(&mut self) {
        let last = self.visible.len() - 1;
        let (value, bound) = self.visible[last];
        // Elements that no other invocation accesses.
        let targets = [(AddressSpace::Binding(2), self.indices[0]), (self.shared, self.indices[1])];
        let (space, index) = self.random.pick(&targets);
        self.b.store(Place::new(space, Some(index), 4, 0), vec![value]);
        self.stored_bound = self.stored_bound.max(bound);
    }

    fn set(&mut self) {
        let (value, bound) = self.random.pick(&self.visible);
        self.b.set(self.sum, value);
        self.sum_bound = self.sum_bound.max(bound);
    }

    /// Adds statements in divergent control flow.
    fn branch(&mut self) {
        let limit = 1 + self.random.below(40) as u32;
        let condition = self.b.compare(BinaryOp::Lt, self.indices[2], limit);
        let visible = self.visible.len();
        self.b.open();
        self.statements(5);
        let then_block = self.b.close();
        self.visible.truncate(visible);
        self.b.push(Stmt::If { condition, then_block, else_block: Vec::new(), at: None });
    }

    fn statements(&mut self, count: u32) {
        for _ in 0..count {
            match self.random.below(10) {
                0 | 1 => {
                    let loaded = self.load();
                    self.visible.push(loaded);
                }
                2..5 => self.compute(),
                5..8 => self.store(),
                8 => self.set(),
                _ => self.branch(),
            }
        }
    }

    fn finish(mut self) -> Kir {
        let sum = self.b.get(self.sum);
        self.b.store(Place::new(AddressSpace::Binding(2), Some(self.indices[0]), 4, 0), vec![sum]);
        self.b.finish()
    }
}

/// Returns a random kernel and its launch.
fn random(seed: u64, shape: [u32; 3], statements: u32) -> (Kir, TestLaunch) {
    let mut generator = MulAddGenerator::new(shape, seed);
    generator.statements(statements);
    let size = 4 * shape.iter().product::<u32>() as usize;
    // Sometimes too small for the last invocations.
    let short = size - [0, 3, 17][seed as usize % 3];
    (
        generator.finish(),
        TestLaunch::new([4, 1, 1], &[small(0, size), small(1 << 8, short), small(1 << 9, short)]),
    )
}

fn assert_agrees(seeds: Range<u64>, statements: u32) {
    for seed in seeds {
        let shapes = [[16, 16, 1], [64, 1, 1], [32, 2, 1], [5, 3, 1], [16, 4, 2]];
        let (kir, launch) = random(seed, shapes[seed as usize % 5], statements);
        launch.assert_agrees(&kir);
    }
}

#[test]
fn random_multiply_adds() {
    assert_agrees(0..300, 12);
    assert_agrees(1000..1060, 40);
}

#[test]
fn miri_random_multiply_adds() {
    let (kir, launch) = random(2000, [16, 2, 1], 6);
    assert_eq!(launch.run_split(&kir, 2), launch.interpret(&kir));
}

/// Asserts that a kernel computes the results of the reference interpreter in workgroups of every
/// shape. `fill` receives the global index of the invocation, and the element at this index of an
/// input and of an output.
fn assert_elementwise_agrees(fill: impl Fn(&mut Builder, Value, Place, Place)) {
    for shape in SHAPES {
        let mut b = Builder::new("elementwise", shape);
        let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
        let number = b.global_index();
        let place = |buffer| Place::new(AddressSpace::Binding(buffer), Some(number), 4, 0);
        fill(&mut b, number, place(input), place(out));
        let kir = b.finish();
        let size = 3 * shape.iter().product::<u32>() as usize;
        for missing in [0, 1, 20] {
            let buffers = [small(0, size), small(1 << 8, size.saturating_sub(missing))];
            TestLaunch::new([3, 1, 1], &buffers).assert_agrees(&kir);
        }
    }
}

#[test]
fn loads_before_a_store_keep_values() {
    assert_elementwise_agrees(|b, _, input, out| {
        let [old, x] = [out, input].map(|place| b.load(Type::F32, place, 1)[0]);
        b.store(out, vec![x]);
        let sum = b.fma(x, x, old);
        b.store(out, vec![sum]);
    });
    assert_elementwise_agrees(|b, number, input, out| {
        let [old, x] = [out, input].map(|place| b.load(Type::F32, place, 1)[0]);
        b.atomic(Type::U32, AtomicOp::Exchange, out, Some(number), None);
        let sum = b.fma(x, x, old);
        b.store(out, vec![sum]);
    });
    assert_elementwise_agrees(|b, number, input, out| {
        let [old, x] = [out, input].map(|place| b.load(Type::F32, place, 1)[0]);
        let few = b.compare(BinaryOp::Lt, number, 9);
        b.if_then(few, |b| b.store(out, vec![x]));
        let sum = b.fma(x, x, old);
        b.store(out, vec![sum]);
    });
}

#[test]
fn index_changes_between_load_and_use() {
    assert_elementwise_agrees(|b, number, input, out| {
        let index = b.var(Type::U32);
        b.set(index, number);
        b.finite_loop(|b, label| {
            let (now, one) = (b.get(index), b.u32(1));
            let x = b.load(Type::F32, Place { index: Some(now), ..input }, 1)[0];
            let next = b.add(now, one);
            b.set(index, next);
            let later = b.get(index);
            let y = b.load(Type::F32, Place { index: Some(later), ..input }, 1)[0];
            let sum = b.binary(BinaryOp::Sub, y, x);
            b.store(out, vec![sum]);
            b.break_to(label);
        });
    });
}
