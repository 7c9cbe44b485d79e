//! Colours on terminals: headings of messages, and annotated sources.
//!
//! anstream decides whether to use colours: by `NO_COLOR` and `CLICOLOR_FORCE`, then by whether the
//! stream is a terminal with colours.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// Line numbers, and the frame of a source.
const FRAME: Style = AnsiColor::Blue.on_default().bold();

/// The headings of messages and of notes below a source.
const HEADINGS: [(&str, Style); 4] =
    [("error:", ERROR), ("warning:", ERROR), ("note:", NOTE), ("help:", NOTE)];

/// Returns whether text on this stream is to be coloured.
pub fn has_colours(stream: &impl anstream::stream::RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Colours headings, frames and marks in a text.
pub fn paint(text: &str) -> String {
    text.split_inclusive('\n').map(paint_line).collect()
}

fn paint_line(line: &str) -> String {
    if let Some(end) = frame_end(line) {
        let (frame, text) = line.trim_end_matches('\n').split_at(end);
        let end = if line.ends_with('\n') { "\n" } else { "" };
        return format!("{}{}{end}", styled(frame, FRAME), styled(text, text_style(frame, text)));
    }
    let heading = HEADINGS.iter().find(|(heading, _)| line.starts_with(heading));
    let painted = match heading {
        Some((heading, style)) => format!("{}{}", styled(heading, *style), &line[heading.len()..]),
        None => line.to_owned(),
    };
    // Help at the end of a message is on the same line.
    painted.replace("; help: ", &format!("; {} ", styled("help:", NOTE)))
}

/// Returns the style of the text to the right of a frame. Marks below a source line are coloured; a
/// source line itself, whose frame has a line number, is not.
fn text_style(frame: &str, text: &str) -> Style {
    let is_source = frame.contains(|c: char| c.is_ascii_digit());
    match text.trim_start().chars().next() {
        Some('^') if !is_source => ERROR,
        Some('-' | '\'') if !is_source => FRAME,
        _ => Style::new(),
    }
}

/// Returns the end of the frame at the start of a line: line number and bar, a corner, or the `=`
/// before a note.
fn frame_end(line: &str) -> Option<usize> {
    let start =
        line.len() - line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).len();
    let mark = ["│", "┌─", "="].into_iter().find(|mark| line[start..].starts_with(mark))?;
    // A frame is indented; a text that starts with `=` is not one.
    (start > 0).then_some(start + mark.len())
}

fn styled(text: &str, style: Style) -> String {
    match style.is_plain() || text.is_empty() {
        true => text.to_owned(),
        false => format!("{style}{text}{style:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_no_text() {
        let text = "error: k.wgsl:1:2: no `x`\n  ┌─ k.wgsl:1:2\n  │\n1 │ let x = y; // = 2\n  \
                    │         ^ unknown\n  │\n  = note: see\n\nnote: that; help: this\n= 1\nend";
        let painted = paint(text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
        assert!(painted.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m k.wgsl"), "{painted:?}");
        assert!(painted.contains("\u{1b}[34m1 │\u{1b}[0m let x = y; // = 2\n"), "{painted:?}");
        assert!(painted.contains("\u{1b}[31m         ^ unknown\u{1b}[0m\n"), "{painted:?}");
        assert!(painted.contains("\u{1b}[36mhelp:\u{1b}[0m this\n= 1\nend"), "{painted:?}");
    }
}
