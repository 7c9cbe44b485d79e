//! Random kernels of the IR: well formed, but without clamps of indices, and with claims that may
//! be false.

use scry_gpu::kir::{
    Access, AddressSpace, AtomicOp, Barrier, BinaryOp, Builder, Builtin, Kir, Label, Place, Type,
    UnaryOp, Value, Var,
};

use super::random::Random;

/// Element types of the buffers; the second one is read-only.
const BUFFERS: [Type; 3] = [Type::U32, Type::F32, Type::I32];

/// Returns the kernel of a seed. If `endless` is false, every loop ends after a few iterations.
pub fn kernel(seed: u64, endless: bool) -> Kir {
    let mut random = Random(seed);
    let size = random.one_of(&[[4, 1, 1], [3, 2, 1], [33, 1, 1], [1, 1, 1]]);
    let mut b = Builder::new("hostile", size);
    for (i, element) in BUFFERS.into_iter().enumerate() {
        let access = if i == 1 { Access::Read } else { Access::ReadWrite };
        let buffer = b.named_buffer(&format!("data{i}"), element, access);
        // A false claim: the buffers are much smaller.
        b.set_buffer_min_size(buffer, 1 << 30);
    }
    b.immediates(16);
    let tile = b.workgroup_array(Type::U32, 7);
    let local = b.local_array(Type::U32, 5);
    let vars = (0..4).map(|_| b.var(Type::U32)).collect();
    let visible = (0..3).map(|axis| b.builtin(Builtin::LocalId(axis))).collect();
    let mut draw = Draw {
        random,
        b,
        arrays: [tile, local],
        vars,
        visible,
        labels: vec![Label::KERNEL],
        statements: 40,
        endless,
    };
    draw.block(0);
    draw.b.finish()
}

/// Builds a kernel from random statements.
struct Draw {
    random: Random,
    b: Builder,
    /// The arrays in workgroup memory and of the invocation.
    arrays: [AddressSpace; 2],
    vars: Vec<Var>,
    /// Values of type `U32` that are defined at this point.
    visible: Vec<Value>,
    /// The labels that a `Break` may name at this point.
    labels: Vec<Label>,
    /// How many more statements to add.
    statements: u32,
    endless: bool,
}

impl Draw {
    fn block(&mut self, depth: usize) {
        let visible = self.visible.len();
        for _ in 0..3 + self.random.below(6) {
            if self.statements == 0 {
                break;
            }
            self.statements -= 1;
            self.statement(depth);
        }
        self.visible.truncate(visible);
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth < 4 { 20 } else { 13 }) {
            0..5 => {
                let value = self.value();
                self.visible.push(value);
            }
            5..8 => self.store(),
            8..10 => {
                let (var, value) = (self.random.one_of(&self.vars), self.operand());
                self.b.set(var, value);
            }
            10 => self.atomic(),
            11 if depth == 0 && self.labels.len() == 1 => self.b.barrier(Barrier::Workgroup),
            11 | 12 => {
                let condition = self.condition();
                let label = self.random.one_of(&self.labels);
                // Leaving the kernel makes later barriers invalid.
                if label != Label::KERNEL || self.random.one_in(4) {
                    self.b.if_then(condition, |b| b.break_to(label));
                }
            }
            13..16 => self.branch(depth),
            16..18 => self.repeat(depth),
            _ => self.scope(depth),
        }
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.condition();
        let [then_block, else_block] = [(); 2].map(|()| {
            self.b.open();
            self.block(depth + 1);
            self.b.close()
        });
        self.b.push(scry_gpu::kir::Stmt::If { condition, then_block, else_block, at: None });
    }

    fn scope(&mut self, depth: usize) {
        let label = self.b.label();
        self.labels.push(label);
        self.b.open();
        self.block(depth + 1);
        let body = self.b.close();
        self.labels.pop();
        self.b.push(scry_gpu::kir::Stmt::Scope { label, body });
    }

    /// Adds a loop that claims to be finite. If it need not be, it may lack its exit, increment a
    /// stale copy of its counter, or change the counter elsewhere.
    fn repeat(&mut self, depth: usize) {
        let counter = self.b.var(Type::U32);
        let (one, end) = (self.b.u32(1), 1 + self.random.below(6) as u32);
        let end = self.b.u32(end);
        let may_be_endless = self.endless && self.random.one_in(2);
        let stale = self.b.get(counter);
        let label = self.b.label();
        self.b.open();
        let now = self.b.get(counter);
        let bound = if may_be_endless && self.random.one_in(3) { self.operand() } else { end };
        let done = self.b.binary(BinaryOp::Ge, now, bound);
        if !(may_be_endless && self.random.one_in(3)) {
            self.b.if_then(done, |b| b.break_to(label));
        }
        let from = if may_be_endless && self.random.one_in(2) { stale } else { now };
        let next = self.b.binary(BinaryOp::Add, from, one);
        self.b.set(counter, next);
        self.visible.push(now);
        self.labels.push(label);
        self.block(depth + 1);
        if may_be_endless && self.random.one_in(2) {
            let value = self.operand();
            self.b.set(counter, value);
        }
        self.labels.pop();
        self.visible.retain(|value| *value != now);
        let body = self.b.close();
        self.b.push(scry_gpu::kir::Stmt::Loop { label, body, finite: true });
    }

    fn operand(&mut self) -> Value {
        self.random.one_of(&self.visible)
    }

    fn condition(&mut self) -> Value {
        let (a, b) = (self.operand(), self.number());
        let op = self.random.one_of(&[BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne]);
        self.b.binary(op, a, b)
    }

    fn number(&mut self) -> Value {
        let number = self.random.number();
        self.b.u32(number)
    }

    /// Adds a value of type `U32`.
    fn value(&mut self) -> Value {
        let (a, c) = (self.operand(), self.operand());
        match self.random.below(14) {
            0 => self.number(),
            1 => self.b.unary(UnaryOp::Not, a),
            2 => self.b.global_id(0),
            3 => {
                let condition = self.condition();
                self.b.select(condition, a, c)
            }
            4 => {
                let var = self.random.one_of(&self.vars);
                self.b.get(var)
            }
            5 => {
                let (binding, offset) = (self.random.below(3) as u32, self.random.below(3) as u32);
                let stride = 4 * self.random.one_of(&[1, 1, 2, 3, 4]);
                self.b.array_length(binding, 4 * offset, stride)
            }
            6..9 => self.load(),
            _ => {
                use BinaryOp::{Add, And, Div, Max, Min, Mul, Rem, Shl, Shr, Sub, Xor};
                let ops = [Add, Add, Sub, Mul, Shl, Shr, And, Xor, Min, Max, Div, Rem];
                let op = self.random.one_of(&ops);
                self.b.binary(op, a, c)
            }
        }
    }

    fn load(&mut self) -> Value {
        let (place, ty) = self.load_place();
        let count = self.random.one_of(&[1, 1, 2, 3, 4]);
        let loaded = self.b.load(ty, place, count);
        let value = loaded[self.random.below(loaded.len())];
        self.b.bitcast(Type::U32, value)
    }

    fn store(&mut self) {
        let (place, ty) = self.store_place();
        let count = self.random.one_of(&[1, 1, 2, 3, 4]);
        let mut values = Vec::new();
        for _ in 0..count {
            let value = self.operand();
            values.push(self.b.bitcast(ty, value));
        }
        self.b.store(place, values);
    }

    fn atomic(&mut self) {
        let buffer = self.random.one_of(&[AddressSpace::Binding(0), self.arrays[0]]);
        let place = self.place_in(buffer, 4);
        let op = self.random.one_of(&[AtomicOp::Add, AtomicOp::Max, AtomicOp::Exchange]);
        let value = self.operand();
        let old = self.b.atomic(Type::U32, op, place, Some(value), None);
        self.visible.push(old);
    }

    /// Returns a place to load from, and the type of its values.
    fn load_place(&mut self) -> (Place, Type) {
        self.place(true)
    }

    /// Returns a place to store to, and the type of its values.
    fn store_place(&mut self) -> (Place, Type) {
        self.place(false)
    }

    fn place(&mut self, is_load: bool) -> (Place, Type) {
        let binding = AddressSpace::Binding;
        let (space, ty) = match self.random.below(if is_load { 9 } else { 7 }) {
            0..2 => (binding(0), Type::U32),
            // Another type than the buffer's.
            2 => (binding(0), Type::F32),
            3 | 4 => (binding(2), Type::I32),
            5 => (self.arrays[0], Type::U32),
            6 => (self.arrays[1], Type::U32),
            7 => (AddressSpace::Immediate, Type::U32),
            _ => (binding(1), Type::F32),
        };
        (self.place_in(space, ty.size()), ty)
    }

    fn place_in(&mut self, space: AddressSpace, size: u32) -> Place {
        let index = (!self.random.one_in(6)).then(|| self.operand());
        let small = self.random.one_of(&[1, 1, 1, 2, 3, 4]);
        let large = self.random.one_of(&[0, 1 << 10, 1 << 28, 0x3fff_ffff]);
        let stride = size * if self.random.one_in(10) { large } else { small };
        let is_buffer = matches!(space, AddressSpace::Binding(_));
        let offset = size * if is_buffer { self.random.one_of(&[0, 0, 1, 2, 5]) } else { 0 };
        Place::new(space, index, stride, offset)
    }
}
