//! Random structured kernels that terminate. Their loads from the buffer may be out of bounds.

use super::{
    AddressSpace, BinaryOp, Builder, Builtin, Const, Kir, Label, Place, Stmt, Type, UnaryOp, Value,
    Var,
};
use crate::Access;

/// Shape of the workgroups: 12 invocations.
pub(crate) const SIZE: [u32; 3] = [3, 2, 2];

/// Generates a kernel from a seed, with `Min` and `Max` instructions if `min_max`.
pub(crate) fn kernel(seed: u64, min_max: bool) -> Kir {
    let mut random = Random { state: seed, min_max, remaining: 60 };
    let mut b = Builder::new("random", SIZE);
    let buffer = b.buffer(Access::Read);
    let vars = (0..6).map(|_| b.var(Type::U32)).collect();
    let mut scene = Scene { buffer, vars, visible: Vec::new(), labels: vec![Label::KERNEL] };
    for axis in 0..3 {
        scene.visible.push(b.builtin(Builtin::LocalId(axis)));
    }
    scene.visible.push(b.builtin(Builtin::GroupId(0)));
    scene.visible.push(b.u32(3));
    random.block(&mut b, &mut scene, 0);
    b.finish()
}

struct Random {
    state: u64,
    min_max: bool,
    /// Number of statements that may still be generated.
    remaining: u32,
}

/// What a statement can use.
struct Scene {
    /// A read-only buffer.
    buffer: u32,
    vars: Vec<Var>,
    /// `U32` values that are visible.
    visible: Vec<Value>,
    /// Labels that can be exited.
    labels: Vec<Label>,
}

impl Random {
    /// Returns a random number below a limit (splitmix64).
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn block(&mut self, b: &mut Builder, scene: &mut Scene, depth: usize) {
        let visible = scene.visible.len();
        for _ in 0..3 + self.below(5) {
            if self.remaining == 0 {
                break;
            }
            self.remaining -= 1;
            self.statement(b, scene, depth);
        }
        scene.visible.truncate(visible);
    }

    /// Adds a statement; nested blocks only up to a depth of 5.
    fn statement(&mut self, b: &mut Builder, scene: &mut Scene, depth: usize) {
        match self.below(if depth < 5 { 16 } else { 11 }) {
            0..4 => {
                let var = self.one_of(&scene.vars);
                scene.visible.push(b.get(var));
            }
            4..8 => {
                let value = self.value(b, scene);
                b.set(self.one_of(&scene.vars), value);
            }
            8..10 => {
                let value = self.value(b, scene);
                scene.visible.push(value);
            }
            10 => {
                let label = self.one_of(&scene.labels);
                let condition = self.condition(b, scene);
                b.if_then(condition, |b| {
                    let assigns = self.below(2) == 0;
                    assigns.then(|| self.assign(b, scene));
                    b.break_to(label);
                });
            }
            11..14 => self.branch(b, scene, depth),
            14 => self.repeat(b, scene, depth),
            _ => b.scope(|b, label| {
                scene.labels.push(label);
                self.block(b, scene, depth + 1);
                scene.labels.pop();
            }),
        }
    }

    fn assign(&mut self, b: &mut Builder, scene: &Scene) {
        let value = self.one_of(&scene.visible);
        b.set(self.one_of(&scene.vars), value);
    }

    fn branch(&mut self, b: &mut Builder, scene: &mut Scene, depth: usize) {
        let condition = self.condition(b, scene);
        b.open();
        self.block(b, scene, depth + 1);
        let then_block = b.close();
        b.open();
        if self.below(2) == 0 {
            self.block(b, scene, depth + 1);
        }
        let else_block = b.close();
        b.push(Stmt::If { condition, then_block, else_block, at: None });
    }

    /// Adds a loop of a few iterations with its own counter, which is usually initialised.
    fn repeat(&mut self, b: &mut Builder, scene: &mut Scene, depth: usize) {
        let counter = b.var(Type::U32);
        if self.below(4) != 0 {
            let first = if self.below(4) == 0 { self.small(b, scene) } else { b.u32(0) };
            b.set(counter, first);
        }
        let limit = if self.below(3) == 0 { self.small(b, scene) } else { b.u32(3) };
        b.finite_loop(|b, label| {
            let count = b.get(counter);
            let done = b.binary(BinaryOp::Ge, count, limit);
            b.if_then(done, |b| b.break_to(label));
            let one = b.u32(1);
            let next = b.binary(BinaryOp::Add, count, one);
            b.set(counter, next);
            scene.labels.push(label);
            self.block(b, scene, depth + 1);
            scene.labels.pop();
        });
        if self.below(4) == 0 {
            scene.visible.push(b.get(counter));
        }
    }

    /// Adds a value below four.
    fn small(&mut self, b: &mut Builder, scene: &Scene) -> Value {
        let value = self.one_of(&scene.visible);
        let three = b.u32(3);
        b.binary(BinaryOp::And, value, three)
    }

    fn condition(&mut self, b: &mut Builder, scene: &Scene) -> Value {
        let left = self.small(b, scene);
        let right = b.u32(1);
        b.binary(self.one_of(&[BinaryOp::Eq, BinaryOp::Lt, BinaryOp::Gt]), left, right)
    }

    fn value(&mut self, b: &mut Builder, scene: &Scene) -> Value {
        let (left, right) = (self.one_of(&scene.visible), self.one_of(&scene.visible));
        match self.below(10) {
            0 => b.unary(self.one_of(&[UnaryOp::Neg, UnaryOp::Not]), left),
            1 => {
                let condition = self.condition(b, scene);
                b.select(condition, left, right)
            }
            2 => {
                let place = Place::new(AddressSpace::Binding(scene.buffer), Some(left), 4, 0);
                b.load(Type::U32, place, 1)[0]
            }
            3 => {
                let signed = b.bitcast(Type::I32, left);
                b.convert(Type::U32, signed)
            }
            4 => b.constant(Const::u32(self.below(5) as u32)),
            5 if self.min_max => {
                b.binary(self.one_of(&[BinaryOp::Min, BinaryOp::Max]), left, right)
            }
            _ => {
                use BinaryOp::{Add, And, Mul, Shl, Sub, Xor};
                b.binary(self.one_of(&[Add, Add, Sub, Mul, Shl, And, Xor]), left, right)
            }
        }
    }
}
