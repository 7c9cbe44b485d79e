//! Rejects constant shifts that naga evaluates wrongly.
//!
//! Integers without a type are shifted right by any number of bits: in WGSL a negative one becomes
//! -1 in the end, and naga has 0 from 64 bits on. Only the result is left in its module, so the
//! shifts are found in the tokens. All other constant shifts naga evaluates as WGSL has it, or
//! rejects.

use std::collections::HashSet;
use std::ops::Range;

use naga::Span;

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::lex::Kind;
use crate::wgsl::report::Report;

/// Constants of constants are followed so far.
const MOST_CONSTANTS: u32 = 16;
/// Operands that are looked at for all shifts of a source; those of the rest are not known.
const MOST_OPERANDS: u32 = 1 << 20;

/// Checks every shift to the right.
pub(crate) fn check(declarations: &Declarations<'_>) -> Result<(), Box<Report>> {
    let functions = declarations.functions.iter().map(|(name, _)| *name).collect();
    let operands = MOST_OPERANDS;
    let mut reader = Reader { declarations, functions, at: 0, end: 0, depth: 0, operands };
    for (at, token) in declarations.tokens.iter().enumerate() {
        let is_shift = token.kind == Kind::Operator && declarations.text(at) == ">>";
        if is_shift && at > 0 && reader.may_be_negative(at - 1) {
            let amount = reader.amount(at + 1);
            if reader.is_constant(amount.clone()) && reader.value(amount).is_none_or(|by| by >= 64)
            {
                return Err(reject(Span::new(token.start, token.end)));
            }
        }
    }
    Ok(())
}

fn reject(span: Span) -> Box<Report> {
    let message = "an integer without a type is shifted right by 64 bits or more, or by a constant \
                   that is too involved to be looked at here";
    let report = Report::new(ShaderErrorKind::Validation, message).at(span, "this shift");
    Box::new(
        report.note("help: give it a type, as in `i32(…) >> …`, and shift by less than its bits"),
    )
}

struct Reader<'a> {
    declarations: &'a Declarations<'a>,
    functions: HashSet<&'a str>,
    /// What is being read.
    at: usize,
    end: usize,
    depth: u32,
    operands: u32,
}

impl<'a> Reader<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.declarations.text(at)
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.declarations.tokens.get(at).map(|token| token.kind)
    }

    /// The initialisers of all constants of a name.
    fn initialisers(&self, name: &str) -> impl Iterator<Item = &'a Range<usize>> + use<'a> {
        let local = self.declarations.local_constants.get(name).map_or(&[][..], Vec::as_slice);
        self.declarations.constants.get(name).into_iter().chain(local)
    }

    /// Whether what ends at a token may be a constant below zero that has no type.
    fn may_be_negative(&self, last: usize) -> bool {
        match self.kind(last) {
            Some(Kind::Number) => {
                let signed = last > 0 && self.kind(last - 1) == Some(Kind::Operator);
                signed && !self.has_suffix(last)
            }
            // A component of a vector.
            Some(Kind::Word) if last >= 2 && self.text(last - 1) == "." => {
                self.may_be_negative(last - 2)
            }
            Some(Kind::Word) => {
                // `const NAME = …`, not `const NAME: type = …`.
                let has_no_type = |value: &Range<usize>| {
                    let declared = value.start.checked_sub(3);
                    declared.is_some_and(|at| self.text(at) == "const")
                        && !self.is_typed(value.clone())
                };
                self.initialisers(self.text(last)).any(has_no_type)
            }
            Some(Kind::Close) => {
                let open = self.open(last);
                let before = open.checked_sub(1);
                let is_typed = before.is_some_and(|at| {
                    let ty = ["i32", "u32", "i64", "u64", "i16", "u16"];
                    self.kind(at) == Some(Kind::TemplateClose) || ty.contains(&self.text(at))
                });
                let indexed = self.text(open) == "[";
                let first = if indexed { before.unwrap_or(open) } else { open };
                let is_typed = is_typed || !indexed && self.is_typed(open..last + 1);
                !is_typed && self.is_constant(first..last + 1)
            }
            _ => false,
        }
    }

    /// Whether a number says its type.
    fn has_suffix(&self, at: usize) -> bool {
        let text = self.text(at);
        let is_hex = text.starts_with("0x") || text.starts_with("0X");
        text.ends_with(['u', 'i', 'l']) || !is_hex && text.ends_with(['f', 'h'])
    }

    /// Whether tokens are arithmetic with a number that says its type, which is that of the result.
    /// The arguments of a function, indices and amounts of shifts say nothing of the result.
    fn is_typed(&self, mut tokens: Range<usize>) -> bool {
        let is_plain = |at: usize| match self.kind(at) {
            Some(Kind::Number) => true,
            Some(Kind::Word) => self.kind(at + 1) != Some(Kind::Open),
            Some(Kind::Open | Kind::Close) => matches!(self.text(at), "(" | ")"),
            Some(Kind::Operator) => {
                ["+", "-", "*", "/", "%", "&", "|", "^"].contains(&self.text(at))
            }
            _ => false,
        };
        let says_type = |at| self.kind(at) == Some(Kind::Number) && self.has_suffix(at);
        let conversions = ["i32", "u32", "i64", "u64", "i16", "u16"];
        let is_conversion = conversions.contains(&self.text(tokens.start))
            && self.text(tokens.start + 1) == "("
            && self.declarations.close(tokens.start + 1) + 1 == tokens.end;
        is_conversion || tokens.clone().all(is_plain) && tokens.any(says_type)
    }

    /// The bracket that opens what one closes.
    fn open(&self, close: usize) -> usize {
        let mut depth = 0usize;
        for at in (0..=close).rev() {
            match self.kind(at) {
                Some(Kind::Close) => depth += 1,
                Some(Kind::Open) if depth <= 1 => return at,
                Some(Kind::Open) => depth -= 1,
                _ => {}
            }
        }
        0
    }

    /// The tokens of an amount: WGSL wants brackets around a sum there, and naga does not.
    fn amount(&self, start: usize) -> Range<usize> {
        let mut end = self.operand(start).end;
        while self.kind(end) == Some(Kind::Operator)
            && ["+", "-", "*", "/", "%"].contains(&self.text(end))
        {
            end = self.operand(end + 1).end;
        }
        start..end
    }

    /// The tokens of an operand that starts at a token: signs, and a value with what is applied to
    /// it.
    fn operand(&self, start: usize) -> Range<usize> {
        let mut at = start;
        while self.kind(at) == Some(Kind::Operator) {
            at += 1;
        }
        if self.kind(at) != Some(Kind::Open) {
            at += 1;
        }
        loop {
            match self.kind(at) {
                Some(Kind::Open) if self.text(at) != "{" => at = self.declarations.close(at) + 1,
                Some(Kind::TemplateOpen) => at = self.template_end(at),
                Some(Kind::Operator) if self.text(at) == "." => at += 2,
                _ => return start..at.min(self.declarations.tokens.len()),
            }
        }
    }

    /// The token after a template list.
    fn template_end(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for at in open..self.declarations.tokens.len() {
            match self.kind(at) {
                Some(Kind::TemplateOpen) => depth += 1,
                Some(Kind::TemplateClose) if depth <= 1 => return at + 1,
                Some(Kind::TemplateClose) => depth -= 1,
                _ => {}
            }
        }
        self.declarations.tokens.len()
    }

    /// Whether tokens name nothing that is only known when the kernel runs.
    fn is_constant(&self, tokens: Range<usize>) -> bool {
        tokens.clone().all(|at| {
            let name = self.text(at);
            self.kind(at) != Some(Kind::Word)
                || matches!(self.kind(at + 1), Some(Kind::TemplateOpen))
                || matches!(name, "f16" | "f32" | "i32" | "u32" | "i64" | "u64" | "true" | "false")
                || self.text(at + 1) == "(" && !self.functions.contains(name)
                || at > tokens.start && self.text(at - 1) == "."
                || self.initialisers(name).next().is_some()
        })
    }

    /// The value of constant tokens, if that is simple enough.
    fn value(&mut self, tokens: Range<usize>) -> Option<i128> {
        let outside = (self.at, self.end);
        (self.at, self.end) = (tokens.start, tokens.end);
        let value = self.sum(0).filter(|_| self.at == self.end);
        (self.at, self.end) = outside;
        value
    }

    /// Operands joined by operators that bind at least so strongly.
    fn sum(&mut self, least: u8) -> Option<i128> {
        let mut left = self.factor()?;
        while self.at < self.end {
            let operator = self.text(self.at);
            let strength = match operator {
                "|" | "^" | "&" => 0,
                "<<" | ">>" => 1,
                "+" | "-" => 2,
                "*" | "/" | "%" => 3,
                _ => break,
            };
            if strength < least {
                break;
            }
            self.at += 1;
            let right = self.sum(strength + 1)?;
            left = match operator {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_mul(1i128.checked_shl(u32::try_from(right).ok()?)?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn factor(&mut self) -> Option<i128> {
        self.operands = self.operands.checked_sub(1)?;
        let at = self.at;
        let text = if at < self.end { self.text(at) } else { return None };
        self.at += 1;
        match self.kind(at)? {
            Kind::Operator if text == "-" => self.factor().map(|value| -value),
            Kind::Number => number(text),
            Kind::Open if text == "(" => self.list(at),
            // A conversion, or a vector of values all of which count.
            Kind::Word if is_conversion(text) => {
                let open = match self.kind(self.at)? {
                    Kind::TemplateOpen => self.template_end(self.at),
                    _ => self.at,
                };
                (self.text(open) == "(").then(|| self.list(open))?
            }
            Kind::Word => self.constant(text),
            _ => None,
        }
    }

    /// The greatest of the values between brackets.
    fn list(&mut self, open: usize) -> Option<i128> {
        let close = self.declarations.close(open);
        let mut most = None;
        self.at = open;
        while self.at < close {
            self.at += 1;
            most = most.max(Some(self.sum(0)?));
            if self.text(self.at) != "," && self.at != close {
                return None;
            }
        }
        self.at = close + 1;
        most
    }

    /// The greatest value of the constants of a name.
    fn constant(&mut self, name: &str) -> Option<i128> {
        if self.depth == MOST_CONSTANTS {
            return None;
        }
        self.depth += 1;
        let values: Option<Vec<i128>> =
            self.initialisers(name).map(|tokens| self.value(tokens.clone())).collect();
        self.depth -= 1;
        values?.into_iter().max()
    }
}

fn is_conversion(name: &str) -> bool {
    name.starts_with("vec") || matches!(name, "u32" | "i32")
}

/// The value of an integer literal.
fn number(text: &str) -> Option<i128> {
    let text = text.trim_end_matches(['u', 'i', 'l']);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Program, ShaderError};

    fn read(expression: &str) -> Result<Program, ShaderError> {
        Program::parse(&format!(
            "const BITS = 64; const MORE = BITS + 6u; const TYPED: i32 = -5; const BELOW = -5;
            const TABLE = array<u32, 2>(3u, 70u);
            @group(0) @binding(0) var<storage, read_write> data: array<i32>;
            @group(0) @binding(1) var<storage, read_write> pairs: array<vec2i>;
            fn amount() -> u32 {{ return 3u; }}
            @compute @workgroup_size(1) fn main(@builtin(local_invocation_index) i: u32) {{
                const SEVEN = 7u;
                {expression};
            }}"
        ))
    }

    #[test]
    fn what_naga_evaluates_wrongly_is_rejected() {
        for shift in [
            "-1 >> 64u",
            "-1 >> 64",
            "(-1) >> 0x40u",
            "-1 >> 4294967295u",
            "-7 >> BITS",
            "-8 >> 32 + 32",
            "-8 >> 2 * BITS - 60",
            "BELOW >> MORE",
            "BELOW >> (60u + 2u * 2u)",
            "(3 - 5) >> (BITS + 1)",
            "~0 >> 64u",
            "abs(-3) - 9 >> 64u",
            "max(-3, -2) >> 64u",
            "-1 >> TABLE[1]",
            "vec2(-1, -2).x >> 64u",
            "(-8 >> 2u) >> 64u",
        ] {
            let error = read(&format!("data[0] = {shift}")).err();
            let error = error.unwrap_or_else(|| panic!("accepted: {shift}"));
            assert!(error.message.contains("shifted right by 64 bits or more"), "{error}");
            assert!(error.rendered.contains(shift), "{error}");
        }
        for shift in ["vec2(-1) >> vec2(64u)", "vec2(-1, 1) >> vec2(3u, 64u)"] {
            let error = read(&format!("pairs[0] = {shift}")).err().expect("it has wrong parts");
            assert!(error.message.contains("shifted right by 64 bits or more"), "{error}");
        }
        let whole = "const SIGN = -1 >> 64u; @compute @workgroup_size(SIGN + 2) fn main() {}";
        assert!(Program::parse(whole).is_err());
    }

    #[test]
    fn what_naga_evaluates_as_it_should_is_accepted() {
        for shift in [
            "-1 >> 63u",
            "-1 >> 40u",
            "-0x5i >> TABLE[0]",
            "BELOW >> 3u",
            "BELOW >> (BITS - 60u)",
            "(-9 >> SEVEN) >> 2u",
            "1 >> 64u",
            "data[1] >> i",
            "data[1] >> (i & 31u)",
            "-1 >> i",
            "-1 >> amount()",
            "TYPED >> TABLE[0]",
            "(5i * 2) >> TABLE[0]",
            "(0xffi & 0x3ci) >> max(1u, 3u)",
            "i32(-3) >> TABLE[0]",
            "data[0] >> TABLE[0]",
            "i32(0xffu >> SEVEN)",
        ] {
            if let Err(error) = read(&format!("data[0] = {shift}")) {
                panic!("{shift}\n{error}");
            }
        }
    }

    #[test]
    fn naga_still_has_the_defect() {
        let source = "const X = -1 >> 64u; const_assert X == 0;";
        assert!(naga::front::wgsl::parse_str(source).is_ok(), "this module has no use any more");
    }
}
