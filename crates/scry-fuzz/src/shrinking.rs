//! Shrinks kernels that fail a test.

use crate::exact::Rule;
use crate::tree::{Expr, Literal, RandomKernel, Space, Stmt};
use crate::types::{Scalar, Type};
use crate::walk;

/// Makes a kernel smaller, step by step, as long as `fails` holds for the result. Stops after at
/// most `attempts` candidates.
///
/// `fails` must hold for the kernel itself. Candidates may be invalid WGSL: `fails` must be false
/// for kernels that a device rejects. The others are as well-defined as the kernel.
#[must_use]
pub fn shrink(
    kernel: &RandomKernel,
    attempts: usize,
    mut fails: impl FnMut(&RandomKernel) -> bool,
) -> RandomKernel {
    let mut search = Search { best: kernel.clone(), attempts_left: attempts, fails: &mut fails };
    loop {
        let before = search.best.clone();
        search.shrink_statements();
        search.shrink_launch();
        search.shrink_values();
        if search.attempts_left == 0 || search.best == before {
            return search.best;
        }
    }
}

struct Search<'a> {
    best: RandomKernel,
    attempts_left: usize,
    fails: &'a mut dyn FnMut(&RandomKernel) -> bool,
}

/// A change of a statement.
#[derive(Clone, Copy)]
enum Change {
    Remove,
    /// Replaces it by one of its blocks, by number.
    Unwrap(usize),
    /// Reduces a loop to one iteration.
    OneIteration,
}

/// Changes in the order in which they are tried. No generated statement has more than five blocks.
const CHANGES: [Change; 7] = [
    Change::Remove,
    Change::Unwrap(0),
    Change::Unwrap(1),
    Change::Unwrap(2),
    Change::Unwrap(3),
    Change::Unwrap(4),
    Change::OneIteration,
];

impl Search<'_> {
    /// Keeps the candidate as the best kernel if it differs, is exact and still fails. Returns
    /// whether it is kept.
    fn try_candidate(&mut self, candidate: RandomKernel) -> bool {
        if self.attempts_left == 0 || candidate == self.best || !walk::is_exact(&candidate) {
            return false;
        }
        self.attempts_left -= 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes statements, or replaces them by their blocks. The last ones come first, since
    /// statements use declarations of earlier ones.
    fn shrink_statements(&mut self) {
        let blocks = count_blocks(&mut self.best.clone());
        for block in (0..blocks).rev() {
            let mut at = block_len(&mut self.best.clone(), block);
            while at > 0 {
                at -= 1;
                for change in CHANGES {
                    let mut candidate = self.best.clone();
                    if change_block(&mut candidate, block, at, change)
                        && self.try_candidate(candidate)
                    {
                        break;
                    }
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

    /// Replaces values by constants or by their parts.
    fn shrink_values(&mut self) {
        let mut at = 0;
        while let Some(value) = nth_value(&mut self.best.clone(), at, None) {
            if self.attempts_left == 0 {
                return;
            }
            let smaller = replacements(&value);
            let replaced = smaller.into_iter().any(|replacement| {
                let mut candidate = self.best.clone();
                nth_value(&mut candidate, at, Some(replacement));
                self.try_candidate(candidate)
            });
            if !replaced {
                at += 1;
            }
        }
    }
}

fn count_blocks(kernel: &mut RandomKernel) -> usize {
    let mut count = 0;
    walk::for_each_block(kernel, &mut |_| count += 1);
    count
}

fn block_len(kernel: &mut RandomKernel, wanted: usize) -> usize {
    let (mut at, mut len) = (0, 0);
    walk::for_each_block(kernel, &mut |block| {
        if at == wanted {
            len = block.len();
        }
        at += 1;
    });
    len
}

fn change_block(kernel: &mut RandomKernel, wanted: usize, index: usize, change: Change) -> bool {
    let needs_barriers = uses_workgroup_memory(kernel);
    let (mut at, mut changed) = (0, false);
    walk::for_each_block(kernel, &mut |block| {
        let is_kept = |stmt: &Stmt| needs_barriers && is_barrier(stmt);
        if at == wanted && block.get(index).is_some_and(|stmt| !is_kept(stmt)) {
            changed = change_statement(block, index, change);
        }
        at += 1;
    });
    changed
}

/// Returns whether the kernel accesses workgroup memory, which would race without barriers. A
/// variable that is only declared occurs once in the source.
fn uses_workgroup_memory(kernel: &RandomKernel) -> bool {
    let source = kernel.case().source;
    let shared = kernel.globals.iter().filter(|global| global.space == Space::Workgroup);
    shared.into_iter().any(|global| source.matches(&global.name).count() > 1)
}

fn is_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Text(text) if text.contains("Barrier"))
}

/// Changes a statement; returns false if the change does not apply to it.
fn change_statement(block: &mut Vec<Stmt>, at: usize, change: Change) -> bool {
    match change {
        Change::Remove => {
            block.remove(at);
            true
        }
        Change::Unwrap(_) if matches!(block[at], Stmt::If { required: true, .. }) => false,
        Change::Unwrap(number) => {
            let inner = walk::inner_blocks(&mut block[at]).into_iter().nth(number);
            let inner = inner.map(std::mem::take);
            inner.is_some_and(|inner| block.splice(at..=at, inner).count() == 1)
        }
        Change::OneIteration => limit_to_one_iteration(&mut block[at]),
    }
}

/// Reduces a loop to one iteration; returns false if the statement is not a loop, or has only one.
fn limit_to_one_iteration(stmt: &mut Stmt) -> bool {
    match stmt {
        Stmt::Loop { iterations, condition, .. } if *iterations > 1 || condition.is_some() => {
            *iterations = 1;
            *condition = None;
            true
        }
        _ => false,
    }
}

/// Returns a value by its number in order of traversal; replaces it, if there is a replacement.
fn nth_value(kernel: &mut RandomKernel, wanted: usize, replacement: Option<Expr>) -> Option<Expr> {
    let (mut at, mut found, mut replacement) = (0, None, replacement);
    walk::for_each_value(kernel, &mut |value, _| {
        if at == wanted && found.is_none() {
            found = Some(value.clone());
            if let Some(replacement) = replacement.take() {
                *value = replacement;
            }
        }
        at += 1;
    });
    found
}

/// Returns smaller values of the same type.
fn replacements(value: &Expr) -> Vec<Expr> {
    let zero = constant(&value.ty, 0);
    let is_constant = value.is_const();
    let mut smaller: Vec<Expr> = Vec::new();
    if !is_constant || *value != zero {
        smaller.push(zero);
    }
    if is_constant {
        return smaller;
    }
    smaller.push(constant(&value.ty, 1));
    let mut parts = value.children();
    while let Some(part) = parts.pop() {
        if part.ty == value.ty {
            smaller.push(part.clone());
        } else {
            parts.extend(part.children());
        }
    }
    smaller
}

/// Returns zero or one, in each component; composites other than vectors are zero.
fn constant(ty: &Type, value: u8) -> Expr {
    match ty {
        Type::Scalar(scalar) if scalar.is_float() => {
            Expr::literal(ty.clone(), Literal::Float(value.into()))
        }
        Type::Scalar(Scalar::Bool) => Expr::literal(ty.clone(), Literal::Bool(value == 1)),
        Type::Scalar(_) => Expr::literal(ty.clone(), Literal::Int(value.into())),
        Type::Vector(scalar, _) => {
            let part = constant(&Type::Scalar(*scalar), value);
            Expr::op(ty.clone(), "$T($0)", Rule::Largest, vec![part])
        }
        _ => Expr::op(ty.clone(), "$T()", Rule::Largest, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Features;
    use crate::tree::Global;

    #[test]
    fn shrunk_kernels_still_fail() {
        let kernel = (0..100)
            .map(|seed| crate::kernel(seed, Features::default()))
            .find(|kernel| kernel.case().source.contains("reverseBits"))
            .unwrap();
        let shrunk = shrink(&kernel, 5000, |kernel| kernel.case().source.contains("reverseBits"));
        let source = shrunk.case().source;
        assert!(source.contains("reverseBits"));
        assert!(source.lines().count() < 25, "{source}");
        assert_eq!((shrunk.groups, shrunk.workgroup_size), ([1; 3], [1; 3]));
    }

    #[test]
    fn statements_are_replaced_by_blocks() {
        let is_kept = |kernel: &RandomKernel| kernel.case().source.contains("f64");
        let features = Features { f64: true, ..Features::default() };
        let is_deep = |source: &str| source.contains("switch") && source.len() < 5000;
        let kernels = (0..100).map(|seed| crate::kernel(seed, features)).filter(is_kept);
        let deep = kernels.filter(|kernel| is_deep(&kernel.case().source)).take(3);
        let shrunk: Vec<_> = deep.map(|kernel| shrink(&kernel, 5000, is_kept).case()).collect();
        assert_eq!(shrunk.len(), 3);
        for case in shrunk {
            assert!(!case.source.contains("switch"), "seed {}: {}", case.seed, case.source);
        }
    }

    /// Returns whether the source reads and writes the variable, beside its declaration.
    fn exchanges(source: &str, name: &str) -> bool {
        let is_write = |line: &str| line.trim_start().starts_with(name) && line.contains(" = ");
        let is_use = |line: &&str| line.contains(name) && !line.starts_with("var<");
        let writes = source.lines().filter(|line| is_write(line)).count();
        writes > 0 && source.lines().filter(is_use).count() > writes
    }

    #[test]
    fn shrunk_kernels_do_not_race() {
        let mut shrunk = 0;
        for seed in 0..12 {
            let kernel = crate::kernel(seed, Features::default());
            let is_shared = |global: &&Global| global.space == Space::Workgroup && !global.atomic;
            for global in kernel.globals.iter().filter(is_shared) {
                let fails = |kernel: &RandomKernel| exchanges(&kernel.case().source, &global.name);
                if !fails(&kernel) {
                    continue;
                }
                let source = shrink(&kernel, 2000, fails).case().source;
                let mut before = "";
                for line in source.lines().map(str::trim) {
                    let is_write = line.starts_with(&global.name) && line.contains(" = ");
                    let is_own = line.contains("lane") || before == "if (lane == 0u) {";
                    assert!(!is_write || is_own, "seed {seed}: {line}\n{source}");
                    before = line;
                }
                assert!(source.contains("workgroupBarrier()"), "seed {seed}: {source}");
                shrunk += 1;
            }
        }
        assert!(shrunk > 5, "only {shrunk} variables are shared");
    }
}
