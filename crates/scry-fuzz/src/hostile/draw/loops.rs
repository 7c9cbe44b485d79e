//! Loops that end when the invocation has used up its fuel, and loops that terminate by themselves.
//!
//! The fuel is tested after the condition of the loop, so that a compiler still recognises counted
//! loops.

use super::HostileGenerator;
use super::functions::one;
use crate::hostile::tree::{Block, Expr, Kind, Line, Part, Stmt};

/// The form of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `while test`
    While,
    /// `loop { if test {} else { break; } … }`
    Else,
    /// `loop { if !test { break; } … }`
    Break,
    /// `for (; test; update)`
    For,
    /// `loop { … continuing { update; break if !test; } }`
    Continuing,
}

/// The counter of a loop.
#[derive(Clone)]
pub(super) struct Counter {
    pub name: String,
    pub kind: Kind,
}

impl HostileGenerator {
    /// Adds a loop.
    pub(super) fn loop_statement(&mut self, block: &mut Block) {
        match self.random.below(5) {
            0 => self.counted_loop(block),
            1 => self.stale_counter_loop(block),
            2 => self.nearly_counted_loop(block),
            _ => self.wild_loop(block),
        }
    }

    /// Returns a number of a counter's type.
    fn literal(kind: Kind, value: u32) -> Expr {
        if kind == Kind::I32 { Expr::int(value.cast_signed()) } else { Expr::uint(value) }
    }

    /// Returns the body of a loop: the statements that `fill` adds, and random ones.
    pub(super) fn loop_body(
        &mut self,
        statements: usize,
        fill: impl FnOnce(&mut Self, &mut Block),
    ) -> Block {
        let (scope, arrays) = (self.scope.len(), self.arrays.len());
        let may_continue = std::mem::replace(&mut self.may_continue, true);
        self.depth += 1;
        self.loops += 1;
        let mut block = Vec::new();
        fill(self, &mut block);
        for _ in 0..statements {
            self.statement(&mut block);
        }
        self.loops -= 1;
        self.depth -= 1;
        self.may_continue = may_continue;
        self.scope.truncate(scope);
        self.arrays.truncate(arrays);
        block
    }

    /// Adds a loop with a constant number of iterations. Indices derived from its counter are
    /// nearly in bounds.
    fn counted_loop(&mut self, block: &mut Block) {
        let name = self.new_name("c");
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let unit = if kind == Kind::I32 { 'i' } else { 'u' };
        let first = self.random.below(3);
        let count = self.random.between(1, 5);
        let step = self.random.between(1, 3);
        let last = first + step * (count - 1);
        let head = match self.random.below(5) {
            0 => format!("{name} = {first}{unit}; {name} <= {last}{unit}; {name} += {step}{unit}"),
            1 => format!(
                "{name} = {}{unit}; {name} != {first}{unit}; {name} -= {step}{unit}",
                first + step * count
            ),
            2 => format!(
                "{name} = {}{unit}; {name} > {first}{unit}; {name} -= {step}{unit}",
                first + step * count
            ),
            _ => format!(
                "{name} = {first}{unit}; {name} < {}{unit}; {name} += {step}{unit}",
                last + 1
            ),
        };
        let statements = self.random.between(1, 3);
        let body = self.loop_body(statements, |generator, block| {
            generator.add_value(name.clone(), kind);
            generator.store(block);
        });
        let head = Line { required: true, ..Line::new(format!("for (var {head})"), Vec::new()) };
        block.push(Stmt::Blocks(vec![Part { head, body }]));
    }

    /// Adds a loop whose counter is reset for an inner loop, and continues from a stale copy.
    /// Bounds of the counter in the inner loop do not hold for the copy.
    fn stale_counter_loop(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let counter = self.declare_counter(kind, block);
        let len = self.random.pick(&self.lengths.clone()).clamp(1, 40);
        let outer = self.limit(kind, len);
        let form = self.random.pick(&[Form::While, Form::Else, Form::Break, Form::For]);
        let body = self.loop_body(0, |generator, block| generator.stale_body(&counter, len, block));
        let update = self.random.one_in(2).then(|| Self::literal(kind, 1));
        let update =
            update.map(|by| Expr::new(Kind::Other, format!("{} += $0", counter.name), vec![by]));
        self.push_loop(form, &counter, outer, body, update, Some(Stmt::Fuel), block);
    }

    fn stale_body(&mut self, counter: &Counter, len: u32, block: &mut Block) {
        let Counter { name, kind } = counter.clone();
        if self.random.one_in(3) {
            self.access_with_counter(counter, block);
        }
        let saved = self.new_name("s");
        block.push(Stmt::line(format!("let {saved} = {name}"), Vec::new()));
        self.add_value(saved.clone(), kind);
        let first = Self::literal(kind, self.random.below(3) as u32);
        block.push(Stmt::line(format!("{name} = $0"), vec![first]));
        let inner = self.limit(kind, len);
        let form =
            self.random.pick(&[Form::While, Form::While, Form::Else, Form::Break, Form::For]);
        let source = self.random.pick(&[saved.clone(), saved.clone(), name.clone()]);
        let by = Self::literal(kind, self.random.between(1, 2) as u32);
        let text = if self.random.one_in(5) { "- $0" } else { "+ $0" };
        let next = format!("{name} = {source} {text}");
        let statements = self.random.below(2);
        let mut body = self.loop_body(statements, |generator, block| {
            generator.access_with_counter(counter, block)
        });
        let update = match form {
            Form::For => Some(Expr::new(Kind::Other, next, vec![by])),
            _ => {
                body.push(Stmt::line(next, vec![by]));
                None
            }
        };
        self.push_loop(form, counter, inner, body, update, Some(Stmt::Fuel), block);
        let source = self.random.pick(&[saved.clone(), saved, name.clone()]);
        let by = Self::literal(kind, self.random.between(1, 2) as u32);
        block.push(Stmt::line(format!("{name} = {source} + $0"), vec![by]));
    }

    /// Adds a loop that resembles one with constant start, limit and step, which a compiler might
    /// unroll; but statements before the condition have an effect, or the condition or the step
    /// uses a copy.
    fn nearly_counted_loop(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let name = self.new_name("v");
        let first = Self::literal(kind, self.random.below(4) as u32);
        // The initial value is not a constant: a copy of it must not be one.
        let initial =
            Expr::new(kind, "$0 & $1", vec![self.variable(kind), Self::literal(kind, 15)]);
        block.push(Stmt::line(format!("var {name} = $0"), vec![initial]));
        let copy = self.new_name("s");
        block.push(Stmt::line(format!("let {copy} = {name}"), Vec::new()));
        block.push(Stmt::line(format!("{name} = $0"), vec![first]));
        let scope = self.scope.len();
        let mut body = Vec::new();
        let (tested, from) = match self.random.below(6) {
            0 => (&copy, &name),
            1 => (&name, &copy),
            2 => {
                let next = self.new_name("l");
                body.push(Stmt::line(format!("let {next} = next()"), Vec::new()));
                (&name, &name)
            }
            _ => {
                self.atomic(&mut body);
                (&name, &name)
            }
        };
        let limit = Self::literal(kind, self.random.between(2, 9) as u32);
        let operator = self.random.pick(&["<", "<=", "!="]);
        let test = Expr::new(Kind::Bool, format!("{tested} {operator} $0"), vec![limit]);
        body.push(break_unless(test));
        body.push(Stmt::Fuel);
        let counter = Counter { name: name.clone(), kind };
        let statements = self.random.below(2);
        body.extend(self.loop_body(statements, |generator, block| {
            generator.access_with_counter(&counter, block)
        }));
        body.push(Stmt::line(format!("{name} = {from} + $0"), vec![one(kind)]));
        self.scope.truncate(scope);
        block.push(Stmt::block("loop", Vec::new(), body));
        self.add_variable(name, kind);
    }

    /// Adds a loop whose counter, condition and limit are modified in many ways.
    fn wild_loop(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let counter = match self.random.one_in(3) {
            true => self.existing_counter(kind),
            false => None,
        };
        let counter = counter.unwrap_or_else(|| self.declare_counter(kind, block));
        let limit = self.any_limit(counter.kind, block);
        let form = self.form();
        let statements = self.random.between(1, 2);
        let mut body = self.loop_body(statements, |generator, block| {
            generator.access_with_counter(&counter, block);
        });
        let update = match form {
            Form::For | Form::Continuing if self.random.below(4) > 0 => {
                Some(self.counter_step(&counter))
            }
            _ => {
                self.update(&counter, &mut body);
                None
            }
        };
        self.push_loop(form, &counter, limit, body, update, Some(Stmt::Fuel), block);
    }

    pub(super) fn form(&mut self) -> Form {
        let forms = [Form::While, Form::Else, Form::Else, Form::Break, Form::For, Form::Continuing];
        self.random.pick(&forms)
    }

    /// Declares a counter that starts near the start or the end of an array.
    pub(super) fn declare_counter(&mut self, kind: Kind, block: &mut Block) -> Counter {
        let first = match self.random.below(4) {
            0 => self.number(kind, 1),
            1 => Self::literal(kind, self.small()),
            _ => Self::literal(kind, self.random.below(6) as u32),
        };
        let name = self.new_name("v");
        block.push(Stmt::line(format!("var {name} = $0"), vec![first]));
        self.add_variable(name.clone(), kind);
        Counter { name, kind }
    }

    /// Returns a mutable variable in scope as a counter.
    fn existing_counter(&mut self, kind: Kind) -> Option<Counter> {
        let fits = |variable: &&super::Variable| variable.mutable && variable.kind == kind;
        let names: Vec<String> =
            self.scope.iter().filter(fits).map(|variable| variable.name.clone()).collect();
        let name = (!names.is_empty()).then(|| self.random.pick(&names))?;
        Some(Counter { name, kind })
    }

    /// Returns a constant limit near a length.
    fn limit(&mut self, kind: Kind, len: u32) -> Expr {
        let distance = self.random.pick(&[0, 0, 1, 1, 2, 3]);
        let limit = if self.random.one_in(5) { len + 1 } else { len.saturating_sub(distance) };
        Self::literal(kind, limit)
    }

    /// Returns a limit: a constant, a length, data, or a variable that the loop modifies.
    fn any_limit(&mut self, kind: Kind, block: &mut Block) -> Expr {
        match self.random.below(7) {
            0 | 1 => {
                let len = self.random.pick(&self.lengths.clone());
                self.limit(kind, len)
            }
            2 if kind == Kind::U32 => self.length(),
            3 => self.variable(kind),
            4 => {
                self.variable_declaration(block);
                self.variable(kind)
            }
            5 => self.datum(kind, 1),
            _ => self.number(kind, 1),
        }
    }

    /// Adds a store whose index is probably the counter.
    pub(super) fn access_with_counter(&mut self, counter: &Counter, block: &mut Block) {
        let scope = self.scope.len();
        // Twice, to double the probability that an index uses it.
        self.add_value(counter.name.clone(), counter.kind);
        self.add_value(counter.name.clone(), counter.kind);
        self.store(block);
        self.scope.truncate(scope);
    }

    /// Returns an expression for the next value of a counter.
    pub(super) fn counter_step(&mut self, counter: &Counter) -> Expr {
        let by = match self.random.below(4) {
            0 => self.number(counter.kind, 1),
            1 => Self::literal(counter.kind, self.random.between(1, 3) as u32),
            _ => one(counter.kind),
        };
        let operators = ["+=", "+=", "+=", "-=", "*="];
        let operator = self.random.pick(&operators);
        Expr::new(Kind::Other, format!("{} {operator} $0", counter.name), vec![by])
    }

    /// Adds statements that modify a counter: from a copy, under a condition, twice, by a call.
    pub(super) fn update(&mut self, counter: &Counter, block: &mut Block) {
        let Counter { name, kind } = counter.clone();
        let step = self.counter_step(counter);
        let step = Stmt::Line(Line::new("$0", vec![step]));
        match self.random.below(9) {
            0 => {
                let from = self.variable(kind);
                block.push(Stmt::line(format!("{name} = $0 + $1"), vec![from, one(kind)]));
            }
            1 => {
                let condition = self.condition(1);
                block.push(Stmt::if_else(condition, vec![step], Vec::new()));
            }
            2 => {
                let second = self.counter_step(counter);
                block.extend([step, Stmt::line("$0", vec![second])]);
            }
            3 => {
                let text = if kind == Kind::I32 { "_ = back(&" } else { "bump(&" };
                let local = name.starts_with('v');
                let call = Stmt::line(format!("{text}{name}, $0)"), vec![one(kind)]);
                block.push(if local { call } else { step });
            }
            4 => {
                let selector = self.variable(Kind::U32);
                let cases = vec![
                    Stmt::block("case 0u, 2u:", Vec::new(), vec![step]),
                    Stmt::block("default:", Vec::new(), Vec::new()),
                ];
                let head = Line::new("switch $0", vec![selector]);
                block.push(Stmt::Blocks(vec![Part { head, body: cases }]));
                block.push(Stmt::line(format!("{name} += $0"), vec![one(kind)]));
            }
            _ => block.push(step),
        }
    }

    /// Adds the statements before a loop's condition; returns the value that it tests.
    fn before_test(&mut self, counter: &Counter, block: &mut Block) -> Expr {
        let tested = Expr::leaf(counter.kind, counter.name.clone());
        match self.random.below(8) {
            0 => self.atomic(block),
            1 => {
                let name = self.new_name("l");
                block.push(Stmt::line(format!("let {name} = next()"), Vec::new()));
                self.add_value(name, Kind::U32);
            }
            2 => self.store(block),
            3 => self.assign(block),
            4 => {
                self.copy_of(&counter.name, counter.kind, block);
                let copy = self.variable(counter.kind);
                if self.random.one_in(2) {
                    self.update(counter, block);
                }
                return copy;
            }
            _ => {}
        }
        tested
    }

    /// Adds a loop; with [`Stmt::Fuel`], it ends when the fuel is used up.
    #[expect(clippy::too_many_arguments, reason = "these are the parts of a loop")]
    pub(super) fn push_loop(
        &mut self,
        form: Form,
        counter: &Counter,
        limit: Expr,
        mut body: Block,
        update: Option<Expr>,
        fuel: Option<Stmt>,
        block: &mut Block,
    ) {
        let scope = self.scope.len();
        let mut before = Vec::new();
        let tested = match form {
            Form::Else | Form::Break => self.before_test(counter, &mut before),
            _ => Expr::leaf(counter.kind, counter.name.clone()),
        };
        let test = self.test(tested, limit);
        self.scope.truncate(scope);
        let (head, operands) = match form {
            Form::While => ("while $0", vec![test]),
            Form::For => {
                let update = update.unwrap_or_else(|| Expr::leaf(Kind::Other, ""));
                ("for (; $0; $1)", vec![test, update])
            }
            Form::Else | Form::Break => {
                let exit = vec![Stmt::line("break", Vec::new())];
                let (text, then, other) = match form {
                    Form::Else => ("if $0", Vec::new(), exit),
                    _ => ("if !($0)", exit, Vec::new()),
                };
                let mut parts = vec![Part { head: Line::new(text, vec![test]), body: then }];
                if !other.is_empty() {
                    parts.push(Part { head: Line::new("else", Vec::new()), body: other });
                }
                before.push(Stmt::Blocks(parts));
                ("loop", Vec::new())
            }
            Form::Continuing => {
                let mut last: Block =
                    update.map(|update| Stmt::line("$0", vec![update])).into_iter().collect();
                last.push(Stmt::line("break if !($0)", vec![test]));
                body.push(Stmt::block("continuing", Vec::new(), last));
                ("loop", Vec::new())
            }
        };
        before.extend(fuel);
        before.extend(body);
        block.push(Stmt::block(head, operands, before));
    }

    /// Returns the condition under which a loop continues.
    fn test(&mut self, tested: Expr, limit: Expr) -> Expr {
        let text = self.random.pick(&[
            "$0 < $1", "$0 < $1", "$0 <= $1", "$0 <= $1", "$1 > $0", "$0 != $1", "$0 >= $1",
            "$0 > $1",
        ]);
        let test = Expr::new(Kind::Bool, text, vec![tested, limit]);
        if self.random.one_in(6) {
            let second = self.condition(1);
            let text =
                self.random.pick(&["($0 && $1)", "($0 || $1)", "($1 && $0)", "!(!($0) || $1)"]);
            return Expr::new(Kind::Bool, text, vec![test, second]);
        }
        test
    }
}

/// `if test {} else { break; }`
fn break_unless(test: Expr) -> Stmt {
    let exit = vec![Stmt::line("break", Vec::new())];
    Stmt::if_else(test, Vec::new(), exit)
}
