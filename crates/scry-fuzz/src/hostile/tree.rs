//! Hostile kernels as trees of text, whose nodes the shrinker can delete, unwrap or replace.

use crate::types::Type;

/// Types of expressions, for replacements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    U32,
    I32,
    F32,
    Bool,
    /// Places, and values of other types: never replaced.
    Other,
}

/// An expression: text in which `$0`, `$1`, … stand for the operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expr {
    pub kind: Kind,
    pub text: String,
    pub operands: Vec<Expr>,
    /// Whether it is a constant expression: WGSL rejects those that overflow.
    pub constant: bool,
}

pub(super) type Block = Vec<Stmt>;

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stmt {
    /// A statement without blocks.
    Line(Line),
    /// A statement with blocks, such as `if` and `else`.
    Blocks(Vec<Part>),
    /// A `break` if the invocation has used up its fuel.
    Fuel,
}

/// Text with operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub text: String,
    pub operands: Vec<Expr>,
    /// Whether the shrinker must keep the line, because a loop would not terminate without it.
    pub required: bool,
}

/// A block and its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub head: Line,
    pub body: Block,
}

/// The address space of a global variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// A storage buffer that is only read.
    Input,
    Output,
    Uniform,
    Private,
    Workgroup,
}

/// The number of elements of a global variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// One value.
    One,
    /// A runtime-sized array, to which this number of elements is bound.
    Runtime(usize),
    /// A structure: the words `n` and `m`, and the runtime-sized array `rest`, to which this number
    /// of elements is bound.
    RuntimeMember(usize),
}

/// A global variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Global {
    pub name: String,
    pub space: Space,
    /// Type of the value, or of an element.
    pub ty: Type,
    pub extent: Extent,
    pub atomic: bool,
    /// Initial bytes of a buffer.
    pub content: Vec<u8>,
}

/// A function other than the entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    /// The text before the body.
    pub head: String,
    pub body: Block,
}

impl Expr {
    /// Creates an expression without operands.
    pub fn leaf(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), operands: Vec::new(), constant: false }
    }

    pub fn uint(value: u32) -> Self {
        Self { constant: true, ..Self::leaf(Kind::U32, format!("{value}u")) }
    }

    pub fn int(value: i32) -> Self {
        // The minimum has no literal.
        let text = if value == i32::MIN { "i32(-2147483648)".into() } else { format!("{value}i") };
        let text = if value < 0 { format!("({text})") } else { text };
        Self { constant: true, ..Self::leaf(Kind::I32, text) }
    }

    /// Creates an expression with operands.
    pub fn new(kind: Kind, text: impl Into<String>, operands: Vec<Self>) -> Self {
        let constant = !operands.is_empty() && operands.iter().all(|operand| operand.constant);
        Self { kind, text: text.into(), operands, constant }
    }
}

impl Line {
    pub fn new(text: impl Into<String>, operands: Vec<Expr>) -> Self {
        Self { text: text.into(), operands, required: false }
    }
}

impl Stmt {
    pub fn line(text: impl Into<String>, operands: Vec<Expr>) -> Self {
        Self::Line(Line::new(text, operands))
    }

    /// Creates a statement with a head and a block.
    pub fn block(head: impl Into<String>, operands: Vec<Expr>, body: Block) -> Self {
        Self::Blocks(vec![Part { head: Line::new(head, operands), body }])
    }

    /// Creates an `if`, with an `else` block unless that is empty.
    pub fn if_else(condition: Expr, then: Block, other: Block) -> Self {
        let mut parts = vec![Part { head: Line::new("if $0", vec![condition]), body: then }];
        if !other.is_empty() {
            parts.push(Part { head: Line::new("else", Vec::new()), body: other });
        }
        Self::Blocks(parts)
    }
}
