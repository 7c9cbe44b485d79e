//! What happens anywhere inside a block: which locals are written, which expressions evaluated.

use naga::{Block, Expression, Function, Range, Statement};

use super::{Expr, Local};

/// Facts of some statements, everything nested in them included.
#[derive(Default)]
pub(super) struct Facts {
    emitted: Vec<Range<Expression>>,
    /// Results of statements: no `Emit` has them in its range.
    results: Vec<Expr>,
    /// By local; zero beyond the end.
    stores: Vec<u32>,
    escaped: Vec<Local>,
}

impl Facts {
    /// True if one of the statements evaluates the expression or has it as its result.
    pub(super) fn evaluates(&self, expression: Expr) -> bool {
        let at = expression.index() as u32;
        self.emitted.iter().any(|range| range.index_range().contains(&at))
            || self.results.contains(&expression)
    }

    /// How many statements store into the local or a part of it.
    pub(super) fn stores(&self, local: Local) -> u32 {
        self.stores.get(local.index()).copied().unwrap_or(0)
    }

    /// True if a pointer to the local goes where it may be written.
    pub(super) fn escapes(&self, local: Local) -> bool {
        self.escaped.contains(&local)
    }

    /// Adds the facts of a block.
    pub(super) fn add(&mut self, function: &Function, block: &Block) {
        for statement in block {
            self.add_statement(function, statement);
        }
    }

    /// Adds the facts of one statement.
    pub(super) fn add_statement(&mut self, function: &Function, statement: &Statement) {
        let escape = |facts: &mut Self, pointer| {
            facts.escaped.extend(root_local(function, pointer));
        };
        match statement {
            Statement::Emit(range) => self.emitted.push(range.clone()),
            Statement::Block(block) => self.add(function, block),
            Statement::If { accept, reject, .. } => {
                self.add(function, accept);
                self.add(function, reject);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    self.add(function, &case.body);
                }
            }
            Statement::Loop { body, continuing, .. } => {
                self.add(function, body);
                self.add(function, continuing);
            }
            Statement::Store { pointer, .. } => {
                if let Some(local) = root_local(function, *pointer) {
                    let at = local.index();
                    self.stores.resize(self.stores.len().max(at + 1), 0);
                    self.stores[at] += 1;
                }
            }
            Statement::Call { arguments, result, .. } => {
                for &argument in arguments {
                    escape(self, argument);
                }
                self.results.extend(result);
            }
            Statement::Atomic { pointer, result, .. } => {
                escape(self, *pointer);
                self.results.extend(result);
            }
            Statement::WorkGroupUniformLoad { result, .. }
            | Statement::SubgroupBallot { result, .. }
            | Statement::SubgroupGather { result, .. }
            | Statement::SubgroupCollectiveOperation { result, .. } => self.results.push(*result),
            Statement::CooperativeStore { data, .. } => escape(self, data.pointer),
            Statement::RayQuery { query, fun } => {
                escape(self, *query);
                if let naga::RayQueryFunction::Proceed { result } = fun {
                    self.results.push(*result);
                }
            }
            Statement::RayPipelineFunction(naga::RayPipelineFunction::TraceRay {
                payload, ..
            }) => escape(self, *payload),
            Statement::Break
            | Statement::Continue
            | Statement::Return { .. }
            | Statement::Kill
            | Statement::ControlBarrier(_)
            | Statement::MemoryBarrier(_)
            | Statement::ImageStore { .. }
            | Statement::ImageAtomic { .. } => {}
        }
    }
}

/// The local variable that a pointer points into, if it does.
fn root_local(function: &Function, mut pointer: Expr) -> Option<Local> {
    loop {
        match function.expressions[pointer] {
            Expression::LocalVariable(local) => return Some(local),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = base;
            }
            _ => return None,
        }
    }
}

/// The statements of a loop's block that run on every turn after which the loop goes on: those
/// before any `continue`, bare blocks opened. False if the end of the block may be skipped.
pub(super) fn straight_line<'a>(block: &'a Block, out: &mut Vec<&'a Statement>) -> bool {
    for statement in block {
        if let Statement::Block(inner) = statement {
            if !straight_line(inner, out) {
                return false;
            }
            continue;
        }
        out.push(statement);
        if continues(statement) {
            return false;
        }
    }
    true
}

/// True if a statement may `continue` the loop around it.
pub(super) fn continues(statement: &Statement) -> bool {
    match statement {
        Statement::Continue => true,
        Statement::Block(block) => block.iter().any(continues),
        Statement::If { accept, reject, .. } => accept.iter().chain(reject).any(continues),
        Statement::Switch { cases, .. } => cases.iter().any(|case| case.body.iter().any(continues)),
        _ => false,
    }
}

/// True if whoever enters the block leaves the loop around it.
pub(super) fn exits(block: &Block) -> bool {
    !block.iter().any(continues)
        && block.last().is_some_and(|last| match last {
            Statement::Break | Statement::Return { .. } | Statement::Kill => true,
            Statement::Block(inner) => exits(inner),
            Statement::If { accept, reject, .. } => exits(accept) && exits(reject),
            _ => false,
        })
}
