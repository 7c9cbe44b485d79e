//! Tests with random loops: each that is proven to end does so, within the bound of its iterations.
//!
//! Counters have 16 bits, so that the interpreter can execute loops whose counters wrap around. The
//! loops resemble counted loops, with steps of every kind except grid strides, bounds that change,
//! and further assignments.

use scry_test_support::env_number;

use crate::Access;
use crate::kir::interpret::{InterpretError, Interpreter};
use crate::kir::termination::{mark_finite, most_iterations};
use crate::kir::{BinaryOp, Builder, Const, Kir, Label, Stmt, Type, UnaryOp, Value, Var, any_stmt};

/// Small numbers, and numbers at which 16-bit integers wrap.
const EDGES: [u16; 14] =
    [0, 1, 2, 3, 7, 64, 255, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfff0, 0xfffe, 0xffff];

/// More iterations than a loop over all 16-bit numbers that is entered three times.
const MAX_ITERATIONS: u64 = 200_000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A kernel with a loop being built.
struct Scene {
    random: Random,
    b: Builder,
    ty: Type,
    data: u32,
    counter: Var,
    /// A variable that may change in the loop.
    other: Var,
    /// Values computed before the loop.
    before: Vec<Value>,
}

impl Scene {
    /// Adds a constant from [`EDGES`].
    fn edge(&mut self) -> Value {
        let bits = self.random.one_of(&EDGES).into();
        self.b.constant(Const { ty: self.ty, bits })
    }

    /// Loads an element of the buffer.
    fn load(&mut self) -> Value {
        let index = self.random.below(8) as u32;
        let index = self.b.u32(index);
        let place = self.b.element(self.data, index);
        self.b.load(self.ty, place, 1)[0]
    }

    /// A bound: constant, loop-invariant, or possibly changing.
    fn bound(&mut self) -> Value {
        match self.random.below(8) {
            0..3 => self.edge(),
            3..5 => self.random.one_of(&self.before.clone()),
            5 => self.load(),
            6 => self.b.get(self.other),
            _ => {
                let (a, mask) = (self.load(), self.edge());
                let op = self.random.one_of(&[BinaryOp::And, BinaryOp::Min, BinaryOp::Rem]);
                self.b.binary(op, a, mask)
            }
        }
    }

    /// A comparison of the counter with a bound.
    fn comparison(&mut self) -> Value {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let op = self.random.one_of(&[Lt, Lt, Le, Gt, Ge, Ne, Ne, Eq]);
        let counter = match self.random.below(12) {
            0 => self.random.one_of(&self.before.clone()),
            _ => self.b.get(self.counter),
        };
        let bound = self.bound();
        match self.random.chance(3) {
            true => self.b.binary(op, bound, counter),
            false => self.b.binary(op, counter, bound),
        }
    }

    /// A condition with at least one comparison.
    fn condition(&mut self) -> Value {
        let a = self.comparison();
        match self.random.below(8) {
            0 => self.b.unary(UnaryOp::Not, a),
            1 | 2 => {
                let b = self.comparison();
                let op = self.random.one_of(&[BinaryOp::And, BinaryOp::Or]);
                self.b.binary(op, a, b)
            }
            3 => {
                let (b, constant) = (self.comparison(), self.random.chance(2));
                let constant = self.b.constant(Const::bool(constant));
                let [x, y] = if self.random.chance(2) { [b, constant] } else { [constant, b] };
                self.b.select(a, x, y)
            }
            4 => self.short_circuit(a),
            _ => a,
        }
    }

    /// `a && b` or `a || b` with a branch, and possibly one more assignment.
    fn short_circuit(&mut self, a: Value) -> Value {
        let flag = self.b.var(Type::Bool);
        let constant = self.random.chance(2);
        let constant = self.b.constant(Const::bool(constant));
        let swap = self.random.chance(2);
        self.b.open();
        let b = self.comparison();
        self.b.set(flag, b);
        let computed = self.b.close();
        let fixed = vec![Stmt::Set(flag, constant)];
        let (then_block, else_block) = if swap { (fixed, computed) } else { (computed, fixed) };
        self.b.push(Stmt::If { condition: a, then_block, else_block, at: None });
        if self.random.chance(6) {
            self.b.set(flag, a);
        }
        self.b.get(flag)
    }

    /// Adds an exit, from the loop or the kernel, if a random condition is true, or if it is false.
    fn exit_test(&mut self, label: Label) {
        let condition = self.condition();
        let target = if self.random.chance(8) { Label::KERNEL } else { label };
        let exit = vec![Stmt::Break(target)];
        let (then_block, else_block) =
            if self.random.chance(2) { (exit, Vec::new()) } else { (Vec::new(), exit) };
        self.b.push(Stmt::If { condition, then_block, else_block, at: None });
    }

    /// Adds an update of the counter.
    fn step(&mut self) {
        use BinaryOp::{Add, Div, Mul, Shl, Shr, Sub};
        let op = self.random.one_of(&[Add, Add, Add, Sub, Sub, Mul, Div, Shl, Shr]);
        let now = match self.random.below(12) {
            0 => self.random.one_of(&self.before.clone()),
            _ => self.b.get(self.counter),
        };
        let by = match (self.random.below(12), op) {
            (0, Add | Sub | Mul) => self.load(),
            (_, Shl | Shr) => {
                let amount = self.random.below(17) as u32;
                self.b.u32(amount)
            }
            (1..7, _) => self.b.constant(Const { ty: self.ty, bits: 1 }),
            _ => self.edge(),
        };
        let is_mirrored = self.random.chance(4) && matches!(op, Add | Mul | Sub);
        let next =
            if is_mirrored { self.b.binary(op, by, now) } else { self.b.binary(op, now, by) };
        self.b.set(self.counter, next);
    }

    /// Adds a statement that may invalidate a proof: an assignment of a variable, a store, or an
    /// exit from the scope `inner`.
    fn distraction(&mut self, inner: Option<Label>) {
        match self.random.below(7) {
            0 => {
                let value = self.bound();
                self.b.set(self.other, value);
            }
            1 => {
                let (now, one) = (self.b.get(self.other), self.edge());
                let next = self.b.binary(BinaryOp::Add, now, one);
                self.b.set(self.other, next);
            }
            2 => {
                let condition = self.comparison();
                let value = self.edge();
                let counter = self.counter;
                self.b.if_then(condition, |b| b.set(counter, value));
            }
            3 => {
                let (index, value) = (self.random.below(8) as u32, self.b.get(self.counter));
                let index = self.b.u32(index);
                let place = self.b.element(self.data, index);
                self.b.store(place, vec![value]);
            }
            _ => {
                let condition = self.comparison();
                if let Some(label) = inner {
                    self.b.if_then(condition, |b| b.break_to(label));
                }
            }
        }
    }

    /// The loop's body: one step and one or two exit tests, in any order, and sometimes more.
    fn body(&mut self, label: Label) -> Vec<Stmt> {
        let mut parts = vec![Self::exit_test as fn(&mut Self, Label), |scene, _| scene.step()];
        if self.random.chance(2) {
            parts.push(Self::exit_test);
        }
        if self.random.chance(8) {
            parts.push(|scene, _| scene.step());
        }
        if self.random.chance(3) {
            parts.push(|scene, _| scene.distraction(None));
        }
        let last = self.random.below(parts.len());
        parts.swap(0, last);
        self.b.open();
        let in_scope = if self.random.chance(2) { self.random.below(parts.len() + 1) } else { 0 };
        let rest = parts.split_off(in_scope);
        if in_scope > 0 {
            let inner = self.b.label();
            self.b.open();
            if self.random.chance(3) {
                self.distraction(Some(inner));
            }
            parts.into_iter().for_each(|part| part(self, label));
            let body = self.b.close();
            self.b.push(Stmt::Scope { label: inner, body });
        }
        rest.into_iter().for_each(|part| part(self, label));
        self.b.close()
    }

    /// A loop, after an assignment of the counter.
    fn counted_loop(&mut self) {
        if !self.random.chance(4) {
            let start = if self.random.chance(2) { self.edge() } else { self.load() };
            self.b.set(self.counter, start);
        }
        let label = self.b.label();
        let body = self.body(label);
        self.b.push(Stmt::Loop { label, body, finite: false });
    }

    /// Stores the variables, so that they are part of the results.
    fn store_variables(&mut self) {
        for (index, var) in [(0, self.counter), (1, self.other)] {
            let (index, value) = (self.b.u32(index), self.b.get(var));
            let place = self.b.element(self.data, index);
            self.b.store(place, vec![value]);
        }
    }
}

/// Generates a kernel with a random loop, entered once or three times, and the content of its
/// buffer.
pub(super) fn kernel(seed: u64) -> (Kir, Vec<u8>) {
    let mut random = Random(seed);
    let bytes = (0..8).flat_map(|_| random.one_of(&EDGES).to_le_bytes()).collect();
    let ty = random.one_of(&[Type::U16, Type::I16]);
    let mut b = Builder::new("random", [1, 1, 1]);
    let data = b.named_buffer("data", ty, Access::ReadWrite);
    let (counter, other, trips) = (b.var(ty), b.var(ty), b.var(Type::U32));
    let mut scene = Scene { random, b, ty, data, counter, other, before: Vec::new() };
    scene.before = vec![scene.load(), scene.b.get(counter)];
    if !scene.random.chance(4) {
        scene.counted_loop();
        scene.store_variables();
        return (scene.b.finish(), bytes);
    }
    // Entered three times.
    let label = scene.b.label();
    scene.b.open();
    scene.counted_loop();
    let (now, one, three) = (scene.b.get(trips), scene.b.u32(1), scene.b.u32(3));
    let next = scene.b.binary(BinaryOp::Add, now, one);
    scene.b.set(trips, next);
    let is_last = scene.b.binary(BinaryOp::Ge, next, three);
    scene.b.if_then(is_last, |b| b.break_to(label));
    let body = scene.b.close();
    scene.b.push(Stmt::Loop { label, body, finite: false });
    scene.store_variables();
    (scene.b.finish(), bytes)
}

#[test]
fn random_loops_end_if_proven() {
    let seeds = env_number("SCRY_FUZZ_SEEDS").unwrap_or(5000);
    let mut proven = 0;
    for seed in 0..seeds {
        let (mut kir, bytes) = kernel(seed);
        crate::kir::verify(&kir).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kir}"));
        mark_finite(&mut kir);
        let is_unproven = |stmt: &Stmt| matches!(stmt, Stmt::Loop { finite: false, .. });
        let bound = most_iterations(&kir);
        if any_stmt(&kir.body, &mut |stmt| is_unproven(stmt)) {
            assert!(bound.is_none(), "seed {seed}: iterations of a loop that may not end\n{kir}");
            continue;
        }
        proven += 1;
        let mut interpreter = Interpreter::new(&kir, vec![bytes]);
        interpreter.iteration_limit = bound.unwrap_or(MAX_ITERATIONS).min(MAX_ITERATIONS);
        match interpreter.run([1; 3]) {
            Ok(()) => {}
            Err(error @ InterpretError::IterationLimit { .. }) => {
                panic!("seed {seed}: {error}, but it is proven to end within {bound:?}\n{kir}")
            }
            Err(error) => panic!("seed {seed}: {error}\n{kir}"),
        }
    }
    assert!(proven > seeds / 20, "only {proven} of {seeds} loops are proven to end");
}
