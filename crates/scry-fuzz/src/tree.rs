//! Kernels as typed trees.

use crate::exact::Rule;
use crate::types::Type;

/// A literal of a scalar type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// An operator, a builtin function or a constructor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Op {
    /// The text: `$0`, `$1`, … are the operands, and `$*` is the list of all. `$T` is the type of
    /// the result, and `$W` an identifier for it.
    pub text: &'static str,
    /// The bound of the result, if it is a float.
    pub rule: Rule,
}

/// A value with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub ty: Type,
    pub node: Node,
}

/// The structure of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Literal(Literal),
    /// The value of a variable or of a part of it.
    Read(Place),
    Op(Op, Vec<Expr>),
    /// A call: index of the function, pointees of pointer arguments, other arguments.
    Call(usize, Vec<Place>, Vec<Expr>),
}

/// A variable, or a part of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// The text of the variable.
    pub root: String,
    /// The path to the part.
    pub path: Vec<Access>,
}

/// A step into a composite.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Access {
    /// Member of a structure.
    Member(usize),
    /// Component of a vector.
    Component(usize),
    /// Element of an array of this length, at an index.
    Index(Box<Expr>, usize, IndexReduction),
    /// Element of an array of this length that only this invocation writes. The index must stay.
    Own(Box<Expr>, usize, IndexReduction),
    /// Element of a runtime-sized array, at an index.
    Runtime(Box<Expr>, IndexReduction),
}

/// How an index is reduced to the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexReduction {
    /// By `%`.
    Remainder,
    /// By `min`.
    Min,
    /// Not at all: it is below the length by construction.
    None,
}

/// Statements in order of execution.
pub(crate) type Block = Vec<Stmt>;

/// The form of a loop. Each loop counts its iterations and has a fixed maximum of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    For,
    /// `while`, with another condition besides the count.
    While,
    /// `loop` with an exit condition at its start, and `break if` at its end.
    Continuing,
    /// `for` that counts down to 1.
    Down,
    /// `for` that counts in steps of two.
    ByTwo,
    /// `for` with another limit as its condition.
    Limited,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stmt {
    Let {
        name: String,
        value: Expr,
    },
    Var {
        name: String,
        value: Expr,
    },
    Assign {
        place: Place,
        /// `=`, `+=` and so on.
        operator: &'static str,
        value: Expr,
    },
    If {
        condition: Expr,
        then_block: Block,
        else_block: Block,
        /// Whether the kernel races without the condition, so that it must stay.
        required: bool,
    },
    Loop {
        kind: LoopKind,
        counter: String,
        /// Maximum number of iterations.
        iterations: usize,
        /// The other condition, or the other limit of [`LoopKind::Limited`].
        condition: Option<Expr>,
        body: Block,
    },
    Switch {
        selector: Expr,
        cases: Vec<(Vec<u32>, Block)>,
        default: Block,
    },
    Break,
    Continue,
    Return(Option<Expr>),
    /// A call of a function that may have side effects.
    Call {
        function: usize,
        pointers: Vec<Place>,
        arguments: Vec<Expr>,
        /// The name of the result.
        result: Option<String>,
    },
    Atomic {
        function: &'static str,
        place: Place,
        value: Expr,
        /// The name of the old value.
        result: Option<String>,
    },
    /// An atomic multiplication: compare and exchange until it succeeds.
    AtomicMultiply {
        place: Place,
        value: Expr,
    },
    /// A pointer to a part of a variable.
    Pointer {
        name: String,
        place: Place,
    },
    /// The text of a statement without operands, such as a barrier.
    Text(String),
}

/// A function other than the entry point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// Pointee types of its pointer parameters, which are the first.
    pub pointers: Vec<Type>,
    /// Types of its value parameters.
    pub parameters: Vec<Type>,
    /// Type of its result.
    pub result: Type,
    pub body: Block,
    /// Whether it has no side effects.
    pub pure: bool,
    /// Total number of loop iterations of a call.
    pub total_iterations: usize,
}

/// The kind of a global variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Private,
    Workgroup,
    /// `var<storage, read>`: a runtime-sized array.
    Input,
    /// `var<storage, read_write>`: a runtime-sized array of results.
    Output,
    /// `var<storage, read_write>` of fixed size, for atomics of all invocations.
    FixedStorage,
    Uniform,
    Immediate,
}

/// A global variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Global {
    pub name: String,
    pub space: Space,
    /// Type of an element for runtime-sized arrays.
    pub ty: Type,
    /// Whether it is atomic: `ty` is then an integer for outputs, else an array of integers.
    pub atomic: bool,
    /// Number of elements: per invocation for outputs, in total for inputs.
    pub count: usize,
    /// Initial content.
    pub content: Vec<u8>,
    /// For outputs, the variable by which an invocation finds its own elements: its index, or a
    /// permutation of the indices.
    pub owner: &'static str,
}

/// A random, well-defined kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomKernel {
    pub(crate) seed: u64,
    pub(crate) enables: String,
    pub(crate) structs: Vec<Vec<Type>>,
    pub(crate) globals: Vec<Global>,
    pub(crate) functions: Vec<Function>,
    pub(crate) body: Block,
    pub(crate) workgroup_size: [u32; 3],
    pub(crate) groups: [u32; 3],
}

impl Expr {
    pub(crate) fn literal(ty: Type, literal: Literal) -> Self {
        Self { ty, node: Node::Literal(literal) }
    }

    pub(crate) fn uint(value: usize) -> Self {
        Self::literal(Type::U32, Literal::Int(value as i128))
    }

    pub(crate) fn read(ty: Type, place: Place) -> Self {
        Self { ty, node: Node::Read(place) }
    }

    pub(crate) fn op(ty: Type, text: &'static str, rule: Rule, operands: Vec<Self>) -> Self {
        Self { ty, node: Node::Op(Op { text, rule }, operands) }
    }

    /// Returns whether it is a constant expression.
    pub(crate) fn is_const(&self) -> bool {
        match &self.node {
            Node::Literal(_) => true,
            Node::Op(_, operands) => operands.iter().all(Self::is_const),
            Node::Read(_) | Node::Call(..) => false,
        }
    }

    /// Returns its direct operands.
    pub(crate) fn children(&self) -> Vec<&Self> {
        match &self.node {
            Node::Literal(_) => Vec::new(),
            Node::Read(place) => place.indices().collect(),
            Node::Op(_, operands) | Node::Call(_, _, operands) => operands.iter().collect(),
        }
    }

    /// As [`Self::children`], as mutable references.
    pub(crate) fn children_mut(&mut self) -> Vec<&mut Self> {
        match &mut self.node {
            Node::Literal(_) => Vec::new(),
            Node::Read(place) => place.indices_mut().collect(),
            Node::Op(_, operands) | Node::Call(_, _, operands) => operands.iter_mut().collect(),
        }
    }
}

impl Place {
    pub(crate) fn variable(root: impl Into<String>) -> Self {
        Self { root: root.into(), path: Vec::new() }
    }

    /// Returns the indices that may be replaced.
    pub(crate) fn indices(&self) -> impl Iterator<Item = &Expr> {
        self.path.iter().filter_map(|access| match access {
            Access::Index(index, ..) | Access::Runtime(index, _) => Some(&**index),
            Access::Member(_) | Access::Component(_) | Access::Own(..) => None,
        })
    }

    /// As [`Self::indices`], as mutable references.
    pub(crate) fn indices_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.path.iter_mut().filter_map(|access| match access {
            Access::Index(index, ..) | Access::Runtime(index, _) => Some(&mut **index),
            Access::Member(_) | Access::Component(_) | Access::Own(..) => None,
        })
    }
}
