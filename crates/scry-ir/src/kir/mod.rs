//! KIR, the kernel IR, from which backends generate code.
//!
//! One entry point with all functions inlined; values are scalars and cooperative matrices:
//! vectors, other matrices, structures and arrays are scalarised; control flow is structured;
//! indices are clamped unless they are proven to be in bounds. Values are defined once, by
//! instructions; mutable state is in variables, so there are no phi nodes.
//!
//! A block is a list of statements. A value is visible after the statement that computes it: to the
//! end of its block and in nested blocks. A value computed in a [`Stmt::Scope`] stays visible after
//! the scope, unless an exit from the scope precedes it.

mod alignment;
pub mod builder;

pub(crate) mod f16_usage;
mod fragments;
mod inst;
#[cfg(feature = "interpreter")]
pub mod interpret;
mod lower;
mod matrix;
mod matrix_bounds;
#[cfg(feature = "mutation")]
#[doc(hidden)]
pub mod mutation;
#[cfg(feature = "inspect")]
mod parse;
mod passes;
mod print;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod sanitise;
mod source_map;
pub(crate) mod staging;
mod stmt;
pub(crate) mod termination;
mod types;
mod uniformity;
mod unroll;
mod verify;
mod visit;

pub use crate::interface::Access;
pub use builder::Builder;
pub use fragments::{FragmentLayout, LaneBits, MatrixFragments};
pub use inst::{
    AddressSpace, AtomicOp, BinaryOp, Builtin, Definition, GroupOperation, Inst, Place, Reduction,
    ShuffleSource, SubgroupOp, UnaryOp,
};
pub use lower::KirOptions;
pub(crate) use lower::{optimised, unoptimised};
pub use matrix::{FragmentPlace, MatrixElement, MatrixPlace, MatrixSize, MatrixType, MatrixUse};
#[cfg(feature = "inspect")]
pub use parse::ParseKirError;
pub use passes::optimise;
pub(crate) use passes::optimise_with;
pub use source_map::SourceMap;
pub use stmt::{Barrier, Block, Stmt};
pub use types::{Const, Label, Type, Value, Var};
pub use uniformity::{Uniformity, VarUniformity, Variability};
pub(crate) use unroll::exit_condition;
pub use unroll::{UnrolledLoop, unrolled_loop};
pub use verify::{VerifyError, VerifyErrorKind, verify};
pub use visit::{any_stmt, for_each_stmt, for_each_stmt_mut, needs_barriers};

use crate::Location;

/// Stand-ins that mutate nothing, for builds without the feature `mutation`.
#[cfg(not(feature = "mutation"))]
#[doc(hidden)]
pub mod mutation {
    /// Leaves a kernel as it is.
    #[inline]
    pub fn mutate_as_requested(_: &mut super::Kir, _: &std::thread::Thread) {}

    /// Returns false.
    #[inline]
    #[must_use]
    pub fn is_requested() -> bool {
        false
    }
}

/// An array in workgroup or local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Array {
    /// Element type; elements are contiguous.
    pub ty: Type,
    /// Number of elements, never zero.
    pub len: u32,
}

impl Array {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        u64::from(self.ty.size()) * u64::from(self.len)
    }
}

/// A buffer binding of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Name of the variable in the source.
    pub name: String,
    /// Element type, a hint for code generators. It is the scalar type in the binding's type, or,
    /// if that contains several, the unsigned integer type as wide as the narrowest of them.
    /// Accesses of other types and sizes are valid too.
    pub element: Type,
    /// Whether the kernel may write it.
    pub writable: bool,
    /// Guaranteed minimum size in bytes.
    pub min_size: u64,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Kir {
    /// Name of the entry point.
    pub name: String,
    /// Invocations of one workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Buffers, in the order of [`Interface::bindings`](crate::Interface::bindings).
    pub buffers: Vec<Buffer>,
    /// Size of the immediate block in bytes.
    pub immediates: u32,
    /// Arrays that the invocations of a workgroup share; zero at the start of each workgroup.
    pub workgroup: Vec<Array>,
    /// Arrays of which each invocation has its own; zero at the start of the kernel.
    pub locals: Vec<Array>,
    /// Types of the variables, which are initially zero.
    pub vars: Vec<Type>,
    /// Definitions of the values.
    pub values: Vec<Definition>,
    /// The body of the kernel. [`Label::KERNEL`] exits it.
    pub body: Block,
    /// Number of labels, including [`Label::KERNEL`]: all labels in use are below it.
    pub labels: u32,
    /// Whether barriers must order accesses to storage buffers: false if the source is WGSL without
    /// `storageBarrier`. Targets with one barrier for all memory may ignore it.
    pub storage_barriers: bool,
    /// Source locations.
    pub source: SourceMap,
}

impl Kir {
    /// Returns the type of a value.
    #[must_use]
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.index()].ty
    }

    /// Returns the instruction that defines a value.
    #[must_use]
    pub fn inst(&self, value: Value) -> &Inst {
        &self.values[value.index()].inst
    }

    /// Returns the source location of a statement. `None` if it is unknown, and for assignments and
    /// exits, which have none.
    #[must_use]
    pub fn position(&self, stmt: &Stmt) -> Option<Location> {
        match stmt {
            Stmt::Let(value) => self.source.value(*value),
            Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => self.source.label(*label),
            Stmt::Store { at, .. } | Stmt::MatrixStore { at, .. } | Stmt::If { at, .. } => *at,
            Stmt::Barrier(_, at) => *at,
            Stmt::Set(..) | Stmt::Break(_) => None,
        }
    }

    /// Returns the location that generated code refers to, if the kernel has
    /// [`SourceMap::line_info`] and the statement's location is known.
    #[must_use]
    pub fn line_info(&self, stmt: &Stmt) -> Option<Location> {
        self.position(stmt).filter(|_| self.source.line_info)
    }

    /// Returns the constant that a value is defined as, if any.
    #[must_use]
    pub fn constant(&self, value: Value) -> Option<Const> {
        match self.inst(value) {
            Inst::Const(constant) => Some(*constant),
            _ => None,
        }
    }
}
