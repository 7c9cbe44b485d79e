//! The prose of a file: comments, documentation and string literals, as words with their lines.

/// A word and its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The word in lower case, without a possessive ending.
    pub(super) text: String,
    /// Line in the file, from 1.
    pub(super) line: usize,
    /// Whether only blank space separates the word from the one before.
    pub(super) adjacent: bool,
}

/// A comment, consecutive line comments, a string literal, or a whole Markdown file.
struct Segment {
    /// Line in the file where it starts, from 1.
    line: usize,
    /// Text without comment markers; line breaks as in the file.
    text: String,
    /// A string literal, in which braces enclose placeholders.
    is_string: bool,
}

/// Returns the words of comments and string literals of a Rust source, in order.
pub(super) fn rust_words(text: &str) -> Vec<Word> {
    let mut lexer = Lexer { rest: text, line: 1, segments: Vec::new(), in_comment: false };
    while lexer.step() {}
    lexer.segments.iter().flat_map(Segment::words).collect()
}

/// Returns the words of a Markdown file outside of code.
pub(super) fn markdown_words(text: &str) -> Vec<Word> {
    Segment { line: 1, text: text.to_owned(), is_string: false }.words()
}

impl Segment {
    /// Returns the words outside of code spans, code blocks and placeholders.
    fn words(&self) -> Vec<Word> {
        let mut words = Vec::new();
        let (mut in_fence, mut in_span, mut adjacent) = (false, false, false);
        for (line, text) in (self.line..).zip(self.text.split('\n')) {
            if text.trim_start().starts_with("```") && !self.is_string {
                in_fence = !in_fence;
                adjacent = false;
            } else if text.trim().is_empty() {
                (in_span, adjacent) = (false, false);
            } else if !in_fence {
                let mut depth = 0;
                let prose: String =
                    text.chars().map(|c| mask(self, c, &mut in_span, &mut depth)).collect();
                push_words(&prose, line, &mut adjacent, &mut words);
            }
        }
        words
    }
}

/// Returns the character, or NUL, which separates words, if it is in a code span or in a
/// placeholder of a string.
fn mask(segment: &Segment, c: char, in_span: &mut bool, depth: &mut u32) -> char {
    match c {
        '`' => *in_span = !*in_span,
        '{' if segment.is_string => *depth += 1,
        '}' if segment.is_string => *depth = depth.saturating_sub(1),
        _ if !*in_span && *depth == 0 => return c,
        _ => {}
    }
    '\0'
}

/// Appends the words of a line; `adjacent` carries over from line to line.
fn push_words(prose: &str, line: usize, adjacent: &mut bool, words: &mut Vec<Word>) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'');
    let mut rest = prose;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| is_part(c) != is_part(rest.chars().next().unwrap_or(c)));
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if is_part(c) {
            let word = run.trim_matches(['-', '\'']).to_lowercase();
            let text = word.strip_suffix("'s").unwrap_or(&word).to_owned();
            let is_word = !text.is_empty();
            words.extend(is_word.then_some(Word { text, line, adjacent: *adjacent }));
            *adjacent = is_word;
        } else if !run.trim().is_empty() {
            *adjacent = false;
        }
    }
}

/// A lexer that finds comments and strings of a Rust source.
struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    segments: Vec<Segment>,
    /// Whether only blank space followed the last line comment so far.
    in_comment: bool,
}

impl<'a> Lexer<'a> {
    /// Reads one token, comment or sequence of blanks; returns false at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else {
            return false;
        };
        if first.is_whitespace() {
            self.consume(first.len_utf8());
        } else if rest.starts_with("//") {
            self.line_comment();
        } else {
            self.in_comment = false;
            match first {
                '/' if rest.starts_with("/*") => self.block_comment(),
                '"' => self.string(),
                '\'' => _ = self.consume(quote_length(rest)),
                _ if is_identifier(first) => self.identifier(),
                _ => _ = self.consume(first.len_utf8()),
            }
        }
        true
    }

    /// Consumes a number of bytes, and counts their lines.
    fn consume(&mut self, bytes: usize) -> &'a str {
        let (consumed, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.line += consumed.matches('\n').count();
        consumed
    }

    fn push(&mut self, line: usize, text: String, is_string: bool) {
        self.segments.push(Segment { line, text, is_string });
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let comment = self.consume(self.rest.find('\n').unwrap_or(self.rest.len()));
        let text = comment.trim_start_matches('/').trim_start_matches('!');
        match self.segments.last_mut().filter(|_| self.in_comment) {
            Some(open) => {
                let last = open.line + open.text.matches('\n').count();
                open.text.extend((last..line).map(|_| '\n'));
                open.text.push_str(text);
            }
            None => self.push(line, text.to_owned(), false),
        }
        self.in_comment = true;
    }

    fn block_comment(&mut self) {
        let (line, mut depth, mut at) = (self.line, 0_u32, 0);
        while at < self.rest.len() {
            let rest = &self.rest.as_bytes()[at..];
            let (opens, closes) = (rest.starts_with(b"/*"), rest.starts_with(b"*/"));
            at += if opens || closes { 2 } else { 1 };
            depth = if opens { depth + 1 } else { depth.saturating_sub(closes.into()) };
            if depth == 0 {
                break;
            }
        }
        let text = self.consume(at).replace(['*', '/'], " ");
        self.push(line, text, false);
    }

    /// Reads a string with escapes. Escaped line breaks count as blanks, other escapes separate
    /// words.
    fn string(&mut self) {
        let (line, mut end) = (self.line, 1);
        let bytes = self.rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = (end + 1).min(bytes.len());
        let literal = self.consume(end).trim_matches('"');
        let mut text = literal.replace("\\\n", "\n");
        while let Some(at) = text.find('\\') {
            let escaped = text[at + 1..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..at + 1 + escaped, "\0");
        }
        self.push(line, text, true);
    }

    /// Reads an identifier, or the raw string that it is the prefix of.
    fn identifier(&mut self) {
        let end = self.rest.find(|c| !is_identifier(c)).unwrap_or(self.rest.len());
        let prefix = self.consume(end);
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if !matches!(prefix, "r" | "br" | "cr") || !self.rest[hashes..].starts_with('"') {
            return;
        }
        let (line, close) = (self.line, format!("\"{}", "#".repeat(hashes)));
        self.consume(hashes + 1);
        let length = self.rest.find(&close).unwrap_or(self.rest.len());
        let text = self.consume(length).to_owned();
        self.consume(close.len().min(self.rest.len()));
        self.push(line, text, true);
    }
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the character literal that starts here, or 1 for the quote of a lifetime.
fn quote_length(text: &str) -> usize {
    let mut inner = text.char_indices().skip(1);
    let Some((_, first)) = inner.next() else {
        return 1;
    };
    let escaped = (first == '\\').then(|| inner.next());
    match inner.find(|(_, c)| *c == '\'' || escaped.is_none()) {
        Some((end, '\'')) => end + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Vec<(String, usize)> {
        rust_words(text).into_iter().map(|word| (word.text, word.line)).collect()
    }

    fn words(text: &str) -> String {
        let words: Vec<String> = rust_words(text).into_iter().map(|word| word.text).collect();
        words.join(" ")
    }

    #[test]
    fn comments_and_strings_are_prose() {
        let text = "//! One\nfn code() { /* two\n three */ let x = \"four\"; } // five";
        let expected = [("one", 1), ("two", 2), ("three", 3), ("four", 3), ("five", 3)];
        assert_eq!(rust(text), expected.map(|(word, line)| (word.to_owned(), line)));
    }

    #[test]
    fn code_is_skipped() {
        assert_eq!(words("let a = 'b'; fn f<'c>(d: &'c str) -> char { '\\'' } // e"), "e");
        assert_eq!(words("let x = '\"'; let y = r#type; // e"), "e");
        assert_eq!(
            words("/// Sets `width` of a\n///\n/// ```\n/// code();\n/// ```\nfn f() {}"),
            "sets of a"
        );
    }

    #[test]
    fn escapes_and_placeholders_are_skipped() {
        assert_eq!(words(r#"("a \"b\" {c:>3} d\n", b"e")"#), "a b d e");
        assert_eq!(words("r#\"a \"b\"\n c\"# + cr\"d\""), "a b c d");
        assert_eq!(rust("\"a \\\n  b\"")[1], ("b".to_owned(), 2));
    }

    #[test]
    fn adjacent_words_allow_only_blanks_between() {
        let adjacent = |text| rust_words(text)[1].adjacent;
        assert!(adjacent("// a\n// b"));
        assert!(adjacent("\"a \\\n   b\""));
        assert!(!adjacent("// a, b"));
        assert!(!adjacent("(\"a\", \"b\")"));
        assert!(!adjacent("f(); // a\ng(); // b"));
        assert!(!adjacent("//! a\n//!\n//! b"));
    }

    #[test]
    fn markdown_code_is_skipped() {
        let words = markdown_words("# A\n\nb `c` d's\n\n```sh\ne\n```\n- f-g.");
        let words: Vec<(&str, usize)> = words.iter().map(|word| (&*word.text, word.line)).collect();
        assert_eq!(words, [("a", 1), ("b", 3), ("d", 3), ("f-g", 8)]);
    }
}
