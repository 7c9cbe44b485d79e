//! Statements other than loops.

use super::HostileGenerator;
use super::functions::one;
use crate::hostile::tree::Line;
use crate::hostile::tree::{Block, Expr, Extent, Global, Kind, Part, Space, Stmt};
use crate::types::Type;

impl HostileGenerator {
    /// Returns declarations for the start of a function.
    pub(super) fn first_variables(&mut self) -> Block {
        let mut block = Vec::new();
        if self.in_main {
            let seed = self.datum(Kind::U32, 0);
            block.push(Stmt::line("state = $0", vec![seed]));
        }
        for _ in 0..self.random.between(1, 2) {
            self.variable_declaration(&mut block);
        }
        if self.random.one_in(2) {
            self.array_declaration(&mut block);
        }
        block
    }

    /// Adds a statement, or a few that belong together.
    pub(super) fn statement(&mut self, block: &mut Block) {
        let Some(budget) = self.budget.checked_sub(1) else {
            return self.store(block);
        };
        self.budget = budget;
        match self.random.below(20) {
            0..=2 => self.store(block),
            3 => self.copy(block),
            4 => self.load(block),
            5 => self.variable_declaration(block),
            6 | 7 => self.assign(block),
            8 | 9 => self.guarded_access(block),
            10 => self.branch(block),
            11 => self.switch(block),
            12 => self.atomic(block),
            13 => self.call(block),
            14 => self.pointer(block),
            15 => self.jump(block),
            _ if self.depth < 4 && self.loops < 3 && self.in_main => self.loop_statement(block),
            _ => self.store(block),
        }
    }

    /// Returns a block of statements with its own scope.
    pub(super) fn nested(&mut self, statements: usize) -> Block {
        let (scope, arrays) = (self.scope.len(), self.arrays.len());
        self.depth += 1;
        let mut block = Vec::new();
        for _ in 0..statements {
            self.statement(&mut block);
        }
        self.depth -= 1;
        self.scope.truncate(scope);
        self.arrays.truncate(arrays);
        block
    }

    pub(super) fn store(&mut self, block: &mut Block) {
        let global = self.pick_writable();
        let scalar_only = !self.random.one_in(5);
        let place = self.place_in(&global, scalar_only);
        let value = self.uint(1);
        let value = if value.constant { self.variable(Kind::U32) } else { value };
        let value = self.convert_u32(&place.ty, value);
        block.push(Stmt::line("$0 = $1", vec![place.expr, value]));
    }

    /// Adds a copy of an element within a variable.
    fn copy(&mut self, block: &mut Block) {
        let mut variable = self.pick_writable();
        variable.content.clear();
        let from = self.element(&variable);
        let to = self.element(&variable);
        block.push(Stmt::line("$0 = $1", vec![to, from]));
    }

    /// Returns an element of a variable of any type.
    fn element(&mut self, global: &Global) -> Expr {
        let mut element = global.clone();
        if let (Extent::One, Type::Array(..)) = (global.extent, &global.ty) {
            let Type::Array(inner, len) = element.ty else { return Expr::uint(0) };
            let index = self.index(Some(len), None);
            element.ty = *inner;
            return Expr::new(Kind::Other, format!("{}[$0]", global.name), vec![index]);
        }
        // With a scalar type, the path ends at the element.
        element.ty = Type::U32;
        self.place_in(&element, false).expr
    }

    fn load(&mut self, block: &mut Block) {
        let value = self.load_as_u32(2);
        let value = if value.constant { self.variable(Kind::U32) } else { value };
        let name = self.new_name("l");
        block.push(Stmt::line(format!("let {name} = $0"), vec![value]));
        self.add_value(name, Kind::U32);
    }

    pub(super) fn variable_declaration(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let value = self.number(kind, 1);
        let name = self.new_name("v");
        block.push(Stmt::line(format!("var {name} = $0"), vec![value]));
        self.add_variable(name, kind);
    }

    fn array_declaration(&mut self, block: &mut Block) {
        let (name, ty) = (self.new_name("w"), self.array_type());
        block.push(Stmt::line(format!("var {name}: {ty}"), Vec::new()));
        self.record_lengths(&ty, Extent::One);
        let (space, extent) = (Space::Private, Extent::One);
        let content = Vec::new();
        self.arrays.push(Global { name, space, ty, extent, atomic: false, content });
    }

    /// Adds a copy of a variable, which later assignments make stale, or an assignment.
    pub(super) fn assign(&mut self, block: &mut Block) {
        let variables: Vec<_> =
            self.scope.iter().filter(|variable| variable.mutable).cloned().collect();
        let variable = self.random.pick(&variables);
        if self.random.one_in(2) {
            return self.copy_of(&variable.name, variable.kind, block);
        }
        let text = match self.random.below(4) {
            0 => format!("{} = $0", variable.name),
            1 => format!("{} -= $0", variable.name),
            _ => format!("{} += $0", variable.name),
        };
        let value = match self.random.below(3) {
            0 => one(variable.kind),
            _ => self.number(variable.kind, 1),
        };
        block.push(Stmt::line(text, vec![value]));
    }

    /// Adds a copy of a variable.
    pub(super) fn copy_of(&mut self, variable: &str, kind: Kind, block: &mut Block) {
        let name = self.new_name("s");
        block.push(Stmt::line(format!("let {name} = {variable}"), Vec::new()));
        self.add_value(name, kind);
    }

    /// Adds statements that an almost correct condition guards: it is off by one, or compares with
    /// another length, or its operand changes afterwards.
    fn guarded_access(&mut self, block: &mut Block) {
        let kind = if self.random.one_in(4) { Kind::I32 } else { Kind::U32 };
        let value = self.variable(kind);
        let limit = match self.random.below(3) {
            0 if kind == Kind::U32 => self.length(),
            _ if kind == Kind::I32 => Expr::int(self.small().cast_signed()),
            _ => Expr::uint(self.small()),
        };
        let text = self.random.pick(&["$0 < $1", "$0 <= $1", "$0 < $1", "$0 != $1", "$1 > $0"]);
        let condition = Expr::new(Kind::Bool, text, vec![value, limit]);
        let count = self.random.between(1, 3);
        let then = self.nested(count);
        let other = if self.random.one_in(4) { self.nested(1) } else { Vec::new() };
        block.push(Stmt::if_else(condition, then, other));
    }

    fn branch(&mut self, block: &mut Block) {
        let condition = self.condition(2);
        let then = self.nested(2);
        let other = if self.random.one_in(2) { self.nested(1) } else { Vec::new() };
        block.push(Stmt::if_else(condition, then, other));
    }

    fn switch(&mut self, block: &mut Block) {
        let selector = self.uint(1);
        let selector = if selector.constant { self.variable(Kind::U32) } else { selector };
        let may_continue = std::mem::replace(&mut self.may_continue, false);
        let mut cases = Vec::new();
        for value in 0..self.random.between(1, 3) {
            let body = self.nested(1);
            cases.push(Stmt::block(format!("case {value}u:"), Vec::new(), body));
        }
        let body = self.nested(1);
        cases.push(Stmt::block("default:", Vec::new(), body));
        self.may_continue = may_continue;
        let head = Line::new("switch $0", vec![selector]);
        block.push(Stmt::Blocks(vec![Part { head, body: cases }]));
    }

    pub(super) fn atomic(&mut self, block: &mut Block) {
        let atomics = self.atomics();
        if atomics.is_empty() {
            return self.store(block);
        }
        let index = self.random.pick(&atomics);
        let is_int = match &self.globals[index].ty {
            Type::Array(element, _) => **element == Type::I32,
            ty => *ty == Type::I32,
        };
        let place = self.atomic_place(index);
        let value = if is_int { self.int(1) } else { self.uint(1) };
        let function = self.random.pick(&["Add", "Sub", "Max", "Min", "Exchange", "Or", "Xor"]);
        let name = self.new_name("l");
        let text = format!("let {name} = atomic{function}(&$0, $1)");
        block.push(Stmt::line(text, vec![place, value]));
        self.add_value(name, if is_int { Kind::I32 } else { Kind::U32 });
    }

    /// Adds a pointer to an element, whose index may change before the pointer is used.
    fn pointer(&mut self, block: &mut Block) {
        let place = self.writable_place();
        if matches!(place.ty, Type::Scalar(_)) && is_component(&place.expr.text) {
            return self.store(block);
        }
        let name = self.new_name("q");
        block.push(Stmt::line(format!("let {name} = &$0"), vec![place.expr]));
        self.assign(block);
        let value = self.uint(1);
        let value = if value.constant { self.variable(Kind::U32) } else { value };
        let value = self.convert_u32(&place.ty, value);
        block.push(Stmt::line(format!("*{name} = $0"), vec![value]));
    }

    /// Adds a conditional `break` or `continue`; outside of loops, an assignment.
    fn jump(&mut self, block: &mut Block) {
        let condition = self.condition(1);
        let jump = match self.random.below(3) {
            0 if self.may_continue => "continue",
            1 | 2 if self.may_continue => "break",
            _ => return self.assign(block),
        };
        block.push(Stmt::if_else(condition, vec![Stmt::line(jump, Vec::new())], Vec::new()));
    }
}

/// Returns whether a path may end in a component of a vector. WGSL has no pointers to these.
fn is_component(path: &str) -> bool {
    path.ends_with(".x") || path.ends_with(".y") || path.matches('[').count() > 1
}
