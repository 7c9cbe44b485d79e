//! Prints kernels as text, one statement per line, for golden files and error messages.
//!
//! ```text
//! kernel double [64, 1, 1]
//! buffer binding0: read_write f32 data
//! var v0: u32
//!
//! %0: u32 = group_id.x
//! v0 = %0
//! %1: bool = lt %0, %0
//! if %1 {
//!     %2, %3: f32 = load binding0[%0 * 16 + 8]
//!     store binding0[%0 * 16] = %2, %3
//! }
//! ```

use std::fmt::{self, Display, Formatter};

use super::{
    AddressSpace, Barrier, Block, Builtin, Const, FragmentPlace, Inst, Kir, Label, MatrixPlace,
    Place, ShuffleSource, Stmt, SubgroupOp, Type, Value,
};

impl Display for Kir {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.print(false, f)
    }
}

/// A kernel that is printed with source locations.
struct WithPositions<'a>(&'a Kir);

impl Display for WithPositions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.print(true, f)
    }
}

impl Kir {
    /// Returns the kernel for printing with source locations: `%2: f32 = add %0, %1 @12:5` is from
    /// line 12, column 5.
    #[must_use]
    pub fn with_positions(&self) -> impl Display {
        WithPositions(self)
    }

    fn print(&self, positions: bool, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} {:?}", self.name, self.workgroup_size)?;
        if let (true, Some(name)) = (positions, &self.source.name) {
            // One line, whatever the name contains.
            writeln!(f, "source {}", name.replace(char::is_control, "?"))?;
        }
        for (nth, buffer) in self.buffers.iter().enumerate() {
            let access = if buffer.writable { "read_write" } else { "read" };
            write!(f, "buffer binding{nth}: {access} {}", buffer.element)?;
            if buffer.name != format!("binding{nth}") {
                write!(f, " {}", buffer.name)?;
            }
            if buffer.min_size > 0 {
                write!(f, ", at least {} bytes", buffer.min_size)?;
            }
            writeln!(f)?;
        }
        if self.immediates > 0 {
            writeln!(f, "immediate: {} bytes", self.immediates)?;
        }
        for (nth, array) in self.workgroup.iter().enumerate() {
            writeln!(f, "workgroup{nth}: {} * {}", array.len, array.ty)?;
        }
        for (nth, array) in self.locals.iter().enumerate() {
            writeln!(f, "local{nth}: {} * {}", array.len, array.ty)?;
        }
        for (nth, ty) in self.vars.iter().enumerate() {
            writeln!(f, "var v{nth}: {ty}")?;
        }
        if self.storage_barriers {
            writeln!(f, "barriers order storage")?;
        }
        writeln!(f)?;
        self.print_block(&self.body, 0, positions, f)
    }

    fn print_block(
        &self,
        block: &Block,
        depth: usize,
        positions: bool,
        f: &mut Formatter<'_>,
    ) -> fmt::Result {
        let indent = depth * 4;
        for stmt in block {
            write!(f, "{:indent$}{}", "", Line { kir: self, stmt })?;
            if let (true, Some(at)) = (positions, self.position(stmt)) {
                write!(f, " @{}:{}", at.line, at.column)?;
            }
            let mut blocks = stmt.blocks();
            if let Some(first) = blocks.next() {
                writeln!(f, " {{")?;
                self.print_block(first, depth + 1, positions, f)?;
                write!(f, "{:indent$}}}", "")?;
            }
            if let Some(second) = blocks.next().filter(|second| !second.is_empty()) {
                writeln!(f, " else {{")?;
                self.print_block(second, depth + 1, positions, f)?;
                write!(f, "{:indent$}}}", "")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn print_let(&self, value: Value, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(definition) = self.values.get(value.index()) else {
            return write!(f, "{value} = ?");
        };
        write!(f, "{value}")?;
        let results = definition.inst.results();
        (1..results).try_for_each(|nth| write!(f, ", {}", Value(value.0 + nth)))?;
        write!(f, ": {} = {}", definition.ty, definition.inst)
    }
}

/// The first line of a statement, without the opening brace of its block. Invalid statements can be
/// printed too.
pub(super) struct Line<'a> {
    pub(super) kir: &'a Kir,
    pub(super) stmt: &'a Stmt,
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.stmt {
            Stmt::Let(value) => self.kir.print_let(*value, f),
            Stmt::Set(var, value) => write!(f, "{var} = {value}"),
            Stmt::Store { place, values, .. } => {
                write!(f, "store {place} = ")?;
                list(values, f)
            }
            Stmt::MatrixStore { place, value, .. } => write!(f, "matrix_store {place} = {value}"),
            Stmt::If { condition, .. } => write!(f, "if {condition}"),
            Stmt::Loop { label, finite: true, .. } => write!(f, "{label}: finite loop"),
            Stmt::Loop { label, .. } => write!(f, "{label}: loop"),
            Stmt::Scope { label, .. } => write!(f, "{label}: scope"),
            Stmt::Break(Label::KERNEL) => f.write_str("break kernel"),
            Stmt::Break(label) => write!(f, "break {label}"),
            Stmt::Barrier(Barrier::Workgroup, _) => f.write_str("barrier workgroup"),
            Stmt::Barrier(Barrier::Subgroup, _) => f.write_str("barrier subgroup"),
        }
    }
}

fn list(values: &[Value], f: &mut Formatter<'_>) -> fmt::Result {
    for (nth, value) in values.iter().enumerate() {
        write!(f, "{}{value}", if nth == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(constant) => write!(f, "{constant}"),
            Self::Builtin(builtin) => write!(f, "{builtin}"),
            Self::Unary(op, a) => write!(f, "{} {a}", Snake(op)),
            Self::Binary(op, a, b) => write!(f, "{} {a}, {b}", Snake(op)),
            Self::Fma(a, b, c) => write!(f, "fma {a}, {b}, {c}"),
            Self::Select(condition, a, b) => write!(f, "select {condition}, {a}, {b}"),
            Self::Convert(a) => write!(f, "convert {a}"),
            Self::Bitcast(a) => write!(f, "bitcast {a}"),
            Self::ArrayLength { binding, offset, stride } => {
                write!(f, "array_length binding{binding} from {offset} by {stride}")
            }
            Self::Get(var) => write!(f, "{var}"),
            Self::Load { place, .. } => write!(f, "load {place}"),
            Self::WorkgroupUniformLoad { place, .. } => write!(f, "workgroup_uniform_load {place}"),
            Self::Extra(first, nth) => write!(f, "extra {nth} of {first}"),
            Self::Atomic { op, place, value, compare } => {
                write!(f, "atomic {} {place}", Snake(op))?;
                value.iter().chain(compare).try_for_each(|operand| write!(f, ", {operand}"))
            }
            Self::Subgroup(op) => write!(f, "subgroup {op}"),
            Self::MatrixFill(value) => write!(f, "matrix_fill {value}"),
            Self::MatrixLoad(place) => write!(f, "matrix_load {place}"),
            Self::LoadFragment(from) => write!(f, "load_fragment {from}"),
            Self::MultiplyAdd(a, b, c) => write!(f, "multiply_add {a}, {b}, {c}"),
            Self::MultiplyFragments { a, b, c } => {
                f.write_str("multiply_fragments ")?;
                list(a, f)?;
                f.write_str(" by ")?;
                list(b, f)?;
                f.write_str(" to ")?;
                list(c, f)
            }
        }
    }
}

impl Display for SubgroupOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ballot { value, word } => write!(f, "ballot {value} word {word}"),
            Self::Reduce { op, group, value } => {
                write!(f, "{} {} {value}", Snake(op), Snake(group))
            }
            Self::Shuffle { source, value } => write!(f, "shuffle {value} from {source}"),
        }
    }
}

impl Display for ShuffleSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Lane(by) => write!(f, "lane {by}"),
            Self::Xor(by) => write!(f, "xor {by}"),
            Self::Up(by) => write!(f, "up {by}"),
            Self::Down(by) => write!(f, "down {by}"),
            Self::QuadLane(by) => write!(f, "quad_lane {by}"),
            Self::QuadXor(by) => write!(f, "quad_xor {by}"),
        }
    }
}

impl Display for Builtin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, axis) = match self {
            Self::LocalId(axis) => ("local_id", axis),
            Self::GroupId(axis) => ("group_id", axis),
            Self::GroupCount(axis) => ("group_count", axis),
            Self::SubgroupSize | Self::SubgroupLane | Self::SubgroupId | Self::SubgroupCount => {
                return write!(f, "{}", Snake(self));
            }
        };
        match ["x", "y", "z"].get(usize::from(*axis)) {
            Some(axis) => write!(f, "{name}.{axis}"),
            None => write!(f, "{name}.{axis}"),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.space)?;
        match self.index {
            None => write!(f, "{}]", self.offset),
            Some(index) if self.offset == 0 => write!(f, "{index} * {}]", self.stride),
            Some(index) => write!(f, "{index} * {} + {}]", self.stride, self.offset),
        }
    }
}

impl Display for MatrixPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { array, len, index, stride, row_major } = self;
        write!(f, "{array} from {index} {} {stride}", line_name(*row_major))?;
        len.iter().try_for_each(|len| write!(f, " below {len}"))
    }
}

impl Display for FragmentPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { matrix, place, stride, row_major } = self;
        write!(f, "{matrix} {place} {} {stride}", line_name(*row_major))
    }
}

const fn line_name(row_major: bool) -> &'static str {
    if row_major { "rows" } else { "columns" }
}

impl Display for AddressSpace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(nth) => write!(f, "binding{nth}"),
            Self::Immediate => f.write_str("immediate"),
            Self::Workgroup(nth) => write!(f, "workgroup{nth}"),
            Self::Local(nth) => write!(f, "local{nth}"),
        }
    }
}

impl Display for Const {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.ty {
            Type::Bool => write!(f, "{}", self.bits != 0),
            Type::F16 => float(f16_to_f32(self.bits), self.bits, f),
            Type::F32 => float(f32::from_bits(self.bits as u32), self.bits, f),
            Type::F64 => float(f64::from_bits(self.bits), self.bits, f),
            Type::U64 => write!(f, "{}", self.bits),
            _ => write!(f, "{}", self.as_i64()),
        }
    }
}

/// Prints the shortest decimal that parses to the same value; for NaN, the bits.
fn float<T: fmt::Debug + Copy + Into<f64>>(
    value: T,
    bits: u64,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if value.into().is_nan() { write!(f, "nan {bits:#x}") } else { write!(f, "{value:?}") }
}

/// Converts the bits of an `f16` to its value.
pub(super) fn f16_to_f32(bits: u64) -> f32 {
    let sign = if bits >> 15 & 1 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f32);
    sign * match (exponent, fraction) {
        (31, 0.0) => f32::INFINITY,
        (31, _) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-24),
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// The name of a variant without fields, in snake case.
pub(super) struct Snake<'a, T>(pub(super) &'a T);

impl<T: fmt::Debug> Display for Snake<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (nth, c) in format!("{:?}", self.0).chars().enumerate() {
            if c.is_uppercase() && nth > 0 {
                f.write_str("_")?;
            }
            write!(f, "{}", c.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
