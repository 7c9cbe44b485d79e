//! Instructions, which compute values.

use super::{Const, Type, Value, Var};

/// The memory that an address refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSpace {
    /// A buffer: position in [`Interface::bindings`](crate::Interface::bindings).
    Binding(u32),
    /// The immediate block.
    Immediate,
    /// An array shared by a workgroup: position in [`Kir::workgroup`](super::Kir::workgroup).
    Workgroup(u32),
    /// An array of each invocation: position in [`Kir::locals`](super::Kir::locals).
    Local(u32),
}

/// An address: byte `index * stride + offset` of an address space.
///
/// It must be in bounds: an index that might not be is clamped by instructions of its own. The
/// address does not wrap: a backend that computes addresses in 32 bits must make sure that they
/// suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The memory.
    pub space: AddressSpace,
    /// A `u32`; `None` is zero.
    pub index: Option<Value>,
    /// Bytes from one index to the next; a multiple of the access's size.
    pub stride: u32,
    /// Bytes from index 0; a multiple of the access's size.
    pub offset: u32,
}

/// Built-in values of an invocation; each is a `u32`. Axes are 0, 1, 2 for x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// Position in the workgroup along an axis.
    LocalId(u8),
    /// Position of the workgroup in the grid along an axis.
    GroupId(u8),
    /// Workgroups of the grid along an axis.
    GroupCount(u8),
    /// Invocations in a subgroup.
    SubgroupSize,
    /// Position in the subgroup.
    SubgroupLane,
    /// Position of the subgroup in the workgroup.
    SubgroupId,
    /// Subgroups in the workgroup.
    SubgroupCount,
}

/// Functions of one operand. The result has the operand's type unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Negation of a number; of the least integer, itself.
    Neg,
    /// Bitwise complement, or logical not of a `Bool`.
    Not,
    /// Absolute value of a float or signed integer; of the least integer, itself.
    Abs,
    /// -1, 0 or 1 of a float or signed integer.
    Sign,
    /// Greatest whole number not above; floats.
    Floor,
    /// Least whole number not below; floats.
    Ceil,
    /// Nearest whole number, ties to even; floats.
    Round,
    /// Whole part; floats.
    Trunc,
    /// `x - floor(x)`; floats.
    Fract,
    /// Square root; floats.
    Sqrt,
    /// `1 / sqrt(x)`; floats.
    InverseSqrt,
    /// e to the power; floats.
    Exp,
    /// 2 to the power; floats.
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
    /// `e` of the same, as an `I32`; of zero, 0; floats.
    FrexpExponent,
    /// Rounds an `F32` to the nearest `F16`; the result is an `F32`.
    QuantizeF16,
    /// Number of ones; integers.
    CountOnes,
    /// Number of zeros above the highest one; integers.
    LeadingZeros,
    /// Number of zeros below the lowest one; integers.
    TrailingZeros,
    /// Bits in reverse order; integers.
    ReverseBits,
    /// Position of the highest bit that differs from the sign (signed) or is one (unsigned), or -1.
    FirstLeadingBit,
    /// Position of the lowest one, or -1; integers.
    FirstTrailingBit,
    /// Whether a float is NaN; results in a `Bool`.
    IsNan,
    /// Whether a float is infinite; results in a `Bool`.
    IsInf,
}

/// Functions of two operands of one type, which the result has as well unless said otherwise.
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
    /// Quotient, of integers rounded towards zero; numbers.
    Div,
    /// Remainder, with the sign of the dividend: `x - y * trunc(x / y)`. Of floats just that, each
    /// step rounded, which may differ from the exact remainder if the quotient is large; numbers.
    Rem,
    /// Bitwise or logical and.
    And,
    /// Bitwise or logical or.
    Or,
    /// Bitwise or logical exclusive or.
    Xor,
    /// Shift to the left, by a `U32` modulo the width; integers.
    Shl,
    /// Shift to the right, of signed integers with the sign, by a `U32` modulo the width; integers.
    Shr,
    /// The smaller; numbers. Of a number and NaN, the number.
    Min,
    /// The larger; numbers. Of a number and NaN, the number.
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
    /// The angle of the point (second, first); floats.
    Atan2,
    /// `x * 2^e`, `e` an `I32`; floats.
    Ldexp,
    /// Dot product of four signed bytes each, as an `I32`, of two `U32`.
    Dot4I8,
    /// Dot product of four unsigned bytes each, as a `U32`, of two `U32`.
    Dot4U8,
}

/// Read-modify-write operations on memory that invocations share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Only reads; the operand is none.
    Load,
    /// Atomic store; its result must not be used.
    Store,
    /// Sum, wrapping.
    Add,
    /// Difference, wrapping.
    Sub,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Conjunction.
    And,
    /// Disjunction.
    Or,
    /// Exclusive disjunction.
    Xor,
    /// Replacement.
    Exchange,
    /// Replacement if the old value equals the second operand; never fails spuriously.
    CompareExchange,
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
    /// Exclusive disjunction.
    Xor,
}

/// Which invocations of a subgroup go into a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extent {
    /// All of them.
    All,
    /// Those up to this one, itself included.
    Inclusive,
    /// Those before this one; of none, the operation's identity.
    Exclusive,
}

/// Where an invocation gets a value from in its subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShuffleSource {
    /// The active invocation of the lowest lane.
    First,
    /// The lane of this number, a `U32`.
    Lane(Value),
    /// The own lane xor this `U32`.
    Xor(Value),
    /// The own lane minus this `U32`.
    Up(Value),
    /// The own lane plus this `U32`.
    Down(Value),
    /// The lane of this number, a `U32`, in the own group of four.
    QuadLane(Value),
    /// The own lane xor this constant, 1 to 3.
    QuadXor(u8),
}

/// Exchange between the invocations of a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubgroupOp {
    /// Word `word` (0 to 3) of the set of active invocations that hold `value`, a `Bool`; a `U32`.
    Ballot {
        /// The condition.
        value: Value,
        /// Which 32 lanes.
        word: u8,
    },
    /// Combines values.
    Reduce {
        /// How.
        op: Reduction,
        /// Which.
        extent: Extent,
        /// This invocation's value.
        value: Value,
    },
    /// Another invocation's value; from an inactive or absent lane, some value.
    Shuffle {
        /// Whose.
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
    /// A fact about the invocation.
    Builtin(Builtin),
    /// A function of one operand.
    Unary(UnaryOp, Value),
    /// A function of two.
    Binary(BinaryOp, Value, Value),
    /// `a * b + c`; floats; rounded once where the target can at no cost.
    Fma(Value, Value, Value),
    /// The second operand where the first, a `Bool`, holds, else the third.
    Select(Value, Value, Value),
    /// Conversion to another type: floats round to nearest, floats to integers truncate and
    /// saturate to the range of both types, NaN becomes 0, integers are truncated or extended,
    /// `Bool` becomes 0 or 1, and a number is true unless it is zero.
    Convert(Value),
    /// The same bits as another type of the same size.
    Bitcast(Value),
    /// Elements of the runtime-sized array at the end of a binding; a `U32`.
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
    /// Loads `count` contiguous values (1 to 4); this is the first, the others are the next values,
    /// each an [`Inst::Extra`].
    Load {
        /// Where.
        place: Place,
        /// How many.
        count: u8,
    },
    /// The `n`th further result of an instruction that has several.
    Extra(Value, u8),
    /// An atomic operation; its result is the previous content.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Where.
        place: Place,
        /// The operand; none for a load.
        value: Option<Value>,
        /// The comparand of a compare-exchange.
        compare: Option<Value>,
    },
    /// Exchange within the subgroup.
    Subgroup(SubgroupOp),
    /// Cooperative matrix multiply-add `a * b + c` over a subgroup: 16 × 8, 8 × 8, and 16 × 8
    /// elements. This is the first of four results, in the layout of `c`; the others are the next
    /// values, each an [`Inst::Extra`].
    ///
    /// With `row = lane / 4` and `two = lane % 4 * 2`, a lane holds of `a` and `c` elements `(row,
    /// two)`, `(row, two + 1)`, `(row + 8, two)` and `(row + 8, two + 1)`, and of `b` `(two, row)`
    /// and `(two + 1, row)`. Elements of inactive or missing lanes are zero.
    ///
    /// `a` and `b` are `F16` or `F32`, and `c` is that or `F32`. Accumulators of `F16` have higher
    /// precision, also across consecutive instructions. Otherwise each step may round, in any
    /// order.
    MultiplyAdd {
        /// The left factor.
        a: [Value; 4],
        /// The right factor.
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
    /// Whether the result is a `Bool` whatever the operands are.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }

    /// The type of the result for operands whose first has this type.
    #[must_use]
    pub const fn result(self, first: Type) -> Type {
        match self {
            _ if self.compares() => Type::Bool,
            Self::Dot4I8 => Type::I32,
            _ => first,
        }
    }
}

impl UnaryOp {
    /// The type of the result for an operand of this type.
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
    /// Whether the value depends on the operands alone, so that the instruction may be moved,
    /// merged with an equal one, and dropped if its value is not used.
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
            | Self::ArrayLength { .. } => true,
            Self::Get(_)
            | Self::Load { .. }
            | Self::Extra(..)
            | Self::Atomic { .. }
            | Self::Subgroup(_)
            | Self::MultiplyAdd { .. } => false,
        }
    }

    /// How many values the instruction computes: this one, and the ones after it.
    #[must_use]
    pub const fn results(&self) -> u32 {
        match self {
            Self::Load { count, .. } => *count as u32,
            Self::MultiplyAdd { .. } => 4,
            _ => 1,
        }
    }
}
