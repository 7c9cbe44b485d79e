//! Runs one invocation of a kernel, value by value; an access out of bounds panics.

use super::super::super::{
    AtomicOp, BinaryOp, Block, Builtin, Const, Inst, Kir, Label, Place, Space, Stmt, Type, Value,
};
use super::super::const_eval;
use std::collections::HashMap;

/// What an invocation changed outside itself, in order: where, which byte, which bits.
pub(super) type Effects = Vec<(Space, u64, u64)>;

/// An invocation.
pub(super) struct Run<'a> {
    kir: &'a Kir,
    local_id: [u32; 3],
    values: Vec<Option<u64>>,
    vars: Vec<u64>,
    memory: HashMap<Space, Vec<u8>>,
    effects: Effects,
    steps: u32,
}

/// Runs an invocation on buffers of these bytes.
pub(super) fn run(kir: &Kir, local_id: [u32; 3], buffers: &[Vec<u8>]) -> Effects {
    let mut memory = HashMap::new();
    for (number, bytes) in (0..).zip(buffers) {
        memory.insert(Space::Binding(number), bytes.clone());
    }
    for (number, array) in (0..).zip(&kir.workgroup) {
        memory.insert(Space::Workgroup(number), vec![0; array.size() as usize]);
    }
    for (number, array) in (0..).zip(&kir.locals) {
        memory.insert(Space::Local(number), vec![0; array.size() as usize]);
    }
    let values = vec![None; kir.values.len()];
    let vars = vec![0; kir.vars.len()];
    let mut run = Run { kir, local_id, values, vars, memory, effects: Vec::new(), steps: 0 };
    let _left = run.block(&kir.body);
    run.effects
}

impl Run<'_> {
    fn block(&mut self, block: &Block) -> Option<Label> {
        block.iter().find_map(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Label> {
        self.step();
        match stmt {
            Stmt::Let(value) => self.define(*value),
            Stmt::Set(var, value) => self.vars[var.index()] = self.get(*value).bits,
            Stmt::Store { place, values } => self.store(*place, values),
            Stmt::If { condition, accept, reject } => {
                let taken = if self.get(*condition).bits == 0 { reject } else { accept };
                return self.block(taken);
            }
            Stmt::Loop { label, body, .. } => loop {
                self.step();
                if let Some(left) = self.block(body) {
                    return (left != *label).then_some(left);
                }
            },
            Stmt::Scope { label, body } => {
                return self.block(body).filter(|left| left != label);
            }
            Stmt::Leave(label) => return Some(*label),
            Stmt::Barrier(_) => {}
        }
        None
    }

    fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < 100_000, "the kernel does not end");
    }

    fn get(&self, value: Value) -> Const {
        let bits = self.values[value.index()].expect("values are computed before they are used");
        Const { ty: self.kir.ty(value), bits }
    }

    fn at(&self, place: Place) -> u64 {
        let index = place.index.map_or(0, |index| self.get(index).bits);
        index * u64::from(place.stride) + u64::from(place.offset)
    }

    fn read(&self, ty: Type, space: Space, at: u64) -> u64 {
        let bytes = &self.memory[&space][at as usize..][..ty.size() as usize];
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        canonical(Const { ty, bits: u64::from_le_bytes(word) }).bits
    }

    fn write(&mut self, value: Const, space: Space, at: u64) {
        let size = value.ty.size() as usize;
        let bytes = &mut self.memory.get_mut(&space).expect("it is there")[at as usize..][..size];
        bytes.copy_from_slice(&value.bits.to_le_bytes()[..size]);
        if !matches!(space, Space::Local(_) | Space::Workgroup(_)) {
            self.effects.push((space, at, value.bits));
        }
    }

    fn store(&mut self, place: Place, values: &[Value]) {
        for (nth, value) in (0..).zip(values) {
            let value = self.get(*value);
            self.write(value, place.space, self.at(place) + nth * u64::from(value.ty.size()));
        }
    }

    fn define(&mut self, value: Value) {
        let ty = self.kir.ty(value);
        let bits = match *self.kir.inst(value) {
            Inst::Load { place, count } => {
                for nth in 0..u32::from(count) {
                    let at = self.at(place) + u64::from(nth * ty.size());
                    let index = value.index() + nth as usize;
                    self.values[index] = Some(self.read(ty, place.space, at));
                }
                return;
            }
            Inst::Get(var) => self.vars[var.index()],
            Inst::Builtin(builtin) => u64::from(self.builtin(builtin)),
            Inst::ArrayLength { binding, offset, stride } => {
                let bytes = self.memory[&Space::Binding(binding)].len() as u64;
                (bytes - u64::from(offset)) / u64::from(stride)
            }
            Inst::Atomic { op, place, value, .. } => self.atomic(ty, op, place, value),
            inst => self.compute(ty, &inst).bits,
        };
        self.values[value.index()] = Some(bits);
    }

    fn builtin(&self, builtin: Builtin) -> u32 {
        match builtin {
            Builtin::LocalId(axis) => self.local_id[usize::from(axis)],
            Builtin::GroupId(axis) => 2 - u32::from(axis),
            Builtin::GroupCount(_) => 3,
            Builtin::SubgroupSize | Builtin::SubgroupCount => 1,
            Builtin::SubgroupLane | Builtin::SubgroupId => 0,
        }
    }

    fn atomic(&mut self, ty: Type, op: AtomicOp, place: Place, value: Option<Value>) -> u64 {
        let old = Const { ty, bits: self.read(ty, place.space, self.at(place)) };
        let operand = self.get(value.expect("only additions are generated"));
        assert_eq!(op, AtomicOp::Add);
        let new = const_eval::binary(BinaryOp::Add, old, operand).expect("integers can be added");
        self.write(new, place.space, self.at(place));
        old.bits
    }

    fn compute(&self, ty: Type, inst: &Inst) -> Const {
        let binary = |op, a, b| const_eval::binary(op, a, b).expect("a function without tolerance");
        canonical(match *inst {
            Inst::Const(constant) => constant,
            Inst::Unary(op, a) => const_eval::unary(op, self.get(a)).expect("a function like that"),
            Inst::Binary(op, a, b) => binary(op, self.get(a), self.get(b)),
            Inst::Fma(a, b, c) => {
                let product = binary(BinaryOp::Mul, self.get(a), self.get(b));
                binary(BinaryOp::Add, product, self.get(c))
            }
            Inst::Select(condition, a, b) => {
                self.get(if self.get(condition).bits == 0 { b } else { a })
            }
            Inst::Convert(a) => const_eval::convert(ty, self.get(a)),
            Inst::Bitcast(a) => Const { ty, bits: self.get(a).bits },
            _ => unreachable!("{inst:?} is not generated"),
        })
    }
}

/// The same, with the one NaN that the evaluator makes.
fn canonical(constant: Const) -> Const {
    let nan = constant.ty == Type::F32 && f32::from_bits(constant.bits as u32).is_nan();
    if nan { Const::f32(f32::NAN) } else { constant }
}
