//! Gives functions whole variables to point to.
//!
//! A pointer to a part of a variable, `&a[i]` or `&s.m`, is no argument that the SPIR-V writer can
//! hand to a function. Such a part is copied into a variable of its own, the function called with
//! that, and the result copied back. WGSL lets no function write what another of its pointers
//! reaches, so nobody can tell the difference.

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Span,
    Statement, Type, TypeInner,
};

use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// A pointer argument's pointee and address space.
type Pointee = (Handle<Type>, AddressSpace);

/// True if some call has a pointer to a part of a variable as an argument.
pub(crate) fn needed(module: &Module) -> bool {
    handles::functions(module).iter().any(|function| has_part(module, function, &function.body))
}

fn has_part(module: &Module, function: &Function, block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Call { function: callee, arguments, .. } => {
            let pointees = pointees(module, *callee);
            let mut pairs = arguments.iter().zip(pointees);
            pairs.any(|(&argument, pointee)| pointee.is_some() && is_part(function, argument))
        }
        Statement::Block(inner) => has_part(module, function, inner),
        Statement::If { accept, reject, .. } => {
            has_part(module, function, accept) || has_part(module, function, reject)
        }
        Statement::Switch { cases, .. } => {
            cases.iter().any(|case| has_part(module, function, &case.body))
        }
        Statement::Loop { body, continuing, .. } => {
            has_part(module, function, body) || has_part(module, function, continuing)
        }
        _ => false,
    })
}

fn is_part(function: &Function, argument: Expr) -> bool {
    matches!(
        function.expressions[argument],
        Expression::Access { .. } | Expression::AccessIndex { .. }
    )
}

/// For each argument of a function what it points to, if it is a pointer.
fn pointees(module: &Module, callee: Handle<Function>) -> Vec<Option<Pointee>> {
    let arguments = module.functions[callee].arguments.iter();
    arguments
        .map(|argument| match module.types[argument.ty].inner {
            TypeInner::Pointer { base, space } => Some((base, space)),
            _ => None,
        })
        .collect()
}

/// Copies every part that a call points to into a variable of its own, and back.
pub(crate) fn apply(module: &mut Module) {
    let signatures: Vec<_> =
        module.functions.iter().map(|(handle, _)| pointees(module, handle)).collect();
    let globals = &mut module.global_variables;
    for function in handles::functions_mut(&mut module.functions, &mut module.entry_points) {
        let mut body = std::mem::take(&mut function.body);
        let mut copier = Copier { signatures: &signatures, globals: &mut *globals, function };
        copier.block(&mut body);
        function.body = body;
    }
}

struct Copier<'a> {
    signatures: &'a [Vec<Option<Pointee>>],
    globals: &'a mut naga::Arena<GlobalVariable>,
    function: &'a mut Function,
}

impl Copier<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut rebuilt = Block::with_capacity(block.len());
        for (mut statement, span) in std::mem::take(block).span_into_iter() {
            let mut after = Vec::new();
            match &mut statement {
                Statement::Block(inner) => self.block(inner),
                Statement::If { accept, reject, .. } => {
                    self.block(accept);
                    self.block(reject);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter_mut().for_each(|case| self.block(&mut case.body));
                }
                Statement::Loop { body, continuing, .. } => {
                    self.block(body);
                    self.block(continuing);
                }
                Statement::Call { function, arguments, .. } => {
                    let signature = &self.signatures[function.index()];
                    for (argument, pointee) in arguments.iter_mut().zip(signature) {
                        let Some(pointee) = *pointee else { continue };
                        if is_part(self.function, *argument) {
                            let copy = self.variable(pointee);
                            self.copy(*argument, copy, span, &mut rebuilt);
                            after.push((copy, *argument));
                            *argument = copy;
                        }
                    }
                }
                _ => {}
            }
            rebuilt.push(statement, span);
            for (copy, part) in after {
                self.copy(copy, part, span, &mut rebuilt);
            }
        }
        *block = rebuilt;
    }

    /// A new variable for a pointee, as a pointer to it.
    fn variable(&mut self, (ty, space): Pointee) -> Expr {
        let pointer = if space == AddressSpace::Private {
            Expression::GlobalVariable(self.globals.append(
                GlobalVariable {
                    name: None,
                    space,
                    binding: None,
                    ty,
                    init: None,
                    memory_decorations: naga::MemoryDecorations::empty(),
                },
                Span::UNDEFINED,
            ))
        } else {
            let local = LocalVariable { name: None, ty, init: None };
            let locals = &mut self.function.local_variables;
            Expression::LocalVariable(locals.append(local, Span::UNDEFINED))
        };
        self.function.expressions.append(pointer, Span::UNDEFINED)
    }

    /// Loads from one pointer and stores to another.
    fn copy(&mut self, from: Expr, to: Expr, span: Span, out: &mut Block) {
        let before = self.function.expressions.len();
        let load = Expression::Load { pointer: from };
        let value = self.function.expressions.append(load, span);
        let range = self.function.expressions.range_from(before);
        out.push(Statement::Emit(range), span);
        out.push(Statement::Store { pointer: to, value }, span);
    }
}
