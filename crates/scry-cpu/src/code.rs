//! Compiled kernels: steps of the lockstep machine.

use std::fmt;

use scry_ir::kir::{AtomicOp, Extent, Reduction, Type};

use crate::lanes::{Args, LaneOp, Sizes, Src};

/// A compiled kernel.
pub struct Code {
    /// Unique among all code of the process; never 0.
    pub(crate) number: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) lane_layout: LaneLayout,
    /// Sizes of the register files, in blocks.
    pub(crate) files: Sizes,
    /// Numbers of scalars and of affine values.
    pub(crate) scalars: usize,
    pub(crate) affines: usize,
    /// Constant scalars, and blocks that hold a broadcast value.
    pub(crate) constants: Vec<(u32, u64)>,
    pub(crate) splats: Vec<(Type, u32, u64)>,
    /// Arrays of local memory: type, first block, number of blocks.
    pub(crate) locals: Vec<(Type, u32, u32)>,
    /// Elements of workgroup memory, by size of element.
    pub(crate) shared: Sizes,
    /// Registers that hold the lanes of the whole group, and those that have not returned.
    pub(crate) masks: Masks,
    /// Bindings of which each invocation writes its own element, in one-dimensional launches.
    pub(crate) disjoint: Vec<Option<Disjoint>>,
    /// Whether the kernel may write each buffer.
    pub(crate) writable: Vec<bool>,
    /// Depths of divergence.
    pub(crate) depths: usize,
    /// Number of conditions that may turn out uniform.
    pub(crate) conditions: usize,
    pub(crate) cost: Option<u64>,
}

/// The invocations that are executed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneLayout {
    /// Invocations of a workgroup along x, y, z.
    pub size: [u32; 3],
    /// Workgroups executed together, along x: one, or a power of two.
    pub batch: u32,
    /// Whether their lanes are numbered row by row through all of these workgroups, rather than
    /// workgroup by workgroup. Then all of [`Self::size`] are powers of two.
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

/// Mask registers with a fixed meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Masks {
    /// Lanes that have not returned.
    pub alive: u32,
    /// Lanes that execute the kernel's outermost block.
    pub outer: u32,
}

/// Elements of a binding, each of which is accessed by the invocation of its index only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disjoint {
    /// Bytes of an element.
    pub stride: u32,
    /// Bytes before the first.
    pub offset: u32,
}

/// The index of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    None,
    Scalar(u32),
    Affine(Affine),
    Lanes(u32),
}

/// An affine value: its coefficients, and the register of its lanes in case it is not affine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affine {
    pub slot: u32,
    pub lanes: u32,
}

/// An operand of an affine operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffineSrc {
    /// A scalar, and a block for it in case lanes are needed.
    Scalar {
        index: u32,
        block: u32,
    },
    Slot(Affine),
}

/// The operation on the coefficients of affine values.
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

/// A condition that may turn out uniform.
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

/// The memory of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemorySpace {
    /// A binding; after them, the immediates.
    Binding(u32),
    /// Workgroup memory: element of the array of this element size.
    Shared(u32),
    /// Local memory: first block, and elements.
    Local { start: u32, len: u32 },
}

/// A place in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub space: MemorySpace,
    pub index: Index,
    pub stride: u32,
    pub offset: u32,
}

/// The registers of results or operands: one for each value of the access.
pub(crate) type Registers = [u32; 4];

/// A load or a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub ty: Type,
    pub address: Address,
    pub count: u8,
    /// Scalars or registers.
    pub to: Registers,
    /// For stores: the values.
    pub from: [Src; 4],
}

/// `a * b + c` of `f32`, with fused loads and stores.
pub(crate) struct Stream {
    /// The same on registers.
    pub op: &'static dyn LaneOp,
    pub operands: [Operand; 3],
    /// Whether the product and the addend are negated.
    pub negated: [bool; 2],
    pub d: u32,
    /// The fused store of the result, if any.
    pub store: Option<Access>,
}

/// Multiply-adds each of which is an operand of the next one only, computed in one pass.
pub(crate) struct Chain {
    /// In order. A stage writes its register, which the next one reads. The second factor of each
    /// is the same for all lanes.
    pub stages: Vec<Stream>,
    pub end: ChainEnd,
}

/// How the last stage of a [`Chain`] uses the result of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// A product is added to it, as in the stages before.
    Term,
    /// It is multiplied, and something is added.
    Factor,
    /// It is multiplied.
    Scaled,
}

/// An operand of a [`Stream`].
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
    Reduce { op: Reduction, extent: Extent },
    First,
    Lane(Src),
    Xor(Src),
    Up(Src),
    Down(Src),
    QuadLane(Src),
    QuadXor(u8),
}

/// A cooperative matrix multiply-accumulate.
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

/// A side of a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Register of the lanes where the condition holds.
    pub condition: u32,
    /// The condition's number, if it may turn out uniform.
    pub number: Option<u32>,
    /// Masks outside and within.
    pub from: u32,
    pub into: u32,
    /// Whether a nested construct needs that mask even if it is unchanged.
    pub needs_mask: bool,
}

/// An exit from a loop or scope.
pub(crate) struct Exit {
    /// The condition's number, if it may turn out uniform.
    pub number: Option<u32>,
    /// Register of the lanes that do not leave, or with `flip` do.
    pub condition: u32,
    pub flip: u8,
    /// A scalar: if it is equal to `flip`, all leave.
    pub all: Option<u32>,
    /// The masks that they leave.
    pub masks: Box<[u32]>,
    /// Word registers, and the scalars that are written to the lanes that leave.
    pub copies: Box<[(u32, u32)]>,
}

/// A step of the lockstep machine. `to` in jumps is the position of a step.
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
    /// An affine operation; on lanes by `op` if the result is not affine.
    Affine {
        op: AffineOp,
        lanes: &'static dyn LaneOp,
        d: Affine,
        a: AffineSrc,
        b: AffineSrc,
    },
    /// A select between affine values by a scalar.
    AffineSelect {
        condition: u32,
        d: Affine,
        a: AffineSrc,
        b: AffineSrc,
    },
    /// A comparison of affine values; on lanes if it is not uniform.
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
    /// The same along x, where several workgroups are executed together.
    GroupIdAffine(Affine),
    /// Position in the workgroup along an axis.
    LocalId {
        axis: u8,
        d: Affine,
    },
    /// Workgroups along an axis.
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
    /// Elements of the array at the end of a binding.
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
    Stream(Box<Stream>),
    Chain(Box<Chain>),
    Atomic(Box<Atomic>),
    SubgroupExchange {
        ty: Type,
        exchange: SubgroupExchange,
        d: u32,
        value: Src,
    },
    MultiplyAdd(Box<MatrixProduct>),
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
    /// Activates the lanes for which a condition holds; jumps if there are none.
    Split {
        side: Side,
        depth: u32,
        if_empty: u32,
    },
    /// Activates the other lanes; jumps if there are none.
    Else {
        side: Side,
        if_empty: u32,
    },
    /// Activates all remaining lanes of a mask; jumps if there are none.
    Join {
        depth: u32,
        mask: u32,
        if_empty: u32,
    },
    /// Activates a copy of the mask, from which lanes can leave.
    Enter {
        depth: u32,
        into: u32,
    },
    /// Removes the active lanes from masks, and jumps.
    Leave {
        masks: Box<[u32]>,
        to: u32,
    },
    /// Removes lanes from masks; jumps if none is active any more.
    Exit {
        exit: Box<Exit>,
        if_empty: u32,
    },
    /// Jumps back, unless cancellation is requested. Loops that are proven to end check for it as
    /// well: they may run for hours.
    JumpBack {
        to: u32,
    },
    End,
}

/// Why a kernel exceeds a limit of this machine: the resource, and the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The resource, such as `bytes of private memory in an invocation`.
    pub what: String,
    /// Amount that the kernel needs.
    pub needed: u64,
    /// Maximum amount.
    pub limit: u64,
}

impl Code {
    /// Estimates the nanoseconds per workgroup; `None` if they depend on data.
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
