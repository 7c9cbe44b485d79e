//! Loops that may not terminate, although some look as if they did.

use super::HostileGenerator;
use super::loops::{Counter, Form};
use crate::hostile::tree::{Block, Expr, Kind, Stmt};

impl HostileGenerator {
    /// Adds a loop without fuel.
    pub(super) fn endless_loop(&mut self, block: &mut Block) {
        match self.random.below(5) {
            0 => self.loop_without_fuel(block),
            1 => self.moving_limit(block),
            2 => self.loop_from_template(block, &UNCOUNTED),
            _ => self.loop_from_template(block, &COUNTED),
        }
    }

    /// Adds a random loop over a random counter.
    fn loop_without_fuel(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::I32]);
        let counter = self.declare_counter(kind, block);
        let form = self.form();
        let limit = self.number(kind, 1);
        let mut body =
            self.loop_body(1, |generator, block| generator.access_with_counter(&counter, block));
        let update = match form {
            Form::For | Form::Continuing => Some(self.counter_step(&counter)),
            _ => {
                self.update(&counter, &mut body);
                None
            }
        };
        self.push_loop(form, &counter, limit, body, update, None, block);
    }

    /// Adds a loop whose limit is computed anew in each iteration, by a call or an atomic.
    fn moving_limit(&mut self, block: &mut Block) {
        let counter = self.declare_counter(Kind::U32, block);
        let name = self.new_name("l");
        let limits = ["next()", "taken(state)", "hidden(state, memory)", "fetched(state)"];
        let mut limit = self.random.pick(&limits).to_owned();
        let atomics = self.atomics();
        if !atomics.is_empty() && self.random.one_in(2) {
            let at = self.random.pick(&atomics);
            let global = &self.globals[at];
            let element = match global.ty {
                crate::types::Type::Array(ref element, _) => element.to_string(),
                ref ty => ty.to_string(),
            };
            let suffix = if element == "i32" { "i" } else { "u" };
            limit = format!("u32(atomicAdd(&{}[0], 1{suffix}))", global.name);
        }
        let mut body = vec![Stmt::line(format!("let {name} = {limit}"), Vec::new())];
        let test = Expr::leaf(Kind::Bool, format!("{} == {name} + 256u", counter.name));
        body.push(Stmt::if_else(test, vec![Stmt::line("break", Vec::new())], Vec::new()));
        body.extend(
            self.loop_body(1, |generator, block| generator.access_with_counter(&counter, block)),
        );
        body.push(Stmt::line(format!("{} += 1u", counter.name), Vec::new()));
        block.push(Stmt::block("loop", Vec::new(), body));
    }

    /// Adds a loop with one of these heads, whose body uses the counter as an index.
    fn loop_from_template(&mut self, block: &mut Block, heads: &[LoopHead]) {
        let name = self.new_name("c");
        let LoopHead { text, counter } = self.random.pick(heads);
        let body = self.loop_body(1, |generator, block| {
            if let Some(kind) = counter {
                generator.add_value(name.clone(), kind);
                generator.access_with_counter(&Counter { name: name.clone(), kind }, block);
            }
        });
        block.push(Stmt::block(text.replace('@', &name), Vec::new(), body));
    }
}

/// The head of a loop.
#[derive(Clone, Copy)]
struct LoopHead {
    /// WGSL, in which `@` stands for the counter.
    text: &'static str,
    /// The type of its counter, if that is an integer.
    counter: Option<Kind>,
}

const fn u32_counter(text: &'static str) -> LoopHead {
    LoopHead { text, counter: Some(Kind::U32) }
}

const fn i32_counter(text: &'static str) -> LoopHead {
    LoopHead { text, counter: Some(Kind::I32) }
}

const fn no_counter(text: &'static str) -> LoopHead {
    LoopHead { text, counter: None }
}

/// Heads of loops with counters that wrap, step over their limit, or do not change.
const COUNTED: [LoopHead; 16] = [
    u32_counter("for (var @ = 0u; @ <= 4294967295u; @ += 1u)"),
    u32_counter("for (var @ = 7u; @ >= 0u; @ -= 1u)"),
    u32_counter("for (var @ = 1u; @ != 8u; @ += 2u)"),
    u32_counter("for (var @ = 0u; @ < 4294967295u; @ += 2u)"),
    u32_counter("for (var @ = 0u; @ < 2147483649u; @ += 2147483648u)"),
    u32_counter("for (var @ = 1u; @ != 0u; @ *= 3u)"),
    u32_counter("for (var @ = 0u; @ < 1000u; @ *= 2u)"),
    u32_counter("for (var @ = 1u; @ < 3221225472u; @ *= 2u)"),
    i32_counter("for (var @ = -1i; @ < 0i; @ >>= 1u)"),
    i32_counter("for (var @ = 5i; @ != 0i; @ -= 2i)"),
    i32_counter("for (var @ = 0i; @ <= 2147483647i; @ += 1i)"),
    u32_counter("for (var @ = 3u; @ >= state - state; @ /= 2u)"),
    u32_counter("for (var @ = 0u; @ < 9u; @ += state)"),
    u32_counter("for (var @ = 1u; @ < 4000000000u; @ <<= 1u)"),
    i32_counter("for (var @ = 0i; @ < 9i; @ -= 1i)"),
    u32_counter("for (var @ = 9u; @ > 3u; @ += arrayLength(&sink))"),
];

/// Heads of loops without an integer counter.
const UNCOUNTED: [LoopHead; 6] = [
    no_counter("while true"),
    no_counter("loop"),
    no_counter("while state >= 0u"),
    no_counter("while next() != 4096u"),
    no_counter("for (var @ = 1.0f; @ > 0.0f; @ = @ + 1.0f)"),
    no_counter("for (;;)"),
];
