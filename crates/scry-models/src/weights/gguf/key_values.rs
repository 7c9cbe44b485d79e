//! The metadata of GGUF files.

use super::super::metadata::{Array, Metadata, Value};
use super::reader::Reader;
use crate::error::Result;

/// The longest key that the format permits, in bytes.
const LONGEST_KEY: u64 = 65_535;
/// The longest string in bytes; chat templates are the longest that occur. A sparse file may be
/// much larger than its data.
const LONGEST: u64 = 64 << 20;
/// The deepest nesting of arrays.
const DEEPEST: u32 = 4;

const DAMAGED: &str = "the file is damaged, or newer than this version supports";

/// Reads keys and values.
pub(super) fn read(reader: &mut Reader<'_>, count: u64, metadata: &mut Metadata) -> Result<()> {
    for _ in 0..count {
        let start = reader.offset();
        let key = reader.string(LONGEST_KEY, "a metadata key")?;
        let value = value(reader, &key)?;
        if !metadata.insert(key.clone(), value) {
            let problem = format!("the metadata key `{key}` occurs twice");
            return Err(reader.error_at(start, problem, DAMAGED));
        }
    }
    Ok(())
}

/// Declares the functions that read a value, and an array, of a type with a number.
macro_rules! types {
    ($($number:literal => $variant:ident($ty:ty),)*) => {
        fn value(reader: &mut Reader<'_>, key: &str) -> Result<Value> {
            let start = reader.offset();
            let what = format!("the value of `{key}`");
            Ok(match reader.u32(&what)? {
                $($number => Value::$variant(
                    reader.array(&what).map(<$ty>::from_le_bytes)?,
                ),)*
                7 => Value::Bool(flag(reader, &what)?),
                8 => Value::String(reader.string(LONGEST, &what)?),
                9 => Value::Array(array(reader, &what, DEEPEST)?),
                other => return Err(unknown(reader, start, other, &what)),
            })
        }

        fn array(reader: &mut Reader<'_>, what: &str, depth: u32) -> Result<Array> {
            let start = reader.offset();
            let ty = reader.u32(what)?;
            let len = reader.u64(what)?;
            let least = match ty {
                $($number => size_of::<$ty>() as u64,)*
                7 => 1,
                8 => 8,
                9 => 12,
                other => return Err(unknown(reader, start, other, what)),
            };
            reader.check_count(start + 4, len, least, &format!("elements of {what}"))?;
            Ok(match ty {
                $($number => Array::$variant(each(reader, len, |reader| {
                    reader.array(what).map(<$ty>::from_le_bytes)
                })?),)*
                7 => Array::Bool(each(reader, len, |reader| flag(reader, what))?),
                8 => Array::String(each(reader, len, |reader| reader.string(LONGEST, what))?),
                _ if depth == 1 => {
                    let problem = format!("arrays in {what} are nested deeper than {DEEPEST}");
                    return Err(reader.error_at(start, problem, DAMAGED));
                }
                _ => Array::Array(each(reader, len, |reader| array(reader, what, depth - 1))?),
            })
        }
    };
}

types! {
    0 => U8(u8),
    1 => I8(i8),
    2 => U16(u16),
    3 => I16(i16),
    4 => U32(u32),
    5 => I32(i32),
    6 => F32(f32),
    10 => U64(u64),
    11 => I64(i64),
    12 => F64(f64),
}

fn each<'s, T>(
    reader: &mut Reader<'s>,
    len: u64,
    mut read: impl FnMut(&mut Reader<'s>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..len).map(|_| read(reader)).collect()
}

fn flag(reader: &mut Reader<'_>, what: &str) -> Result<bool> {
    let start = reader.offset();
    match reader.array(what)? {
        [0u8] => Ok(false),
        [1] => Ok(true),
        [other] => {
            let problem = format!("{what} is {other}, but a bool is 0 or 1");
            Err(reader.error_at(start, problem, DAMAGED))
        }
    }
}

fn unknown(reader: &Reader<'_>, start: u64, ty: u32, what: &str) -> crate::Error {
    let problem = format!("{what} has type {ty}; types are 0 to 12");
    reader.error_at(start, problem, DAMAGED)
}
