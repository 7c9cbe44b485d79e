//! Shrinks hostile kernels that fail a test.

use super::HostileKernel;
use super::tree::{Block, Expr, Kind, Line, Stmt};

/// Makes a hostile kernel smaller, step by step, as long as `fails` holds for the result. Stops
/// after at most `attempts` candidates. Statements that make a loop terminate are kept.
///
/// `fails` must hold for the kernel itself. Candidates may be invalid WGSL: `fails` must be false
/// for kernels that a device rejects.
#[must_use]
pub fn shrink(
    kernel: &HostileKernel,
    attempts: usize,
    mut fails: impl FnMut(&HostileKernel) -> bool,
) -> HostileKernel {
    let mut search = Search { best: kernel.clone(), attempts_left: attempts, fails: &mut fails };
    loop {
        let before = search.best.clone();
        search.shrink_statements();
        search.shrink_launch();
        search.shrink_operands();
        if search.attempts_left == 0 || search.best == before {
            return search.best;
        }
    }
}

struct Search<'a> {
    best: HostileKernel,
    attempts_left: usize,
    fails: &'a mut dyn FnMut(&HostileKernel) -> bool,
}

/// A change of a statement.
#[derive(Clone, Copy)]
enum Change {
    Remove,
    /// Replaces it by its blocks.
    Unwrap,
    /// Removes its last block.
    Shorten,
}

impl Search<'_> {
    /// Keeps the candidate as the best kernel if it differs and still fails. Returns whether it is
    /// kept.
    fn try_candidate(&mut self, candidate: HostileKernel) -> bool {
        if self.attempts_left == 0 || candidate == self.best {
            return false;
        }
        self.attempts_left -= 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes statements. The last ones come first, since statements use declarations of earlier
    /// ones.
    fn shrink_statements(&mut self) {
        let mut at = count_statements(&self.best);
        while at > 0 {
            at -= 1;
            for change in [Change::Remove, Change::Unwrap, Change::Shorten] {
                let mut candidate = self.best.clone();
                let changed = change_statement(&mut candidate, at, change);
                if changed && self.try_candidate(candidate) {
                    at = at.min(count_statements(&self.best));
                    break;
                }
            }
        }
    }

    /// Reduces the workgroup size and the number of workgroups.
    fn shrink_launch(&mut self) {
        for axis in 0..3 {
            for size in [1, 2] {
                let mut candidate = self.best.clone();
                candidate.groups[axis] = candidate.groups[axis].min(size);
                self.try_candidate(candidate);
                let mut candidate = self.best.clone();
                candidate.workgroup_size[axis] = candidate.workgroup_size[axis].min(size);
                self.try_candidate(candidate);
            }
        }
    }

    /// Replaces expressions by constants or by their parts.
    fn shrink_operands(&mut self) {
        let mut at = 0;
        while let Some(expr) = nth_operand(&mut self.best.clone(), at, None) {
            if self.attempts_left == 0 {
                return;
            }
            let replaced = replacements(&expr).into_iter().any(|smaller| {
                let mut candidate = self.best.clone();
                nth_operand(&mut candidate, at, Some(smaller));
                self.try_candidate(candidate)
            });
            at += usize::from(!replaced);
        }
    }
}

/// Returns the bodies of the functions and of the entry point.
fn blocks(kernel: &mut HostileKernel) -> impl Iterator<Item = &mut Block> {
    kernel.functions.iter_mut().map(|function| &mut function.body).chain([&mut kernel.body])
}

/// Counts the statements of a kernel, including nested ones.
fn count_statements(kernel: &HostileKernel) -> usize {
    fn count_in(block: &Block) -> usize {
        let inner = |stmt: &Stmt| match stmt {
            Stmt::Blocks(parts) => parts.iter().map(|part| count_in(&part.body)).sum(),
            _ => 0,
        };
        block.iter().map(|stmt| 1 + inner(stmt)).sum()
    }
    kernel.functions.iter().map(|function| count_in(&function.body)).sum::<usize>()
        + count_in(&kernel.body)
}

/// Changes a statement by its number, outer ones before inner ones; returns false if the change
/// does not apply to it.
fn change_statement(kernel: &mut HostileKernel, wanted: usize, change: Change) -> bool {
    fn walk(block: &mut Block, skip: &mut usize, change: Change) -> Option<bool> {
        for at in 0..block.len() {
            if *skip == 0 {
                return Some(apply_change(block, at, change));
            }
            *skip -= 1;
            if let Stmt::Blocks(parts) = &mut block[at] {
                let found = parts.iter_mut().find_map(|part| walk(&mut part.body, skip, change));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
    let mut skip = wanted;
    blocks(kernel).find_map(|block| walk(block, &mut skip, change)).unwrap_or(false)
}

fn apply_change(block: &mut Block, at: usize, change: Change) -> bool {
    match (change, &mut block[at]) {
        (_, Stmt::Fuel) | (_, Stmt::Line(Line { required: true, .. })) => false,
        (Change::Remove, _) => {
            block.remove(at);
            true
        }
        (Change::Unwrap, Stmt::Blocks(parts)) => {
            let inner = parts.drain(..).flat_map(|part| part.body);
            let inner: Block = inner.filter(|stmt| *stmt != Stmt::Fuel).collect();
            block.splice(at..=at, inner);
            true
        }
        (Change::Shorten, Stmt::Blocks(parts)) if parts.len() > 1 => parts.pop().is_some(),
        (Change::Unwrap | Change::Shorten, _) => false,
    }
}

/// Returns an operand by its number in order of traversal; replaces it, if there is a replacement.
fn nth_operand(
    kernel: &mut HostileKernel,
    wanted: usize,
    mut replacement: Option<Expr>,
) -> Option<Expr> {
    fn in_expr(expr: &mut Expr, skip: &mut usize, replacement: &mut Option<Expr>) -> Option<Expr> {
        if *skip == 0 {
            let found = expr.clone();
            if let Some(replacement) = replacement.take() {
                *expr = replacement;
            }
            return Some(found);
        }
        *skip -= 1;
        expr.operands.iter_mut().find_map(|operand| in_expr(operand, skip, replacement))
    }
    fn in_line(line: &mut Line, skip: &mut usize, replacement: &mut Option<Expr>) -> Option<Expr> {
        let is_replaceable = !line.required;
        let operands = line.operands.iter_mut().filter(|_| is_replaceable);
        operands.into_iter().find_map(|operand| in_expr(operand, skip, replacement))
    }
    fn in_block(
        block: &mut Block,
        skip: &mut usize,
        replacement: &mut Option<Expr>,
    ) -> Option<Expr> {
        block.iter_mut().find_map(|stmt| match stmt {
            Stmt::Line(line) => in_line(line, skip, replacement),
            Stmt::Fuel => None,
            Stmt::Blocks(parts) => parts.iter_mut().find_map(|part| {
                in_line(&mut part.head, skip, replacement)
                    .or_else(|| in_block(&mut part.body, skip, replacement))
            }),
        })
    }
    let mut skip = wanted;
    blocks(kernel).find_map(|block| in_block(block, &mut skip, &mut replacement))
}

/// Returns smaller expressions of the same type.
fn replacements(expr: &Expr) -> Vec<Expr> {
    if expr.operands.is_empty() || expr.kind == Kind::Other {
        return Vec::new();
    }
    let mut smaller: Vec<Expr> = match expr.kind {
        Kind::U32 => [0, 1].map(Expr::uint).into(),
        Kind::I32 => [0, 1].map(Expr::int).into(),
        Kind::Bool => ["true", "false"].map(|text| Expr::leaf(Kind::Bool, text)).into(),
        Kind::F32 | Kind::Other => Vec::new(),
    };
    let mut parts: Vec<&Expr> = expr.operands.iter().collect();
    while let Some(part) = parts.pop() {
        if part.kind == expr.kind {
            smaller.push(part.clone());
        } else {
            parts.extend(&part.operands);
        }
    }
    smaller
}
