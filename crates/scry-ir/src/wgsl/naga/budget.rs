//! Rejects sources on which the compiler would take minutes or gigabytes, although they are small:
//! its work grows with the square of a function's length, and it copies constants where they are
//! used.

use std::collections::BTreeMap;
use std::ops::Range;

use naga::Span;

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::lex::Kind;
use crate::wgsl::report::Report;

/// Tokens of one function.
const MAX_FUNCTION: u64 = 1 << 18;
/// Values that the constants used in one function are copied into.
const MAX_COPIES: u64 = 1 << 23;
/// The sum over all functions of (tokens) × (tokens and copies): a measure of compile time.
const MAX_WORK: u64 = 1 << 36;

/// Rejects a source past a limit.
pub(crate) fn check(outline: &Declarations<'_>) -> Result<(), Box<Report>> {
    let weights = Weights::new(outline);
    let mut work = 0u64;
    for (_, body) in &outline.functions {
        let tokens = body.len() as u64;
        if tokens > MAX_FUNCTION {
            let message = format!("a function has more than {MAX_FUNCTION} tokens");
            return Err(too_complex(outline, body, &message, "help: split it into functions"));
        }
        let copies = weights.of(outline, body);
        if copies > MAX_COPIES {
            let message = "the constant arrays used in a function are too large to be evaluated";
            let help = "help: pass them in a buffer, or copy them to a `var<private>` once";
            return Err(too_complex(outline, body, message, help));
        }
        work = work.saturating_add(tokens.saturating_mul(tokens.saturating_add(copies)));
        if work > MAX_WORK {
            let message = "the functions of the source are together too long";
            return Err(too_complex(outline, body, message, "help: split the source"));
        }
    }
    Ok(())
}

fn too_complex(
    outline: &Declarations<'_>,
    body: &Range<usize>,
    message: &str,
    help: &str,
) -> Box<Report> {
    let report = Report::new(ShaderErrorKind::TooComplex, message);
    let brace = outline.tokens[body.start.saturating_sub(1)];
    Box::new(report.at(Span::new(brace.start, brace.end), "this function").note(help))
}

/// What is known of a constant by its name.
#[derive(Clone, Copy, Default)]
struct Constant {
    /// How many values are copied where it is used.
    copies: u64,
    /// A bound on its value, if it is a number.
    bound: u64,
}

/// The constants of a module and of its functions.
struct Weights<'a> {
    constants: BTreeMap<&'a str, Constant>,
}

impl<'a> Weights<'a> {
    /// Adds up the constants, each after those that it uses. Constants in a cycle, which the
    /// compiler rejects, weigh what was known of them.
    fn new(outline: &Declarations<'a>) -> Self {
        let mut weights = Self { constants: BTreeMap::new() };
        let names = outline.constants.keys().chain(outline.local_constants.keys());
        let mut open: Vec<(&str, bool)> = names.map(|name| (*name, false)).collect();
        while let Some((name, parts_done)) = open.pop() {
            let locals = outline.local_constants.get(name).map_or(&[][..], Vec::as_slice);
            let bodies = outline.constants.get(name).into_iter().chain(locals);
            if parts_done {
                let constant = bodies.fold(Constant::default(), |most, body| {
                    weights.constant(outline, body).max(most)
                });
                weights.constants.insert(name, constant);
            } else if !weights.constants.contains_key(name) {
                let mut bodies = bodies.cloned().peekable();
                if bodies.peek().is_some() {
                    weights.constants.insert(name, Constant::default());
                    open.push((name, true));
                    open.extend(bodies.flatten().map(|at| (outline.text(at), false)));
                }
            }
        }
        weights
    }

    fn constant(&self, outline: &Declarations<'a>, body: &Range<usize>) -> Constant {
        let copies = self.of(outline, body).saturating_add(body.len() as u64);
        Constant { copies, bound: self.bound(outline, body.clone()) }
    }

    /// The copies made for a stretch of tokens.
    fn of(&self, outline: &Declarations<'a>, body: &Range<usize>) -> u64 {
        let (mut sum, mut zeros, mut accesses) = (0u64, 0u64, 1u64);
        for at in body.clone() {
            match outline.tokens[at].kind {
                Kind::Word if outline.constants.contains_key(outline.text(at)) => {
                    sum = sum.saturating_add(self.get(outline.text(at)).copies);
                }
                Kind::TemplateClose if is_empty_call(outline, at) => {
                    let length = length(outline, at);
                    zeros = zeros.max(length.map_or(0, |length| self.bound(outline, length)));
                }
                Kind::Open if outline.text(at) == "[" => accesses += 1,
                _ => {}
            }
        }
        sum.saturating_add(zeros.saturating_mul(accesses))
    }

    fn get(&self, name: &str) -> Constant {
        self.constants.get(name).copied().unwrap_or_default()
    }

    /// A bound on the value of an expression of whole numbers: the product of all its numbers.
    fn bound(&self, outline: &Declarations<'a>, expression: Range<usize>) -> u64 {
        let mut bound = 1u64;
        for at in expression {
            let token = outline.tokens[at];
            let text = outline.text(at);
            let value = match token.kind {
                Kind::Number => outline.plain_value(at..at + 1).unwrap_or(1),
                Kind::Word => self.get(text).bound,
                Kind::Operator if text == "+" => 2,
                Kind::Operator if text == "~" => u64::from(u32::MAX),
                _ => 1,
            };
            let shifted = at > 0 && outline.text(at - 1) == "<<";
            let factor = if shifted { 1u64 << value.min(62) } else { value.max(1) };
            bound = bound.saturating_mul(factor);
        }
        bound
    }
}

impl Constant {
    fn max(self, other: Self) -> Self {
        Self { copies: self.copies.max(other.copies), bound: self.bound.max(other.bound) }
    }
}

/// True for the `>` of `array<T, N>()`: a value of zeros, spelled out when it is read.
fn is_empty_call(outline: &Declarations<'_>, at: usize) -> bool {
    outline.text(at + 1) == "(" && outline.text(at + 2) == ")"
}

/// The tokens of the `N` of `array<T, N>`, given its `>`.
fn length(outline: &Declarations<'_>, close: usize) -> Option<Range<usize>> {
    let mut depth = 0usize;
    for at in (0..close).rev() {
        match outline.tokens[at].kind {
            Kind::Close | Kind::TemplateClose => depth += 1,
            Kind::TemplateOpen | Kind::Open if depth == 0 => return None,
            Kind::TemplateOpen | Kind::Open => depth -= 1,
            Kind::Separator if depth == 0 => return Some(at + 1..close),
            _ => {}
        }
    }
    None
}
