//! Builds a [`ShaderError`]: the message, the place, and the annotated source lines.

use std::error::Error as _;

use naga::valid::{EntryPointError, ValidationError};
use naga::{Span, WithSpan};

use crate::{Location, ShaderError, ShaderErrorKind};

/// Lines longer than this many bytes are shown only around the place.
const LONG_LINE: usize = 400;

/// At most so many places are shown.
const MAX_LABELS: usize = 12;

/// A diagnosis in the making.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) kind: ShaderErrorKind,
    pub(crate) message: String,
    /// The places, each with what to say there.
    pub(crate) labels: Vec<(Span, String)>,
    /// Lines below the source: causes and remedies.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(kind: ShaderErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), labels: Vec::new(), notes: Vec::new() }
    }

    /// Adds a place; an undefined span is left out.
    pub(crate) fn at(mut self, span: Span, label: impl Into<String>) -> Self {
        if span.is_defined() {
            self.labels.push((span, label.into()));
        }
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The error, with the places shown in `source`.
    pub(crate) fn render(mut self, source: &str) -> ShaderError {
        for (span, _) in &mut self.labels {
            *span = within(*span, source);
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
            location: first.map(|span| location(span, source)),
            rendered: self.annotate(&message, first, source),
            message,
        }
    }

    fn annotate(&self, message: &str, first: Option<Span>, source: &str) -> String {
        let mut error = WithSpan::new(stand_in(!self.notes.is_empty()));
        let Some(first) = first else {
            return if self.notes.is_empty() {
                String::new()
            } else {
                self.show(error, message, "")
            };
        };
        let text = if self.labels.iter().any(|(span, _)| has_long_line(*span, source)) {
            let (excerpt, span) = excerpt(first, source);
            self.show(error.with_span(span, &self.labels[0].1), message, &excerpt)
        } else {
            for (span, label) in &self.labels {
                error = error.with_span(*span, label);
            }
            self.show(error, message, source)
        };
        with_location(&text, location(first, source))
    }

    /// The text of an error with the message, and the notes, in the place of its own.
    fn show(&self, error: WithSpan<ValidationError>, message: &str, source: &str) -> String {
        let heading = error.as_inner().to_string();
        let note = error.as_inner().source().map(ToString::to_string);
        let (source, label) = (source.to_owned(), Some("wgsl".to_owned()));
        let shown = naga::error::ShaderError { source, label, inner: Box::new(error) }.to_string();
        let text = shown.strip_prefix("\nShader validation ").unwrap_or(&shown);
        let text = text.replacen(&heading, message, 1);
        match note.as_deref().and_then(|note| text.rsplit_once(note)) {
            Some((before, after)) => with_notes(before, &self.notes, after),
            None => text,
        }
    }
}

/// An error of which naga holds the code that shows it: to show another type of error would take
/// another copy of all that code. It has one note, or none.
fn stand_in(noted: bool) -> ValidationError {
    if noted {
        let (stage, source) = (naga::ShaderStage::Compute, EntryPointError::Conflict);
        return ValidationError::EntryPoint { stage, name: String::new(), source };
    }
    ValidationError::Corrupted
}

/// Notes between what comes before the first and after the last; each begins as the first does, and
/// its further lines where its text does.
fn with_notes(before: &str, notes: &[String], after: &str) -> String {
    let (above, start) = before.split_at(before.rfind('\n').map_or(0, |end| end + 1));
    let indent = " ".repeat(start.len());
    let mut text = above.to_owned();
    for note in notes {
        for (nth, line) in note.lines().enumerate() {
            text.extend([if nth == 0 { start } else { &indent }, line, "\n"]);
        }
    }
    text + after.strip_prefix('\n').unwrap_or(after)
}

/// The rendered text with that location in its heading, which shows the earliest place otherwise.
fn with_location(text: &str, location: Location) -> String {
    const MARK: &str = "─ wgsl:";
    let Some((before, after)) = text.split_once(MARK) else {
        return text.to_owned();
    };
    let rest = after.find('\n').map_or("", |end| &after[end..]);
    format!("{before}{MARK}{}:{}{rest}", location.line, location.column)
}

/// The message on one line.
pub(crate) fn one_line(text: &str) -> String {
    shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text of at most 600 characters; names in a source can be longer.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The span moved into the source and onto character boundaries.
fn within(span: Span, source: &str) -> Span {
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
    // Nothing at all means "no place" to naga: widen it to the first character.
    let end = if end == 0 { source.chars().next().map_or(0, char::len_utf8) } else { end };
    Span::from(start..end)
}

/// Line and column of the start of a span that lies within the source.
fn location(span: Span, source: &str) -> Location {
    let before = &source[..span.to_range().map_or(0, |range| range.start)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Location {
        line: count(before.bytes().filter(|b| *b == b'\n').count() + 1),
        column: count(before[line_start..].chars().count() + 1),
    }
}

/// True if one of the lines that a span touches is too long to show, or there are too many.
fn has_long_line(span: Span, source: &str) -> bool {
    let Some(range) = span.to_range() else {
        return false;
    };
    let start = source[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[range.end..].find('\n').map_or(source.len(), |at| at + range.end);
    source[start..end].split('\n').any(|line| line.len() > LONG_LINE)
}

/// The surroundings of the start of a span, cut out of its line, at the same line number.
fn excerpt(span: Span, source: &str) -> (String, Span) {
    let range = span.to_range().unwrap_or(0..0);
    let before = &source[..range.start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let lead = before[line_start..].chars().rev().take(60).map(char::len_utf8).sum::<usize>();
    let rest = source[range.start..].split('\n').next().unwrap_or("");
    let tail = rest.chars().take(60).map(char::len_utf8).sum::<usize>();
    let shown = range.len().min(tail).max(1.min(tail));

    let mut text = "\n".repeat(before.bytes().filter(|b| *b == b'\n').count());
    if lead < range.start - line_start {
        text.push('…');
    }
    text.push_str(&source[range.start - lead..range.start]);
    let start = text.len();
    text.push_str(&rest[..tail]);
    if tail < rest.len() {
        text.push('…');
    }
    let span = within(Span::from(start..start + shown), &text);
    (text, span)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fmt;

    use proptest::prelude::*;

    use super::*;

    /// A message and, as its sources, the notes: the shape that naga's renderer prints.
    #[derive(Debug)]
    struct Cause {
        text: String,
        next: Option<Box<Cause>>,
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

    fn rendered_by_naga(report: &Report, source: &str) -> String {
        let next = report
            .notes
            .iter()
            .rev()
            .fold(None, |next, note| Some(Box::new(Cause { text: note.clone(), next })));
        let mut error = WithSpan::new(Cause { text: report.message.clone(), next });
        for (span, label) in &report.labels {
            error = error.with_span(*span, label);
        }
        with_location(&error.emit_to_string(source), location(report.labels[0].0, source))
    }

    proptest! {
        #[test]
        fn it_shows_messages_and_notes_as_naga_shows_those_of_an_error(
            message in "[a-z$`é]{1,9}( [a-z]{1,9}){0,3}",
            labels in prop::collection::vec((0u32..40, 0u32..9, "[a-z ]{0,9}"), 1..4),
            notes in prop::collection::vec("[a-z= \\n]{0,20}", 0..4),
        ) {
            let source = "let a = 1;\n\nlet bcd = a + a;\n".repeat(5);
            let mut report = Report::new(ShaderErrorKind::Validation, message);
            for (start, size, label) in labels {
                report = report.at(Span::new(start, start + size + 1), label);
            }
            report.notes = notes;
            let expected = rendered_by_naga(&report, &source);
            let first = Some(report.labels[0].0);
            prop_assert_eq!(report.annotate(&report.message, first, &source), expected);
        }
    }
}
