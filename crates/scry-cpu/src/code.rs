//! Compiled kernels: steps of the lockstep machine.

use std::fmt;

use scry_ir::kir::{AtomicOp, GroupOperation, Reduction, Type};

use crate::lanes::{Args, LaneOp, Sizes, Src};

/// A compiled kernel.
pub struct Code {
    /// Unique identifier in the process; never 0.
    pub(crate) id: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) lane_layout: LaneLayout,
    /// Sizes of the register files, in blocks.
    pub(crate) files: Sizes,
    /// Numbers of scalars and of affine values.
    pub(crate) scalars: usize,
    pub(crate) affines: usize,
    /// Constant scalars: number, bits.
    pub(crate) constants: Vec<(u32, u64)>,
    /// Blocks that hold a broadcast constant: type, block, bits of one lane.
    pub(crate) splats: Vec<(Type, u32, u64)>,
    /// Arrays of local memory: type, first block, number of blocks.
    pub(crate) locals: Vec<(Type, u32, u32)>,
    /// Elements of workgroup memory, by size of element.
    pub(crate) shared: Sizes,
    /// Mask register of the lanes that have not returned.
    pub(crate) live_mask: u32,
    /// For each binding, the elements that only the invocation of their index accesses, in
    /// one-dimensional launches.
    pub(crate) disjoint: Vec<Option<Disjoint>>,
    /// Whether the kernel may write each buffer.
    pub(crate) writable: Vec<bool>,
    /// Number of nesting levels of divergent control flow, including that of the kernel.
    pub(crate) depths: usize,
    /// Number of conditions that may be uniform at run time.
    pub(crate) conditions: usize,
    /// See [`Code::cost`].
    pub(crate) cost: Option<u64>,
}

/// The mapping of invocations to lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneLayout {
    /// Invocations of a workgroup along x, y, z.
    pub size: [u32; 3],
    /// Number of workgroups along x that are executed in lockstep: one, or a power of two.
    pub batch: u32,
    /// Whether consecutive lanes go along a row through all of these workgroups, rather than
    /// through one workgroup after the other. Then all of [`Self::size`] are powers of two.
    pub interleaved: bool,
}

impl LaneLayout {
    /// Invocations of a workgroup.
    pub(crate) fn invocations(self) -> usize {
        self.size.iter().map(|size| *size as usize).product()
    }

    /// Lanes in use.
    pub(crate) fn lanes(self) -> usize {
        self.invocations() * self.batch as usize
    }
}

/// Elements of a binding that are each accessed by the invocation of the same index only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disjoint {
    /// Bytes of an element.
    pub stride: u32,
    /// Bytes before the first element.
    pub offset: u32,
}

/// The index of an [`Address`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    None,
    Scalar(u32),
    Affine(Affine),
    Lanes(u32),
}

/// A value that is usually affine: the slot of its coefficients, and the register of its lanes for
/// when it is not affine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affine {
    pub slot: u32,
    pub lanes: u32,
}

/// An operand of an affine operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffineSrc {
    /// A scalar, and a block to broadcast it to if lanes are needed.
    Scalar {
        index: u32,
        block: u32,
    },
    Slot(Affine),
}

/// An operation on affine values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffineOp {
    Copy,
    Add,
    Sub,
    Neg,
    Not,
    Mul,
    Shl,
    Min { signed: bool },
    Max { signed: bool },
}

/// A condition that may be uniform at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Unique among all conditions of the kernel.
    pub number: u32,
    /// Register of its lanes.
    pub lanes: u32,
    /// Whether its lanes are needed even if it is uniform.
    pub fill: bool,
}

/// A comparison of affine values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}

/// The memory that an address refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemorySpace {
    /// A binding. The number after the last binding is that of the immediate block.
    Binding(u32),
    /// Workgroup memory: number of the first element, among those of the same size.
    Shared(u32),
    /// Local memory: first block of the register file, and number of elements.
    Local { start: u32, len: u32 },
}

/// An address: `index * stride + offset`, in bytes of a binding, or in elements of another memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub space: MemorySpace,
    pub index: Index,
    pub stride: u32,
    pub offset: u32,
}

/// The registers of an access: one for each of its values.
pub(crate) type AccessRegisters = [u32; 4];

/// A load or a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub ty: Type,
    pub address: Address,
    /// Number of values: 1 to 4.
    pub count: u8,
    /// Where a load writes each value: scalars or lane registers.
    pub to: AccessRegisters,
    /// The values that a store writes.
    pub from: [Src; 4],
}

/// `a * b + c` of `f32`, with operands and a result that may be in memory: fused loads and stores.
pub(crate) struct MemoryMulAdd {
    /// The operation on registers.
    pub op: &'static dyn LaneOp,
    pub operands: [Operand; 3],
    /// Whether the product and the addend are negated; at most one of them is.
    pub negated: [bool; 2],
    /// Register of the result.
    pub d: u32,
    /// The fused store of the result, if any.
    pub store: Option<Access>,
}

/// A chain of multiply-adds, computed in one pass: each result is used by the next one only.
pub(crate) struct Chain {
    /// The multiply-adds in order. Each stage reads the register of the one before. The operand `b`
    /// of each stage is uniform.
    pub stages: Vec<MemoryMulAdd>,
    pub end: ChainEnd,
}

/// How the last stage of a [`Chain`] uses the result of the one before. The other stages use it as
/// addend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// As addend: `a * b + previous`.
    Addend,
    /// As operand of the product: `previous * b + c`.
    Factor,
    /// As operand of a product without an addend: `previous * b`.
    Scaled,
}

/// An operand of a [`MemoryMulAdd`].
pub(crate) enum Operand {
    Lanes(Src),
    /// A load of one value.
    Memory(Access),
}

/// An atomic operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Atomic {
    pub ty: Type,
    pub address: Address,
    pub op: AtomicOp,
    pub d: u32,
    pub value: Src,
    pub compare: Src,
}

/// An exchange within subgroups.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SubgroupExchange {
    Ballot { word: u8 },
    Reduce { op: Reduction, group: GroupOperation },
    First,
    Lane(Src),
    Xor(Src),
    Up(Src),
    Down(Src),
    QuadLane(Src),
    QuadXor(u8),
}

/// A cooperative matrix multiply-accumulate: the registers with the elements that each lane holds
/// of 16x8 matrices (`a`, `c`, `d`) and an 8x8 matrix (`b`), as laid out in `exec/cooperative.rs`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixProduct {
    /// Type of the operands.
    pub operand_type: Type,
    /// Type of the accumulator and of the result.
    pub accumulator_type: Type,
    pub a: [Src; 4],
    pub b: [Src; 2],
    pub c: [Src; 4],
    pub d: [u32; 4],
}

/// One side of a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Register of the condition, one bool per lane.
    pub condition: u32,
    /// The condition's number, if it may be uniform at run time.
    pub number: Option<u32>,
    /// The masks outside and inside the branch.
    pub from: u32,
    pub into: u32,
    /// Whether the inner mask is needed even if all active lanes take this side.
    pub needs_mask: bool,
}

/// An exit from a loop or scope.
pub(crate) struct Exit {
    /// The condition's number, if it may be uniform at run time.
    pub number: Option<u32>,
    /// Register of the condition.
    pub condition: u32,
    /// A lane leaves if its condition has this value, 0 or 1.
    pub leave_if: u8,
    /// A scalar; if it equals `leave_if`, all lanes leave.
    pub all: Option<u32>,
    /// The masks that leaving lanes are removed from.
    pub masks: Box<[u32]>,
    /// Pairs of a 32-bit register and a scalar, which is written to the lanes that leave.
    pub copies: Box<[(u32, u32)]>,
}

/// A step of the lockstep machine. `to` is the target of a jump, `if_empty` its target if no lane
/// is active.
pub(crate) enum Step {
    /// An operation on lanes.
    Lanes(&'static dyn LaneOp, Args),
    /// An operation on scalars: result, operands.
    Scalar(&'static dyn LaneOp, u32, [u32; 3]),
    /// Broadcasts a scalar to a block.
    Splat {
        ty: Type,
        block: u32,
        scalar: u32,
    },
    /// Expands an affine value to its lanes.
    Expand(Affine),
    /// An affine operation; executed by `lanes` if the result is not affine.
    Affine {
        op: AffineOp,
        lanes: &'static dyn LaneOp,
        d: Affine,
        a: AffineSrc,
        b: AffineSrc,
    },
    /// A select between affine values with a uniform condition.
    AffineSelect {
        condition: u32,
        d: Affine,
        a: AffineSrc,
        b: AffineSrc,
    },
    /// A comparison of affine values; executed by `lanes` if the result is not uniform.
    Compare {
        comparison: Comparison,
        signed: bool,
        lanes: &'static dyn LaneOp,
        d: Condition,
        a: AffineSrc,
        b: AffineSrc,
    },
    /// The conjunction of two conditions, or without `and`, their disjunction.
    Logical {
        and: bool,
        d: Condition,
        a: Condition,
        b: Condition,
    },
    /// Position of the workgroup along an axis.
    GroupId {
        axis: u8,
        d: u32,
    },
    /// Position of each lane's workgroup along x, if several are executed together.
    GroupIdAffine(Affine),
    /// Position in the workgroup along an axis.
    LocalId {
        axis: u8,
        d: Affine,
    },
    /// Number of workgroups along an axis.
    GroupCount {
        axis: u8,
        d: u32,
    },
    /// Position in the subgroup.
    SubgroupLane {
        d: u32,
    },
    /// Number of the subgroup.
    SubgroupId {
        d: u32,
    },
    /// Number of elements of the runtime-sized array at the end of a binding.
    Length {
        d: u32,
        binding: u32,
        offset: u32,
        stride: u32,
    },
    /// A load from a uniform address.
    LoadScalar(Box<Access>),
    Load(Box<Access>),
    Store(Box<Access>),
    MemoryMulAdd(Box<MemoryMulAdd>),
    Chain(Box<Chain>),
    Atomic(Box<Atomic>),
    SubgroupExchange {
        ty: Type,
        exchange: SubgroupExchange,
        d: u32,
        value: Src,
    },
    MatrixMultiplyAdd(Box<MatrixProduct>),
    /// Assigns a variable, in active lanes only.
    Blend {
        ty: Type,
        d: u32,
        value: Src,
    },
    /// Zeroes a register.
    Zero {
        ty: Type,
        d: u32,
    },
    Jump {
        to: u32,
    },
    /// Jumps if a scalar is false.
    JumpIfNot {
        condition: u32,
        to: u32,
    },
    /// Activates the lanes for which the condition of a branch holds.
    Split {
        side: Side,
        depth: u32,
        if_empty: u32,
    },
    /// Activates the lanes for which it does not hold.
    Else {
        side: Side,
        if_empty: u32,
    },
    /// Reconverges: activates all remaining lanes of a mask.
    Join {
        depth: u32,
        mask: u32,
        if_empty: u32,
    },
    /// Enters a loop or scope: activates a copy of the mask, from which lanes that leave it are
    /// removed.
    Enter {
        depth: u32,
        into: u32,
    },
    /// Removes the active lanes from masks, and jumps.
    Break {
        masks: Box<[u32]>,
        to: u32,
    },
    /// Removes from masks the lanes that leave a loop or scope.
    Exit {
        exit: Box<Exit>,
        if_empty: u32,
    },
    /// Jumps to the start of a loop, unless cancellation is requested. Loops that are proven to
    /// terminate check it as well: they may run for hours.
    JumpBack {
        to: u32,
    },
    End,
}

/// A kernel exceeds a limit of the lockstep machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The resource, such as `bytes of private arrays in an invocation`.
    pub what: String,
    /// Amount that the kernel needs.
    pub needed: u64,
    /// Maximum amount.
    pub limit: u64,
}

impl Code {
    /// Estimates the nanoseconds per workgroup; `None` if the kernel has loops.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        self.cost
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("steps", &self.steps.len())
            .field("lane_layout", &self.lane_layout)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
