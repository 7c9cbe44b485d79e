//! Strip mining: lets long loops poll for cancellation, at no cost for each iteration.
//!
//! A loop that is proven to end may still iterate 2^32 times. It becomes two loops (`strip` is the
//! counter's change in a strip):
//!
//! ```text
//! L1: finite loop {                    L1: loop {
//!     if !(i < n) { break L1 }             limit = i < n ? i + min(n - i, strip) : n
//!     …                                    L2: finite loop {
//!     i = i + 1                                if !(i < limit) { break L2 }
//! }                                            …
//!                                              i = i + 1
//!                                          }
//!                                          if !(i < n) { break L1 }
//!                                      }
//! ```
//!
//! Backends poll in the outer loop, because it is not marked as finite. `limit` is never beyond
//! `n`: what passes proved by `i < n` still holds. The statements before the exit test are executed
//! once more for each strip, and therefore must have no side effects.
//!
//! A long loop of another form is marked as not finite, and polls in each iteration. Loops with
//! barriers of the workgroup are left as they are: drivers schedule the outer loop of tiled matrix
//! products worse if it is split, which made one of them a fifth slower.

use std::borrow::Cow;

use super::counter::Step;
use super::{Keep, Loop, keep};
use crate::Location;
use crate::kir::passes;
use crate::kir::unroll::{ExitTest, exit_test, has_effect};
use crate::kir::{
    Barrier, BinaryOp, Block, Const, Definition, Inst, Kir, Label, Stmt, Type, UnaryOp, Value, Var,
    any_stmt,
};

/// Maximum iterations between two polls, those of inner loops included: enough to make the cost of
/// a poll disappear, and few enough to poll many times a second.
const STRIP: u64 = 1 << 12;

/// Maximum depth of the operators in an exit test's condition.
const MAX_DEPTH: u32 = 4;

impl Kir {
    /// Returns the kernel with its long loops split, so that an invocation executes at most a few
    /// thousand iterations before it starts an iteration of a loop that is not marked as finite, in
    /// which backends poll for cancellation. The results are the same.
    ///
    /// Loops with workgroup barriers are not split, for speed, nor are kernels with cooperative
    /// matrices: a cancelled loop would separate the invocations of a subgroup.
    ///
    /// ```
    /// use scry_ir::{Program, kir::KirOptions};
    ///
    /// let program = Program::parse(
    ///     "@group(0) @binding(0) var<storage, read_write> sum: u32;
    ///      @group(0) @binding(1) var<uniform> n: u32;
    ///      @compute @workgroup_size(1) fn main() {
    ///          for (var i = 0u; i < n; i++) { sum += i * i; }
    ///      }",
    /// )?;
    /// let kir = program.to_kir(&KirOptions { checked: true })?;
    /// assert!(kir.to_string().contains("L1: finite loop"));
    /// assert!(kir.strip_mined().to_string().contains("L1: loop"));
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    #[must_use]
    pub fn strip_mined(&self) -> Cow<'_, Self> {
        strip_mined(self, STRIP)
    }

    /// Returns whether all loops are marked as finite.
    pub(crate) fn is_finite(&self) -> bool {
        !any_stmt(&self.body, &mut |stmt| matches!(stmt, Stmt::Loop { finite: false, .. }))
    }
}

/// [`Kir::strip_mined`], with at most `strip` iterations between two polls.
pub(super) fn strip_mined(kir: &Kir, strip: u64) -> Cow<'_, Kir> {
    let has_loops = any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { .. }));
    if !has_loops || kir.has_matrices() {
        return Cow::Borrowed(kir);
    }
    let mined = Kir { body: Block::new(), ..kir.clone() };
    let mut miner = Miner { kir, mined, strip };
    let (body, _) = miner.block(&kir.body, &[]);
    let mut mined = Kir { body, ..miner.mined };
    passes::clean_up(&mut mined);
    Cow::Owned(mined)
}

/// Returns the block with a loop's exit test: its body, or a scope at its start, which `continue`
/// leaves. `None` if something before the scope has side effects.
fn tested_block<'b>(kir: &Kir, body: &'b Block) -> Option<&'b Block> {
    match first_stmt(body) {
        Some((at, Stmt::Scope { body: inner, .. })) => {
            let is_pure = !body[..at].iter().any(|stmt| has_effect(kir, stmt));
            if is_pure { tested_block(kir, inner) } else { None }
        }
        _ => Some(body),
    }
}

/// [`tested_block`] of a loop that has one.
fn tested_block_mut(body: &mut Block) -> &mut Block {
    match first_stmt(body) {
        Some((at, Stmt::Scope { .. })) => match &mut body[at] {
            Stmt::Scope { body, .. } => tested_block_mut(body),
            _ => unreachable!("it is a scope"),
        },
        _ => body,
    }
}

/// Returns the first statement that is more than a value, and its position.
fn first_stmt(block: &Block) -> Option<(usize, &Stmt)> {
    block.iter().enumerate().find(|(_, stmt)| !matches!(stmt, Stmt::Let(_)))
}

/// Returns whether the invocations of a workgroup wait for each other in a block.
fn has_barrier(kir: &Kir, block: &Block) -> bool {
    any_stmt(block, &mut |stmt| match stmt {
        Stmt::Barrier(barrier, _) => *barrier == Barrier::Workgroup,
        Stmt::Let(value) => matches!(kir.inst(*value), Inst::WorkgroupUniformLoad { .. }),
        _ => false,
    })
}

/// The counter in the exit test of a loop that can be split.
struct Form {
    /// The exit test in the loop's [`tested_block`].
    test: ExitTest,
    /// The comparison of the counter with its end: the test's condition, or a part of it.
    comparison: Value,
    /// The value of the comparison with which the iteration continues.
    holds: bool,
    counter: Var,
    keep: Keep,
    /// The value that the counter is compared with, computed before the loop.
    end: Value,
    /// The change of the counter in each iteration: a constant, or a grid stride.
    step: Step,
    /// The operand that is added or subtracted in each iteration.
    by: Value,
}

impl Loop<'_> {
    /// Returns the counter by which a loop can be split.
    fn form(&self, label: Label, body: &Block) -> Option<Form> {
        let test = exit_test(self.kir, label, tested_block(self.kir, body)?)?;
        let mut comparisons = Vec::new();
        self.comparisons(test.condition, test.holds, MAX_DEPTH, &mut comparisons);
        comparisons.into_iter().find_map(|(comparison, holds)| {
            let Inst::Binary(op, a, b) = *self.kir.inst(comparison) else { return None };
            let keep = keep(op, holds)?;
            let sides = [(a, keep, b), (b, keep.mirrored(), a)];
            let (counter, keep, end) = sides.into_iter().find(|(counter, keep, end)| {
                self.counter_iterations(*counter, *keep, *end, false).is_some()
            })?;
            let Inst::Get(var) = *self.kir.inst(counter) else { return None };
            let step = self.step(var, self.kir.ty(counter))?;
            let (_, by) = self.update(var)?;
            let can_split = match step {
                Step::Add(_) => !self.computes(end),
                Step::Stride => !self.computes(end) && !self.computes(by),
                Step::Multiply(_) | Step::Divide | Step::ShiftRight => false,
            };
            let form = Form { test, comparison, holds, counter: var, keep, end, step, by };
            can_split.then_some(form)
        })
    }

    /// Collects the comparisons that have a certain value if `condition` has the value `holds`.
    fn comparisons(
        &self,
        condition: Value,
        holds: bool,
        depth: u32,
        found: &mut Vec<(Value, bool)>,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, a) => self.comparisons(a, !holds, depth, found),
            Inst::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                if (op == BinaryOp::And) == holds {
                    self.comparisons(a, holds, depth, found);
                    self.comparisons(b, holds, depth, found);
                }
            }
            _ => found.push((condition, holds)),
        }
    }
}

/// A kernel being rewritten.
struct Miner<'k> {
    kir: &'k Kir,
    /// The new kernel: the values of `kir`, and more.
    mined: Kir,
    /// Maximum iterations between two polls.
    strip: u64,
}

impl<'k> Miner<'k> {
    /// Rewrites a block. Returns it with a bound of the iterations that it executes without a poll.
    /// `before` is [`Loop::before`], for the block.
    fn block(&mut self, block: &'k [Stmt], before: &[&'k [Stmt]]) -> (Block, u64) {
        let mut iterations = 0u64;
        let mut out = Block::with_capacity(block.len());
        for (at, stmt) in block.iter().enumerate() {
            let before = || before.iter().copied().chain([&block[..at]]).collect::<Vec<_>>();
            let (stmt, own) = match stmt {
                Stmt::Loop { label, body, finite } => self.loop_(*label, body, *finite, &before()),
                Stmt::If { condition, then_block, else_block, at } => {
                    let (then_block, a) = self.block(then_block, &before());
                    let (else_block, b) = self.block(else_block, &before());
                    let (condition, at) = (*condition, *at);
                    (Stmt::If { condition, then_block, else_block, at }, a.max(b))
                }
                Stmt::Scope { label, body } => {
                    let (body, own) = self.block(body, &before());
                    (Stmt::Scope { label: *label, body }, own)
                }
                _ => (stmt.clone(), 0),
            };
            iterations = iterations.saturating_add(own);
            out.push(stmt);
        }
        (out, iterations)
    }

    /// Rewrites a loop; as [`Self::block`]. A loop that polls counts as one iteration.
    fn loop_(
        &mut self,
        label: Label,
        body: &'k Block,
        finite: bool,
        before: &[&'k [Stmt]],
    ) -> (Stmt, u64) {
        let (new_body, inner) = self.block(body, &[]);
        let one = inner.saturating_add(1);
        let this = Loop::new(self.kir, body, before);
        let trips = this.iterations(true).unwrap_or(u64::MAX);
        let all = trips.saturating_mul(one);
        if finite && (all <= self.strip || has_barrier(self.kir, body)) {
            return (Stmt::Loop { label, body: new_body, finite }, all);
        }
        let strip = self.strip / one;
        let stmt = match this.form(label, body) {
            Some(form) if finite && strip > 1 => self.split(label, new_body, &form, strip),
            _ => Stmt::Loop { label, body: new_body, finite: false },
        };
        (stmt, 1)
    }

    /// Splits a loop, whose body has been rewritten, into strips of `strip` iterations.
    fn split(&mut self, label: Label, mut body: Block, form: &Form, strip: u64) -> Stmt {
        let Form { test, counter, keep, end, .. } = *form;
        let strip_label = self.label_like(label);
        let mut outer = Block::new();
        let limit = self.limit(&mut outer, form, strip);
        let tested = tested_block_mut(&mut body);
        let at = self.kir.position(&tested[test.exit_branch]);
        let mut header = tested[..test.exit_branch].to_vec();
        let condition = self.limited(&mut header, test.condition, MAX_DEPTH, form, limit);
        header.push(exit(condition, test.holds, strip_label, at));
        tested.splice(..=test.exit_branch, header);
        outer.push(Stmt::Loop { label: strip_label, body, finite: true });
        let now = self.get(&mut outer, counter);
        let goes_on = self.compare(&mut outer, keep, [now, end]);
        outer.push(exit(goes_on, true, label, at));
        if test.condition != form.comparison {
            // The strip may have ended because of another part of the condition.
            let within_strip = self.compare(&mut outer, keep, [now, limit]);
            outer.push(exit(within_strip, false, label, at));
        }
        Stmt::Loop { label, body: outer, finite: false }
    }

    /// Computes the end of the next strip, never beyond that of the loop.
    fn limit(&mut self, out: &mut Block, form: &Form, strip: u64) -> Value {
        let ty = self.kir.ty(form.end);
        let unsigned = ty.to_unsigned();
        let falls = matches!(form.step, Step::Add(step) if step < 0);
        let now = self.get(out, form.counter);
        let goes_on = self.compare(out, form.keep, [now, form.end]);
        let [start, end] = [now, form.end].map(|value| self.bitcast(out, unsigned, value));
        let (op, sides) =
            if falls { (BinaryOp::Sub, [start, end]) } else { (BinaryOp::Add, [end, start]) };
        // Unsigned, because the distance of signed numbers may exceed the maximum of their type.
        let distance = self.binary(out, BinaryOp::Sub, sides);
        let span = self.span(out, form, strip);
        let near = self.binary(out, BinaryOp::Min, [distance, span]);
        let limit = self.binary(out, op, [start, near]);
        let limit = self.bitcast(out, ty, limit);
        self.emit(out, ty, Inst::Select(goes_on, limit, form.end))
    }

    /// Computes how far the counter moves in a strip; at most the greatest number of its type.
    fn span(&mut self, out: &mut Block, form: &Form, strip: u64) -> Value {
        let ty = self.kir.ty(form.end).to_unsigned();
        let max = u64::MAX >> (u64::BITS - ty.bits());
        if let Step::Add(step) = form.step {
            let step = u64::try_from(step.unsigned_abs()).unwrap_or(max);
            return self.constant(out, ty, step.saturating_mul(strip).min(max));
        }
        // Longer strides reach the end in fewer iterations.
        let strip = strip.min(max);
        let [longest, strip] = [max / strip, strip].map(|bits| self.constant(out, ty, bits));
        let by = self.bitcast(out, ty, form.by);
        let stride = self.binary(out, BinaryOp::Min, [by, longest]);
        self.binary(out, BinaryOp::Mul, [stride, strip])
    }

    /// Computes a condition with `limit` in place of the counter's end. As deep as
    /// [`Loop::comparisons`].
    fn limited(
        &mut self,
        out: &mut Block,
        condition: Value,
        depth: u32,
        form: &Form,
        limit: Value,
    ) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return condition };
        if condition == form.comparison {
            let now = self.get(out, form.counter);
            let keeps = self.compare(out, form.keep, [now, limit]);
            return if form.holds { keeps } else { self.not(out, keeps) };
        }
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, a) => {
                let limited = self.limited(out, a, depth, form, limit);
                if limited == a { condition } else { self.not(out, limited) }
            }
            Inst::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let sides = [a, b].map(|side| self.limited(out, side, depth, form, limit));
                if sides == [a, b] { condition } else { self.binary(out, op, sides) }
            }
            _ => condition,
        }
    }

    fn label_like(&mut self, label: Label) -> Label {
        let new = Label(self.mined.labels);
        self.mined.labels += 1;
        if let Some(at) = self.mined.source.label(label) {
            self.mined.source.set_label(new, at);
        }
        new
    }

    fn emit(&mut self, out: &mut Block, ty: Type, inst: Inst) -> Value {
        let value = Value(self.mined.values.len() as u32);
        self.mined.values.push(Definition { ty, inst });
        out.push(Stmt::Let(value));
        value
    }

    fn get(&mut self, out: &mut Block, var: Var) -> Value {
        self.emit(out, self.kir.vars[var.index()], Inst::Get(var))
    }

    fn constant(&mut self, out: &mut Block, ty: Type, bits: u64) -> Value {
        self.emit(out, ty, Inst::Const(Const { ty, bits }))
    }

    fn binary(&mut self, out: &mut Block, op: BinaryOp, [a, b]: [Value; 2]) -> Value {
        let ty = self.mined.ty(a);
        self.emit(out, ty, Inst::Binary(op, a, b))
    }

    fn compare(&mut self, out: &mut Block, keep: Keep, [a, b]: [Value; 2]) -> Value {
        let op = match keep {
            Keep::Less => BinaryOp::Lt,
            Keep::LessEqual => BinaryOp::Le,
            Keep::Greater => BinaryOp::Gt,
            Keep::GreaterEqual => BinaryOp::Ge,
            Keep::NotEqual => BinaryOp::Ne,
        };
        self.emit(out, Type::Bool, Inst::Binary(op, a, b))
    }

    fn not(&mut self, out: &mut Block, a: Value) -> Value {
        self.emit(out, Type::Bool, Inst::Unary(UnaryOp::Not, a))
    }

    /// Reinterprets a value, if it has another type.
    fn bitcast(&mut self, out: &mut Block, ty: Type, value: Value) -> Value {
        if self.mined.ty(value) == ty { value } else { self.emit(out, ty, Inst::Bitcast(value)) }
    }
}

/// Returns the exit from a loop that continues while a condition has the value `holds`.
fn exit(condition: Value, holds: bool, label: Label, at: Option<Location>) -> Stmt {
    let (mut then_block, mut else_block) = (Block::new(), vec![Stmt::Break(label)]);
    if !holds {
        std::mem::swap(&mut then_block, &mut else_block);
    }
    Stmt::If { condition, then_block, else_block, at }
}
