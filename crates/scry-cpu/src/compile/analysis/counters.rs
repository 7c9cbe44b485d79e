//! Splits variables that are uniform inside a loop, but varying after it.
//!
//! Lanes may leave a loop in different iterations, with different values of the loop counter: the
//! counter is varying after the loop, though uniform among the active lanes inside it. So the loop
//! uses a copy of the variable, and lanes write their value back as they leave.

use scry_ir::kir::{
    Block, Definition, Inst, Kir, Label, Stmt, Uniformity, Value, Var, Variability, for_each_stmt,
};

/// A variable, and the loop that uses a copy of it.
#[derive(Debug, Clone, Copy)]
struct Split {
    label: Label,
    outside: Var,
    inside: Var,
    /// The value of the variable when the loop starts; `None` for zero.
    initial: Option<Value>,
}

/// Returns the rewritten kernel and its uniformity, or `None` if nothing is split.
/// `divergent_exits` marks the loops that lanes may leave while others stay.
pub(crate) fn split(
    kir: &Kir,
    uniformity: &Uniformity,
    divergent_exits: &[bool],
) -> Option<(Kir, Uniformity)> {
    let mut splits = Search { kir, uniformity, divergent_exits }.splits();
    while !splits.is_empty() {
        let kir = apply(kir, &splits);
        let uniformity = kir.uniformity();
        let found = splits.len();
        // Retries without the copies that are not uniform inside their loops after all.
        splits.retain(|split| uniformity.var(split.inside).variability == Variability::Uniform);
        if splits.len() == found {
            return Some((kir, uniformity));
        }
        number_copies(&mut splits, kir.vars.len() - found);
    }
    None
}

/// Numbers the copies from `first` on.
fn number_copies(splits: &mut [Split], first: usize) {
    for (split, number) in splits.iter_mut().zip(first as u32..) {
        split.inside = Var(number);
    }
}

struct Search<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    divergent_exits: &'a [bool],
}

impl Search<'_> {
    fn splits(&self) -> Vec<Split> {
        let vars = (0..self.kir.vars.len() as u32).map(Var);
        // The executor assigns 32-bit variables as lanes exit (`Exit::copies`).
        let partial = vars.filter(|var| {
            self.uniformity.var(*var).partially_assigned && self.kir.vars[var.index()].size() == 4
        });
        let mut splits: Vec<_> = partial.filter_map(|var| self.find(&self.kir.body, var)).collect();
        number_copies(&mut splits, self.kir.vars.len());
        splits
    }

    /// Finds the outermost loop that can use a copy of a variable. Its initial value must be known:
    /// the loop contains all assignments, or the last one before the loop is in the same block.
    fn find(&self, block: &Block, var: Var) -> Option<Split> {
        let mut initial = None;
        for stmt in block {
            let sets_inside: usize = stmt.blocks().map(|inner| count_sets(inner, var)).sum();
            if let Stmt::Set(set, value) = stmt
                && *set == var
            {
                initial = Some(*value);
            }
            if sets_inside == 0 {
                continue;
            }
            if let Stmt::Loop { label, .. } = stmt
                && self.divergent_exits[label.0 as usize]
                && (initial.is_some() || sets_inside == count_sets(&self.kir.body, var))
            {
                return Some(Split { label: *label, outside: var, inside: var, initial });
            }
            initial = None;
            if let Some(split) = stmt.blocks().find_map(|inner| self.find(inner, var)) {
                return Some(split);
            }
        }
        None
    }
}

/// Counts the assignments of a variable in a block.
fn count_sets(block: &Block, var: Var) -> usize {
    let mut count = 0;
    for_each_stmt(block, &mut |stmt| {
        count += usize::from(matches!(stmt, Stmt::Set(set, _) if *set == var));
    });
    count
}

fn apply(kir: &Kir, splits: &[Split]) -> Kir {
    let mut kir = kir.clone();
    let mut body = std::mem::take(&mut kir.body);
    for split in splits {
        kir.vars.push(kir.vars[split.outside.index()]);
        Rewrite { kir: &mut kir, split: *split, labels: Vec::new() }.block(&mut body, false);
    }
    kir.body = body;
    kir
}

/// Replaces the variable by its copy inside the loop.
struct Rewrite<'a> {
    kir: &'a mut Kir,
    split: Split,
    /// Loops and scopes inside the loop.
    labels: Vec<Label>,
}

impl Rewrite<'_> {
    /// Rewrites a block inside or outside the loop.
    fn block(&mut self, block: &mut Block, inside: bool) {
        for mut stmt in std::mem::take(block) {
            let label = match stmt {
                Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => Some(label),
                _ => None,
            };
            let enters = label == Some(self.split.label);
            if inside {
                self.rewrite_inside(&mut stmt, block);
            } else if enters && let Some(initial) = self.split.initial {
                block.push(Stmt::Set(self.split.inside, initial));
            }
            let depth = self.labels.len();
            self.labels.extend(label.filter(|_| inside));
            for inner in stmt.blocks_mut() {
                self.block(inner, inside || enters);
            }
            self.labels.truncate(depth);
            block.push(stmt);
        }
    }

    /// Rewrites a statement inside the loop, and emits the code that precedes it.
    fn rewrite_inside(&mut self, stmt: &mut Stmt, block: &mut Block) {
        let Split { outside, inside, .. } = self.split;
        match stmt {
            Stmt::Let(value) => {
                let inst = &mut self.kir.values[value.index()].inst;
                if *inst == Inst::Get(outside) {
                    *inst = Inst::Get(inside);
                }
            }
            Stmt::Set(var, _) if *var == outside => *var = inside,
            Stmt::Break(label) if *label != Label::KERNEL && !self.labels.contains(label) => {
                let now = Value(self.kir.values.len() as u32);
                let ty = self.kir.vars[outside.index()];
                self.kir.values.push(Definition { ty, inst: Inst::Get(inside) });
                block.extend([Stmt::Let(now), Stmt::Set(outside, now)]);
            }
            _ => {}
        }
    }
}
