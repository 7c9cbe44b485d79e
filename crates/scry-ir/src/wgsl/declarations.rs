//! Finds the module-scope declarations of a source in its tokens, for checks that need more than
//! naga's module contains, or that run before it exists.

use std::collections::BTreeMap;
use std::ops::Range;

use naga::Span;

use crate::wgsl::lex::{Kind, Token};

/// The declarations at module scope.
pub(crate) struct Declarations<'a> {
    pub(crate) source: &'a str,
    pub(crate) tokens: &'a [Token],
    /// The tokens of the initialiser of each `const`.
    pub(crate) constants: BTreeMap<&'a str, Range<usize>>,
    /// The same for every `const` in a function; several may have the same name.
    pub(crate) local_constants: BTreeMap<&'a str, Vec<Range<usize>>>,
    /// The tokens of the type of each `alias`.
    pub(crate) aliases: BTreeMap<&'a str, Range<usize>>,
    /// The tokens between the braces of each `struct`.
    pub(crate) structs: BTreeMap<&'a str, Range<usize>>,
    /// The name of each `fn`, and the tokens between its braces; in source order.
    pub(crate) functions: Vec<(&'a str, Range<usize>)>,
}

impl<'a> Declarations<'a> {
    /// Finds the declarations.
    pub(crate) fn new(source: &'a str, tokens: &'a [Token]) -> Self {
        let mut declarations = Self {
            source,
            tokens,
            constants: BTreeMap::new(),
            local_constants: BTreeMap::new(),
            aliases: BTreeMap::new(),
            structs: BTreeMap::new(),
            functions: Vec::new(),
        };
        let mut at = 0;
        while at < tokens.len() {
            at = declarations.declaration(at);
        }
        declarations
    }

    /// Returns the text of a token; empty past the end.
    pub(crate) fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text(self.source))
    }

    /// Returns the position of a function's name.
    pub(crate) fn function(&self, name: &str) -> Option<Span> {
        let (_, body) = self.functions.iter().find(|(n, _)| *n == name)?;
        let at = (0..body.start).rev().find(|at| self.text(*at) == "fn")? + 1;
        let token = self.tokens.get(at)?;
        Some(Span::new(token.start, token.end))
    }

    /// Returns the span of the first token with that text.
    pub(crate) fn find_first(&self, text: &str) -> Option<Span> {
        let hit = self.tokens.iter().find(|token| token.text(self.source) == text)?;
        Some(Span::new(hit.start, hit.end))
    }

    /// Returns the span of the first token.
    pub(crate) fn start(&self) -> Span {
        self.tokens.first().map_or(Span::UNDEFINED, |token| Span::new(token.start, token.end))
    }

    /// Parses the declaration at `at`; returns the index after it.
    fn declaration(&mut self, at: usize) -> usize {
        let name = self.text(at + 1);
        match self.text(at) {
            "const" => {
                let value = self.initialiser(at);
                let next = value.end;
                self.constants.insert(name, value);
                next
            }
            "alias" => {
                let value = self.initialiser(at);
                let next = value.end;
                self.aliases.insert(name, value);
                next
            }
            "struct" | "fn" => {
                let open = self.find(at, "{");
                let close = self.close(open);
                let body = (open + 1).min(close)..close;
                if self.text(at) == "fn" {
                    self.add_local_constants(body.clone());
                    self.functions.push((name, body));
                } else {
                    self.structs.insert(name, body);
                }
                close + 1
            }
            _ => at + 1,
        }
    }

    fn add_local_constants(&mut self, body: Range<usize>) {
        for at in body {
            if self.text(at) == "const" {
                let (name, value) = (self.text(at + 1), self.initialiser(at));
                self.local_constants.entry(name).or_default().push(value);
            }
        }
    }

    /// Returns the tokens between the `=` and the `;` of the declaration at `at`. Without a `;` it
    /// stops at a token that no initialiser contains, so that the time stays linear for many of
    /// them.
    fn initialiser(&self, at: usize) -> Range<usize> {
        let stops = |i: &usize| matches!(self.text(*i), ";" | "const" | "{" | "}");
        let end = (at + 1..self.tokens.len()).find(stops).unwrap_or(self.tokens.len());
        let equals = (at..end).find(|i| self.text(*i) == "=").unwrap_or(end);
        (equals + 1).min(end)..end
    }

    /// Returns the index of the next token with that text, from `at`; the number of tokens if there
    /// is none.
    fn find(&self, at: usize, text: &str) -> usize {
        let hit = self.tokens[at..].iter().position(|token| token.text(self.source) == text);
        hit.map_or(self.tokens.len(), |offset| at + offset)
    }

    /// Returns the index of the bracket that closes the one at `open`; the number of tokens if
    /// there is none.
    pub(crate) fn close(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Open => depth += 1,
                Kind::Close if depth <= 1 => return at,
                Kind::Close => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Returns the value of an integer literal, or of a constant that is defined by one.
    pub(crate) fn plain_value(&self, tokens: Range<usize>) -> Option<u64> {
        // The limit ends the search in cyclic definitions.
        let (mut range, mut hops) = (tokens, 0);
        while range.len() == 1 && hops < 16 {
            let text = self.text(range.start);
            if self.tokens[range.start].kind == Kind::Number {
                return number(text);
            }
            range = self.constants.get(text)?.clone();
            hops += 1;
        }
        None
    }
}

/// Parses an integer literal.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'i', 'l']);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
