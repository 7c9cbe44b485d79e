//! Loops that may not terminate, but look as if they did.

use super::HostileGenerator;
use super::loops::{Counter, Form};
use crate::hostile::tree::{Block, Expr, Kind, Stmt};

impl HostileGenerator {
    /// Adds a loop without fuel.
    pub(super) fn endless_loop(&mut self, block: &mut Block) {
        match self.random.below(5) {
            0 => self.unfueled(block),
            1 => self.moving_limit(block),
            2 => self.written(block, &OTHERS),
            _ => self.written(block, &COUNTERS),
        }
    }

    /// Adds a random loop over a random counter.
    fn unfueled(&mut self, block: &mut Block) {
        let kind = self.random.pick(&[Kind::U32, Kind::I32]);
        let counter = self.declared(kind, block);
        let form = self.form();
        let limit = self.number(kind, 1);
        let mut body = self.body(1, |generator, block| generator.touch(&counter, block));
        let update = match form {
            Form::For | Form::Continuing => Some(self.step_of(&counter)),
            _ => {
                self.update(&counter, &mut body);
                None
            }
        };
        self.looped(form, &counter, limit, body, update, false, block);
    }

    /// Adds a counter with a limit that other statements move away from it.
    fn moving_limit(&mut self, block: &mut Block) {
        let counter = self.declared(Kind::U32, block);
        let name = self.name("l");
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
        body.push(Stmt::choice(test, vec![Stmt::line("break", Vec::new())], Vec::new()));
        body.extend(self.body(1, |generator, block| generator.touch(&counter, block)));
        let step = Counter { ..counter.clone() };
        body.push(Stmt::line(format!("{} += 1u", step.name), Vec::new()));
        block.push(Stmt::block("loop", Vec::new(), body));
    }

    /// Adds a loop from a list.
    fn written(&mut self, block: &mut Block, heads: &[&str]) {
        let name = self.name("c");
        let head = self.random.pick(heads).replace('@', &name);
        let kind = if head.contains("0i") || head.contains("1i") { Kind::I32 } else { Kind::U32 };
        let counter = Counter { name: name.clone(), kind };
        let body = self.body(1, |generator, block| {
            if head.contains("var") && !head.contains("lu") && !head.contains("1.0") {
                generator.add(name.clone(), kind, false);
                generator.touch(&counter, block);
            }
        });
        block.push(Stmt::block(head, Vec::new(), body));
    }
}

/// Counters that wrap, step over their limit, or do not change.
const COUNTERS: [&str; 16] = [
    "for (var @ = 0u; @ <= 4294967295u; @ += 1u)",
    "for (var @ = 7u; @ >= 0u; @ -= 1u)",
    "for (var @ = 1u; @ != 8u; @ += 2u)",
    "for (var @ = 0u; @ < 4294967295u; @ += 2u)",
    "for (var @ = 0u; @ < 2147483649u; @ += 2147483648u)",
    "for (var @ = 1u; @ != 0u; @ *= 3u)",
    "for (var @ = 0u; @ < 1000u; @ *= 2u)",
    "for (var @ = 1u; @ < 3221225472u; @ *= 2u)",
    "for (var @ = -1i; @ < 0i; @ >>= 1u)",
    "for (var @ = 5i; @ != 0i; @ -= 2i)",
    "for (var @ = 0i; @ <= 2147483647i; @ += 1i)",
    "for (var @ = 3u; @ >= state - state; @ /= 2u)",
    "for (var @ = 0u; @ < 9u; @ += state)",
    "for (var @ = 1u; @ < 4000000000u; @ <<= 1u)",
    "for (var @ = 0i; @ < 9i; @ -= 1i)",
    "for (var @ = 9u; @ > 3u; @ += arrayLength(&sink))",
];

/// Loops without a counter.
const OTHERS: [&str; 6] = [
    "while true",
    "loop",
    "while state >= 0u",
    "while next() != 4096u",
    "for (var @ = 1.0f; @ > 0.0f; @ = @ + 1.0f)",
    "for (;;)",
];
