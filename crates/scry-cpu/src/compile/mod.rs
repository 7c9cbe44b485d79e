//! From the kernel IR to steps.

mod affine;
mod conditions;
mod control;
mod counters;
mod demand;
mod disjoint;
mod exits;
mod insts;
mod limits;
mod liveness;
mod memory;
mod promotion;
mod registers;
mod streams;
mod values;

use std::sync::atomic::{AtomicU64, Ordering};

use scry_ir::kir::{Class, Facts, Kir, Type};

use self::conditions::Conditions;
use self::control::Construct;
use self::limits::Together;
use self::liveness::{Life, Lives};
use self::registers::Registers;
use self::values::Home;
use crate::code::{Code, Masks, Refusal, Step};
use crate::lanes::{BLOCK, Sizes};

/// The number of the next code.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Compiles a kernel.
pub(crate) fn compile(kir: &Kir) -> Result<Code, Refusal> {
    let together = limits::together(kir)?;
    // Lanes only leave loops at different times where each workgroup is executed by itself.
    let split = counters::split(kir, &together.facts, &together.parted);
    let (kir, Together { group, facts, parted }) = match &split {
        Some((kir, facts)) => (kir, together.with(kir, facts)),
        None => (kir, together),
    };
    let lives = liveness::lives(kir, &facts);
    let conditions = conditions::conditions(kir, &facts, &lives);
    let demand = demand::demand(kir, &facts, &lives);
    let blocks = group.lanes().div_ceil(BLOCK) as u32;
    let mut registers = Registers::new(blocks);
    let masks =
        Masks { alive: registers.forever(Type::Bool), outer: registers.forever(Type::Bool) };
    let mut emitter = Emitter {
        kir,
        facts: &facts,
        lives: &lives,
        demand,
        conditions,
        parted,
        homes: vec![None; kir.values.len()],
        splats: vec![None; kir.values.len()],
        vars: vec![None; kir.vars.len()],
        code: Code {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            steps: Vec::new(),
            group,
            files: Sizes::default(),
            scalars: 0,
            affines: 0,
            constants: Vec::new(),
            splats: Vec::new(),
            locals: Vec::new(),
            shared: Sizes::default(),
            masks,
            disjoint: disjoint::disjoint(kir),
            writable: kir.buffers.iter().map(|buffer| buffer.writable).collect(),
            depths: 0,
            conditions: 0,
            cost: limits::cost(kir, blocks, group.batch),
        },
        registers,
        shared: Vec::new(),
        position: 0,
        masks: vec![masks.outer],
        depth: 0,
        constructs: Vec::new(),
    };
    emitter.arrays();
    emitter.vars();
    emitter.kernel();
    emitter.code.files = emitter.registers.sizes();
    emitter.code.depths = emitter.masks.len();
    emitter.code.conditions = emitter.conditions.count;
    limits::check(&emitter.code)?;
    Ok(emitter.code)
}

/// What is known while steps are emitted.
struct Emitter<'a> {
    kir: &'a Kir,
    facts: &'a Facts,
    lives: &'a Lives,
    /// Values whose lanes somebody needs.
    demand: Vec<bool>,
    conditions: Conditions,
    /// Loops and scopes that lanes may leave while others stay, by label.
    parted: Vec<bool>,
    homes: Vec<Option<Home>>,
    /// Blocks that hold uniform values.
    splats: Vec<Option<u32>>,
    vars: Vec<Option<Home>>,
    code: Code,
    registers: Registers,
    /// Elements before each workgroup array.
    shared: Vec<u32>,
    /// Number of the present statement, as in [`lives`].
    position: u32,
    /// The mask register of each depth of divergence.
    masks: Vec<u32>,
    depth: usize,
    constructs: Vec<Construct>,
}

impl Emitter<'_> {
    fn push(&mut self, step: Step) {
        self.code.steps.push(step);
    }

    /// The position of the next step.
    fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    /// Finds room for workgroup and local memory.
    fn arrays(&mut self) {
        for array in &self.kir.workgroup {
            let sizes = &mut self.code.shared;
            let size = match array.ty.size() {
                1 => &mut sizes.bytes,
                2 => &mut sizes.halves,
                4 => &mut sizes.words,
                _ => &mut sizes.doubles,
            };
            self.shared.push(*size as u32);
            // Arrays begin at a block, so that whole blocks of them can be written.
            *size += (array.len as usize).next_multiple_of(BLOCK);
        }
        let blocks = self.code.group.lanes().div_ceil(BLOCK) as u32;
        for array in &self.kir.locals {
            let start = self.registers.array(array.ty, array.len);
            self.code.locals.push((array.ty, start, array.len * blocks));
        }
    }

    /// Finds places for variables that are zero at the start.
    fn vars(&mut self) {
        for (index, var) in self.lives.vars.iter().enumerate() {
            if var.zeroed {
                let ty = self.kir.vars[index];
                let home = self.place(ty, self.facts.vars[index].class, var.life);
                self.vars[index] = Some(home);
                self.zero(ty, home);
            }
        }
    }

    /// A new place for something of this class that lives that long.
    fn place(&mut self, ty: Type, class: Class, life: Life) -> Home {
        match class {
            Class::Uniform => Home::Scalar(self.scalar()),
            Class::Affine => {
                let lanes = self.registers.until(life.last, ty);
                Home::Affine(self.affine(lanes))
            }
            Class::Varying => Home::Lanes(self.registers.until(life.last, ty)),
        }
    }
}
