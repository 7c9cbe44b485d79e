//! Parses instructions and constants.

use std::str::FromStr;

use super::cursor::{Cursor, ParseResult};
use crate::kir::{
    AtomicOp, BinaryOp, Builtin, Const, GroupOperation, Inst, Reduction, ShuffleSource, SubgroupOp,
    Type, UnaryOp,
};

/// Parses the instruction that computes `results` values of a type.
pub(super) fn instruction(cursor: &mut Cursor<'_>, ty: Type, results: usize) -> ParseResult<Inst> {
    if let Some(constant) = constant(cursor, ty)? {
        return Ok(Inst::Const(constant));
    }
    if cursor.0.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        return cursor.var().map(Inst::Get);
    }
    let line = cursor.0;
    let name = cursor.word();
    if let Some(builtin) = builtin(name, cursor)? {
        return Ok(Inst::Builtin(builtin));
    }
    if !cursor.eat(" ") {
        return Err(format!("`{line}` is not an instruction"));
    }
    match name {
        "fma" => cursor.array().map(|[a, b, c]| Inst::Fma(a, b, c)),
        "select" => cursor.array().map(|[condition, a, b]| Inst::Select(condition, a, b)),
        "convert" => cursor.value().map(Inst::Convert),
        "bitcast" => cursor.value().map(Inst::Bitcast),
        "array_length" => array_length(cursor),
        "load" => Ok(Inst::Load { place: cursor.place()?, count: to_u8(results)? }),
        "workgroup_uniform_load" => {
            Ok(Inst::WorkgroupUniformLoad { place: cursor.place()?, count: to_u8(results)? })
        }
        "atomic" => atomic(cursor),
        "subgroup" => subgroup(cursor).map(Inst::Subgroup),
        "matrix_fill" => cursor.value().map(Inst::MatrixFill),
        "matrix_load" => cursor.matrix_place().map(Inst::MatrixLoad),
        "load_fragment" => cursor.fragment_place().map(Inst::LoadFragment),
        "multiply_add" => cursor.array().map(|[a, b, c]| Inst::MultiplyAdd(a, b, c)),
        "multiply_fragments" => multiply_fragments(cursor),
        _ => operation(name, cursor, line),
    }
}

fn to_u8(results: usize) -> ParseResult<u8> {
    results.try_into().map_err(|_| format!("{results} values are more than an instruction has"))
}

fn operation(name: &str, cursor: &mut Cursor<'_>, line: &str) -> ParseResult<Inst> {
    if let Some(op) = find_op(UnaryOp::ALL, name) {
        cursor.value().map(|a| Inst::Unary(op, a))
    } else if let Some(op) = find_op(BinaryOp::ALL, name) {
        cursor.array().map(|[a, b]| Inst::Binary(op, a, b))
    } else {
        Err(format!("`{line}` is not an instruction"))
    }
}

/// Returns the operation that is printed as `name`.
fn find_op<T: Copy + std::fmt::Debug>(all: &[T], name: &str) -> Option<T> {
    all.iter().copied().find(|op| crate::kir::print::Snake(op).to_string() == name)
}

/// Reads the name of one of the operations `all`.
fn expect_op<T: Copy + std::fmt::Debug>(all: &[T], cursor: &mut Cursor<'_>) -> ParseResult<T> {
    let name = cursor.word();
    find_op(all, name).ok_or_else(|| format!("`{name}` is not an operation here"))
}

fn builtin(name: &str, cursor: &mut Cursor<'_>) -> ParseResult<Option<Builtin>> {
    let axis = match name {
        "subgroup_size" => return Ok(Some(Builtin::SubgroupSize)),
        "subgroup_lane" => return Ok(Some(Builtin::SubgroupLane)),
        "subgroup_id" => return Ok(Some(Builtin::SubgroupId)),
        "subgroup_count" => return Ok(Some(Builtin::SubgroupCount)),
        "local_id" => Builtin::LocalId,
        "group_id" => Builtin::GroupId,
        "group_count" => Builtin::GroupCount,
        _ => return Ok(None),
    };
    cursor.expect(".")?;
    match cursor.word() {
        "x" => Ok(Some(axis(0))),
        "y" => Ok(Some(axis(1))),
        "z" => Ok(Some(axis(2))),
        other => Err(format!("`{other}` is not an axis")),
    }
}

fn array_length(cursor: &mut Cursor<'_>) -> ParseResult<Inst> {
    cursor.expect("binding")?;
    let binding = cursor.number()?;
    cursor.expect(" from ")?;
    let offset = cursor.number()?;
    cursor.expect(" by ")?;
    Ok(Inst::ArrayLength { binding, offset, stride: cursor.number()? })
}

fn atomic(cursor: &mut Cursor<'_>) -> ParseResult<Inst> {
    let op = expect_op(AtomicOp::ALL, cursor)?;
    cursor.expect(" ")?;
    let place = cursor.place()?;
    let mut operand = || cursor.eat(", ").then(|| cursor.value()).transpose();
    Ok(Inst::Atomic { op, place, value: operand()?, compare: operand()? })
}

fn subgroup(cursor: &mut Cursor<'_>) -> ParseResult<SubgroupOp> {
    if cursor.eat("ballot ") {
        let value = cursor.value()?;
        cursor.expect(" word ")?;
        return Ok(SubgroupOp::Ballot { value, word: cursor.number()? });
    }
    if cursor.eat("shuffle ") {
        let value = cursor.value()?;
        cursor.expect(" from ")?;
        return Ok(SubgroupOp::Shuffle { source: shuffle_source(cursor)?, value });
    }
    let op = expect_op(Reduction::ALL, cursor)?;
    cursor.expect(" ")?;
    let group = expect_op(GroupOperation::ALL, cursor)?;
    cursor.expect(" ")?;
    Ok(SubgroupOp::Reduce { op, group, value: cursor.value()? })
}

fn shuffle_source(cursor: &mut Cursor<'_>) -> ParseResult<ShuffleSource> {
    let name = cursor.word();
    if name == "first" {
        return Ok(ShuffleSource::First);
    }
    cursor.expect(" ")?;
    match name {
        "lane" => cursor.value().map(ShuffleSource::Lane),
        "xor" => cursor.value().map(ShuffleSource::Xor),
        "up" => cursor.value().map(ShuffleSource::Up),
        "down" => cursor.value().map(ShuffleSource::Down),
        "quad_lane" => cursor.value().map(ShuffleSource::QuadLane),
        "quad_xor" => cursor.number().map(ShuffleSource::QuadXor),
        _ => Err(format!("`{name}` is not the source of a shuffle")),
    }
}

fn multiply_fragments(cursor: &mut Cursor<'_>) -> ParseResult<Inst> {
    let a = cursor.array()?;
    cursor.expect(" by ")?;
    let b = cursor.array()?;
    cursor.expect(" to ")?;
    Ok(Inst::MultiplyFragments { a, b, c: cursor.array()? })
}

/// Parses a constant; `None` if the text is not one.
fn constant(cursor: &mut Cursor<'_>, ty: Type) -> ParseResult<Option<Const>> {
    if cursor.eat("nan 0x") {
        let digits = cursor.word();
        let bits = u64::from_str_radix(digits, 16).ok().filter(|bits| is_nan(ty, *bits));
        let bits = bits.ok_or_else(|| format!("0x{digits} is not the bits of a NaN of {ty}"))?;
        return Ok(Some(Const { ty, bits }));
    }
    let starts_number = |c: char| c == '-' || c.is_ascii_digit();
    let is_constant =
        cursor.0.starts_with(starts_number) || matches!(cursor.0, "true" | "false" | "inf");
    if !is_constant {
        return Ok(None);
    }
    let token = cursor.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+'));
    let bits = match ty {
        Type::Bool => token.parse::<bool>().ok().map(u64::from),
        Type::F16 => token.parse().ok().and_then(f16_bits),
        Type::F32 => token.parse::<f32>().ok().map(|value| value.to_bits().into()),
        Type::F64 => token.parse::<f64>().ok().map(f64::to_bits),
        Type::I16 => integer::<i16>(token, ty),
        Type::U16 => integer::<u16>(token, ty),
        Type::I32 => integer::<i32>(token, ty),
        Type::U32 => integer::<u32>(token, ty),
        Type::I64 => integer::<i64>(token, ty),
        Type::U64 => token.parse().ok(),
        Type::Matrix(_) => None,
    };
    let bits = bits.ok_or_else(|| format!("`{token}` is not a constant of {ty}"))?;
    Ok(Some(Const { ty, bits }))
}

fn integer<T: FromStr + Into<i64>>(token: &str, ty: Type) -> Option<u64> {
    token.parse::<T>().ok().map(|value| Const::int(ty, value.into()).bits)
}

fn is_nan(ty: Type, bits: u64) -> bool {
    let (mantissa_bits, width) = match ty {
        Type::F16 => (10, 16),
        Type::F32 => (23, 32),
        Type::F64 => (52, 64),
        _ => return false,
    };
    // The bits of infinity: all exponent bits are set. Without the sign, the bits of a NaN are
    // greater.
    let infinity = (u64::MAX >> (64 - (width - 1))) >> mantissa_bits << mantissa_bits;
    bits & (u64::MAX >> (64 - (width - 1))) > infinity && bits <= u64::MAX >> (64 - width)
}

/// Returns the bits of the `f16` that equals a value; `None` if there is none.
fn f16_bits(value: f32) -> Option<u64> {
    (0..=u64::from(u16::MAX)).find(|bits| {
        let f16 = crate::kir::print::f16_to_f32(*bits);
        f16 == value && f16.is_sign_negative() == value.is_sign_negative()
    })
}
