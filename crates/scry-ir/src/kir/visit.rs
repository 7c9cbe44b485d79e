//! Traversal of statements, and of the operands of statements and instructions.

use super::{Barrier, Block, Inst, Kir, ShuffleSource, Stmt, SubgroupOp, Value};

/// Calls `visit` with each statement of a block and of nested blocks, in program order: a statement
/// before those that it contains.
pub fn for_each_stmt<'a>(block: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    for stmt in block {
        visit(stmt);
        stmt.blocks().for_each(|inner| for_each_stmt(inner, visit));
    }
}

/// Calls `visit` with a mutable reference to each statement, as [`for_each_stmt`] does.
pub fn for_each_stmt_mut(block: &mut [Stmt], visit: &mut impl FnMut(&mut Stmt)) {
    for stmt in block {
        visit(stmt);
        stmt.blocks_mut().for_each(|inner| for_each_stmt_mut(inner, visit));
    }
}

/// Returns whether a statement of a block or of nested blocks satisfies a condition. Visits them in
/// program order, up to the first one that does.
pub fn any_stmt(block: &[Stmt], condition: &mut impl FnMut(&Stmt) -> bool) -> bool {
    block
        .iter()
        .any(|stmt| condition(stmt) || stmt.blocks().any(|inner| any_stmt(inner, condition)))
}

/// Returns whether barriers are required before and after the [`Inst::WorkgroupUniformLoad`] that
/// is statement `index` of a block. They are not where the adjacent statement is a workgroup
/// barrier or another such load, since no store is in between.
#[must_use]
pub fn needs_barriers(kir: &Kir, block: &[Stmt], index: usize) -> [bool; 2] {
    let synchronises = |stmt: &Stmt| match stmt {
        Stmt::Barrier(barrier, _) => *barrier == Barrier::Workgroup,
        Stmt::Let(value) => matches!(kir.inst(*value), Inst::WorkgroupUniformLoad { .. }),
        _ => false,
    };
    let before = index.checked_sub(1).and_then(|before| block.get(before));
    [before, block.get(index + 1)].map(|stmt| !stmt.is_some_and(synchronises))
}

/// Up to two blocks.
struct Blocks<T>(Option<T>, Option<T>);

impl<T> Iterator for Blocks<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.take().or_else(|| self.1.take())
    }
}

impl Stmt {
    /// The nested blocks of the statement, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        match self {
            Self::If { then_block, else_block, .. } => Blocks(Some(then_block), Some(else_block)),
            Self::Loop { body, .. } | Self::Scope { body, .. } => Blocks(Some(body), None),
            _ => Blocks(None, None),
        }
    }

    /// The nested blocks of the statement, in order, as mutable references.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        match self {
            Self::If { then_block, else_block, .. } => Blocks(Some(then_block), Some(else_block)),
            Self::Loop { body, .. } | Self::Scope { body, .. } => Blocks(Some(body), None),
            _ => Blocks(None, None),
        }
    }

    /// Calls `visit` with each operand of the statement itself, not those in nested blocks. A `Let`
    /// has no operands: its instruction has.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        match self {
            Self::Set(_, value) | Self::If { condition: value, .. } => visit(*value),
            Self::Store { place, values, .. } => {
                if let Some(index) = place.index {
                    visit(index);
                }
                for value in values {
                    visit(*value);
                }
            }
            Self::MatrixStore { place, value, .. } => {
                let mut copy = *place;
                copy.visit_operands(&mut |operand| visit(*operand));
                visit(*value);
            }
            Self::Let(_)
            | Self::Loop { .. }
            | Self::Scope { .. }
            | Self::Break(_)
            | Self::Barrier(..) => {}
        }
    }

    /// Calls `visit` with each operand of the statement itself. `visit` may replace the operand.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        match self {
            Self::Set(_, value) | Self::If { condition: value, .. } => visit(value),
            Self::Store { place, values, .. } => {
                visit_optional(&mut place.index, &mut visit);
                for value in values {
                    visit(value);
                }
            }
            Self::MatrixStore { place, value, .. } => {
                place.visit_operands(&mut visit);
                visit(value);
            }
            Self::Let(_)
            | Self::Loop { .. }
            | Self::Scope { .. }
            | Self::Break(_)
            | Self::Barrier(..) => {}
        }
    }
}

impl Inst {
    /// Calls `visit` with each operand.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        let mut copy = *self;
        copy.visit_operands(&mut |value| visit(*value));
    }

    /// Calls `visit` with each operand. `visit` may replace the operand.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        self.visit_operands(&mut visit);
    }

    fn visit_operands(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            Self::Const(_) | Self::Builtin(_) | Self::ArrayLength { .. } | Self::Get(_) => {}
            Self::Unary(_, a)
            | Self::Convert(a)
            | Self::Bitcast(a)
            | Self::Extra(a, _)
            | Self::MatrixFill(a) => visit(a),
            Self::Binary(_, a, b) => {
                visit(a);
                visit(b);
            }
            Self::Fma(a, b, c) | Self::Select(a, b, c) | Self::MultiplyAdd(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            Self::Load { place, .. } | Self::WorkgroupUniformLoad { place, .. } => {
                visit_optional(&mut place.index, visit);
            }
            Self::Atomic { place, value, compare, .. } => {
                visit_optional(&mut place.index, visit);
                visit_optional(value, visit);
                visit_optional(compare, visit);
            }
            Self::Subgroup(op) => op.visit_operands(visit),
            Self::MatrixLoad(place) => place.visit_operands(visit),
            Self::LoadFragment(from) => from.visit_operands(visit),
            Self::MultiplyFragments { a, b, c } => a.iter_mut().chain(b).chain(c).for_each(visit),
        }
    }
}

/// Calls `visit` with the value, if there is one.
fn visit_optional(value: &mut Option<Value>, visit: &mut dyn FnMut(&mut Value)) {
    if let Some(value) = value {
        visit(value);
    }
}

impl SubgroupOp {
    fn visit_operands(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            Self::Ballot { value, .. } | Self::Reduce { value, .. } => visit(value),
            Self::Shuffle { source, value } => {
                match source {
                    ShuffleSource::First | ShuffleSource::QuadXor(_) => {}
                    ShuffleSource::Lane(by)
                    | ShuffleSource::Xor(by)
                    | ShuffleSource::Up(by)
                    | ShuffleSource::Down(by)
                    | ShuffleSource::QuadLane(by) => visit(by),
                }
                visit(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kir::Label;

    /// A scope with a barrier and a loop that exits the scope, and a barrier after the scope.
    fn body() -> Block {
        let repeat =
            Stmt::Loop { label: Label(2), body: vec![Stmt::Break(Label(1))], finite: true };
        let barrier = Stmt::Barrier(Barrier::Workgroup, None);
        let scope = Stmt::Scope { label: Label(1), body: vec![barrier, repeat] };
        vec![scope, Stmt::Barrier(Barrier::Subgroup, None)]
    }

    fn kind(stmt: &Stmt) -> &'static str {
        match stmt {
            Stmt::Scope { .. } => "scope",
            Stmt::Loop { .. } => "loop",
            Stmt::Break(_) => "break",
            Stmt::Barrier(Barrier::Workgroup, _) => "workgroup",
            Stmt::Barrier(Barrier::Subgroup, _) => "subgroup",
            _ => "other",
        }
    }

    #[test]
    fn statements_are_visited_in_order() {
        let expected = ["scope", "workgroup", "loop", "break", "subgroup"];
        let (mut body, mut visited) = (body(), Vec::new());
        for_each_stmt(&body, &mut |stmt| visited.push(kind(stmt)));
        assert_eq!(visited, expected);
        visited.clear();
        for_each_stmt_mut(&mut body, &mut |stmt| visited.push(kind(stmt)));
        assert_eq!(visited, expected);
    }

    #[test]
    fn search_ends_at_first_match() {
        let mut visited = Vec::new();
        assert!(any_stmt(&body(), &mut |stmt| {
            visited.push(kind(stmt));
            kind(stmt) == "loop"
        }));
        assert_eq!(visited, ["scope", "workgroup", "loop"]);
        assert!(!any_stmt(&body(), &mut |stmt| kind(stmt) == "other"));
    }
}
