//! Random kernels that terminate, whose invocations do not access each other's memory.

use scry_ir::kir::{
    Access, AddressSpace, BinaryOp, Builder, Builtin, Const, Kir, Label, Place, Stmt, Type,
    UnaryOp, Value, Var,
};

use super::support::BuilderExt;

/// Number of words of the output buffer that belong to each invocation.
pub(super) const WORDS_PER_INVOCATION: u32 = 24;
/// The last of these words: one for each variable, stored at the end.
const VAR_WORDS: u32 = 2 * TYPES.len() as u32;
/// Number of elements of the private array: four start positions for accesses of four elements.
const LOCAL_LEN: u32 = 7;
const SHAPES: [[u32; 3]; 8] =
    [[1, 1, 1], [5, 1, 1], [7, 3, 2], [8, 8, 1], [33, 1, 1], [16, 2, 1], [64, 1, 1], [16, 1, 3]];
const TYPES: [Type; 7] =
    [Type::U32, Type::U32, Type::I32, Type::Bool, Type::U16, Type::I16, Type::U64];

/// Returns the kernel of a seed, with about this number of statements.
pub(super) fn kernel(seed: u64, statements: u32) -> Kir {
    let mut random = Random { state: seed };
    let mut b = Builder::new("random", random.pick(&SHAPES));
    b.buffer(Access::Read);
    b.buffer(Access::ReadWrite);
    let invocations = b.kir().workgroup_size.iter().product();
    let shared = b.workgroup_array(Type::U32, invocations);
    let local = b.local_array(Type::U32, LOCAL_LEN);
    let vars: Vec<_> = TYPES.iter().chain(&TYPES).map(|ty| (*ty, b.var(*ty))).collect();
    let (global_index, local_index) = (b.global_index(), b.local_index());
    let mut visible = vec![global_index, local_index];
    for axis in 0..3 {
        visible.push(b.local_id(axis));
        visible.push(b.builtin(Builtin::GroupId(axis)));
    }
    visible.push(b.load_word(0, global_index));
    for ty in TYPES {
        visible.push(b.constant(Const::int(ty, 1)));
    }
    let labels = vec![Label::KERNEL];
    let mut generator = KernelGenerator {
        random,
        b,
        global_index,
        local_index,
        shared,
        local,
        vars,
        visible,
        labels,
        remaining: statements,
    };
    generator.block(0);
    generator.store_vars();
    generator.b.finish()
}

/// Pseudo-random numbers.
pub(super) struct Random {
    pub state: u64,
}

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.state =
            self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = (self.state ^ (self.state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 33) % limit as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// A kernel under construction.
struct KernelGenerator {
    random: Random,
    b: Builder,
    /// Index of the invocation in the launch.
    global_index: Value,
    /// Index of the invocation in its workgroup.
    local_index: Value,
    shared: AddressSpace,
    local: AddressSpace,
    vars: Vec<(Type, Var)>,
    visible: Vec<Value>,
    labels: Vec<Label>,
    /// Remaining number of statements.
    remaining: u32,
}

impl KernelGenerator {
    fn block(&mut self, depth: u32) {
        let visible = self.visible.len();
        for _ in 0..4 + self.random.below(6) {
            if self.remaining == 0 {
                break;
            }
            self.remaining -= 1;
            self.statement(depth);
        }
        self.visible.truncate(visible);
    }

    /// Generates the statements of a nested block.
    fn nested_block(&mut self, depth: u32) -> Vec<Stmt> {
        self.b.open();
        self.block(depth + 1);
        self.b.close()
    }

    fn statement(&mut self, depth: u32) {
        match self.random.below(if depth < 4 { 26 } else { 20 }) {
            0..=6 => self.compute(),
            7..=9 => self.set(),
            10 | 11 => {
                let (_, var) = self.random.pick(&self.vars);
                let value = self.b.get(var);
                self.visible.push(value);
            }
            12..=14 => self.load(),
            15..=17 => self.store(),
            18 | 19 => self.leave(),
            20..=22 => self.branch(depth),
            23 | 24 => self.repeat(depth),
            _ => self.scope(depth),
        }
    }

    /// Returns a visible value of a type, or a constant.
    fn operand(&mut self, ty: Type) -> Value {
        let candidates = self.visible.iter().copied().filter(|value| self.b.ty(*value) == ty);
        let candidates: Vec<_> = candidates.collect();
        if self.random.chance(6) {
            let number = self.random.pick(&[0, 1, 2, 3, 5, 16, 31, -1, -3, 0x7fff, i64::MIN]);
            return self.b.constant(Const::int(ty, number));
        }
        let recent = candidates.len().saturating_sub(4);
        let from = if self.random.chance(2) { recent } else { 0 };
        self.random.pick(&candidates[from..])
    }

    fn compute(&mut self) {
        let ty = self.random.pick(&TYPES);
        let a = self.operand(ty);
        let value = match self.random.below(9) {
            0 => {
                let ops = [UnaryOp::Not, UnaryOp::Neg, UnaryOp::CountOnes];
                let op = if ty == Type::Bool { UnaryOp::Not } else { self.random.pick(&ops) };
                self.b.unary(op, a)
            }
            1 | 2 if ty != Type::Bool => {
                use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
                let other = self.operand(ty);
                self.b.binary(self.random.pick(&[Eq, Ge, Gt, Le, Lt, Ne]), a, other)
            }
            3 => {
                let (condition, other) = (self.operand(Type::Bool), self.operand(ty));
                self.b.select(condition, a, other)
            }
            4 => self.b.convert(self.random.pick(&TYPES), a),
            5 if ty == Type::I32 => self.b.bitcast(Type::U32, a),
            5 if ty == Type::U32 => self.b.bitcast(Type::I32, a),
            _ => self.binary(ty, a),
        };
        self.visible.push(value);
    }

    fn binary(&mut self, ty: Type, a: Value) -> Value {
        use BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
        let op = match ty {
            Type::Bool => self.random.pick(&[And, Or, Xor]),
            _ => self.random.pick(&[
                Add, Add, Add, Sub, Sub, Mul, Min, Min, Max, Max, And, Or, Xor, Shl, Shr, Div, Rem,
            ]),
        };
        let other = self.operand(if matches!(op, Shl | Shr) { Type::U32 } else { ty });
        self.b.binary(op, a, other)
    }

    fn set(&mut self) {
        let (ty, var) = self.random.pick(&self.vars);
        let value = self.operand(ty);
        self.b.set(var, value);
    }

    /// Returns a place of `count` words that no other invocation writes.
    fn readable_place(&mut self, count: u32) -> Place {
        self.place(count, false)
    }

    /// Returns a place of `count` words that this invocation may write, and no other accesses.
    fn writable_place(&mut self, count: u32) -> Place {
        self.place(count, true)
    }

    fn place(&mut self, count: u32, is_store: bool) -> Place {
        let own = self.random.below((WORDS_PER_INVOCATION - VAR_WORDS - count) as usize) as u32;
        match self.random.below(if is_store { 6 } else { 10 }) {
            0 | 1 => Place::new(
                AddressSpace::Binding(1),
                Some(self.global_index),
                WORDS_PER_INVOCATION * 4,
                own * 4,
            ),
            2 if count == 1 => Place::new(self.shared, Some(self.local_index), 4, 0),
            2 | 3 => Place::new(self.local, None, 4, 4 * (own % 4)),
            4 | 5 => {
                let index = self.operand(Type::U32);
                let three = self.b.u32(3);
                let index = self.b.binary(BinaryOp::And, index, three);
                Place::new(self.local, Some(index), 4, 0)
            }
            _ => {
                let index = self.operand(Type::U32);
                Place::new(
                    AddressSpace::Binding(0),
                    Some(index),
                    4 * self.random.pick(&[1, 2, 3]),
                    4,
                )
            }
        }
    }

    fn load(&mut self) {
        let count = 1 + self.random.below(4) as u32;
        let place = self.readable_place(count);
        let values = self.b.load(Type::U32, place, count as u8);
        self.visible.extend(values);
    }

    fn store(&mut self) {
        let count = 1 + self.random.below(4) as u32;
        let place = self.writable_place(count);
        let values = (0..count).map(|_| self.operand(Type::U32)).collect();
        self.b.store(place, values);
    }

    fn leave(&mut self) {
        let (condition, label) = (self.operand(Type::Bool), self.random.pick(&self.labels));
        // Returns should be rare.
        if label != Label::KERNEL || self.random.chance(4) {
            self.b.if_then(condition, |b| b.break_to(label));
        }
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.operand(Type::Bool);
        let then_block = self.nested_block(depth);
        let else_block = if self.random.chance(2) { self.nested_block(depth) } else { Vec::new() };
        self.b.push(Stmt::If { condition, then_block, else_block, at: None });
    }

    fn scope(&mut self, depth: u32) {
        let label = self.b.label();
        self.labels.push(label);
        let body = self.nested_block(depth);
        self.labels.pop();
        self.b.push(Stmt::Scope { label, body });
    }

    /// Adds a loop with a uniform or varying number of iterations, at most 3.
    fn repeat(&mut self, depth: u32) {
        let (count, label) = (self.b.var(Type::U32), self.b.label());
        let (zero, three) = (self.b.u32(0), self.b.u32(3));
        self.b.set(count, zero);
        let limit = if self.random.chance(2) {
            let limit = self.operand(Type::U32);
            self.b.binary(BinaryOp::And, limit, three)
        } else {
            three
        };
        self.b.open();
        let iteration = self.b.get(count);
        let done = self.b.binary(BinaryOp::Ge, iteration, limit);
        self.b.if_then(done, |b| b.break_to(label));
        let one = self.b.u32(1);
        let next = self.b.add(iteration, one);
        self.b.set(count, next);
        let visible = self.visible.len();
        self.visible.push(iteration);
        self.labels.push(label);
        self.block(depth + 1);
        self.labels.pop();
        self.visible.truncate(visible);
        let body = self.b.close();
        self.b.push(Stmt::Loop { label, body, finite: true });
    }

    /// Stores all variables to the output.
    fn store_vars(&mut self) {
        for (nth, (_, var)) in (0..).zip(self.vars.clone()) {
            let value = self.b.get(var);
            let word = self.b.convert(Type::U32, value);
            let offset = (WORDS_PER_INVOCATION - VAR_WORDS + nth) * 4;
            let place = Place::new(
                AddressSpace::Binding(1),
                Some(self.global_index),
                WORDS_PER_INVOCATION * 4,
                offset,
            );
            self.b.store(place, vec![word]);
        }
    }
}
