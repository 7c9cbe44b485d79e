//! Functions that hostile kernels call: they change counters behind pointers and private variables.

use super::{HostileGenerator, Mode};
use crate::hostile::tree::{Block, Expr, Extent, Function, Kind, Space, Stmt};
use crate::types::Type;

impl HostileGenerator {
    /// Declares the functions, and the private variables that they use.
    pub(super) fn declare_functions(&mut self) {
        self.named_private("state", Type::U32);
        self.named_private("memory", Type::I32);
        let lines = |text: &[&str]| text.iter().map(|text| Stmt::line(*text, Vec::new())).collect();
        self.function(
            "next",
            "fn next() -> u32",
            lines(&["state = state * 1664525u + 1013904223u", "return state >> 24u"]),
        );
        self.function("bump", "fn bump(p: ptr<function, u32>, by: u32)", lines(&["*p = *p + by"]));
        self.function(
            "back",
            "fn back(p: ptr<function, i32>, by: i32) -> i32",
            lines(&["let was = *p", "*p -= by", "return was"]),
        );
        self.declare_table();
        self.declare_random();
    }

    fn named_private(&mut self, name: &str, ty: Type) {
        let (space, extent, name) = (Space::Private, Extent::One, name.to_owned());
        let content = Vec::new();
        let global = super::Global { name, space, ty, extent, atomic: false, content };
        self.globals.push(global);
    }

    /// Declares functions with an index parameter.
    fn declare_table(&mut self) {
        let (private, input) = match self.mode {
            Mode::InBounds => ("table[i % 5u]", "data[i % arrayLength(&data)]"),
            _ => ("table[i]", "data[i]"),
        };
        self.named_private("table", Type::Array(Box::new(Type::U32), 5));
        let result = |text: &str| vec![Stmt::line(format!("return {text}"), Vec::new())];
        let mut body = vec![Stmt::line(format!("{private} += 3u"), Vec::new())];
        body.extend(result(private));
        self.function("taken", "fn taken(i: u32) -> u32", body);
        self.function("fetched", "fn fetched(i: u32) -> u32", result(input));
    }

    /// Declares a function of random statements.
    fn declare_random(&mut self) {
        self.in_main = false;
        self.reset_scope();
        self.add_value("a", Kind::U32);
        self.add_value("b", Kind::I32);
        self.budget = 6;
        let mut body = self.first_variables();
        if self.mode != Mode::OwnElements {
            for _ in 0..self.random.between(1, 3) {
                self.statement(&mut body);
            }
        }
        let result = self.uint(1);
        body.push(Stmt::line("return $0", vec![result]));
        self.function("hidden", "fn hidden(a: u32, b: i32) -> u32", body);
    }

    fn function(&mut self, name: &str, head: &str, body: Block) {
        self.functions.push(Function { name: name.to_owned(), head: head.to_owned(), body });
    }

    /// Adds a call of a function that modifies a variable, or private variables.
    pub(super) fn call(&mut self, block: &mut Block) {
        let locals: Vec<_> = self.scope.iter().filter(|variable| variable.local).cloned().collect();
        if locals.is_empty() || self.random.one_in(3) {
            if !self.in_main {
                return;
            }
            let (a, b) = (self.uint(1), self.int(1));
            let name = self.new_name("l");
            block.push(Stmt::line(format!("let {name} = hidden($0, $1)"), vec![a, b]));
            return self.add_value(name, Kind::U32);
        }
        let variable = self.random.pick(&locals);
        let by = self.number(variable.kind, 0);
        let by = if self.random.one_in(2) { one(variable.kind) } else { by };
        let name = &variable.name;
        let text = match variable.kind {
            Kind::I32 => format!("_ = back(&{name}, $0)"),
            _ => format!("bump(&{name}, $0)"),
        };
        block.push(Stmt::line(text, vec![by]));
    }
}

/// Returns the number 1.
pub(super) fn one(kind: Kind) -> Expr {
    if kind == Kind::I32 { Expr::int(1) } else { Expr::uint(1) }
}
