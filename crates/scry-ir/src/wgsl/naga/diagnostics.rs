//! Turns naga's errors into [`Report`]s.

use std::error::Error;

use naga::front::wgsl::ParseError;
use naga::valid::ValidationError;
use naga::{Span, WithSpan};

use crate::ShaderErrorKind;
use crate::wgsl::advice;
use crate::wgsl::report::{Report, one_line};

/// The report of a text that is not WGSL.
pub(crate) fn parse(error: &ParseError, source: &str) -> Report {
    let mut report = Report::new(ShaderErrorKind::Parse, error.message());
    for (span, label) in error.labels() {
        // A place at the very start of the text is an empty span to naga.
        let span = if span.is_defined() { span } else { Span::new(0, 1) };
        report = report.at(span, label);
    }
    if report.labels.is_empty() {
        report = report.at(Span::new(0, 1), "");
    }
    report.notes = error.notes().map(|note| format!("note: {note}")).collect();
    report.notes.extend(advice::parse(&report, source));
    report
}

/// The report of a module that breaks one of WGSL's rules.
pub(crate) fn validation(error: &WithSpan<ValidationError>) -> Report {
    let inner = error.as_inner();
    let mut causes = Vec::new();
    let place = match inner {
        ValidationError::Function { name, .. } => Some(format!("in function `{name}`")),
        ValidationError::EntryPoint { name, .. } => Some(format!("in entry point `{name}`")),
        _ => {
            causes.push(plain(&inner.to_string()));
            None
        }
    };
    let mut cause = inner.source();
    while let Some(next) = cause {
        let text = plain(&next.to_string());
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        cause = next.source();
    }
    let mut report = Report::new(ShaderErrorKind::Validation, causes.join(": "));
    // The narrowest place is the most telling one.
    let width = |span: &Span| span.to_range().map_or(usize::MAX, |range| range.len());
    let mut spans: Vec<&(Span, String)> = Vec::new();
    for new in error.spans() {
        let at = spans.partition_point(|(span, _)| width(span) <= width(&new.0));
        spans.insert(at, new);
    }
    for (span, label) in spans {
        report = report.at(*span, noun(label));
    }
    report.notes.extend(place.map(|place| format!("note: {place}")));
    report.notes.extend(advice::validation(&report.message));
    report
}

/// A cause without naga's internal handles: `Constant [0] 'c' is invalid` gives
/// `Constant 'c' is invalid`.
fn plain(text: &str) -> String {
    one_line(text).split(' ').filter(|word| !is_handle(word)).collect::<Vec<_>>().join(" ")
}

fn is_handle(word: &str) -> bool {
    let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
    inner.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// What a label names, in a reader's words: `naga::ir::Expression [3]` → `this expression`.
fn noun(label: &str) -> String {
    let Some(path) = label.strip_prefix("naga::") else {
        return label.to_owned();
    };
    let name = path.split([' ', '<']).next().and_then(|path| path.rsplit("::").next());
    match name {
        Some("Expression") => "this expression",
        Some("Function") => "this function",
        Some("GlobalVariable") => "this variable",
        Some("LocalVariable") => "this variable",
        Some("Constant") => "this constant",
        Some("Override") => "this override",
        Some("Type") => "this type",
        _ => "here",
    }
    .to_owned()
}
