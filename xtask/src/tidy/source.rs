//! A Rust source for the rules: its lines, its tokens, and which lines are tests.
//!
//! Rules use tokens rather than a syntax tree, so that they also apply to macros.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Finding;

/// A Rust file of the project.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path, relative to the root of the repository.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
    tokens: TokenStream,
    tests: Vec<RangeInclusive<usize>>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the word `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from the word `fn` to the closing brace.
    pub(crate) length: usize,
}

impl Source {
    /// Parses a text; returns a finding if it is not valid Rust tokens.
    pub(super) fn parse(path: &str, text: String) -> Result<Self, Finding> {
        let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
            let line = error.span().start().line;
            Finding::new(path, line, "syntax", format!("not Rust: {error}"))
        })?;
        let mut source = Self { path: path.to_owned(), text, tokens, tests: Vec::new() };
        source.tests = source.test_lines();
        Ok(source)
    }

    /// Returns whether a line, from 1, belongs to tests: `#[cfg(test)]`, `#[test]`, or a file of
    /// tests.
    pub(super) fn is_test(&self, line: usize) -> bool {
        let in_tests = self.path.contains("/tests/") || self.path.ends_with("/tests.rs");
        in_tests || self.tests.iter().any(|range| range.contains(&line))
    }

    /// Returns the tokens of the file.
    pub(super) fn tokens(&self) -> TokenStream {
        self.tokens.clone()
    }

    /// Calls `visit` with each token and those that follow it in its group, for all nested groups.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[TokenTree])) {
        for_each(self.tokens.clone(), &mut visit);
    }

    /// Returns all functions with a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        self.for_each(|tokens| functions.extend(parse_function(tokens)));
        functions
    }

    fn test_lines(&self) -> Vec<RangeInclusive<usize>> {
        let mut ranges = Vec::new();
        self.for_each(|tokens| {
            let [first, TokenTree::Group(attribute), item @ ..] = tokens else {
                return;
            };
            if is_punct(first, '#') && is_test_attribute(attribute) {
                ranges.extend(item_end(item).map(|end| line(first)..=end));
            }
        });
        ranges
    }
}

fn for_each(tokens: TokenStream, visit: &mut impl FnMut(&[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (i, tree) in trees.iter().enumerate() {
        visit(&trees[i..]);
        if let TokenTree::Group(group) = tree {
            for_each(group.stream(), visit);
        }
    }
}

fn parse_function(tokens: &[TokenTree]) -> Option<Function> {
    let [keyword, TokenTree::Ident(name), rest @ ..] = tokens else {
        return None;
    };
    if !is_word(keyword, "fn") {
        return None;
    }
    let body = rest.iter().take_while(|tree| !is_punct(tree, ';')).find_map(braces)?;
    let length = body.span_close().end().line + 1 - line(keyword);
    Some(Function { name: name.to_string(), line: line(keyword), length })
}

/// Returns the group, if it has braces.
pub(super) fn braces(tree: &TokenTree) -> Option<&Group> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// Returns the line where a token starts, from 1.
pub(super) fn line(tree: &TokenTree) -> usize {
    tree.span().start().line
}

/// Returns whether the token is this identifier or keyword.
pub(super) fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

/// Returns whether the token is this punctuation character.
pub(super) fn is_punct(tree: &TokenTree, punct: char) -> bool {
    matches!(tree, TokenTree::Punct(p) if p.as_char() == punct)
}

/// Returns whether the stream contains this identifier, also in nested groups.
fn mentions(tokens: TokenStream, word: &str) -> bool {
    let mut found = false;
    for_each(tokens, &mut |trees| found |= is_word(&trees[0], word));
    found
}

fn is_test_attribute(attribute: &Group) -> bool {
    let stream = attribute.stream();
    let Some(name) = stream.clone().into_iter().next() else {
        return false;
    };
    let about_tests = mentions(stream.clone(), "test") && !mentions(stream, "not");
    about_tests && (is_word(&name, "test") || is_word(&name, "cfg"))
}

/// Returns the last line of the item that starts here: that of its first block or semicolon.
fn item_end(item: &[TokenTree]) -> Option<usize> {
    item.iter()
        .find(|tree| braces(tree).is_some() || is_punct(tree, ';'))
        .map(|tree| tree.span().end().line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text.to_owned()).unwrap()
    }

    #[test]
    fn lines_under_cfg_test_are_tests() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = source("src/a.rs", text);
        let tests: Vec<bool> = (1..=6).map(|line| source.is_test(line)).collect();
        assert_eq!(tests, [false, true, true, true, true, false]);
    }

    #[test]
    fn cfg_not_test_is_code() {
        assert!(!source("src/a.rs", "#[cfg(not(test))]\nfn a() {}\n").is_test(2));
        assert!(source("crates/a/tests/b.rs", "fn a() {}\n").is_test(1));
    }

    #[test]
    fn function_length_spans_fn_to_brace() {
        let text = "trait T { fn none(&self); }\nimpl X {\n    /// Doc.\n    #[inline]\n    \
                    pub fn one(\n        a: u32,\n    ) -> u32 {\n        a\n    }\n}\n";
        let one = Function { name: "one".to_owned(), line: 5, length: 5 };
        assert_eq!(source("src/a.rs", text).functions(), [one]);
    }
}
