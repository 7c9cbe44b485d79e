//! Tests that execute random kernels twice: each invocation by itself, and all in lockstep. The
//! lockstep execution relies on the results of the analysis: it uses the value of one invocation
//! for all if it is uniform, and overwrites the copies of inactive invocations wherever that is
//! permitted. Uniformity despite races is tested by invocations that execute by themselves and load
//! values that depend on the lane.
//!
//! This is intentionally not the reference interpreter, which cannot overwrite copies that should
//! be unused, and in which memory is not a function of the index.

use std::collections::HashMap;

use crate::kir::random::{self, SIZE};
use crate::kir::uniformity::{Uniformity, Variability};
use crate::kir::{BinaryOp, Block, Builtin, Inst, Kir, Label, Stmt, UnaryOp, Value};

const LANES: usize = (SIZE[0] * SIZE[1] * SIZE[2]) as usize;

/// The values that an invocation computed, in order.
type Trace = Vec<(Value, u32)>;

/// Returns the position of an invocation in the workgroup.
fn local_id(lane: usize) -> [u32; 3] {
    let lane = lane as u32;
    [lane % SIZE[0], lane / SIZE[0] % SIZE[1], lane / (SIZE[0] * SIZE[1])]
}

/// Returns the result of an instruction that does not read a variable.
fn evaluate(inst: &Inst, lane: usize, get: impl Fn(Value) -> u32) -> u32 {
    match inst {
        Inst::Const(constant) => constant.bits as u32,
        Inst::Builtin(Builtin::LocalId(axis)) => local_id(lane)[usize::from(*axis)],
        // An arbitrary number, the same for all invocations.
        Inst::Builtin(Builtin::GroupId(_)) => 5,
        Inst::Unary(UnaryOp::Neg, a) => get(*a).wrapping_neg(),
        Inst::Unary(UnaryOp::Not, a) => !get(*a),
        Inst::Binary(op, a, b) => combine(*op, get(*a), get(*b)),
        Inst::Select(condition, a, b) => get(if get(*condition) != 0 { *a } else { *b }),
        Inst::Convert(a) | Inst::Bitcast(a) => get(*a),
        // The content of the buffer is a hash of the index.
        Inst::Load { place, .. } => place.index.map_or(0, get).wrapping_mul(0x9e37_79b1) >> 7,
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

/// The execution of a single invocation.
struct Single<'a> {
    kir: &'a Kir,
    lane: usize,
    values: Vec<u32>,
    vars: Vec<u32>,
    trace: Trace,
    /// Whether other invocations write the memory that it reads. Then the loaded values depend on
    /// the lane.
    races: bool,
    /// Number of completed iterations of each enclosing loop.
    iterations: Vec<u32>,
    /// The result of each execution of a statement, by the iterations of the enclosing loops.
    executions: HashMap<(Value, Vec<u32>), u32>,
}

impl<'a> Single<'a> {
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

    /// Executes a block; returns the label that it exits, if it does not reach its end.
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
            Stmt::Loop { label, body, .. } => return self.run_loop(*label, body),
            Stmt::Scope { label, body } => {
                return self.block(body).filter(|exited| exited != label);
            }
            Stmt::Break(label) => return Some(*label),
            other => unreachable!("no random kernel has {other:?}"),
        }
        None
    }

    fn run_loop(&mut self, label: Label, body: &Block) -> Option<Label> {
        self.iterations.push(0);
        let exited = loop {
            if let Some(exited) = self.block(body) {
                break exited;
            }
            *self.iterations.last_mut().unwrap() += 1;
        };
        self.iterations.pop();
        (exited != label).then_some(exited)
    }

    fn compute(&mut self, value: Value) {
        let result = match self.kir.inst(value) {
            Inst::Get(var) => self.vars[var.index()],
            // A small hash of the lane.
            Inst::Load { .. } if self.races => 0x9e37_79b1u32.wrapping_mul(self.lane as u32) >> 29,
            inst => evaluate(inst, self.lane, |operand| self.values[operand.index()]),
        };
        self.values[value.index()] = result;
        self.trace.push((value, result));
        self.executions.insert((value, self.iterations.clone()), result);
    }
}

/// The lockstep execution of all invocations. A set of invocations is a bit mask.
struct Lockstep<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    /// Whether affine values are asserted to be affine, which `Min` and `Max` need not be.
    check_affine: bool,
    values: Vec<[u32; LANES]>,
    vars: Vec<[u32; LANES]>,
    /// For each label, the invocations that have exited it and wait at its end.
    waiting: Vec<u32>,
    traces: Vec<Trace>,
}

fn lanes(set: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| set >> lane & 1 != 0)
}

/// The value with which unused copies are overwritten.
const GARBAGE: u32 = 0xdead_beef;

impl Lockstep<'_> {
    /// Executes a block for a set of invocations; returns those that reach its end.
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
                let partial = self.uniformity.var(*var).partially_assigned;
                let uniform = self.uniformity.var(*var).variability == Variability::Uniform;
                write(&mut self.vars[var.index()], from, active, uniform, partial);
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                let condition = self.values[condition.index()];
                let taken = lanes(active).filter(|lane| condition[*lane] != 0);
                let taken = taken.fold(0, |set, lane| set | 1 << lane);
                return self.block(then_block, taken) | self.block(else_block, active & !taken);
            }
            Stmt::Loop { label, body, .. } => {
                let mut inside = active;
                while inside != 0 {
                    inside = self.block(body, inside);
                }
                return std::mem::take(&mut self.waiting[label.0 as usize]);
            }
            Stmt::Scope { label, body } => {
                let end = self.block(body, active);
                return end | std::mem::take(&mut self.waiting[label.0 as usize]);
            }
            Stmt::Break(label) => {
                self.waiting[label.0 as usize] |= active;
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
        let variability = self.uniformity.value(value);
        if variability == Variability::Affine && self.check_affine {
            assert!(is_affine(&result, active), "{value:?} is not affine: {result:?}");
        }
        write(
            &mut self.values[value.index()],
            result,
            active,
            variability == Variability::Uniform,
            false,
        );
    }
}

/// Writes the copies of the active invocations. Unless `partial`, also overwrites the other copies,
/// which must be unused, and if `uniform`, writes the first active invocation's value to all.
fn write(to: &mut [u32; LANES], from: [u32; LANES], active: u32, uniform: bool, partial: bool) {
    if !partial {
        let first = lanes(active).next().map_or(GARBAGE, |lane| from[lane]);
        *to = [if uniform { first } else { GARBAGE }; LANES];
    }
    if partial || !uniform {
        lanes(active).for_each(|lane| to[lane] = from[lane]);
    }
}

/// Returns whether equal steps from one position in the workgroup to another change the value by
/// the same amount.
fn is_affine(values: &[u32; LANES], active: u32) -> bool {
    let step = |a: usize, b: usize| {
        let (a, b) = (local_id(a), local_id(b));
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

/// Asserts that lockstep execution of a random kernel computes the same as each invocation by
/// itself. Returns the uniformity of the kernel, which has `Min` and `Max` if `bounds`.
fn assert_lockstep_agrees(seed: u64, bounds: bool) -> Uniformity {
    let kir = random::kernel(seed, bounds);
    let uniformity = kir.uniformity();
    let mut lockstep = Lockstep {
        kir: &kir,
        uniformity: &uniformity,
        check_affine: !bounds,
        values: vec![[GARBAGE; LANES]; kir.values.len()],
        vars: vec![[0; LANES]; kir.vars.len()],
        waiting: vec![0; kir.labels as usize],
        traces: vec![Trace::new(); LANES],
    };
    lockstep.block(&kir.body, (1 << LANES) - 1);
    for (lane, trace) in lockstep.traces.iter().enumerate() {
        let mut single = Single::new(&kir, lane, false);
        let _ = single.block(&kir.body);
        let pairs = single.trace.iter().zip(trace);
        let same = pairs.take_while(|(a, b)| a == b).count();
        assert!(
            single.trace == *trace,
            "seed {seed}, lane {lane}: {:?} in lockstep, {:?} by itself\n{kir:#?}\n{uniformity:#?}",
            trace.get(same),
            single.trace.get(same),
        );
    }
    uniformity
}

#[test]
fn lockstep_agrees_on_random_kernels() {
    // Uniform, affine, varying, partial, and varying but not partial variables.
    let mut counts = [0; 5];
    for seed in 0..4000 {
        let uniformity = assert_lockstep_agrees(seed, seed % 2 == 0);
        for var in &uniformity.vars {
            counts[var.variability as usize] += 1;
            counts[3] += usize::from(var.partially_assigned);
            counts[4] +=
                usize::from(var.variability == Variability::Varying && !var.partially_assigned);
        }
    }
    // Every kind of variable must be common, so that the test covers it.
    assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
}

/// Asserts that racing invocations compute the same uniform values in a random kernel. Returns the
/// number of values that were compared.
fn assert_races_agree(seed: u64) -> usize {
    let mut kir = random::kernel(seed, seed.is_multiple_of(2));
    kir.buffers[0].writable = true;
    let uniformity = kir.uniformity_despite_races();
    let mut results = HashMap::new();
    let mut compared = 0;
    for lane in 0..LANES {
        let mut single = Single::new(&kir, lane, true);
        let _ = single.block(&kir.body);
        let is_uniform = |value: Value| uniformity.value(value) == Variability::Uniform;
        for (execution, result) in single.executions {
            if !is_uniform(execution.0) {
                continue;
            }
            if let Some(other) = results.insert(execution.clone(), result) {
                assert_eq!(other, result, "seed {seed}, {execution:?}\n{kir:#?}\n{uniformity:#?}");
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn racing_invocations_agree_on_uniform_values() {
    let compared: usize = (0..4000).map(assert_races_agree).sum();
    assert!(compared > 100_000, "only {compared} values were compared");
}
