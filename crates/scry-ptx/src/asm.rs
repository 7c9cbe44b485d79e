//! PTX instructions, and their formatting as text.

use std::fmt::{self, Write};

use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Maximum length of an opcode in bytes, without a static prefix.
const MAX_OPCODE: usize = 63;

/// An opcode: a name with its qualifiers, such as `ld.global.nc.v4.f32`.
///
/// The text is stored inline: a kernel has thousands of opcodes, and heap allocation would dominate
/// the time of emission.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Opcode {
    /// The text after the prefix, of which the first `len` bytes are in use.
    bytes: [u8; MAX_OPCODE],
    len: u8,
    /// The first part of the text; empty for most opcodes.
    prefix: &'static str,
}

impl Opcode {
    /// Creates an opcode from a name, which may have qualifiers: `bar.sync`.
    ///
    /// # Panics
    /// If it has more than 63 bytes; the methods that add qualifiers panic likewise. See
    /// [`Opcode::long`].
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut opcode = Self::long("");
        opcode.push(name);
        opcode
    }

    /// Creates an opcode whose name may exceed 63 bytes, such as that of a bulk copy. Qualifiers
    /// that are added may have 63 bytes together.
    #[must_use]
    pub fn long(name: &'static str) -> Self {
        Self { bytes: [0; MAX_OPCODE], len: 0, prefix: name }
    }

    fn push(&mut self, text: &str) {
        let start = usize::from(self.len);
        let end = start + text.len();
        self.bytes[start..end].copy_from_slice(text.as_bytes());
        self.len = end as u8;
    }

    /// Creates an opcode from a name and a type: `add.f32`.
    #[inline(never)]
    #[must_use]
    pub fn typed(name: &str, ty: PtxType) -> Self {
        Self::new(name).ty(ty)
    }

    /// Adds a qualifier, given without its dot.
    #[must_use]
    pub fn with(mut self, qualifier: &str) -> Self {
        self.push(".");
        self.push(qualifier);
        self
    }

    /// Adds a qualifier if a condition holds.
    #[must_use]
    pub fn with_if(self, condition: bool, qualifier: &str) -> Self {
        if condition { self.with(qualifier) } else { self }
    }

    /// Adds a state space.
    #[must_use]
    pub fn space(self, space: StateSpace) -> Self {
        self.with(space.name())
    }

    /// Adds a type.
    #[must_use]
    pub fn ty(self, ty: PtxType) -> Self {
        self.with(ty.name())
    }

    /// Returns the text after the static prefix.
    fn suffix(&self) -> &str {
        let text = std::str::from_utf8(&self.bytes[..usize::from(self.len)]);
        text.expect("it was assembled from whole strings")
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix)?;
        f.write_str(self.suffix())
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A branch target, created by [`Body::label`](crate::Body::label).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub(crate) u32);

/// The address of a memory access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The base; `None` if the offset is the whole address.
    pub base: Option<AddressBase>,
    /// Offset in bytes.
    pub offset: i64,
}

/// The base of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressBase {
    /// A register: 64 bits, or 32 in shared memory.
    Reg(Reg),
    /// A variable or a parameter.
    Symbol(String),
}

impl Address {
    /// Creates an address at a byte offset from a register.
    #[must_use]
    pub fn reg(base: Reg, offset: i64) -> Self {
        Self { base: Some(AddressBase::Reg(base)), offset }
    }

    /// Creates an address at a byte offset from a variable or parameter.
    #[must_use]
    pub fn symbol(name: &str, offset: i64) -> Self {
        Self { base: Some(AddressBase::Symbol(name.to_owned())), offset }
    }
}

/// An argument of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// A register or an immediate.
    Operand(Operand),
    /// A memory operand.
    Address(Address),
    /// A tile of a tensor: the address of its tensor map, and coordinates, innermost first.
    TensorTile(Reg, Vec<Operand>),
    /// A vector of registers or immediates.
    Vector(Vec<Operand>),
    /// The destination pair of one instruction, or the second destination alone: `p|q`, `_|q`.
    Pair(Option<Reg>, Reg),
    /// A branch target.
    Label(Label),
    /// A special register, a variable whose address is taken, or `_`.
    Name(String),
}

impl From<Operand> for Arg {
    fn from(operand: Operand) -> Self {
        Self::Operand(operand)
    }
}

impl From<Reg> for Arg {
    fn from(reg: Reg) -> Self {
        Self::Operand(Operand::Reg(reg))
    }
}

impl From<Address> for Arg {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

impl From<Label> for Arg {
    fn from(label: Label) -> Self {
        Self::Label(label)
    }
}

impl From<&str> for Arg {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

/// The guard predicate of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub pred: Reg,
    /// The value of the predicate for which the instruction is executed.
    pub holds: bool,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The guard predicate.
    pub guard: Option<Guard>,
    /// The opcode.
    pub opcode: Opcode,
    /// The arguments, results first.
    pub args: Vec<Arg>,
}

/// A line of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An instruction.
    Instruction(Instruction),
    /// A label.
    Label(Label),
    /// A comment.
    Comment(String),
    /// The line and column of the source that the following lines are from.
    Location(scry_ir::Location),
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.prefix())?;
        write!(f, "{}", self.index)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$L{}", self.0)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Reg(reg) => reg.fmt(f),
            Self::Imm { bits, ty: PtxType::F32 } => write!(f, "0f{bits:08X}"),
            Self::Imm { bits, ty: PtxType::F64 } => write!(f, "0d{bits:016X}"),
            Self::Imm { bits, ty: PtxType::S16 } => write!(f, "{}", bits as i16),
            Self::Imm { bits, ty: PtxType::S32 } => write!(f, "{}", bits as i32),
            Self::Imm { bits, ty: PtxType::S64 } => write!(f, "{}", bits as i64),
            Self::Imm { bits, .. } => write!(f, "{bits}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        match &self.base {
            Some(AddressBase::Reg(reg)) => reg.fmt(f)?,
            Some(AddressBase::Symbol(name)) => f.write_str(name)?,
            None => return write!(f, "{}]", self.offset),
        }
        match self.offset {
            0 => {}
            offset => write!(f, "+{offset}")?,
        }
        f.write_char(']')
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(operand) => operand.fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::TensorTile(map, coordinates) => {
                write!(f, "[{map}, {{")?;
                write_separated(f, coordinates)?;
                f.write_str("}]")
            }
            Self::Vector(operands) => {
                f.write_char('{')?;
                write_separated(f, operands)?;
                f.write_char('}')
            }
            Self::Pair(Some(first), second) => write!(f, "{first}|{second}"),
            Self::Pair(None, second) => write!(f, "_|{second}"),
            Self::Label(label) => label.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Writes items separated by commas.
fn write_separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Guard { pred, holds }) = self.guard {
            write!(f, "@{}{pred} ", if holds { "" } else { "!" })?;
        }
        fmt::Display::fmt(&self.opcode, f)?;
        if !self.args.is_empty() {
            f.write_char(' ')?;
            write_separated(f, &self.args)?;
        }
        f.write_char(';')
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction(inst) => write!(f, "\t{inst}"),
            Self::Label(label) => write!(f, "{label}:"),
            Self::Comment(text) => write!(f, "\t// {text}"),
            Self::Location(at) => write!(f, "\t.loc 1 {} {}", at.line, at.column),
        }
    }
}
