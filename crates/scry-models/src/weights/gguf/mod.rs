//! GGUF: a header, metadata, descriptions of tensors, and their data.

mod key_values;
mod reader;

use std::path::Path;

use scry_tensor::Shape;

use self::reader::Reader;
use super::metadata::Metadata;
use super::source::Source;
use super::stored_type::StoredType;
use super::tensor_info::{Header, TensorInfo, check_overlaps};
use crate::error::Result;

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 4] = *b"GGUF";
/// Most axes that a tensor has.
const MAX_AXES: u32 = 4;
/// The longest name of a tensor, in bytes.
const LONGEST_NAME: u64 = 65_535;
/// Bytes of the shortest description of a tensor.
const MIN_TENSOR_BYTES: u64 = 24;
/// Bytes of the shortest pair of a key and a value.
const MIN_PAIR_BYTES: u64 = 13;

/// Numbers of types that were removed from GGUF.
const REMOVED: [(u32, &str); 8] = [
    (4, "q4_2"),
    (5, "q4_3"),
    (31, "q4_0_4_4"),
    (32, "q4_0_4_8"),
    (33, "q4_0_8_8"),
    (36, "iq4_nl_4_4"),
    (37, "iq4_nl_4_8"),
    (38, "iq4_nl_8_8"),
];

const DAMAGED: &str = "the file is damaged: download it again";

/// Reads all but the data of tensors.
pub(super) fn read_header(call: &'static str, path: &Path, source: &Source) -> Result<Header> {
    let reader = &mut Reader::new(call, path, source);
    let magic = reader.array::<4>("the header")?;
    if magic != MAGIC {
        return Err(reader.error_at(0, "the file does not begin with GGUF", DAMAGED));
    }
    check_version(reader)?;
    let tensors_at = reader.offset();
    let tensors = reader.u64("the number of tensors")?;
    let pairs = reader.u64("the number of metadata keys")?;
    reader.check_count(tensors_at + 8, pairs, MIN_PAIR_BYTES, "metadata keys")?;
    reader.check_count(tensors_at, tensors, MIN_TENSOR_BYTES, "tensors")?;
    let mut metadata = Metadata::new(path);
    key_values::read(reader, pairs, &mut metadata)?;
    check_split(reader, &metadata).map_err(|error| error.for_call(call))?;
    let alignment = alignment(reader, &metadata).map_err(|error| error.for_call(call))?;
    reader.check_count(tensors_at, tensors, MIN_TENSOR_BYTES, "tensors")?;
    let described = (0..tensors).map(|_| tensor(reader)).collect::<Result<Vec<_>>>()?;
    let tensors = place(reader, described, alignment)?;
    Ok(Header { tensors, metadata })
}

fn check_version(reader: &mut Reader<'_>) -> Result<()> {
    let version = reader.u32("the header")?;
    let (problem, help) = match version {
        2 | 3 => return Ok(()),
        1 => ("the file has version 1 of GGUF".to_owned(), "convert it to version 3"),
        _ if matches!(version.swap_bytes(), 1..=0xffff) => {
            let help = "convert it to little-endian, with `gguf-convert-endian`";
            ("the file is big-endian".to_owned(), help)
        }
        _ => {
            let help = "use a newer version of this crate, or an older file";
            (format!("the file has version {version} of GGUF; 2 and 3 are supported"), help)
        }
    };
    Err(reader.error_at(4, problem, help))
}

/// Rejects one of several files of a model, which lacks the tensors of the others.
fn check_split(reader: &Reader<'_>, metadata: &Metadata) -> Result<()> {
    let count = metadata.find::<u64>("split.count")?.unwrap_or(1);
    if count <= 1 {
        return Ok(());
    }
    let problem = format!("the file is one of {count} parts of a model");
    let help = "merge the parts to one file, with `llama-gguf-split --merge`";
    Err(reader.error_at(reader.offset(), problem, help))
}

/// Returns the alignment of data.
fn alignment(reader: &Reader<'_>, metadata: &Metadata) -> Result<u64> {
    const KEY: &str = "general.alignment";
    let alignment = metadata.find::<u64>(KEY)?.unwrap_or(32);
    if alignment.is_power_of_two() && alignment >= 8 {
        return Ok(alignment);
    }
    let problem = format!("`{KEY}` is {alignment}, not a power of two of at least 8");
    Err(reader.error_at(reader.offset(), problem, DAMAGED))
}

/// A tensor as it is described, with the position of its description.
struct Described {
    info: TensorInfo,
    at: u64,
}

/// Reads the description of a tensor. Its offset is relative to the data.
fn tensor(reader: &mut Reader<'_>) -> Result<Described> {
    let at = reader.offset();
    let name = reader.string(LONGEST_NAME, "the name of a tensor")?;
    let what = format!("the description of `{name}`");
    let axes_at = reader.offset();
    let axes = reader.u32(&what)?;
    if axes > MAX_AXES {
        let problem = format!("the tensor has {axes} axes; the limit is {MAX_AXES}");
        return Err(reader.error_at(axes_at, problem, DAMAGED).of_tensor(&name));
    }
    let sizes_at = reader.offset();
    let mut sizes = (0..axes).map(|_| reader.u64(&what)).collect::<Result<Vec<u64>>>()?;
    // The first size is that of rows, whose elements are adjacent.
    sizes.reverse();
    let stored = stored_type(reader, &what, &name)?;
    let offset = reader.u64(&what)?;
    let count = sizes.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
    let row = sizes.last().copied().unwrap_or(1);
    let bytes = count
        .filter(|_| row.is_multiple_of(stored.block_len() as u64))
        .and_then(|count| stored.bytes_of(count))
        .filter(|bytes| usize::try_from(*bytes).is_ok());
    let Some(bytes) = bytes else {
        let problem = match row.is_multiple_of(stored.block_len() as u64) {
            true => format!("sizes {sizes:?} of type {stored} overflow"),
            false => format!(
                "rows of {row} elements are not whole blocks of {} of type {stored}",
                stored.block_len()
            ),
        };
        return Err(reader.error_at(sizes_at, problem, DAMAGED).of_tensor(&name));
    };
    let shape = Shape::from(sizes.iter().map(|size| *size as usize).collect::<Vec<_>>());
    Ok(Described { info: TensorInfo { name, shape, stored, file: 0, offset, bytes }, at })
}

fn stored_type(reader: &mut Reader<'_>, what: &str, name: &str) -> Result<StoredType> {
    let at = reader.offset();
    let number = reader.u32(what)?;
    StoredType::of_gguf(number).ok_or_else(|| {
        let removed = REMOVED.iter().find(|(other, _)| *other == number);
        let (problem, help) = match removed {
            Some((_, removed)) => {
                let help = "quantise the model again, with current tools";
                (format!("the type {removed} was removed from GGUF"), help)
            }
            None => {
                let help = "the file is damaged, or newer than this version supports";
                (format!("{number} is not the number of a type"), help)
            }
        };
        reader.error_at(at, problem, help).of_tensor(name)
    })
}

/// Adds the start of the data to offsets, and checks that tensors are in the file and apart.
fn place(
    reader: &Reader<'_>,
    described: Vec<Described>,
    alignment: u64,
) -> Result<Vec<TensorInfo>> {
    let start = reader.offset().checked_next_multiple_of(alignment);
    let len = reader.offset() + reader.remaining();
    let mut tensors = Vec::with_capacity(described.len());
    for Described { mut info, at } in described {
        if !info.offset.is_multiple_of(alignment) {
            let problem = format!(
                "the data begins at {}, which is not a multiple of the alignment {alignment}",
                info.offset
            );
            return Err(reader.error_at(at, problem, DAMAGED).of_tensor(&info.name));
        }
        let from = start.and_then(|start| start.checked_add(info.offset));
        let end = from.and_then(|from| from.checked_add(info.bytes));
        let (Some(from), Some(_)) = (from, end.filter(|end| *end <= len)) else {
            let problem = format!(
                "{} bytes at {} of the data exceed the file of {len} bytes",
                info.bytes, info.offset
            );
            let help = "the file is truncated: download it again";
            return Err(reader.error_at(at, problem, help).of_tensor(&info.name));
        };
        info.offset = from;
        tensors.push(info);
    }
    check_overlaps(&tensors).map_err(|(first, second)| {
        let (offset, second) = (tensors[second].offset, &tensors[second].name);
        let problem = format!("the data overlaps that of `{}`", tensors[first].name);
        reader.error_at(offset, problem, DAMAGED).of_tensor(second)
    })?;
    Ok(tensors)
}
