//! Shrinks hostile kernels that fail.

use super::HostileKernel;
use super::tree::{Block, Expr, Kind, Line, Stmt};

/// Makes a hostile kernel smaller, step by step, as long as `fails` holds for the result. Stops
/// after at most `attempts` candidates. Statements that make a loop terminate are kept.
///
/// `fails` must hold for the kernel itself. Candidates may be invalid WGSL: `fails` must be false
/// for kernels that a device refuses.
#[must_use]
pub fn shrink(
    kernel: &HostileKernel,
    attempts: usize,
    mut fails: impl FnMut(&HostileKernel) -> bool,
) -> HostileKernel {
    let mut search = Search { best: kernel.clone(), left: attempts, fails: &mut fails };
    loop {
        let before = search.best.clone();
        search.statements();
        search.launch();
        search.operands();
        if search.left == 0 || search.best == before {
            return search.best;
        }
    }
}

struct Search<'a> {
    best: HostileKernel,
    left: usize,
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
    /// Accepts the candidate if it differs and still fails.
    fn try_out(&mut self, candidate: HostileKernel) -> bool {
        if self.left == 0 || candidate == self.best {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes statements, last ones first, since later ones use declarations of earlier ones.
    fn statements(&mut self) {
        let mut at = count(&self.best);
        while at > 0 {
            at -= 1;
            for change in [Change::Remove, Change::Unwrap, Change::Shorten] {
                let mut candidate = self.best.clone();
                let changed = change_statement(&mut candidate, at, change);
                if changed && self.try_out(candidate) {
                    at = at.min(count(&self.best));
                    break;
                }
            }
        }
    }

    /// Reduces number and size of the workgroups.
    fn launch(&mut self) {
        for axis in 0..3 {
            for size in [1, 2] {
                let mut candidate = self.best.clone();
                candidate.groups[axis] = candidate.groups[axis].min(size);
                self.try_out(candidate);
                let mut candidate = self.best.clone();
                candidate.workgroup_size[axis] = candidate.workgroup_size[axis].min(size);
                self.try_out(candidate);
            }
        }
    }

    /// Replaces expressions by constants or by their parts.
    fn operands(&mut self) {
        let mut at = 0;
        while let Some(expr) = nth_operand(&mut self.best.clone(), at, None) {
            if self.left == 0 {
                return;
            }
            let replaced = replacements(&expr).into_iter().any(|smaller| {
                let mut candidate = self.best.clone();
                nth_operand(&mut candidate, at, Some(smaller));
                self.try_out(candidate)
            });
            at += usize::from(!replaced);
        }
    }
}

fn blocks(kernel: &mut HostileKernel) -> impl Iterator<Item = &mut Block> {
    kernel.functions.iter_mut().map(|function| &mut function.body).chain([&mut kernel.body])
}

/// Counts the statements of a kernel, including nested ones.
fn count(kernel: &HostileKernel) -> usize {
    fn of(block: &Block) -> usize {
        let inner = |stmt: &Stmt| match stmt {
            Stmt::Blocks(parts) => parts.iter().map(|part| of(&part.body)).sum(),
            _ => 0,
        };
        block.iter().map(|stmt| 1 + inner(stmt)).sum()
    }
    kernel.functions.iter().map(|function| of(&function.body)).sum::<usize>() + of(&kernel.body)
}

/// Changes a statement by its number, outer ones before inner ones; returns false if that is
/// impossible.
fn change_statement(kernel: &mut HostileKernel, wanted: usize, change: Change) -> bool {
    fn walk(block: &mut Block, left: &mut usize, change: Change) -> Option<bool> {
        for at in 0..block.len() {
            if *left == 0 {
                return Some(changed(block, at, change));
            }
            *left -= 1;
            if let Stmt::Blocks(parts) = &mut block[at] {
                let found = parts.iter_mut().find_map(|part| walk(&mut part.body, left, change));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
    let mut left = wanted;
    blocks(kernel).find_map(|block| walk(block, &mut left, change)).unwrap_or(false)
}

fn changed(block: &mut Block, at: usize, change: Change) -> bool {
    match (change, &mut block[at]) {
        (_, Stmt::Fuel) | (_, Stmt::Line(Line { kept: true, .. })) => false,
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

/// Returns an operand by its number; replaces it, if there is a replacement.
fn nth_operand(kernel: &mut HostileKernel, wanted: usize, mut with: Option<Expr>) -> Option<Expr> {
    fn in_expr(expr: &mut Expr, left: &mut usize, with: &mut Option<Expr>) -> Option<Expr> {
        if *left == 0 {
            let found = expr.clone();
            if let Some(with) = with.take() {
                *expr = with;
            }
            return Some(found);
        }
        *left -= 1;
        expr.operands.iter_mut().find_map(|operand| in_expr(operand, left, with))
    }
    fn in_line(line: &mut Line, left: &mut usize, with: &mut Option<Expr>) -> Option<Expr> {
        let free = !line.kept;
        let operands = line.operands.iter_mut().filter(|_| free);
        operands.into_iter().find_map(|operand| in_expr(operand, left, with))
    }
    fn in_block(block: &mut Block, left: &mut usize, with: &mut Option<Expr>) -> Option<Expr> {
        block.iter_mut().find_map(|stmt| match stmt {
            Stmt::Line(line) => in_line(line, left, with),
            Stmt::Fuel => None,
            Stmt::Blocks(parts) => parts.iter_mut().find_map(|part| {
                in_line(&mut part.head, left, with).or_else(|| in_block(&mut part.body, left, with))
            }),
        })
    }
    let mut left = wanted;
    blocks(kernel).find_map(|block| in_block(block, &mut left, &mut with))
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
