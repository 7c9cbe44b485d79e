//! Random kernels that terminate and stay in bounds.

use super::super::super::{
    AddressSpace, AtomicOp, BinaryOp, Builder, Builtin, Const, Kir, Label, Place, Type, UnaryOp,
    Value, Var,
};
use crate::Access;

/// Elements of the buffers: a read-only one, one that is written, and one of atomic counters.
pub(super) const LENGTHS: [u32; 3] = [7, 5, 3];
/// Invocations of a workgroup along x, y and z.
pub(super) const SIZE: [u32; 3] = [6, 2, 1];

const TYPES: [Type; 4] = [Type::U32, Type::I32, Type::F32, Type::Bool];
/// Memory that is loaded from and, except for the first, stored to, with the number of elements (0
/// for buffers, whose length is loaded).
const SPACES: [(AddressSpace, u32); 4] = [
    (AddressSpace::Binding(0), 0),
    (AddressSpace::Binding(1), 0),
    (AddressSpace::Local(0), 8),
    (AddressSpace::Workgroup(0), 4),
];

/// A pseudo-random number generator.
pub(super) struct Rng(pub u64);

impl Rng {
    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit as u64) as usize
    }

    /// Returns one of several values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Returns the kernel of a seed, with about `budget` statements at most.
pub(super) fn kernel(seed: u64, budget: u32) -> Kir {
    let mut b = Builder::new("random", SIZE);
    b.buffer(Access::Read);
    b.buffer(Access::ReadWrite);
    b.buffer(Access::ReadWrite);
    b.local_array(Type::U32, 8);
    b.workgroup_array(Type::U32, 4);
    let vars = TYPES.iter().chain(&TYPES).map(|ty| b.var(*ty)).collect();
    let mut random = Random {
        b,
        rng: Rng(seed),
        pool: Vec::new(),
        places: Vec::new(),
        vars,
        labels: Vec::new(),
        budget,
    };
    random.labels.push(Label::KERNEL);
    random.seed_pool();
    random.block(0);
    for index in 0..TYPES.len() * 2 {
        random.store_var(random.vars[index]);
    }
    random.b.finish()
}

struct Random {
    b: Builder,
    rng: Rng,
    /// Visible values.
    pool: Vec<Value>,
    /// Places whose indices are visible, and for how many elements they are in bounds.
    places: Vec<(Place, u32)>,
    /// Two of each type, in the order of `TYPES`.
    vars: Vec<Var>,
    /// The labels of the enclosing loops and scopes, and of the kernel.
    labels: Vec<Label>,
    /// Number of statements that may still be added.
    budget: u32,
}

impl Random {
    fn seed_pool(&mut self) {
        for axis in 0..3 {
            let id = self.b.builtin(Builtin::LocalId(axis));
            self.pool.push(id);
        }
        let length = self.b.array_length(0, 0, 4);
        self.pool.push(length);
        for ty in TYPES {
            self.constant(ty);
        }
    }

    fn constant(&mut self, ty: Type) -> Value {
        let float = self.rng.pick(&[0.0, -0.0, 1.0, -1.5, 2.0, 3e38, f32::INFINITY, 1e-40]);
        let int = self.rng.pick(&[0, 1, 2, 3, 4, 7, 8, 31, -1, -2, i64::from(i32::MIN), 100]);
        let constant = match ty {
            Type::F32 => Const::f32(float),
            Type::Bool => Const::bool(int & 1 == 1),
            _ => Const::int(ty, int),
        };
        let value = self.b.constant(constant);
        self.pool.push(value);
        value
    }

    /// Returns a visible value of a type, preferably a recent one.
    fn operand(&mut self, ty: Type) -> Value {
        let mut found = None;
        for &value in self.pool.iter().rev() {
            if self.b.ty(value) == ty {
                found = Some(value);
                if self.rng.below(3) == 0 {
                    break;
                }
            }
        }
        if self.rng.below(5) == 0 { self.constant(ty) } else { found.expect("one of each type") }
    }

    fn block(&mut self, depth: u32) {
        let (visible, places) = (self.pool.len(), self.places.len());
        for _ in 0..3 + self.rng.below(6) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.stmt(depth);
        }
        self.pool.truncate(visible);
        self.places.truncate(places);
    }

    fn stmt(&mut self, depth: u32) {
        match self.rng.below(24) {
            0..=8 => self.compute(),
            9 | 10 => self.set(),
            11..=13 => self.get(),
            14 | 15 => self.load(),
            16 | 17 => self.store(),
            18 => self.atomic_add(),
            19 | 20 if depth < 4 => self.branch(depth),
            21 if depth < 4 => self.scope(depth),
            22 if depth < 4 => self.repeat(depth),
            23 if depth > 0 => self.leave(),
            _ => self.compute(),
        }
    }

    fn compute(&mut self) {
        let ty = self.rng.pick(&TYPES);
        let value = match self.rng.below(8) {
            0 => self.unary(ty),
            1 => self.compare(),
            2 => self.select(ty),
            3 => self.cast(),
            4 if ty == Type::F32 => {
                let [a, b, c] = [self.operand(ty), self.operand(ty), self.operand(ty)];
                self.b.fma(a, b, c)
            }
            _ => self.binary(ty),
        };
        self.pool.push(value);
    }

    fn unary(&mut self, ty: Type) -> Value {
        use UnaryOp::{
            Abs, Ceil, CountOnes, FirstLeadingBit, FirstTrailingBit, Floor, IsNan, LeadingZeros,
            Neg, Not, ReverseBits, Round, Sqrt, TrailingZeros, Trunc,
        };
        let integer = [Not, CountOnes, LeadingZeros, TrailingZeros, ReverseBits, FirstLeadingBit];
        let op = match ty {
            Type::Bool => Not,
            Type::F32 => self.rng.pick(&[Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt, IsNan]),
            Type::I32 => self.rng.pick(&[Neg, Abs, Not, FirstTrailingBit]),
            _ => self.rng.pick(&integer),
        };
        let a = self.operand(ty);
        self.b.unary(op, a)
    }

    fn binary(&mut self, ty: Type) -> Value {
        use BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
        let op = match ty {
            Type::Bool => self.rng.pick(&[And, Or, Xor]),
            Type::F32 => self.rng.pick(&[Add, Sub, Mul, Div, Min, Max]),
            _ => {
                let ops = [Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr, Add, Add];
                self.rng.pick(&ops)
            }
        };
        let a = self.operand(ty);
        let b_type = if matches!(op, Shl | Shr) { Type::U32 } else { ty };
        let b = self.operand(b_type);
        self.b.binary(op, a, b)
    }

    fn compare(&mut self) -> Value {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let ty = self.rng.pick(&[Type::U32, Type::I32, Type::F32]);
        let op = self.rng.pick(&[Lt, Lt, Le, Gt, Ge, Eq, Ne]);
        let (a, b) = (self.operand(ty), self.operand(ty));
        self.b.binary(op, a, b)
    }

    fn select(&mut self, ty: Type) -> Value {
        let condition = self.operand(Type::Bool);
        let (a, b) = (self.operand(ty), self.operand(ty));
        self.b.select(condition, a, b)
    }

    fn cast(&mut self) -> Value {
        let (from, to) = (self.rng.pick(&TYPES), self.rng.pick(&TYPES));
        let a = self.operand(from);
        if from.size() == to.size() && self.rng.below(2) == 0 {
            self.b.bitcast(to, a)
        } else {
            self.b.convert(to, a)
        }
    }

    fn set(&mut self) {
        let index = self.rng.below(self.vars.len());
        let value = self.operand(TYPES[index % TYPES.len()]);
        self.b.set(self.vars[index], value);
    }

    fn get(&mut self) {
        let var = self.rng.pick(&self.vars);
        let value = self.b.get(var);
        self.pool.push(value);
    }

    /// Returns a place in bounds for `count` elements; often an earlier one.
    fn place(&mut self, space: AddressSpace, len: u32, count: u32) -> Place {
        let before = self.places.iter().rfind(|(place, n)| place.space == space && *n == count);
        if let Some((place, _)) = before.copied()
            && self.rng.below(2) == 0
        {
            return place;
        }
        let index = self.operand(Type::U32);
        let last = match space {
            AddressSpace::Binding(binding) => {
                let length = self.b.array_length(binding, 0, 4);
                let count = self.b.u32(count);
                self.b.binary(BinaryOp::Sub, length, count)
            }
            _ => self.b.u32(len - count),
        };
        let index = self.b.binary(BinaryOp::Min, index, last);
        self.places.push((Place::new(space, Some(index), 4, 0), count));
        Place::new(space, Some(index), 4, 0)
    }

    fn load(&mut self) {
        let (space, len) = self.rng.pick(&SPACES);
        let count = 1 + self.rng.below(2) as u32;
        let place = self.place(space, len, count);
        let values = self.b.load(Type::U32, place, count as u8);
        self.pool.extend(values);
    }

    fn store(&mut self) {
        let (space, len) = SPACES[1 + self.rng.below(3)];
        let count = 1 + self.rng.below(2);
        let place = self.place(space, len, count as u32);
        let values = (0..count).map(|_| self.operand(Type::U32)).collect();
        self.b.store(place, values);
    }

    fn atomic_add(&mut self) {
        let place = self.place(AddressSpace::Binding(2), 0, 1);
        let value = self.operand(Type::U32);
        let old = self.b.atomic(Type::U32, AtomicOp::Add, place, Some(value), None);
        self.pool.push(old);
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.operand(Type::Bool);
        self.b.open();
        self.block(depth + 1);
        let then_block = self.b.close();
        self.b.open();
        if self.rng.below(2) == 0 {
            self.block(depth + 1);
        }
        let else_block = self.b.close();
        self.b.push(super::super::super::Stmt::If { condition, then_block, else_block, at: None });
    }

    fn scope(&mut self, depth: u32) {
        let label = self.b.label();
        self.b.open();
        self.compute();
        let visible = self.pool.last().copied();
        self.labels.push(label);
        self.block(depth + 1);
        self.labels.pop();
        let body = self.b.close();
        self.b.push(super::super::super::Stmt::Scope { label, body });
        self.pool.extend(visible);
    }

    /// Adds a loop of a few iterations, with its own counter in one of several forms.
    fn repeat(&mut self, depth: u32) {
        let ty = self.rng.pick(&[Type::U32, Type::I32]);
        let (var, label) = (self.b.var(ty), self.b.label());
        let start = self.b.constant(Const::int(ty, self.rng.below(3) as i64));
        self.b.set(var, start);
        let limit = self.b.constant(Const::int(ty, self.rng.below(6) as i64));
        self.b.open();
        let i = self.b.get(var);
        let continues = self.b.binary(BinaryOp::Lt, i, limit);
        self.b.if_else(continues, |_| (), |b| b.break_to(label));
        let visible = self.pool.len();
        self.pool.push(i);
        if ty == Type::I32 {
            let index = self.b.bitcast(Type::U32, i);
            self.pool.push(index);
        }
        self.labels.push(label);
        self.iteration(depth);
        self.labels.pop();
        let i = self.b.get(var);
        let step = self.b.constant(Const::int(ty, 1 + self.rng.below(2) as i64));
        let next = self.b.binary(BinaryOp::Add, i, step);
        self.b.set(var, next);
        self.pool.truncate(visible);
        let body = self.b.close();
        self.b.push(super::super::super::Stmt::Loop { label, body, finite: true });
    }

    /// Adds the statements of a loop before the update of its counter, in a scope of their own: an
    /// exit from it is a `continue`.
    fn iteration(&mut self, depth: u32) {
        let label = self.b.label();
        self.b.open();
        self.labels.push(label);
        self.block(depth + 1);
        self.labels.pop();
        let body = self.b.close();
        self.b.push(super::super::super::Stmt::Scope { label, body });
    }

    fn leave(&mut self) {
        let label = self.rng.pick(&self.labels);
        let condition = self.operand(Type::Bool);
        self.b.if_then(condition, |b| b.break_to(label));
    }

    /// Stores the final value of a variable.
    fn store_var(&mut self, var: Var) {
        let value = self.b.get(var);
        let bits = match self.b.ty(value) {
            Type::F32 => self.b.bitcast(Type::U32, value),
            _ => self.b.convert(Type::U32, value),
        };
        self.b.store(Place::new(AddressSpace::Binding(1), None, 4, 8), vec![bits]);
    }
}
