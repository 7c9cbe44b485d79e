//! Builds a [`ShaderError`]: the message, the position, and the annotated source lines.

use std::error::Error;
use std::fmt;

use naga::{Span, WithSpan};

use crate::{Location, ShaderError, ShaderErrorKind};

/// Lines longer than this many bytes are shown only around the position.
const LONG_LINE: usize = 400;

/// Maximum characters of a long line that are shown before the position, and from it on.
const MAX_CONTEXT: usize = 60;

/// Maximum characters of a message, a label or a note.
const MAX_TEXT: usize = 600;

/// Maximum number of labels shown.
const MAX_LABELS: usize = 12;

/// A diagnostic under construction.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) kind: ShaderErrorKind,
    pub(crate) message: String,
    /// The labels: source spans with messages.
    pub(crate) labels: Vec<(Span, String)>,
    /// Lines below the source: causes and help.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(kind: ShaderErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), labels: Vec::new(), notes: Vec::new() }
    }

    /// Adds a label at a span; an undefined span is ignored.
    pub(crate) fn at(mut self, span: Span, label: impl Into<String>) -> Self {
        if span.is_defined() {
            self.labels.push((span, label.into()));
        }
        self
    }

    /// Adds a line below the source.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Renders the error with its labels in `source`.
    pub(crate) fn render(mut self, source: &str) -> ShaderError {
        for (span, _) in &mut self.labels {
            *span = clamped(*span, source);
        }
        let first = self.labels.first().map(|(span, _)| *span);
        let message = one_line(&self.message);
        if self.labels.len() > MAX_LABELS {
            let more = self.labels.len() - MAX_LABELS;
            self.labels.truncate(MAX_LABELS);
            self.notes.push(format!("note: {more} more places are not shown"));
        }
        for (_, label) in &mut self.labels {
            *label = shorten(label);
        }
        for note in &mut self.notes {
            *note = shorten(note);
        }
        ShaderError {
            kind: self.kind.clone(),
            label: None,
            location: first.map(|span| location(span, source)),
            rendered: self.annotate(&message, first, source).trim_end().to_owned(),
            message,
        }
    }

    fn annotate(&self, message: &str, first: Option<Span>, source: &str) -> String {
        let mut error = WithSpan::new(Cause::chain(message, &self.notes));
        let Some(first) = first else {
            return if self.notes.is_empty() { String::new() } else { error.emit_to_string("") };
        };
        let text = if self.labels.iter().any(|(span, _)| has_long_line(*span, source)) {
            let (excerpt, span) = excerpt(first, source);
            error.with_span(span, &self.labels[0].1).emit_to_string(&excerpt)
        } else {
            for (span, label) in &self.labels {
                error = error.with_span(*span, label);
            }
            error.emit_to_string(source)
        };
        with_location(&text, location(first, source))
    }
}

/// An error with the notes as its chain of `source()`, which naga's renderer prints.
#[derive(Debug)]
struct Cause {
    text: String,
    next: Option<Box<Cause>>,
}

impl Cause {
    fn chain(message: &str, notes: &[String]) -> Self {
        let next = notes
            .iter()
            .rev()
            .fold(None, |next, note| Some(Box::new(Self { text: note.clone(), next })));
        Self { text: message.to_owned(), next }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.next.as_deref().map(|next| next as _)
    }
}

/// The text before the source's name in the heading of a rendered report.
const HEADING: &str = "┌─ ";

/// The name of an unnamed source.
const UNNAMED: &str = "wgsl";

/// Replaces the location in the heading by the error's location. naga puts the location of the
/// label there that comes first in the source.
fn with_location(text: &str, location: Location) -> String {
    let mark = format!("{HEADING}{UNNAMED}:");
    let Some((before, after)) = text.split_once(&mark) else {
        return text.to_owned();
    };
    let rest = after.find('\n').map_or("", |end| &after[end..]);
    format!("{before}{mark}{}:{}{rest}", location.line, location.column)
}

/// Replaces the name of the source in the heading of a rendered text.
pub(crate) fn rename_source(text: &str, old: Option<&str>, new: &str) -> String {
    // The message is the first line, the heading the next.
    let Some((message, rest)) = text.split_once('\n') else {
        return text.to_owned();
    };
    let mark = format!("{HEADING}{}:", old.unwrap_or(UNNAMED));
    format!("{message}\n{}", rest.replacen(&mark, &format!("{HEADING}{new}:"), 1))
}

/// Returns the message on one line.
pub(crate) fn one_line(text: &str) -> String {
    shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Truncates a text to [`MAX_TEXT`] characters; names in a source can be longer.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Clamps a span to the source and to character boundaries.
fn clamped(span: Span, source: &str) -> Span {
    let range = span.to_range().unwrap_or(0..0);
    let floor = |mut at: usize| {
        at = at.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(range.start);
    let end = floor(range.end).max(start);
    // An empty span at 0 means "undefined" in naga: widen it to the first character.
    let end = if end == 0 { source.chars().next().map_or(0, char::len_utf8) } else { end };
    Span::from(start..end)
}

/// Returns line and column of the start of a span in the source.
fn location(span: Span, source: &str) -> Location {
    let before = &source[..span.to_range().map_or(0, |range| range.start)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Location {
        line: count(before.bytes().filter(|b| *b == b'\n').count() + 1),
        column: count(before[line_start..].chars().count() + 1),
    }
}

/// Returns whether a line that the span touches is longer than [`LONG_LINE`].
fn has_long_line(span: Span, source: &str) -> bool {
    let Some(range) = span.to_range() else {
        return false;
    };
    let start = source[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[range.end..].find('\n').map_or(source.len(), |at| at + range.end);
    source[start..end].split('\n').any(|line| line.len() > LONG_LINE)
}

/// Returns an excerpt of the line around the start of a span, at the same line number.
fn excerpt(span: Span, source: &str) -> (String, Span) {
    let range = span.to_range().unwrap_or(0..0);
    let before = &source[..range.start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let before_len =
        before[line_start..].chars().rev().take(MAX_CONTEXT).map(char::len_utf8).sum::<usize>();
    let rest = source[range.start..].split('\n').next().unwrap_or("");
    let after_len = rest.chars().take(MAX_CONTEXT).map(char::len_utf8).sum::<usize>();
    let shown = range.len().min(after_len).max(1.min(after_len));

    let mut text = "\n".repeat(before.bytes().filter(|b| *b == b'\n').count());
    if before_len < range.start - line_start {
        text.push('…');
    }
    text.push_str(&source[range.start - before_len..range.start]);
    let start = text.len();
    text.push_str(&rest[..after_len]);
    if after_len < rest.len() {
        text.push('…');
    }
    let span = clamped(Span::from(start..start + shown), &text);
    (text, span)
}
