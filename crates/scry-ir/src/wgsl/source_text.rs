//! The text of a source, and line and column of a byte offset in it.

use crate::Location;

/// A source that is kept for positions and for errors found after parsing.
#[derive(Debug)]
pub(crate) struct SourceText {
    text: Box<str>,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
    is_ascii: bool,
}

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        Self { text: text.into(), lines, is_ascii: text.is_ascii() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns line and column of the start of a span; `None` if it is undefined. `line` is updated
    /// to the span's line. As an input it is a guess, such as the line of the previous span, which
    /// saves the search if it is right; 0 is no guess.
    pub(crate) fn location(&self, span: naga::Span, line: &mut usize) -> Option<Location> {
        let start = span.to_range()?.start;
        let is_before =
            |line: usize| self.lines.get(line).is_none_or(|first| start < *first as usize);
        if *line == 0 || is_before(*line - 1) || !is_before(*line) {
            *line = self.lines.partition_point(|first| *first as usize <= start);
        }
        let line = *line;
        let first = self.lines[line - 1] as usize;
        let column = match self.is_ascii {
            true => start - first,
            false => self.text.get(first..start)?.chars().count(),
        };
        Some(Location { line: line as u32, column: column as u32 + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let at = |text, start| {
            let (text, span) = (SourceText::new(text), naga::Span::new(start, start + 1));
            let found: Vec<_> = (0..4).map(|mut line| text.location(span, &mut line)).collect();
            assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
            found[0].map(|Location { line, column }| (line, column))
        };
        assert_eq!(at("ab\n\ncd", 0), Some((1, 1)));
        assert_eq!(at("ab\n\ncd", 2), Some((1, 3)));
        assert_eq!(at("ab\n\ncd", 3), Some((2, 1)));
        assert_eq!(at("ab\n\ncd", 5), Some((3, 2)));
        assert_eq!(at("ä\näöc", 7), Some((2, 3)));
        assert_eq!(SourceText::new("ab").location(naga::Span::UNDEFINED, &mut 0), None);
    }
}
