//! Functions and calls.

use super::{Context, Generator};
use crate::tree::{Expr, Function, Node, Place, Stmt};
use crate::types::Type;

/// Maximum total loop iterations of an invocation: some software drivers end loops after 65535
/// iterations, counted for several invocations together.
const MAX_ITERATIONS: usize = 6000;

impl Generator {
    pub(super) fn declare_functions(&mut self) {
        for _ in 0..self.random.below(4) {
            let function = self.function();
            self.functions.push(function);
        }
    }

    fn function(&mut self) -> Function {
        self.pure = self.random.one_in(2);
        self.total_iterations = 0;
        self.reset_scope();
        let pointers: Vec<Type> = match self.pure {
            true => Vec::new(),
            false => (0..self.random.below(3)).map(|_| self.variable_type()).collect(),
        };
        let parameters: Vec<Type> =
            (0..self.random.between(1, 3)).map(|_| self.variable_type()).collect();
        for (i, ty) in pointers.iter().enumerate() {
            self.add_writable(format!("(*q{i})"), ty.clone());
        }
        for (i, ty) in parameters.iter().enumerate() {
            self.add_value(format!("p{i}"), ty.clone());
        }
        let result = self.variable_type();
        self.context =
            Context { returns: Some(result.clone()), iterations: 1, ..Context::default() };
        let count = self.random.between(1, 4);
        let mut body = self.block(count);
        body.push(Stmt::Return(Some(self.storable_value(&result, 2))));
        let (pure, total_iterations) = (std::mem::take(&mut self.pure), self.total_iterations);
        Function { pointers, parameters, result, body, pure, total_iterations }
    }

    /// Counts the iterations of a call or a loop. Returns false, and does not count them, if they
    /// would exceed the limit.
    pub(super) fn spend_iterations(&mut self, iterations: usize) -> bool {
        let total = iterations * self.context.iterations;
        let affordable = self.total_iterations + total <= MAX_ITERATIONS;
        if affordable {
            self.total_iterations += total;
        }
        affordable
    }

    /// Returns a call as a value, of a pure function where side effects are not allowed. `None` if
    /// no function or no pointee is suitable.
    pub(super) fn call(&mut self, ty: &Type, depth: usize) -> Option<Expr> {
        let pure = self.pure;
        let fits = |function: &Function| (function.pure || !pure) && function.result == *ty;
        let index = self.some_function(fits)?;
        let Function { pointers, parameters, .. } = self.functions[index].clone();
        let pointers = self.pointers(&pointers)?;
        let arguments = parameters.iter().map(|ty| self.storable_value(ty, depth.min(2))).collect();
        Some(Expr { ty: ty.clone(), node: Node::Call(index, pointers, arguments) })
    }

    /// Returns distinct pointees for pointers of these types; `None` if there are too few.
    fn pointers(&mut self, types: &[Type]) -> Option<Vec<Place>> {
        let mut used: Vec<Place> = Vec::new();
        for ty in types {
            used.push(self.pointer(ty, &used)?);
        }
        Some(used)
    }

    /// Returns the index of a suitable function, after counting the iterations of a call; `None` if
    /// there is none, or a call would exceed the limit of iterations.
    fn some_function(&mut self, fits: impl Fn(&Function) -> bool) -> Option<usize> {
        let found: Vec<usize> =
            (0..self.functions.len()).filter(|i| fits(&self.functions[*i])).collect();
        if found.is_empty() {
            return None;
        }
        let index = self.random.pick(&found);
        let iterations = self.functions[index].total_iterations;
        self.spend_iterations(iterations).then_some(index)
    }

    /// Returns a statement that calls a function with side effects.
    pub(super) fn call_statement(&mut self) -> Option<Stmt> {
        if self.pure {
            return None;
        }
        let index = self.some_function(|function| !function.pure)?;
        let Function { pointers, parameters, result, .. } = self.functions[index].clone();
        let pointers = self.pointers(&pointers)?;
        let arguments = parameters.iter().map(|ty| self.storable_value(ty, 2)).collect();
        let name = self.new_name("v");
        self.add_value(name.clone(), result);
        Some(Stmt::Call { function: index, pointers, arguments, result: Some(name) })
    }

    /// Returns a local variable to point to, which no other pointer aliases.
    fn pointer(&mut self, ty: &Type, used: &[Place]) -> Option<Place> {
        let fits = self.scope.iter().filter(|variable| variable.local && variable.ty == *ty);
        let free: Vec<String> = fits
            .map(|variable| variable.root.clone())
            .filter(|root| used.iter().all(|place| place.root != *root))
            .collect();
        if free.is_empty() {
            return None;
        }
        Some(Place::variable(self.random.pick(&free)))
    }
}
