//! Statements and blocks.

use super::body::own_element;
use super::values::is_constructor_or_swizzle;
use super::{Context, Generator};
use crate::exact::Rule;
use crate::tree::{Block, Expr, Global, LoopKind, Place, Space, Stmt};
use crate::types::{Scalar, Type};

impl Generator {
    /// Returns a block with its own scope.
    pub(super) fn block(&mut self, count: usize) -> Block {
        let outside = self.scope.len();
        let mut block = Block::new();
        for _ in 0..count {
            block.push(self.statement());
        }
        block.extend(self.jump());
        self.scope.truncate(outside);
        block
    }

    /// Returns a nested block of a statement, in a changed context.
    fn inner_block(&mut self, change: impl FnOnce(&mut Context)) -> Block {
        let outside = self.context.clone();
        self.context.depth += 1;
        change(&mut self.context);
        let count = self.random.between(1, 3);
        let block = self.block(count);
        self.context = outside;
        block
    }

    /// Sometimes returns a `break`, `continue` or `return` for the end of a block.
    fn jump(&mut self) -> Option<Stmt> {
        if self.context.depth == 0 || !self.random.one_in(5) {
            return None;
        }
        let context = self.context.clone();
        match self.random.below(4) {
            0 if context.may_break => Some(Stmt::Break),
            1 if context.may_continue => Some(Stmt::Continue),
            2 if context.may_return => Some(Stmt::Return(None)),
            3 => context.returns.map(|result| Stmt::Return(Some(self.storable_value(&result, 2)))),
            _ => None,
        }
    }

    pub(super) fn statement(&mut self) -> Stmt {
        let may_nest = self.context.depth < 3;
        let statement = match self.random.below(16) {
            0 | 1 => Some(self.declare_let()),
            2 | 3 => Some(self.declare_var()),
            4 | 5 if may_nest => Some(self.branch()),
            6 | 7 if may_nest => self.loop_statement(),
            8 if may_nest => Some(self.switch()),
            9 => self.call_statement(),
            10 => self.atomic(),
            11 if self.random.one_in(2) => self.pointer_declaration(),
            _ => self.assign(),
        };
        statement.unwrap_or_else(|| self.declare_var())
    }

    fn declare_let(&mut self) -> Stmt {
        let ty = self.variable_type();
        let value = self.storable_value(&ty, 3);
        let name = self.new_name("v");
        // naga evaluates constants through `let`, and rejects errors in them, such as overflow:
        // these need `var`.
        let may_be_constant = value.is_const() || is_constructor_or_swizzle(&value);
        if may_be_constant {
            self.add_local(name.clone(), ty);
            Stmt::Var { name, value }
        } else {
            self.add_value(name.clone(), ty);
            Stmt::Let { name, value }
        }
    }

    pub(super) fn declare_var(&mut self) -> Stmt {
        let ty = self.variable_type();
        let value = self.storable_value(&ty, 3);
        let name = self.new_name("v");
        self.add_local(name.clone(), ty);
        Stmt::Var { name, value }
    }

    /// Returns an assignment to a part of a variable in scope.
    fn assign(&mut self) -> Option<Stmt> {
        let writable: Vec<Type> =
            self.scope.iter().filter(|v| v.writable).map(|v| v.ty.clone()).collect();
        if writable.is_empty() {
            return None;
        }
        let variable_type = self.random.pick(&writable);
        let ty = self.part_type(&variable_type);
        let place = self.writable_place(&ty, 1)?;
        let value = self.storable_value(&ty, 3);
        let integer = ty.scalar().is_some_and(|s| !s.is_float() && s != Scalar::Bool);
        // WGSL rejects divisors with a constant component of zero.
        let may_be_constant = value.is_const() || is_constructor_or_swizzle(&value);
        let operator = match self.random.one_in(3) && integer && !may_be_constant {
            true => self.random.pick(&["+=", "-=", "*=", "^=", "&=", "|=", "/=", "%="]),
            false => "=",
        };
        Some(Stmt::Assign { place, operator, value })
    }

    /// Returns the type of a part of a type, or the type itself.
    fn part_type(&mut self, ty: &Type) -> Type {
        if self.random.one_in(2) {
            return ty.clone();
        }
        let part = match ty {
            Type::Scalar(_) => return ty.clone(),
            Type::Vector(scalar, _) => return Type::Scalar(*scalar),
            Type::Matrix(scalar, _, rows) => Type::Vector(*scalar, *rows),
            Type::Array(element, _) => (**element).clone(),
            Type::Struct(index) => {
                let members = self.structs[*index].clone();
                self.random.pick(&members)
            }
        };
        self.part_type(&part)
    }

    fn branch(&mut self) -> Stmt {
        let condition = self.value(&Type::BOOL, 3);
        let then_block = self.inner_block(|_| {});
        let else_block = match self.random.one_in(2) {
            true => self.inner_block(|_| {}),
            false => Block::new(),
        };
        Stmt::If { condition, then_block, else_block, required: false }
    }

    /// Returns a loop, unless the invocation would execute too many iterations.
    fn loop_statement(&mut self) -> Option<Stmt> {
        let iterations = self.random.between(1, 5);
        if self.context.iterations * iterations > 60 || !self.spend_iterations(iterations) {
            return None;
        }
        let (kind, below) = self.random.pick(&[
            (LoopKind::For, iterations),
            (LoopKind::While, iterations + 1),
            (LoopKind::Continuing, iterations),
            (LoopKind::Down, iterations + 1),
            (LoopKind::ByTwo, 2 * iterations - 1),
            (LoopKind::Limited, iterations),
        ]);
        let condition = match kind {
            LoopKind::Limited => Some(self.value(&Type::U32, 2)),
            LoopKind::While | LoopKind::Continuing if self.random.one_in(2) => {
                Some(self.value(&Type::BOOL, 2))
            }
            _ => None,
        };
        let counter = self.new_name("k");
        let outside = self.scope.len();
        self.add_counter(&counter, below);
        let body = self.inner_block(|context| {
            context.iterations *= iterations;
            context.may_break = true;
            context.may_continue = true;
        });
        self.scope.truncate(outside);
        Some(Stmt::Loop { kind, counter, iterations, condition, body })
    }

    fn switch(&mut self) -> Stmt {
        let selector = self.value(&Type::U32, 2);
        let count = self.random.between(1, 4) as u32;
        let values_per_case = self.random.between(1, 2) as u32;
        let cases = (0..count).map(|case| {
            let values = (0..values_per_case).map(|i| case * values_per_case + i).collect();
            (values, self.inner_block(|context| context.may_break = true))
        });
        let cases = cases.collect();
        let default = self.inner_block(|context| context.may_break = true);
        // Up to 8 values have a case, so that 8 selects the default.
        let selector =
            Expr::op(Type::U32, "($0 % $1)", Rule::Largest, vec![selector, Expr::uint(9)]);
        Stmt::Switch { selector, cases, default }
    }

    /// Returns a pointer declaration to a part of a variable.
    fn pointer_declaration(&mut self) -> Option<Stmt> {
        let pointed: Vec<Type> =
            self.scope.iter().filter(|v| v.local).map(|v| v.ty.clone()).collect();
        if pointed.is_empty() {
            return None;
        }
        let variable_type = self.random.pick(&pointed);
        let ty = self.part_type(&variable_type);
        // WGSL has no pointers to components of vectors.
        if matches!(ty, Type::Scalar(_)) {
            return None;
        }
        let place = self.writable_place(&ty, 1)?;
        let name = self.new_name("r");
        self.add_writable(format!("(*{name})"), ty);
        Some(Stmt::Pointer { name, place })
    }

    /// Returns an atomic operation on an element that the invocation owns. Its old value does not
    /// depend on the order of invocations.
    fn own_atomic(&mut self, global: &Global) -> Stmt {
        let function = self.random.pick(&[
            "atomicAdd",
            "atomicSub",
            "atomicMax",
            "atomicMin",
            "atomicAnd",
            "atomicOr",
            "atomicXor",
            "atomicExchange",
        ]);
        let value = self.value(&global.ty, 2);
        let place = Place::variable(own_element(global, self.random.below(global.count)));
        let name = self.new_name("v");
        self.add_value(name.clone(), global.ty.clone());
        Stmt::Atomic { function, place, value, result: Some(name) }
    }

    /// Returns an atomic operation. Each variable has one kind of operation, so that its final
    /// value does not depend on the order.
    fn atomic(&mut self) -> Option<Stmt> {
        // Not in functions: they may be called after `freeze`, and lack the invocation's index.
        if self.context.returns.is_some() {
            return None;
        }
        let atomics: Vec<usize> = (0..self.globals.len())
            .filter(|i| self.globals[*i].atomic)
            .filter(|i| self.globals[*i].space != Space::Workgroup || !self.frozen)
            .collect();
        if atomics.is_empty() {
            return None;
        }
        let index = self.random.pick(&atomics);
        let global = self.globals[index].clone();
        let Type::Array(element, len) = global.ty else {
            return Some(self.own_atomic(&global));
        };
        let kinds: [&[&str]; 7] = [
            &["atomicAdd", "atomicSub"],
            &["atomicMax"],
            &["atomicMin"],
            &["atomicAnd"],
            &["atomicOr"],
            &["atomicXor"],
            &[],
        ];
        let functions = kinds[index % kinds.len()];
        let value = self.value(&element, 2);
        let element_index = self.value(&Type::U32, 1);
        let element_index =
            if element_index.is_const() { Expr::uint(index % len) } else { element_index };
        let place = Place::variable(global.name).element(element_index, len);
        if functions.is_empty() {
            return Some(Stmt::AtomicMultiply { place, value });
        }
        let function = self.random.pick(functions);
        Some(Stmt::Atomic { function, place, value, result: None })
    }
}
