//! WGSL tokens, as needed for the checks before parsing: brackets, template lists, operators,
//! words. The lexer never fails: invalid text results in tokens of kind `Unknown`.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number.
    Number,
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// The `<` of a template list.
    TemplateOpen,
    /// The `>` of a template list.
    TemplateClose,
    /// Any operator of an expression, `.` included.
    Operator,
    /// `=` and the compound assignments.
    Assign,
    /// `,`, `;`, `:`, `@` and `->`.
    Separator,
    /// A character that is not WGSL, or an unterminated comment.
    Unknown,
}

/// A token of a source. Comments and blanks are not tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Byte offset of its first character.
    pub(crate) start: u32,
    /// Byte offset after its last one.
    pub(crate) end: u32,
}

impl Token {
    /// Returns the text of the token.
    pub(crate) fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.start as usize..self.end as usize]
    }

    /// Returns the first byte of the token.
    pub(crate) fn byte(&self, source: &str) -> u8 {
        source.as_bytes()[self.start as usize]
    }
}

/// An unmatched `<` after a word, which may open a template list.
struct Candidate {
    /// Index of the token.
    token: usize,
    /// Nesting depth of `(` and `[` around it.
    depth: usize,
}

/// Splits a source into tokens, one per call of `advance`, and finds template lists by WGSL's
/// template list discovery. The source must be shorter than 4 GiB.
pub(crate) struct Lexer<'a> {
    source: &'a str,
    /// Byte offset of the rest.
    at: usize,
    pub(crate) tokens: Vec<Token>,
    candidates: Vec<Candidate>,
    /// Nesting depth of `(` and `[`, for the discovery.
    depth: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            tokens: Vec::with_capacity(source.len() / 4),
            candidates: Vec::new(),
            depth: 0,
        }
    }

    /// Reads the next token into `tokens`; returns false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let unknown = self.skip_blanks();
        let Some(first) = self.rest().chars().next() else {
            return false;
        };
        let start = self.at;
        let kind = if unknown {
            self.at = self.source.len();
            Kind::Unknown
        } else {
            self.token(first)
        };
        self.discover(kind, start);
        true
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Skips blanks and comments; returns true at an unterminated comment.
    fn skip_blanks(&mut self) -> bool {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find(is_line_break).unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match comment_len(rest.as_bytes()) {
                    Some(len) => self.at += len,
                    None => return true,
                }
            } else {
                let len = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
                if len == 0 {
                    return false;
                }
                self.at += len;
            }
        }
    }

    /// Skips the token that starts with `first`; returns its kind.
    fn token(&mut self, first: char) -> Kind {
        let rest = self.rest();
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        let (len, kind) = match first {
            '(' | '[' | '{' => (1, Kind::Open),
            ')' | ']' | '}' => (1, Kind::Close),
            ',' | ';' | ':' | '@' => (1, Kind::Separator),
            '.' if !second.is_ascii_digit() => (1, Kind::Operator),
            '.' | '0'..='9' => (number_len(rest.as_bytes()), Kind::Number),
            '>' if self.closes_template_list() => (1, Kind::TemplateClose),
            '=' if second != b'=' => (1, Kind::Assign),
            '~' => (1, Kind::Operator),
            '<' | '>' | '=' | '!' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' => {
                operator(rest.as_bytes())
            }
            c if c.is_alphanumeric() || c == '_' => (word_len(rest), Kind::Word),
            c => (c.len_utf8(), Kind::Unknown),
        };
        self.at += len;
        kind
    }

    /// Returns whether a `>` here closes a template list.
    fn closes_template_list(&self) -> bool {
        self.candidates.last().is_some_and(|candidate| candidate.depth == self.depth)
    }

    /// Appends the token and decides whether it opens or closes a template list.
    fn discover(&mut self, kind: Kind, start: usize) {
        let text = &self.source[start..self.at];
        let after_word = self.tokens.last().is_some_and(|t| t.kind == Kind::Word);
        match (kind, text) {
            (Kind::Operator, "<") if after_word => {
                self.candidates.push(Candidate { token: self.tokens.len(), depth: self.depth })
            }
            (Kind::TemplateClose, _) => {
                if let Some(candidate) = self.candidates.pop() {
                    self.tokens[candidate.token].kind = Kind::TemplateOpen;
                }
            }
            (Kind::Open, "(" | "[") => self.depth += 1,
            (Kind::Close, ")" | "]") => {
                self.drop_candidates(self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            (Kind::Assign, "=") | (Kind::Separator, ":" | ";") | (Kind::Open, "{") => {
                self.candidates.clear();
                self.depth = 0;
            }
            (Kind::Operator, "&&" | "||") => self.drop_candidates(self.depth),
            _ => {}
        }
        self.tokens.push(Token { kind, start: start as u32, end: self.at as u32 });
    }

    /// Removes the candidates at this depth or deeper: they are comparisons.
    fn drop_candidates(&mut self, depth: usize) {
        while self.candidates.last().is_some_and(|candidate| candidate.depth >= depth) {
            self.candidates.pop();
        }
    }
}

/// Returns length and kind of an operator or an assignment.
fn operator(text: &[u8]) -> (usize, Kind) {
    let second = text.get(1).copied().unwrap_or(0);
    match (text[0], second) {
        (b'<', b'<') | (b'>', b'>') if text.get(2) == Some(&b'=') => (3, Kind::Assign),
        (b'<', b'<') | (b'>', b'>') | (b'&', b'&') | (b'|', b'|') => (2, Kind::Operator),
        (b'<' | b'>' | b'=' | b'!', b'=') => (2, Kind::Operator),
        (b'-', b'>') => (2, Kind::Separator),
        (b'+', b'+') | (b'-', b'-') => (2, Kind::Operator),
        (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=') => (2, Kind::Assign),
        _ => (1, Kind::Operator),
    }
}

fn number_len(text: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&byte) = text.get(len) {
        let exponent_sign = matches!(byte, b'+' | b'-')
            && matches!(text.get(len.wrapping_sub(1)), Some(b'e' | b'E' | b'p' | b'P'))
            && text.get(len + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent_sign) {
            break;
        }
        len += 1;
    }
    len
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// Returns the length of the block comment at the start of `text`; comments nest.
fn comment_len(text: &[u8]) -> Option<usize> {
    let mut depth = 1u32;
    let mut at = 2;
    while depth > 0 {
        match text.get(at..at + 2)? {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    Some(at)
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\u{a}'..='\u{d}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    is_line_break(c) || matches!(c, ' ' | '\t' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(source);
        while lexer.advance() {}
        lexer.tokens.iter().map(|t| (t.kind, t.text(source))).collect()
    }

    #[test]
    fn template_lists_differ_from_comparisons() {
        let opens =
            |source| kinds(source).iter().filter(|(kind, _)| *kind == Kind::TemplateOpen).count();
        assert_eq!(opens("array<vec2<f32>>"), 2);
        assert_eq!(opens("if a < b && c > d {"), 0);
        assert_eq!(opens("x = a < (b > c);"), 0);
        assert_eq!(opens("f(a < b, c > (d))"), 1);
        assert_eq!(opens("array<u32, (1 << 2)>()"), 1);
        assert_eq!(opens("let x: array<f32, 4>=y;"), 1);
    }

    #[test]
    fn nested_comments_and_unicode_words() {
        let found = kinds("a/* x /* y */ ( */ é_1 // z (\n1.5e-3f .5 a.b");
        let words: Vec<_> = found.iter().map(|(_, text)| *text).collect();
        assert_eq!(words, ["a", "é_1", "1.5e-3f", ".5", "a", ".", "b"]);
        assert_eq!(kinds("a /* b")[1].0, Kind::Unknown);
    }
}
