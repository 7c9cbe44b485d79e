//! Tests with random kernels that are randomly damaged: each is rejected or made safe.

use crate::kir::interpret::{InterpretError, Interpreter};
use crate::kir::{
    AddressSpace, AtomicOp, BinaryOp, Definition, Inst, Kir, KirOptions, Label, Place, Stmt, Type,
    Value, Var, for_each_stmt_mut, random, verify,
};
use crate::{Program, ShaderErrorKind};

/// A generator of random numbers (a linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }

    /// Returns a small or an extreme number.
    fn number(&mut self) -> u32 {
        [0, 1, 2, 3, 4, 8, 64, 0x7fff_fffc, 0xffff_fffc, u32::MAX][self.below(10)]
    }

    fn value(&mut self, kir: &Kir) -> Value {
        if self.below(20) == 0 {
            Value(self.number())
        } else {
            Value(self.below(kir.values.len()) as u32)
        }
    }

    fn place(&mut self, kir: &Kir) -> Place {
        let nth = if self.below(20) == 0 { self.number() } else { 0 };
        let space = match self.below(4) {
            0 => AddressSpace::Workgroup(nth),
            1 => AddressSpace::Local(nth),
            _ => AddressSpace::Binding(nth),
        };
        let index = (self.below(4) != 0).then(|| self.value(kir));
        Place::new(space, index, self.number() & !3, self.number() & !3)
    }

    /// Changes a definition, a declaration or a statement.
    fn damage(&mut self, kir: &mut Kir) {
        let value = self.below(kir.values.len());
        match self.below(8) {
            0 => {
                kir.values[value].inst =
                    Inst::Load { place: self.place(kir), count: 1 + self.below(5) as u8 }
            }
            1 => {
                let (place, operand) = (self.place(kir), Some(self.value(kir)));
                let op = [AtomicOp::Add, AtomicOp::Load, AtomicOp::Store][self.below(3)];
                kir.values[value].inst = Inst::Atomic { op, place, value: operand, compare: None };
            }
            2 => kir.values[value].ty = Type::ALL[self.below(Type::ALL.len())],
            3 => {
                let (a, b) = (self.value(kir), self.value(kir));
                kir.values[value].inst = Inst::Binary(BinaryOp::Sub, a, b);
            }
            4 => kir.workgroup_size[self.below(3)] = self.number(),
            5 => kir.labels = self.number(),
            6 => {
                let ty = Type::ALL[self.below(Type::ALL.len())];
                kir.values.push(Definition { ty, inst: Inst::Get(Var(self.number())) });
            }
            _ => self.damage_statement(kir),
        }
    }

    /// Changes one statement.
    fn damage_statement(&mut self, kir: &mut Kir) {
        let mut count = 0;
        for_each_stmt_mut(&mut kir.body, &mut |_| count += 1);
        let (target, place, value) = (self.below(count), self.place(kir), self.value(kir));
        let stmt = match self.below(4) {
            0 => Stmt::Store { place, values: vec![value; self.below(6)], at: None },
            1 => Stmt::Set(Var(self.number()), value),
            2 => Stmt::Break(Label(self.number())),
            _ => Stmt::Let(value),
        };
        let mut index = 0;
        let mut stmt = Some(stmt);
        for_each_stmt_mut(&mut kir.body, &mut |old| {
            if index == target && old.blocks().next().is_none() {
                *old = stmt.take().unwrap();
            }
            index += 1;
        });
    }
}

/// Runs a kernel, for a limited number of iterations. Panics if an access is out of bounds.
fn run(kir: &Kir, what: &str) {
    let size = kir.buffers[0].min_size.next_multiple_of(4).max(12) as usize;
    let invocations: u64 = kir.workgroup_size.iter().map(|size| u64::from(*size)).product();
    if size > 1 << 20 || invocations > 64 {
        return;
    }
    let mut interpreter = Interpreter::new(kir, vec![vec![1; size]]);
    interpreter.iteration_limit = 1000;
    match interpreter.run([1, 1, 1]) {
        Ok(()) | Err(InterpretError::IterationLimit { .. }) => {}
        Err(error) => panic!("{what}: {error}\n{kir}"),
    }
}

#[test]
fn damaged_kernels_are_rejected_or_safe() {
    let [mut accepted, mut rejected] = [0, 0];
    for seed in 0..600 {
        let mut kir = random::kernel(seed, true);
        kir.buffers[0].writable = seed % 2 == 0;
        kir.workgroup.push(crate::kir::Array { ty: Type::U32, len: 5 });
        kir.locals.push(crate::kir::Array { ty: Type::U32, len: 3 });
        let mut random = Random(seed);
        for _ in 0..random.below(4) {
            random.damage(&mut kir);
        }
        let what = format!("seed {seed}");
        match Program::from_kir(&kir) {
            Ok(program) => {
                let kir = program.to_kir(&KirOptions { checked: true }).unwrap();
                verify(&kir).unwrap_or_else(|error| panic!("{what}: {error}"));
                run(&kir, &what);
                accepted += 1;
            }
            Err(error) => {
                assert_ne!(error.kind, ShaderErrorKind::Compiler, "{what}: {error}");
                rejected += 1;
            }
        }
    }
    assert!(accepted > 100 && rejected > 100, "{accepted} accepted, {rejected} rejected");
}
