//! The scan before the compiler: rejects sources whose nesting or size the compiler could not
//! digest, and tells how much stack the others need.

use naga::Span;

use crate::ShaderErrorKind;
use crate::wgsl::lex::{Kind, Lexer, Token};
use crate::wgsl::report::Report;

/// Bytes of source.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Tokens of source.
const MAX_TOKENS: usize = 4 << 20;
/// Open brackets of all kinds, template lists included, and signs before one operand. The
/// parser's own limit, which has no place to show, is 200.
const MAX_NESTING: usize = 180;
/// Operators that nest in one expression: each takes a level of the compiler's recursion, `a+b+c`
/// no less than `a+(b+c)`. In WebAssembly all work is done on the caller's stack, which has 1 MiB
/// unless the program is linked with more: optimised code needs about 0.7 KiB per operator.
const MAX_OPERATORS: usize = if cfg!(target_arch = "wasm32") { 384 } else { 8192 };
/// `else if` in one chain, the chains around it included.
const MAX_ELSE_IF: usize = if cfg!(target_arch = "wasm32") { 128 } else { 512 };
/// Declarations at module scope.
const MAX_DECLARATIONS: usize = 1 << 15;

/// A scanned source.
pub(crate) struct Scanned {
    pub(crate) tokens: Vec<Token>,
    /// Bytes of stack that the compiler gets.
    pub(crate) stack: usize,
}

/// The deepest things found.
#[derive(Debug, Default, Clone, Copy)]
struct Depths {
    operators: usize,
    else_if: usize,
    declarations: usize,
}

impl Depths {
    /// Four times what each kind of recursion was measured to take in an unoptimised build: 7 KiB
    /// an operator, 38 KiB an `else if`, 0.7 KiB a declaration, and 14 MiB for brackets.
    fn stack(self) -> usize {
        const KIB: usize = 1024;
        let brackets = 64 * KIB;
        (brackets + self.operators * 28 + self.else_if * 152 + self.declarations * 3) * KIB
    }
}

/// Scans a source.
pub(crate) fn scan(source: &str) -> Result<Scanned, Box<Report>> {
    if source.len() > MAX_BYTES {
        let message =
            format!("the source has {} bytes; at most {MAX_BYTES} are compiled", source.len());
        return Err(too_complex(message, MAX_BYTES - 1, "the limit is here"));
    }
    let tokens = lex(source)?;
    let mut nesting = Nesting::new(source, &tokens);
    for at in 0..tokens.len() {
        nesting.token(at)?;
    }
    let stack = nesting.deepest.stack();
    Ok(Scanned { tokens, stack })
}

fn too_complex(message: String, at: usize, label: &str) -> Box<Report> {
    let report = Report::new(ShaderErrorKind::TooComplex, message);
    Box::new(report.at(Span::from(at..at + 1), label))
}

/// Cuts the source into tokens, and gives up early on a heap of brackets.
fn lex(source: &str) -> Result<Vec<Token>, Box<Report>> {
    let mut lexer = Lexer::new(source);
    let mut open = 0usize;
    while lexer.advance() {
        let Some(token) = lexer.tokens.last() else {
            break;
        };
        match token.kind {
            Kind::Open => open += 1,
            Kind::Close => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_NESTING {
            return Err(too_deep(token));
        }
        if lexer.tokens.len() > MAX_TOKENS {
            let message = format!("the source has more than {MAX_TOKENS} tokens");
            return Err(too_complex(message, token.start as usize, "the limit is here"));
        }
    }
    Ok(lexer.tokens)
}

fn too_deep(token: &Token) -> Box<Report> {
    let message = format!("nested too deeply: at most {MAX_NESTING} brackets may be open");
    let report = too_complex(message, token.start as usize, "one too many");
    Box::new(report.note("help: name a part of it with `let`, or make it a function"))
}

/// One open bracket.
#[derive(Default)]
struct Frame {
    /// Operators since the last `;` or `,`.
    operators: usize,
    /// `else if` in the chain that is going on.
    else_if: usize,
    braces: bool,
}

struct Nesting<'a> {
    source: &'a str,
    tokens: &'a [Token],
    frames: Vec<Frame>,
    /// Sums over the frames.
    operators: usize,
    else_if: usize,
    /// Operators in an unbroken row before the token.
    row: usize,
    deepest: Depths,
}

impl<'a> Nesting<'a> {
    fn new(source: &'a str, tokens: &'a [Token]) -> Self {
        Self {
            source,
            tokens,
            frames: vec![Frame::default()],
            operators: 0,
            else_if: 0,
            row: 0,
            deepest: Depths::default(),
        }
    }

    fn token(&mut self, at: usize) -> Result<(), Box<Report>> {
        let token = &self.tokens[at];
        let byte = token.byte(self.source);
        match token.kind {
            Kind::Open | Kind::TemplateOpen => self.open(byte == b'{'),
            Kind::Close | Kind::TemplateClose => self.close(at),
            Kind::Operator => self.operator(),
            Kind::Separator if matches!(byte, b';' | b',') => self.end_expression(),
            Kind::Word => self.word(at),
            _ => {}
        }
        self.row = if token.kind == Kind::Operator { self.row + 1 } else { 0 };
        self.check(token)
    }

    /// The innermost open bracket.
    fn top(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn operator(&mut self) {
        self.top().operators += 1;
        self.operators += 1;
    }

    fn end_expression(&mut self) {
        self.operators -= std::mem::take(&mut self.top().operators);
    }

    fn open(&mut self, braces: bool) {
        if braces {
            self.end_expression();
        } else {
            self.operator(); // A call, an index, a group: each is one level.
        }
        self.frames.push(Frame { braces, ..Frame::default() });
    }

    fn close(&mut self, at: usize) {
        if self.frames.len() > 1 {
            let frame = self.frames.pop().unwrap_or_default();
            self.operators -= frame.operators;
            self.else_if -= frame.else_if;
            if frame.braces {
                self.end_expression();
                if self.text(at + 1) != "else" {
                    self.else_if -= std::mem::take(&mut self.top().else_if);
                }
            }
        }
    }

    fn word(&mut self, at: usize) {
        let text = self.tokens[at].text(self.source);
        if text == "else" && self.text(at + 1) == "if" {
            self.top().else_if += 1;
            self.else_if += 1;
        } else if self.frames.len() == 1
            && matches!(text, "fn" | "struct" | "const" | "override" | "var" | "alias")
        {
            self.deepest.declarations += 1;
        }
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text(self.source))
    }

    /// Notes the depths reached, and rejects those past a limit.
    fn check(&mut self, token: &Token) -> Result<(), Box<Report>> {
        let deepest = &mut self.deepest;
        deepest.operators = deepest.operators.max(self.operators);
        deepest.else_if = deepest.else_if.max(self.else_if);
        if self.frames.len() - 1 + self.row > MAX_NESTING {
            return Err(too_deep(token));
        }
        let (message, remedy) = if deepest.operators > MAX_OPERATORS {
            (
                format!("an expression has more than {MAX_OPERATORS} operators"),
                "help: name parts of it with `let`",
            )
        } else if deepest.else_if > MAX_ELSE_IF {
            (format!("a chain has more than {MAX_ELSE_IF} `else if`"), "help: use a `switch`")
        } else if deepest.declarations > MAX_DECLARATIONS {
            (
                format!("the source has more than {MAX_DECLARATIONS} declarations"),
                "help: split it into several sources",
            )
        } else {
            return Ok(());
        };
        let report = too_complex(message, token.start as usize, "one too many");
        Err(Box::new(report.note(remedy)))
    }
}
