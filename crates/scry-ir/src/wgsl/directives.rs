//! `enable` directives, including `enable subgroups;`, which naga rejects although it supports
//! subgroup operations.

use std::borrow::Cow;
use std::ops::Range;

use naga::Span;

use crate::Features;
use crate::wgsl::lex::{Kind, Token};

/// The directives of a source.
pub(crate) struct Directives<'a> {
    /// The features enabled, with their positions.
    pub(crate) features: Vec<(Features, Span)>,
    /// The source with `subgroups` blanked out, so that positions are unchanged.
    pub(crate) source: Cow<'a, str>,
}

/// Reads the directives at the start of a source.
pub(crate) fn read<'a>(source: &'a str, tokens: &[Token]) -> Directives<'a> {
    let mut found = Directives { features: Vec::new(), source: Cow::Borrowed(source) };
    let mut rest = tokens;
    while let Some(first) = rest.first() {
        let name = first.text(source);
        let Some(end) = rest.iter().position(|token| token.text(source) == ";") else {
            break;
        };
        match name {
            "enable" => found.enable(source, &rest[..=end]),
            "requires" | "diagnostic" => {}
            _ => break,
        }
        rest = &rest[end + 1..];
    }
    found
}

impl Directives<'_> {
    /// Reads one `enable` directive, from the keyword to the `;`.
    fn enable(&mut self, source: &str, directive: &[Token]) {
        let names: Vec<usize> =
            (1..directive.len()).filter(|i| directive[*i].kind == Kind::Word).collect();
        for i in &names {
            let span = Span::new(directive[*i].start, directive[*i].end);
            match directive[*i].text(source) {
                "f16" => self.features.push((Features::F16, span)),
                "subgroups" => self.features.push((Features::SUBGROUPS, span)),
                "wgpu_int16" => self.features.push((Features::I16, span)),
                "wgpu_cooperative_matrix" => {
                    self.features.push((Features::COOPERATIVE_MATRIX, span));
                }
                _ => {}
            }
        }
        if !well_formed(source, directive) {
            return; // naga reports the error.
        }
        let is_subgroups = |i: &usize| directive[*i].text(source) == "subgroups";
        if names.iter().all(is_subgroups) {
            let all = directive[0].start..directive[directive.len() - 1].end;
            return self.blank(all);
        }
        for i in names.into_iter().filter(is_subgroups) {
            // A comma is removed too: the one after it, or, for the last name, the one before.
            let last = i + 2 >= directive.len();
            let range = if last { i - 1..i + 1 } else { i..i + 2 };
            self.blank(directive[range.start].start..directive[range.end - 1].end);
        }
    }

    /// Overwrites bytes of the source with spaces; line breaks stay.
    fn blank(&mut self, range: Range<u32>) {
        let range = range.start as usize..range.end as usize;
        let mut text = self.source[..range.start].to_owned();
        text.extend(
            self.source[range.clone()].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }),
        );
        text += &self.source[range.end..];
        self.source = Cow::Owned(text);
    }
}

/// Returns whether a directive has the form `enable a, b, c;`, with or without a trailing comma.
fn well_formed(source: &str, directive: &[Token]) -> bool {
    let list = &directive[1..directive.len() - 1];
    !list.is_empty()
        && list.iter().enumerate().all(|(i, token)| {
            if i % 2 == 0 { token.kind == Kind::Word } else { token.text(source) == "," }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wgsl::lex::Lexer;

    fn read_all(source: &str) -> (Features, String) {
        let mut lexer = Lexer::new(source);
        while lexer.advance() {}
        let found = read(source, &lexer.tokens);
        let features = found.features.iter().fold(Features::empty(), |all, (f, _)| all | *f);
        (features, found.source.into_owned())
    }

    #[test]
    fn subgroups_is_blanked_out() {
        let both = Features::F16 | Features::SUBGROUPS;
        for (source, wanted, features) in [
            ("enable subgroups;x", "                 x", Features::SUBGROUPS),
            ("enable f16, subgroups;x", "enable f16           ;x", both),
            ("enable subgroups, f16;x", "enable            f16;x", both),
            ("enable f16; enable\nsubgroups;", "enable f16;       \n          ", both),
            ("enable subgroups, subgroups, f16;", "enable                       f16;", both),
            ("enable f16, subgroups,;", "enable f16,           ;", both),
            (
                "// enable subgroups;\nfn f() {}",
                "// enable subgroups;\nfn f() {}",
                Features::empty(),
            ),
            ("fn f() {} enable subgroups;", "fn f() {} enable subgroups;", Features::empty()),
            ("enable subgroups f16;", "enable subgroups f16;", both),
        ] {
            assert_eq!(read_all(source), (features, wanted.to_owned()), "{source}");
        }
    }
}
