//! The executable form of a kernel: registers and variables by index.

use scry_test_support::alu::Alu;

/// A register, by its index among those of all classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reg(pub usize);

/// An operand.
#[derive(Debug, Clone, Copy)]
pub enum Operand {
    Reg(Reg),
    Bits(u64),
}

/// State spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    Local,
    Param,
}

impl Space {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "global" => Self::Global,
            "shared" => Self::Shared,
            "local" => Self::Local,
            "param" => Self::Param,
            _ => return None,
        })
    }
}

/// A variable that the kernel declares, or a parameter.
#[derive(Debug, Clone)]
pub struct Memory {
    pub space: Space,
    pub name: String,
    pub address: u64,
    pub bytes: u32,
}

/// Special registers.
#[derive(Debug, Clone, Copy)]
pub enum Special {
    /// Position of the thread in its block, on an axis.
    Thread(usize),
    /// Position of the block in the grid, on an axis.
    Block(usize),
    /// Blocks of the grid, on an axis.
    Blocks(usize),
    Lane,
    /// The mask of the lanes below this one.
    LanesBelow,
    /// The mask of the lanes up to this one, inclusive.
    LanesUpTo,
    Clock,
    /// The device's time in nanoseconds.
    GlobalTimer,
    /// The slot of the warp on its multiprocessor.
    Warp,
    Multiprocessor,
}

impl Special {
    pub fn parse(name: &str) -> Option<Self> {
        let axis = |name: &str, register| match name.strip_prefix(register) {
            Some(".x") => Some(0),
            Some(".y") => Some(1),
            Some(".z") => Some(2),
            _ => None,
        };
        match name {
            "%laneid" => return Some(Self::Lane),
            "%lanemask_lt" => return Some(Self::LanesBelow),
            "%lanemask_le" => return Some(Self::LanesUpTo),
            "%clock" => return Some(Self::Clock),
            "%globaltimer" => return Some(Self::GlobalTimer),
            "%warpid" => return Some(Self::Warp),
            "%smid" => return Some(Self::Multiprocessor),
            _ => {}
        }
        axis(name, "%tid")
            .map(Self::Thread)
            .or_else(|| axis(name, "%ctaid").map(Self::Block))
            .or_else(|| axis(name, "%nctaid").map(Self::Blocks))
    }
}

/// The address of an access.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    pub base: Operand,
    pub offset: i64,
}

/// Atomic operations.
#[derive(Debug, Clone, Copy)]
pub enum Atomic {
    Alu(Alu),
    Exchange,
    CompareExchange,
}

/// The source lane of a shuffle.
#[derive(Debug, Clone, Copy)]
pub enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// Operations.
#[derive(Debug, Clone)]
pub enum Op {
    Alu {
        alu: Alu,
        to: Reg,
        from: [Operand; 3],
        count: usize,
    },
    Special(Reg, Special),
    /// Combines registers into a larger one, the lowest bits first.
    Pack(Reg, Vec<Reg>),
    /// Splits a register into smaller ones, the lowest bits first.
    Unpack(Vec<Reg>, Reg),
    Load {
        space: Space,
        constant: bool,
        bytes: u32,
        to: Vec<Reg>,
        address: Address,
    },
    Store {
        space: Space,
        bytes: u32,
        values: Vec<Operand>,
        address: Address,
    },
    Atomic {
        op: Atomic,
        space: Space,
        bytes: u32,
        to: Option<Reg>,
        from: [Operand; 2],
        address: Address,
    },
    /// Jumps to an instruction, by its index.
    Branch(usize),
    Return,
    /// What changes only when instructions are executed: prefetches, and `griddepcontrol`, since
    /// launches are executed one after the other.
    Hint,
    Barrier,
    WarpBarrier(Operand),
    ActiveMask(Reg),
    Ballot {
        to: Reg,
        pred: Reg,
        mask: Operand,
    },
    Reduce {
        alu: Alu,
        to: Reg,
        value: Reg,
        mask: Operand,
    },
    Shuffle {
        mode: Shuffle,
        to: Reg,
        in_range: Option<Reg>,
        value: Reg,
        by: Operand,
        bounds: Operand,
        mask: Operand,
    },
    /// `ldmatrix`: one 8 × 8 matrix of 16-bit elements for each register.
    LoadMatrix {
        transposed: bool,
        to: Vec<Reg>,
        address: Address,
    },
    /// `mma`: matrices of 16-bit floats, with accumulators of 16 or 32 bits.
    Multiply {
        k_dim: usize,
        is_f16: bool,
        d: Vec<Reg>,
        abc: [Vec<Reg>; 3],
    },
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    /// The predicate, and the value for which the instruction is executed.
    pub guard: Option<(Reg, bool)>,
    pub op: Op,
    /// Its line in the text, from 0.
    pub line: usize,
}

/// A kernel.
#[derive(Debug, Default)]
pub struct Module {
    /// Bits of each register.
    pub registers: Vec<u32>,
    pub variables: Vec<Memory>,
    /// Threads of a block.
    pub block: [u32; 3],
    pub code: Vec<Inst>,
}
