//! Instructions, which compute values.

use super::{Const, FragmentPlace, MatrixPlace, Type, Value, Var};

/// The memory that an address refers to: a buffer, the immediates or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSpace {
    /// A buffer, by position in [`Interface::bindings`](crate::Interface::bindings).
    Binding(u32),
    /// The immediate block.
    Immediate,
    /// An array shared by a workgroup, by position in [`Kir::workgroup`](super::Kir::workgroup).
    Workgroup(u32),
    /// An array of which each invocation has its own, by position in
    /// [`Kir::locals`](super::Kir::locals).
    Local(u32),
}

/// The address of a memory access: byte `index * stride + offset` of an address space.
///
/// It must be in bounds: an index that might not be is clamped by a separate instruction. The
/// address does not wrap: a backend may compute it in 32 bits only if 32 bits suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The memory.
    pub space: AddressSpace,
    /// A `u32`; `None` is zero.
    pub index: Option<Value>,
    /// Bytes from one index to the next; a multiple of the size of the accessed type.
    pub stride: u32,
    /// Bytes from the start of the memory to index 0; a multiple of the size of the accessed type.
    pub offset: u32,
}

/// Built-in values of an invocation; each is a `u32`. Axes are 0, 1, 2 for x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// Position in the workgroup along an axis (WGSL's `local_invocation_id`).
    LocalId(u8),
    /// Position of the workgroup in the grid along an axis (`workgroup_id`).
    GroupId(u8),
    /// Number of workgroups of the grid along an axis (`num_workgroups`).
    GroupCount(u8),
    /// Number of invocations in a subgroup.
    SubgroupSize,
    /// Position in the subgroup (`subgroup_invocation_id`).
    SubgroupLane,
    /// Position of the subgroup in the workgroup.
    SubgroupId,
    /// Number of subgroups in the workgroup.
    SubgroupCount,
}

/// Unary operations. The result has the operand's type unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Negation of a number; the minimum integer is unchanged.
    Neg,
    /// Bitwise complement, or logical not of a `Bool`.
    Not,
    /// Absolute value of a float or signed integer; the minimum integer is unchanged.
    Abs,
    /// Sign of a float or signed integer: -1, 0 or 1; of NaN, NaN. Zeros may lose their sign.
    Sign,
    /// Rounding towards negative infinity; floats.
    Floor,
    /// Rounding towards positive infinity; floats.
    Ceil,
    /// Rounding to the nearest integer, ties to even; floats.
    Round,
    /// Rounding towards zero; floats.
    Trunc,
    /// `x - floor(x)`; floats.
    Fract,
    /// Square root; floats.
    Sqrt,
    /// `1 / sqrt(x)`; floats.
    InverseSqrt,
    /// `e^x`; floats.
    Exp,
    /// `2^x`; floats.
    Exp2,
    /// Natural logarithm; floats.
    Log,
    /// Logarithm to base 2; floats.
    Log2,
    /// Sine of radians; floats.
    Sin,
    /// Cosine of radians; floats.
    Cos,
    /// Tangent of radians; floats.
    Tan,
    /// Inverse sine; floats.
    Asin,
    /// Inverse cosine; floats.
    Acos,
    /// Inverse tangent; floats.
    Atan,
    /// Hyperbolic sine; floats.
    Sinh,
    /// Hyperbolic cosine; floats.
    Cosh,
    /// Hyperbolic tangent; floats.
    Tanh,
    /// Inverse hyperbolic sine; floats.
    Asinh,
    /// Inverse hyperbolic cosine; floats.
    Acosh,
    /// Inverse hyperbolic tangent; floats.
    Atanh,
    /// `f` of `x = f * 2^e` with `|f|` in [0.5, 1), or zero; floats.
    FrexpFraction,
    /// `e` of the same equation, an `I32`; 0 if `x` is zero; floats.
    FrexpExponent,
    /// Rounds an `F32` to the nearest `F16`; the result is an `F32`.
    QuantizeF16,
    /// Number of set bits; integers.
    CountOnes,
    /// Number of zero bits above the highest set bit; integers.
    LeadingZeros,
    /// Number of zero bits below the lowest set bit; integers.
    TrailingZeros,
    /// Bits in reverse order; integers.
    ReverseBits,
    /// Position of the highest bit that differs from the sign bit (signed) or is set (unsigned); -1
    /// if there is none; integers.
    FirstLeadingBit,
    /// Position of the lowest set bit; -1 if there is none; integers.
    FirstTrailingBit,
    /// Whether a float is NaN; results in a `Bool`.
    IsNan,
    /// Whether a float is infinite; results in a `Bool`.
    IsInf,
}

impl UnaryOp {
    /// Every operation.
    #[cfg(feature = "inspect")]
    pub(super) const ALL: &[Self] = &[
        Self::Neg,
        Self::Not,
        Self::Abs,
        Self::Sign,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Trunc,
        Self::Fract,
        Self::Sqrt,
        Self::InverseSqrt,
        Self::Exp,
        Self::Exp2,
        Self::Log,
        Self::Log2,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Asin,
        Self::Acos,
        Self::Atan,
        Self::Sinh,
        Self::Cosh,
        Self::Tanh,
        Self::Asinh,
        Self::Acosh,
        Self::Atanh,
        Self::FrexpFraction,
        Self::FrexpExponent,
        Self::QuantizeF16,
        Self::CountOnes,
        Self::LeadingZeros,
        Self::TrailingZeros,
        Self::ReverseBits,
        Self::FirstLeadingBit,
        Self::FirstTrailingBit,
        Self::IsNan,
        Self::IsInf,
    ];
}

/// Binary operations. Unless stated otherwise, the operands have the same type, and the result has
/// the type of the first operand.
///
/// All are total: integers wrap; `x / 0 = x`, `x % 0 = 0`, `MIN / -1 = MIN`, `MIN % -1 = 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// Sum; numbers.
    Add,
    /// Difference; numbers.
    Sub,
    /// Product; numbers.
    Mul,
    /// Quotient, rounded towards zero for integers; numbers.
    Div,
    /// Remainder with the sign of the dividend: `x - y * trunc(x / y)`; numbers. For floats each
    /// step is rounded, so that the result may differ from the exact remainder if the quotient is
    /// large.
    Rem,
    /// Bitwise or logical and.
    And,
    /// Bitwise or logical or.
    Or,
    /// Bitwise or logical exclusive or.
    Xor,
    /// Left shift, by a `U32` modulo the width; integers.
    Shl,
    /// Right shift, arithmetic for signed and logical for unsigned integers, by a `U32` modulo the
    /// width.
    Shr,
    /// Minimum; numbers. If one operand is NaN, the other one.
    Min,
    /// Maximum; numbers. If one operand is NaN, the other one.
    Max,
    /// Equality; results in a `Bool`.
    Eq,
    /// Inequality; results in a `Bool`.
    Ne,
    /// Less than; numbers; results in a `Bool`.
    Lt,
    /// Less than or equal; numbers; results in a `Bool`.
    Le,
    /// Greater than; numbers; results in a `Bool`.
    Gt,
    /// Greater than or equal; numbers; results in a `Bool`.
    Ge,
    /// `x` to the power `y`; floats.
    Pow,
    /// Angle of the point (second operand, first operand); floats.
    Atan2,
    /// `x * 2^e`, `e` an `I32`; floats.
    Ldexp,
    /// Dot product of the four signed bytes of two `U32`; an `I32`.
    Dot4I8,
    /// Dot product of the four unsigned bytes of two `U32`; a `U32`.
    Dot4U8,
}

impl BinaryOp {
    /// Every operation.
    #[cfg(feature = "inspect")]
    pub(super) const ALL: &[Self] = &[
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Rem,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Shl,
        Self::Shr,
        Self::Min,
        Self::Max,
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Le,
        Self::Gt,
        Self::Ge,
        Self::Pow,
        Self::Atan2,
        Self::Ldexp,
        Self::Dot4I8,
        Self::Dot4U8,
    ];
}

/// Atomic operations on memory that invocations share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Atomic load; no operand.
    Load,
    /// Atomic store; its result must not be used.
    Store,
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replacement.
    Exchange,
    /// Replacement if the old value equals the comparand; never fails spuriously.
    CompareExchange,
}

impl AtomicOp {
    /// Every operation.
    #[cfg(feature = "inspect")]
    pub(super) const ALL: &[Self] = &[
        Self::Load,
        Self::Store,
        Self::Add,
        Self::Sub,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Exchange,
        Self::CompareExchange,
    ];
}

/// Reductions over a subgroup's active invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reduction {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and; of `Bool`s, whether all are true.
    And,
    /// Bitwise or; of `Bool`s, whether any is true.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Reduction {
    /// Every operation.
    #[cfg(feature = "inspect")]
    pub(super) const ALL: &[Self] =
        &[Self::Add, Self::Mul, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];
}

/// Whether a reduction is over all invocations, or a scan: as SPIR-V's group operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupOperation {
    /// A reduction over all active invocations.
    Reduce,
    /// An inclusive scan: over the invocations up to this one, itself included.
    InclusiveScan,
    /// An exclusive scan: over the invocations before this one; the identity for the first.
    ExclusiveScan,
}

impl GroupOperation {
    /// Every kind.
    #[cfg(feature = "inspect")]
    pub(super) const ALL: &[Self] = &[Self::Reduce, Self::InclusiveScan, Self::ExclusiveScan];
}

/// The invocation of the subgroup that a shuffle reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShuffleSource {
    /// The active invocation with the lowest lane.
    First,
    /// The lane of this number, a `U32`.
    Lane(Value),
    /// The invocation's own lane xor this `U32`.
    Xor(Value),
    /// The invocation's own lane minus this `U32`.
    Up(Value),
    /// The invocation's own lane plus this `U32`.
    Down(Value),
    /// The lane of this number, a `U32`, within the quad: four consecutive lanes.
    QuadLane(Value),
    /// The invocation's own lane xor this constant, 1 to 3.
    QuadXor(u8),
}

/// Subgroup operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubgroupOp {
    /// Word `word` (0 to 3) of the mask of active invocations whose `value`, a `Bool`, is true; a
    /// `U32`.
    Ballot {
        /// The condition.
        value: Value,
        /// The 32 lanes in question: those from lane `32 * word` on.
        word: u8,
    },
    /// Reduces or scans values.
    Reduce {
        /// The operation on two values.
        op: Reduction,
        /// Whether it is a reduction or a scan.
        group: GroupOperation,
        /// This invocation's value.
        value: Value,
    },
    /// The value of another invocation; any value if that lane is inactive or missing.
    Shuffle {
        /// The invocation whose value is read.
        source: ShuffleSource,
        /// This invocation's value.
        value: Value,
    },
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inst {
    /// A constant.
    Const(Const),
    /// A built-in value of the invocation.
    Builtin(Builtin),
    /// A unary operation.
    Unary(UnaryOp, Value),
    /// A binary operation.
    Binary(BinaryOp, Value, Value),
    /// `a * b + c`; floats; rounded once if the target has a fused multiply-add.
    Fma(Value, Value, Value),
    /// The second operand if the first, a `Bool`, is true, else the third.
    Select(Value, Value, Value),
    /// Conversion to another type. To floats: rounds to nearest. From floats to integers:
    /// truncates, and saturates to the values that both types represent; NaN becomes 0. Integers
    /// are truncated or extended, `Bool` becomes 0 or 1, and a number is true unless it is zero.
    Convert(Value),
    /// The same bits as another type of the same size.
    Bitcast(Value),
    /// The length of the runtime-sized array at the end of a binding; a `U32`. Passes assume that
    /// it is at least 1: a buffer that is too small for one element must not be bound.
    ArrayLength {
        /// Position in [`Interface::bindings`](crate::Interface::bindings).
        binding: u32,
        /// Bytes before the first element.
        offset: u32,
        /// Bytes from one element to the next.
        stride: u32,
    },
    /// The current value of a variable.
    Get(Var),
    /// Loads `count` contiguous values (1 to 4). This value is the first; the others are those
    /// numbered after it, each defined by an [`Inst::Extra`].
    Load {
        /// The address.
        place: Place,
        /// The number of values.
        count: u8,
    },
    /// WGSL's `workgroupUniformLoad`: a workgroup barrier, a load from workgroup memory, and a
    /// second barrier, so that all invocations load the same values. The index must be uniform.
    /// Results are numbered as those of [`Inst::Load`]. Adjacent uniform loads share both barriers:
    /// there is none between them. An adjacent workgroup barrier is one of the two: see
    /// [`needs_barriers`].
    ///
    /// [`needs_barriers`]: super::needs_barriers
    WorkgroupUniformLoad {
        /// The address, in workgroup memory.
        place: Place,
        /// The number of values.
        count: u8,
    },
    /// Result `n` (1 or more) of an instruction with several results; the operand is its result 0.
    Extra(Value, u8),
    /// An atomic operation; its result is the previous content.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The address.
        place: Place,
        /// The operand; `None` for a load.
        value: Option<Value>,
        /// The comparand of a compare-exchange.
        compare: Option<Value>,
    },
    /// A subgroup operation.
    Subgroup(SubgroupOp),
    /// A cooperative matrix, all elements of which are this scalar of its element type.
    MatrixFill(Value),
    /// Loads a cooperative matrix from memory. Loads, stores and products of matrices are
    /// collective: all invocations of the subgroup execute them, with the same operands.
    /// Element-wise arithmetic and [`MatrixFill`](Self::MatrixFill) are not.
    MatrixLoad(MatrixPlace),
    /// Loads the elements of an `F16` matrix that this lane holds, 2 or 8 results, as PTX's
    /// `ldmatrix`. Collective, as [`MatrixLoad`](Self::MatrixLoad). Added by
    /// [`Kir::with_fragments`](super::Kir::with_fragments) if the backend requests it. The elements
    /// are those of [`MultiplyFragments`](Self::MultiplyFragments); of 16 × 16 elements, the next
    /// four are 8 columns to the right, and of `b` each second pair is 8 rows below.
    LoadFragment(FragmentPlace),
    /// The product of cooperative matrices `a * b + c`, of types that
    /// [`MatrixType::multiplies`](super::MatrixType::multiplies) accepts.
    ///
    /// `F16` accumulators may have higher precision, also across consecutive multiply-adds.
    /// Otherwise each multiplication and addition may round, and their order is unspecified.
    MultiplyAdd(Value, Value, Value),
    /// Multiply-add of fragments of matrices `a * b + c` over a subgroup: 16 × 8, 8 × 8, and 16 × 8
    /// elements. [`Kir::with_fragments`](super::Kir::with_fragments) adds it, for backends without
    /// instructions for whole matrices. This value is the first of four results, in the layout of
    /// `c`; the others are those numbered after it, each defined by an [`Inst::Extra`].
    ///
    /// The elements that a lane holds are up to the backend. In the reference interpreter, with
    /// `group = lane / 4` and `pair = lane % 4 * 2`, these are, by row and column, `(group, pair)`,
    /// `(group, pair + 1)`, `(group + 8, pair)` and `(group + 8, pair + 1)` of `a` and `c`, and
    /// `(pair, group)` and `(pair + 1, group)` of `b`. Elements of inactive or missing lanes are
    /// zero.
    ///
    /// `a` and `b` are both `F16` or both `F32`; `c` is of the same type or `F32`; rounding is that
    /// of [`MultiplyAdd`](Self::MultiplyAdd).
    MultiplyFragments {
        /// The left operand.
        a: [Value; 4],
        /// The right operand.
        b: [Value; 2],
        /// The accumulators.
        c: [Value; 4],
    },
}

/// A value's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Definition {
    /// Its type.
    pub ty: Type,
    /// The instruction.
    pub inst: Inst,
}

impl BinaryOp {
    /// Returns whether the operation is a comparison, whose result is a `Bool`.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }

    /// Returns the type of the result, given the type of the first operand.
    #[must_use]
    pub const fn result(self, first: Type) -> Type {
        match self {
            _ if self.is_comparison() => Type::Bool,
            Self::Dot4I8 => Type::I32,
            _ => first,
        }
    }
}

impl UnaryOp {
    /// Returns the type of the result, given the type of the operand.
    #[must_use]
    pub const fn result(self, operand: Type) -> Type {
        match self {
            Self::IsNan | Self::IsInf => Type::Bool,
            Self::FrexpExponent => Type::I32,
            _ => operand,
        }
    }
}

impl Inst {
    /// Returns whether the instruction has no side effect, and the same result wherever an
    /// invocation executes it: then it may be executed speculatively, moved, merged with an equal
    /// one, and removed if its result is unused.
    #[must_use]
    pub const fn is_pure(&self) -> bool {
        match self {
            Self::Const(_)
            | Self::Builtin(_)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Fma(..)
            | Self::Select(..)
            | Self::Convert(_)
            | Self::Bitcast(_)
            | Self::ArrayLength { .. }
            | Self::MatrixFill(_) => true,
            Self::Get(_)
            | Self::Load { .. }
            | Self::WorkgroupUniformLoad { .. }
            | Self::Extra(..)
            | Self::Atomic { .. }
            // Collective: the active invocations of a subgroup execute these together.
            | Self::Subgroup(_)
            | Self::MatrixLoad(_)
            | Self::LoadFragment(_)
            | Self::MultiplyAdd(..)
            | Self::MultiplyFragments { .. } => false,
        }
    }

    /// Returns the number of results: the value itself, and those numbered after it.
    #[must_use]
    pub const fn results(&self) -> u32 {
        match self {
            Self::Load { count, .. } | Self::WorkgroupUniformLoad { count, .. } => *count as u32,
            Self::LoadFragment(from) => from.matrix.size.elements_per_lane(),
            Self::MultiplyFragments { .. } => 4,
            _ => 1,
        }
    }
}
