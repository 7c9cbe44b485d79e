//! Which variables are indexed by values: those need memory, the others become registers.

use naga::{Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Statement};

use crate::wgsl::naga::handles;

/// The base of a pointer.
#[derive(Clone, Copy)]
enum Base {
    Argument(u32),
    Local(Handle<LocalVariable>),
    Global(Handle<GlobalVariable>),
}

/// The findings about one function, by argument and by local variable.
pub(super) struct Findings {
    pub arguments: Vec<bool>,
    pub locals: Vec<bool>,
}

/// The findings about a module.
pub(super) struct Indexed {
    /// By function; the entry point's come last.
    pub functions: Vec<Findings>,
    /// By global variable.
    pub globals: Vec<bool>,
}

impl Indexed {
    pub fn new(module: &Module) -> Self {
        let globals = vec![false; module.global_variables.len()];
        let mut found = Self { functions: Vec::new(), globals };
        // A function stands behind those that it calls.
        for function in handles::functions(module) {
            found.function(function);
        }
        found
    }

    /// The findings about the entry point.
    pub fn entry(&self) -> Option<&Findings> {
        self.functions.last()
    }

    fn function(&mut self, function: &Function) {
        let mut findings = Findings {
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
                    self.mark(&mut findings, bases[base.index()]);
                    bases[base.index()]
                }
                _ => None,
            };
            bases.push(base);
        }
        self.calls(&function.body, &bases, &mut findings);
        self.functions.push(findings);
    }

    fn mark(&mut self, findings: &mut Findings, base: Option<Base>) {
        match base {
            Some(Base::Argument(at)) => findings.arguments[at as usize] = true,
            Some(Base::Local(local)) => findings.locals[local.index()] = true,
            Some(Base::Global(global)) => self.globals[global.index()] = true,
            None => {}
        }
    }

    /// Whatever a callee indexes through a pointer is indexed.
    fn calls(&mut self, block: &Block, bases: &[Option<Base>], findings: &mut Findings) {
        for statement in block.iter() {
            match statement {
                Statement::Call { function, arguments, .. } => {
                    for (at, argument) in arguments.iter().enumerate() {
                        if self.functions[function.index()].arguments[at] {
                            self.mark(findings, bases[argument.index()]);
                        }
                    }
                }
                Statement::Block(inner) => self.calls(inner, bases, findings),
                Statement::If { accept, reject, .. } => {
                    self.calls(accept, bases, findings);
                    self.calls(reject, bases, findings);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().for_each(|case| self.calls(&case.body, bases, findings));
                }
                Statement::Loop { body, continuing, .. } => {
                    self.calls(body, bases, findings);
                    self.calls(continuing, bases, findings);
                }
                _ => {}
            }
        }
    }
}
