//! Checks facts by executing kernels twice: each invocation by itself, and all in lockstep, where
//! every liberty that the facts give is taken. Uniformity despite races is checked by invocations
//! that execute by themselves and each read something else.
//!
//! This is not the reference interpreter on purpose: it overwrites what the facts declare unused,
//! and memory is a function of the index, which a faithful interpreter cannot do.

use std::collections::HashMap;

use crate::kir::random::{self, SIZE};
use crate::kir::uniformity::{Uniformity, Variability};
use crate::kir::{BinaryOp, Block, Builtin, Inst, Kir, Label, Stmt, UnaryOp, Value};

const LANES: usize = (SIZE[0] * SIZE[1] * SIZE[2]) as usize;

/// What an invocation computed, in order.
type Trace = Vec<(Value, u32)>;

fn local(lane: usize) -> [u32; 3] {
    let lane = lane as u32;
    [lane % SIZE[0], lane / SIZE[0] % SIZE[1], lane / (SIZE[0] * SIZE[1])]
}

/// The result of an instruction that does not read a variable.
fn evaluate(inst: &Inst, lane: usize, of: impl Fn(Value) -> u32) -> u32 {
    match inst {
        Inst::Const(constant) => constant.bits as u32,
        Inst::Builtin(Builtin::LocalId(axis)) => local(lane)[usize::from(*axis)],
        Inst::Builtin(Builtin::GroupId(_)) => 5,
        Inst::Unary(UnaryOp::Neg, a) => of(*a).wrapping_neg(),
        Inst::Unary(UnaryOp::Not, a) => !of(*a),
        Inst::Binary(op, a, b) => combine(*op, of(*a), of(*b)),
        Inst::Select(condition, a, b) => of(if of(*condition) != 0 { *a } else { *b }),
        Inst::Convert(a) | Inst::Bitcast(a) => of(*a),
        // What lies in the buffer: something else at each index.
        Inst::Load { place, .. } => place.index.map_or(0, of).wrapping_mul(0x9e37_79b1) >> 7,
        other => unreachable!("no random kernel has {other:?}"),
    }
}

fn combine(op: BinaryOp, a: u32, b: u32) -> u32 {
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Shl => a.wrapping_shl(b),
        BinaryOp::And => a & b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Eq => u32::from(a == b),
        BinaryOp::Lt => u32::from(a < b),
        BinaryOp::Gt => u32::from(a > b),
        BinaryOp::Ge => u32::from(a >= b),
        other => unreachable!("no random kernel has {other:?}"),
    }
}

/// One invocation.
struct Alone<'a> {
    kir: &'a Kir,
    lane: usize,
    values: Vec<u32>,
    vars: Vec<u32>,
    trace: Trace,
    /// Whether no other invocation writes the memory that it reads.
    races: bool,
    /// Iterations so far of each loop around the statement.
    iterations: Vec<u32>,
    /// What each execution of a statement computed.
    executions: HashMap<(Value, Vec<u32>), u32>,
}

impl<'a> Alone<'a> {
    fn new(kir: &'a Kir, lane: usize, races: bool) -> Self {
        Self {
            kir,
            lane,
            values: vec![0; kir.values.len()],
            vars: vec![0; kir.vars.len()],
            trace: Trace::new(),
            races,
            iterations: Vec::new(),
            executions: HashMap::new(),
        }
    }

    /// Executes a block; gives the label by which it is left early.
    fn block(&mut self, block: &Block) -> Option<Label> {
        block.iter().find_map(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Label> {
        match stmt {
            Stmt::Let(value) => self.compute(*value),
            Stmt::Set(var, value) => self.vars[var.index()] = self.values[value.index()],
            Stmt::If { condition, then_block, else_block, .. } => {
                let holds = self.values[condition.index()] != 0;
                return self.block(if holds { then_block } else { else_block });
            }
            Stmt::Loop { label, body, .. } => return self.repeat(*label, body),
            Stmt::Scope { label, body } => return self.block(body).filter(|left| left != label),
            Stmt::Leave(label) => return Some(*label),
            other => unreachable!("no random kernel has {other:?}"),
        }
        None
    }

    fn repeat(&mut self, label: Label, body: &Block) -> Option<Label> {
        self.iterations.push(0);
        let left = loop {
            if let Some(left) = self.block(body) {
                break left;
            }
            *self.iterations.last_mut().unwrap() += 1;
        };
        self.iterations.pop();
        (left != label).then_some(left)
    }

    fn compute(&mut self, value: Value) {
        let result = match self.kir.inst(value) {
            Inst::Get(var) => self.vars[var.index()],
            Inst::Load { .. } if self.races => 0x9e37_79b1u32.wrapping_mul(self.lane as u32) >> 29,
            inst => evaluate(inst, self.lane, |operand| self.values[operand.index()]),
        };
        self.values[value.index()] = result;
        self.trace.push((value, result));
        self.executions.insert((value, self.iterations.clone()), result);
    }
}

/// All invocations. Sets of them are bits.
struct Together<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    /// Whether affine values have to be of that form.
    exact: bool,
    values: Vec<[u32; LANES]>,
    vars: Vec<[u32; LANES]>,
    /// Who waits at the end of a label.
    left: Vec<u32>,
    traces: Vec<Trace>,
}

fn lanes(set: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| set >> lane & 1 != 0)
}

/// What inactive invocations' copies are overwritten with.
const GARBAGE: u32 = 0xdead_beef;

impl Together<'_> {
    /// Executes a block for a set of invocations; gives those that come to its end.
    fn block(&mut self, block: &Block, mut active: u32) -> u32 {
        for stmt in block {
            if active == 0 {
                break;
            }
            active = self.stmt(stmt, active);
        }
        active
    }

    fn stmt(&mut self, stmt: &Stmt, active: u32) -> u32 {
        match stmt {
            Stmt::Let(value) => self.compute(*value, active),
            Stmt::Set(var, value) => {
                let from = self.values[value.index()];
                let partial = self.uniformity.var(*var).partial;
                let uniform = self.uniformity.var(*var).class == Variability::Uniform;
                write(&mut self.vars[var.index()], from, active, uniform, partial);
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                let condition = self.values[condition.index()];
                let holds = lanes(active).filter(|lane| condition[*lane] != 0);
                let holds = holds.fold(0, |set, lane| set | 1 << lane);
                return self.block(then_block, holds) | self.block(else_block, active & !holds);
            }
            Stmt::Loop { label, body, .. } => {
                let mut inside = active;
                while inside != 0 {
                    inside = self.block(body, inside);
                }
                return std::mem::take(&mut self.left[label.0 as usize]);
            }
            Stmt::Scope { label, body } => {
                let end = self.block(body, active);
                return end | std::mem::take(&mut self.left[label.0 as usize]);
            }
            Stmt::Leave(label) => {
                self.left[label.0 as usize] |= active;
                return 0;
            }
            other => unreachable!("no random kernel has {other:?}"),
        }
        active
    }

    fn compute(&mut self, value: Value, active: u32) {
        let mut result = [0; LANES];
        for lane in lanes(active) {
            result[lane] = match self.kir.inst(value) {
                Inst::Get(var) => self.vars[var.index()][lane],
                inst => evaluate(inst, lane, |operand| self.values[operand.index()][lane]),
            };
            self.traces[lane].push((value, result[lane]));
        }
        let class = self.uniformity.value(value);
        if class == Variability::Affine && self.exact {
            assert!(is_affine(&result, active), "{value:?} is not affine: {result:?}");
        }
        write(
            &mut self.values[value.index()],
            result,
            active,
            class == Variability::Uniform,
            false,
        );
    }
}

/// Writes the active invocations' copies, and unless the rest may matter, that as well.
fn write(to: &mut [u32; LANES], from: [u32; LANES], active: u32, uniform: bool, partial: bool) {
    if !partial {
        let first = lanes(active).next().map_or(GARBAGE, |lane| from[lane]);
        *to = [if uniform { first } else { GARBAGE }; LANES];
    }
    if partial || !uniform {
        lanes(active).for_each(|lane| to[lane] = from[lane]);
    }
}

/// Whether equal steps from one position to another change the value by the same amount.
fn is_affine(values: &[u32; LANES], active: u32) -> bool {
    let step = |a: usize, b: usize| {
        let (a, b) = (local(a), local(b));
        [0, 1, 2].map(|axis| b[axis] as i32 - a[axis] as i32)
    };
    let mut steps = HashMap::new();
    lanes(active).all(|a| {
        lanes(active).all(|b| {
            let change = values[b].wrapping_sub(values[a]);
            *steps.entry(step(a, b)).or_insert(change) == change
        })
    })
}

fn check(seed: u64, bounds: bool) -> Uniformity {
    let kir = random::kernel(seed, bounds);
    let uniformity = kir.uniformity();
    let mut together = Together {
        kir: &kir,
        uniformity: &uniformity,
        exact: !bounds,
        values: vec![[GARBAGE; LANES]; kir.values.len()],
        vars: vec![[0; LANES]; kir.vars.len()],
        left: vec![0; kir.labels as usize],
        traces: vec![Trace::new(); LANES],
    };
    together.block(&kir.body, (1 << LANES) - 1);
    for (lane, trace) in together.traces.iter().enumerate() {
        let mut alone = Alone::new(&kir, lane, false);
        let _ = alone.block(&kir.body);
        let pairs = alone.trace.iter().zip(trace);
        let same = pairs.take_while(|(a, b)| a == b).count();
        assert!(
            alone.trace == *trace,
            "seed {seed}, lane {lane}: {:?} in lockstep, {:?} alone\n{kir:#?}\n{uniformity:#?}",
            trace.get(same),
            alone.trace.get(same),
        );
    }
    uniformity
}

#[test]
fn facts_hold_in_random_kernels() {
    let mut seen = [0; 5];
    for seed in 0..4000 {
        let uniformity = check(seed, seed % 2 == 0);
        for var in &uniformity.vars {
            seen[var.class as usize] += 1;
            seen[3] += usize::from(var.partial);
            seen[4] += usize::from(var.class == Variability::Varying && !var.partial);
        }
    }
    // The kernels are such that every kind of variable is common.
    assert!(seen.iter().all(|count| *count > 300), "{seen:?}");
}

/// Gives how many executions of statements were of uniform values, by more than one invocation.
fn check_races(seed: u64) -> usize {
    let mut kir = random::kernel(seed, seed.is_multiple_of(2));
    kir.buffers[0].writable = true;
    let uniformity = kir.uniformity_despite_races();
    let mut first = HashMap::new();
    let mut shared = 0;
    for lane in 0..LANES {
        let mut alone = Alone::new(&kir, lane, true);
        let _ = alone.block(&kir.body);
        let is_uniform = |value: Value| uniformity.value(value) == Variability::Uniform;
        for (execution, result) in alone.executions {
            if !is_uniform(execution.0) {
                continue;
            }
            if let Some(known) = first.insert(execution.clone(), result) {
                assert_eq!(known, result, "seed {seed}, {execution:?}\n{kir:#?}\n{uniformity:#?}");
                shared += 1;
            }
        }
    }
    shared
}

#[test]
fn racing_invocations_agree_on_uniform_values() {
    let shared: usize = (0..4000).map(check_races).sum();
    assert!(shared > 100_000, "only {shared} values were compared");
}
