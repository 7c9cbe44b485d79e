//! Live ranges of values and variables, in statement positions.
//!
//! Statements are numbered in program order. A value is live from its definition to its last use; a
//! value that is defined outside a loop and used inside is live to the end of the loop. A variable
//! is live from its first assignment to its last access in the same way, if that assignment
//! dominates all accesses; otherwise it is live throughout the kernel, and is initialised to zero.

use super::{exit_branches, fusion};
use scry_ir::kir::{
    BinaryOp, Block, Inst, Kir, Stmt, Type, Uniformity, Value, Var, Variability, for_each_stmt,
};

/// The live range of a value or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiveRange {
    pub first: u32,
    pub last: u32,
}

/// The liveness of a variable.
#[derive(Debug, Clone)]
pub(crate) struct VarLiveness {
    pub live_range: LiveRange,
    /// Whether it may be read before it is assigned. If so, it must be initialised to zero.
    pub zeroed: bool,
    /// Positions of its assignments, in order.
    pub sets: Vec<u32>,
    /// Reads that are aliases of the variable.
    pub aliases: Vec<Value>,
    /// The block of its first access.
    first_block: u32,
    /// Whether the walk has found an access.
    is_accessed: bool,
}

/// The live ranges of the values and variables of a kernel.
#[derive(Debug)]
pub(crate) struct LiveRanges {
    pub values: Vec<LiveRange>,
    pub vars: Vec<VarLiveness>,
    /// Number of uses of each value.
    pub uses: Vec<u32>,
    /// Values that are fused into their users: products into sums, conditions into exits, and those
    /// that `fusion` marks.
    pub fused: Vec<bool>,
    /// Reads of variables that need no copy: the variable is not assigned in their live ranges.
    pub aliased: Vec<bool>,
    /// End position of each loop, in order of their starts.
    loop_ends: Vec<u32>,
}

/// [`LiveRange::first`] of values and variables that are not live anywhere.
const NEVER: u32 = u32::MAX;

/// Computes the live ranges of a kernel.
pub(crate) fn live_ranges(kir: &Kir, uniformity: &Uniformity) -> LiveRanges {
    let never = LiveRange { first: NEVER, last: 0 };
    let var = VarLiveness {
        live_range: never,
        zeroed: false,
        sets: Vec::new(),
        aliases: Vec::new(),
        first_block: 0,
        is_accessed: false,
    };
    let mut live_ranges = LiveRanges {
        values: vec![never; kir.values.len()],
        vars: vec![var; kir.vars.len()],
        uses: count_uses(kir),
        fused: vec![false; kir.values.len()],
        aliased: vec![false; kir.values.len()],
        loop_ends: Vec::new(),
    };
    fuse(kir, uniformity, &kir.body, &mut vec![0; kir.values.len()], &mut live_ranges);
    fusion::mark(kir, uniformity, &mut live_ranges);
    let mut walk = Walk {
        kir,
        live_ranges,
        position: 0,
        loops: Vec::new(),
        parents: Vec::new(),
        carried: Vec::new(),
        carried_vars: Vec::new(),
        gets: Vec::new(),
    };
    walk.block(&kir.body, 0);
    walk.finish()
}

fn count_uses(kir: &Kir) -> Vec<u32> {
    let mut uses = vec![0; kir.values.len()];
    for_each_stmt(&kir.body, &mut |stmt| {
        stmt.for_each_operand(|value| uses[value.index()] += 1);
        if let Stmt::Let(value) = stmt {
            kir.inst(*value).for_each_operand(|operand| uses[operand.index()] += 1);
        }
    });
    uses
}

/// Marks products that only one sum or difference in the same block uses, and conditions with one
/// uniform operand that only an exit uses. For each value, `products` holds the address of the
/// block in which it is a product that is not fused yet, or 0.
fn fuse(
    kir: &Kir,
    uniformity: &Uniformity,
    block: &Block,
    products: &mut [usize],
    live_ranges: &mut LiveRanges,
) {
    let here = std::ptr::from_ref(block).addr();
    for stmt in block {
        stmt.blocks().for_each(|inner| fuse(kir, uniformity, inner, products, live_ranges));
        if let Stmt::If { condition, then_block, else_block, .. } = stmt
            && live_ranges.uses[condition.index()] == 1
            && let Some(branch) =
                exit_branches::exit_branch(kir, uniformity, [then_block, else_block])
            && exit_branches::split_condition(kir, uniformity, &branch, *condition).is_some()
        {
            live_ranges.fused[condition.index()] = true;
        }
        let Stmt::Let(value) = stmt else { continue };
        let float = matches!(kir.ty(*value), Type::F32 | Type::F64)
            && uniformity.values[value.index()] == Variability::Varying;
        match kir.inst(*value) {
            Inst::Binary(BinaryOp::Mul, ..) if float && live_ranges.uses[value.index()] == 1 => {
                products[value.index()] = here;
            }
            Inst::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if float => {
                let is_unfused_product = |operand: &&Value| products[operand.index()] == here;
                if let Some(product) = [a, b].into_iter().find(is_unfused_product) {
                    products[product.index()] = 0;
                    live_ranges.fused[product.index()] = true;
                }
            }
            _ => {}
        }
    }
}

struct Walk<'a> {
    kir: &'a Kir,
    live_ranges: LiveRanges,
    position: u32,
    /// The enclosing loops: start position and number of each.
    loops: Vec<(u32, usize)>,
    /// The parent of each block.
    parents: Vec<u32>,
    /// Values that are used in a loop but defined outside, with the number of the loop.
    carried: Vec<(Value, usize)>,
    /// Variables that are accessed in a loop but first assigned outside, with its number.
    carried_vars: Vec<(Var, usize)>,
    /// Reads of variables.
    gets: Vec<(Value, Var)>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, parent: u32) {
        let number = self.parents.len() as u32;
        self.parents.push(parent);
        for stmt in block {
            self.stmt(stmt, number);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, block: u32) {
        self.position += 1;
        stmt.for_each_operand(|value| self.operand(value));
        match stmt {
            Stmt::Let(value) => self.define(*value, block),
            Stmt::Set(var, _) => {
                self.access(*var, block, true);
                self.live_ranges.vars[var.index()].sets.push(self.position);
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                self.block(then_block, block);
                self.position += 1;
                // The else block needs the condition again.
                self.use_of(*condition);
                self.block(else_block, block);
                self.position += 1;
            }
            Stmt::Loop { body, .. } => {
                self.loops.push((self.position, self.live_ranges.loop_ends.len()));
                self.live_ranges.loop_ends.push(0);
                self.block(body, block);
                self.position += 1;
                if let Some((_, number)) = self.loops.pop() {
                    self.live_ranges.loop_ends[number] = self.position;
                }
            }
            Stmt::Scope { body, .. } => {
                self.block(body, block);
                self.position += 1;
            }
            Stmt::Store { .. } | Stmt::MatrixStore { .. } | Stmt::Break(_) | Stmt::Barrier(..) => {}
        }
    }

    fn define(&mut self, value: Value, block: u32) {
        let results = self.kir.inst(value).results();
        if !self.live_ranges.fused[value.index()] {
            self.kir.inst(value).for_each_operand(|operand| self.operand(operand));
        }
        for nth in 0..results {
            let live_range = &mut self.live_ranges.values[value.index() + nth as usize];
            *live_range = LiveRange { first: self.position, last: self.position };
        }
        if let Inst::Get(var) = self.kir.inst(value) {
            self.gets.push((value, *var));
            self.access(*var, block, false);
        }
    }

    /// Records the use of an operand and, if it is fused into its user, of its own operands.
    fn operand(&mut self, operand: Value) {
        self.use_of(operand);
        if self.live_ranges.fused[operand.index()] {
            self.kir.inst(operand).for_each_operand(|inner| self.operand(inner));
        }
    }

    /// Extends the live range of a value to the current position.
    fn use_of(&mut self, value: Value) {
        let live_range = &mut self.live_ranges.values[value.index()];
        live_range.last = live_range.last.max(self.position);
        let first = live_range.first;
        if let Some(number) = self.entered_after(first) {
            self.carried.push((value, number));
        }
    }

    /// Returns the number of the outermost enclosing loop that starts after a position.
    fn entered_after(&self, position: u32) -> Option<usize> {
        let index = self.loops.partition_point(|(start, _)| *start <= position);
        self.loops.get(index).map(|(_, number)| *number)
    }

    /// Records an assignment or a read of a variable.
    fn access(&mut self, var: Var, block: u32, assigns: bool) {
        let liveness = &mut self.live_ranges.vars[var.index()];
        if !liveness.is_accessed {
            liveness.is_accessed = true;
            liveness.zeroed = !assigns;
            liveness.first_block = block;
            liveness.live_range = LiveRange { first: self.position, last: self.position };
            return;
        }
        liveness.live_range.last = self.position;
        let (first_block, first) = (liveness.first_block, liveness.live_range.first);
        if !self.is_within(block, first_block) {
            self.live_ranges.vars[var.index()].zeroed = true;
        }
        if let Some(number) = self.entered_after(first) {
            self.carried_vars.push((var, number));
        }
    }

    /// Returns whether `block` is `outer`, or nested in it.
    fn is_within(&self, mut block: u32, outer: u32) -> bool {
        // A block has a higher number than those that enclose it.
        while block > outer {
            block = self.parents[block as usize];
        }
        block == outer
    }

    fn finish(mut self) -> LiveRanges {
        let end = self.position + 1;
        for (value, number) in std::mem::take(&mut self.carried) {
            let live_range = &mut self.live_ranges.values[value.index()];
            live_range.last = live_range.last.max(self.live_ranges.loop_ends[number]);
        }
        for (var, number) in std::mem::take(&mut self.carried_vars) {
            let live_range = &mut self.live_ranges.vars[var.index()].live_range;
            live_range.last = live_range.last.max(self.live_ranges.loop_ends[number]);
        }
        for var in &mut self.live_ranges.vars {
            if var.zeroed {
                var.live_range = LiveRange { first: 0, last: end };
            }
        }
        for (value, var) in std::mem::take(&mut self.gets) {
            self.alias(value, var);
        }
        self.live_ranges
    }

    /// Makes a read an alias of the variable, if that is not assigned while the read is live.
    fn alias(&mut self, value: Value, var: Var) {
        let read = self.live_ranges.values[value.index()];
        let var = &mut self.live_ranges.vars[var.index()];
        let next = var.sets.partition_point(|set| *set <= read.first);
        if var.sets.get(next).is_none_or(|set| *set >= read.last) {
            self.live_ranges.aliased[value.index()] = true;
            var.aliases.push(value);
            var.live_range.last = var.live_range.last.max(read.last);
        }
    }
}
