//! Finds dynamically indexed variables. These must be in memory; the others can be in registers (as
//! by LLVM's mem2reg and SROA).

use naga::{Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Statement};

use crate::wgsl::naga::handles;

/// The base of a pointer.
#[derive(Clone, Copy)]
enum Base {
    Argument(u32),
    Local(Handle<LocalVariable>),
    Global(Handle<GlobalVariable>),
}

/// The dynamically indexed variables of a function, by pointer argument and by local variable.
pub(super) struct FunctionVariables {
    pub arguments: Vec<bool>,
    pub locals: Vec<bool>,
}

/// The dynamically indexed variables of a module.
pub(super) struct IndexedVariables {
    /// By function; the entry point is the last.
    pub functions: Vec<FunctionVariables>,
    /// By global variable.
    pub globals: Vec<bool>,
}

impl IndexedVariables {
    pub fn new(module: &Module) -> Self {
        let globals = vec![false; module.global_variables.len()];
        let mut found = Self { functions: Vec::new(), globals };
        // Callees precede their callers.
        for function in handles::functions(module) {
            found.analyse(function);
        }
        found
    }

    /// Returns the indexed variables of the entry point.
    pub fn entry_point(&self) -> Option<&FunctionVariables> {
        self.functions.last()
    }

    fn analyse(&mut self, function: &Function) {
        let mut indexed = FunctionVariables {
            arguments: vec![false; function.arguments.len()],
            locals: vec![false; function.local_variables.len()],
        };
        let mut bases: Vec<Option<Base>> = Vec::with_capacity(function.expressions.len());
        for (_, expression) in function.expressions.iter() {
            let base = match *expression {
                Expression::FunctionArgument(at) => Some(Base::Argument(at)),
                Expression::LocalVariable(local) => Some(Base::Local(local)),
                Expression::GlobalVariable(global) => Some(Base::Global(global)),
                Expression::AccessIndex { base, .. } => bases[base.index()],
                Expression::Access { base, .. } => {
                    self.mark(&mut indexed, bases[base.index()]);
                    bases[base.index()]
                }
                _ => None,
            };
            bases.push(base);
        }
        self.mark_arguments(&function.body, &bases, &mut indexed);
        self.functions.push(indexed);
    }

    fn mark(&mut self, indexed: &mut FunctionVariables, base: Option<Base>) {
        match base {
            Some(Base::Argument(at)) => indexed.arguments[at as usize] = true,
            Some(Base::Local(local)) => indexed.locals[local.index()] = true,
            Some(Base::Global(global)) => self.globals[global.index()] = true,
            None => {}
        }
    }

    /// Marks the variables that calls pass to a parameter which the callee indexes.
    fn mark_arguments(
        &mut self,
        block: &Block,
        bases: &[Option<Base>],
        indexed: &mut FunctionVariables,
    ) {
        for statement in block.iter() {
            match statement {
                Statement::Call { function, arguments, .. } => {
                    for (at, argument) in arguments.iter().enumerate() {
                        if self.functions[function.index()].arguments[at] {
                            self.mark(indexed, bases[argument.index()]);
                        }
                    }
                }
                Statement::Block(inner) => self.mark_arguments(inner, bases, indexed),
                Statement::If { accept, reject, .. } => {
                    self.mark_arguments(accept, bases, indexed);
                    self.mark_arguments(reject, bases, indexed);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().for_each(|case| self.mark_arguments(&case.body, bases, indexed));
                }
                Statement::Loop { body, continuing, .. } => {
                    self.mark_arguments(body, bases, indexed);
                    self.mark_arguments(continuing, bases, indexed);
                }
                _ => {}
            }
        }
    }
}
