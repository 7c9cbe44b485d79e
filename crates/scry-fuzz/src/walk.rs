//! Traversal of all blocks and values of a kernel.

use crate::exact::{bound, can_be_stored};
use crate::tree::{Block, Expr, RandomKernel, Stmt};

/// Calls `f` with every block of a kernel, outer ones before inner ones.
pub(crate) fn for_each_block(kernel: &mut RandomKernel, f: &mut dyn FnMut(&mut Block)) {
    in_block(&mut kernel.body, f);
    for function in &mut kernel.functions {
        in_block(&mut function.body, f);
    }
}

fn in_block(block: &mut Block, f: &mut dyn FnMut(&mut Block)) {
    f(block);
    for stmt in block {
        for inner in inner_blocks(stmt) {
            in_block(inner, f);
        }
    }
}

/// Returns the nested blocks of a statement.
pub(crate) fn inner_blocks(stmt: &mut Stmt) -> Vec<&mut Block> {
    match stmt {
        Stmt::If { then_block, else_block, .. } => vec![then_block, else_block],
        Stmt::Loop { body, .. } => vec![body],
        Stmt::Switch { cases, default, .. } => {
            let cases = cases.iter_mut().map(|(_, body)| body);
            cases.chain([default]).collect()
        }
        _ => Vec::new(),
    }
}

/// Calls `f` with every value of a kernel that may be replaced, outer ones before inner ones, and
/// with whether the value is stored in a variable.
pub(crate) fn for_each_value(kernel: &mut RandomKernel, f: &mut dyn FnMut(&mut Expr, bool)) {
    for_each_block(kernel, &mut |block| {
        for stmt in block {
            for (value, stored) in values(stmt) {
                in_value(value, stored, f);
            }
        }
    });
}

fn in_value(value: &mut Expr, stored: bool, f: &mut dyn FnMut(&mut Expr, bool)) {
    f(value, stored);
    for child in value.children_mut() {
        in_value(child, false, f);
    }
}

/// Returns the values of a statement, without those of nested blocks, and whether each is stored.
fn values(stmt: &mut Stmt) -> Vec<(&mut Expr, bool)> {
    let used = |value| (value, false);
    let stored = |value| (value, true);
    match stmt {
        Stmt::Let { value, .. } | Stmt::Var { value, .. } | Stmt::Return(Some(value)) => {
            vec![(value, true)]
        }
        Stmt::Assign { place, value, .. } => {
            place.indices_mut().map(used).chain([(value, true)]).collect()
        }
        Stmt::Atomic { place, value, .. } | Stmt::AtomicMultiply { place, value } => {
            place.indices_mut().map(used).chain([(value, false)]).collect()
        }
        Stmt::Pointer { place, .. } => place.indices_mut().map(used).collect(),
        Stmt::If { required: true, .. } => Vec::new(),
        Stmt::If { condition, .. } => vec![used(condition)],
        Stmt::Loop { condition, .. } => condition.iter_mut().map(used).collect(),
        Stmt::Switch { selector, .. } => vec![used(selector)],
        Stmt::Call { arguments, .. } => arguments.iter_mut().map(stored).collect(),
        Stmt::Return(None) | Stmt::Break | Stmt::Continue | Stmt::Text(_) => Vec::new(),
    }
}

/// Returns whether no float of the kernel can be rounded.
pub(crate) fn is_exact(kernel: &RandomKernel) -> bool {
    let mut exact = true;
    for_each_value(&mut kernel.clone(), &mut |value, stored| {
        exact &= if stored { can_be_stored(value) } else { bound(value).is_some() };
    });
    exact
}
