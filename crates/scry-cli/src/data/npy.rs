//! NumPy's .npy files, versions 1 to 3.
//!
//! A file is a magic number, a version, the length of a header, the header, which is a Python
//! dictionary in text, and the values. The format is small enough to be read here: the crates that
//! read it bring a parser generator and a C compiler into the build.

use std::io::{self, Read, Write};

use super::array::{Array, Bytes, Shape};
use super::dtype::Dtype;
use crate::report::Failure;

const MAGIC: &[u8] = b"\x93NUMPY";
/// No header of a plain array comes near this; a longer one is damage.
const LONGEST_HEADER: u32 = 1 << 16;
/// Bytes that are read at first where the size of a file is not known.
const FIRST_PART: usize = 1 << 20;

/// What is wrong with a file; its path is the caller's to add.
pub type Problem = String;

/// Reads an array. `size` is that of the whole file in bytes, where it is known.
pub fn read(mut file: impl Read, size: Option<u64>) -> Result<Array, Problem> {
    let text = header_text(&mut file)?;
    let Header { dtype, big_endian, shape } = Header::parse(&text)?;
    let len = shape.bytes(dtype.size() as u64).map_err(said)?;
    if size.is_some_and(|size| size < len as u64) {
        return Err(cut_short(&shape, dtype));
    }
    let mut bytes = Bytes::zeroed(if size.is_some() { len } else { 0 }).map_err(said)?;
    let read = |file: &mut _, part: &mut [u8]| {
        Read::read_exact(file, part).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => cut_short(&shape, dtype),
            _ => error.to_string(),
        })
    };
    read(&mut file, bytes.as_mut_slice())?;
    // Of what is no plain file the size is not known: memory is taken as values arrive.
    while bytes.len() < len {
        let had = bytes.len();
        bytes.grow(len.min(had.saturating_mul(2).max(FIRST_PART))).map_err(said)?;
        read(&mut file, &mut bytes.as_mut_slice()[had..])?;
    }
    if file.read(&mut [0]).map_err(|error| error.to_string())? != 0 {
        return Err(format!("there is more in the file than the {shape} {dtype} of its header"));
    }
    if big_endian {
        bytes.as_mut_slice().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    Ok(Array { dtype, shape, bytes })
}

/// Writes an array, as version 1.
pub fn write(out: &mut dyn Write, dtype: Dtype, shape: &Shape, bytes: &[u8]) -> io::Result<()> {
    let dims: String = shape.0.iter().map(|dim| format!("{dim}, ")).collect();
    // NumPy itself writes one dimension as `(3,)` and more as `(3, 4)`.
    let dims = match shape.0.len() {
        1 => dims.trim_end(),
        _ => dims.trim_end_matches(", "),
    };
    let code = dtype.npy_code();
    let mut header = format!("{{'descr': '<{code}', 'fortran_order': False, 'shape': ({dims}), }}");
    let unpadded = MAGIC.len() + 2 + 2 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let len = u16::try_from(header.len()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "the array has too many dimensions for .npy")
    })?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(bytes)
}

fn said(failure: Failure) -> Problem {
    match failure {
        Failure::Usage(text) | Failure::Work(text) => text,
        Failure::Unread => String::new(),
    }
}

fn cut_short(shape: &Shape, dtype: Dtype) -> Problem {
    format!("the file is cut short: its header says {shape} {dtype}")
}

fn header_text(file: &mut impl Read) -> Result<String, Problem> {
    let mut start = [0; 8];
    let mut fill = |bytes: &mut [u8]| {
        file.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "it is not a .npy file: it ends within the header".into()
            }
            _ => error.to_string(),
        })
    };
    fill(&mut start)?;
    if !start.starts_with(MAGIC) {
        return Err("it is not a .npy file: the magic number is missing".to_owned());
    }
    let len = match start[6] {
        1 => {
            let mut len = [0; 2];
            fill(&mut len)?;
            u32::from(u16::from_le_bytes(len))
        }
        2 | 3 => {
            let mut len = [0; 4];
            fill(&mut len)?;
            u32::from_le_bytes(len)
        }
        version => {
            return Err(format!("version {version} of .npy is unknown, 1 to 3 are known"));
        }
    };
    if len > LONGEST_HEADER {
        return Err(format!("the header of {len} bytes is not that of an array of numbers"));
    }
    let mut text = vec![0; len as usize];
    fill(&mut text)?;
    String::from_utf8(text).map_err(|_| "the header is not text".to_owned())
}

/// What the header says.
#[derive(Debug, PartialEq)]
struct Header {
    dtype: Dtype,
    big_endian: bool,
    shape: Shape,
}

impl Header {
    fn parse(text: &str) -> Result<Self, Problem> {
        let damaged = || format!("the header is damaged: {}", text.trim());
        let shape = tuple(after_key(text, "shape").ok_or_else(damaged)?).ok_or_else(damaged)?;
        let order = after_key(text, "fortran_order").ok_or_else(damaged)?;
        let fortran = match order {
            _ if order.starts_with("False") => false,
            _ if order.starts_with("True") => true,
            _ => return Err(damaged()),
        };
        // With fewer than two dimensions the orders are the same.
        if fortran && shape.0.len() > 1 {
            return Err("the array is in Fortran order; \
                save `numpy.ascontiguousarray(array)` instead"
                .to_owned());
        }
        let descr = after_key(text, "descr").ok_or_else(damaged)?;
        let Some(code) = quoted(descr) else {
            return Err("the array has named fields; save each field as an array of its own".into());
        };
        let plain = code.trim_start_matches(['<', '>', '=', '|']);
        let dtype = Dtype::from_npy_code(plain).ok_or_else(|| {
            format!(
                "elements of type `{code}` are not supported, {} are; \
                 convert with `array.astype(\"float32\")` or alike",
                Dtype::names()
            )
        })?;
        Ok(Self { dtype, big_endian: code.starts_with('>'), shape })
    }
}

/// The text after `'key':`.
fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let (_, rest) = text.split_once(&format!("{quote}{key}{quote}"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    })
}

/// The string literal at the start of the text.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote).map(|(inner, _)| inner)
}

/// The tuple of integers at the start of the text.
fn tuple(text: &str) -> Option<Shape> {
    let (inner, _) = text.strip_prefix('(')?.split_once(')')?;
    let dims = inner.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    // Python 2 wrote long integers as `3L`.
    dims.map(|dim| dim.trim_end_matches('L').parse().ok()).collect::<Option<_>>().map(Shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn read_bytes(bytes: &[u8]) -> Result<Array, Problem> {
        read(bytes, Some(bytes.len() as u64))
    }

    #[test]
    fn arrays_survive_a_round_trip() {
        for dims in [vec![], vec![6], vec![2, 3], vec![1, 2, 3], vec![0, 4]] {
            let shape = Shape(dims);
            let mut bytes = Bytes::zeroed(shape.bytes(8).unwrap()).unwrap();
            for (i, byte) in bytes.as_mut_slice().iter_mut().enumerate() {
                *byte = i as u8;
            }
            let mut saved = Vec::new();
            write(&mut saved, Dtype::I64, &shape, bytes.as_slice()).unwrap();
            let data = shape.bytes(8).unwrap();
            assert_eq!((saved.len() - data) % 64, 0, "the values are aligned");
            let array = read_bytes(&saved).unwrap();
            assert_eq!((array.dtype, array.shape, array.bytes), (Dtype::I64, shape, bytes));
        }
    }

    #[test]
    fn headers_are_written_as_numpy_writes_them() {
        let header = |dims: &[u64]| {
            let mut out = Vec::new();
            write(&mut out, Dtype::F32, &Shape(dims.to_vec()), &[]).unwrap();
            String::from_utf8_lossy(&out[10..]).trim_end().to_owned()
        };
        let wanted =
            |dims| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {dims}, }}");
        assert_eq!(header(&[]), wanted("()"));
        assert_eq!(header(&[3]), wanted("(3,)"));
        assert_eq!(header(&[3, 4]), wanted("(3, 4)"));
    }

    #[test]
    fn big_endian_values_are_turned_round() {
        let header = "{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }";
        let array = read_bytes(&file(header, &[0, 0, 0, 1, 0, 0, 1, 0])).unwrap();
        assert_eq!(array.bytes.values::<u32>(), [1, 256]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_reason() {
        let header = |descr, order, shape| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        let cases: [(Vec<u8>, &str); 10] = [
            (b"PNG".to_vec(), "not a .npy file"),
            (b"\x93NUMPX\x01\x00\x00\x00".to_vec(), "magic number"),
            (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "4294967295 bytes"),
            (file(&header("'<f4'", "True", "(2, 2)"), &[0; 16]), "ascontiguousarray"),
            (file(&header("'|b1'", "False", "(2,)"), &[0; 2]), "`|b1`"),
            (file(&header("[('a', '<f4')]", "False", "(2,)"), &[0; 8]), "named fields"),
            (file(&header("'<f4'", "False", "(2,)"), &[0; 7]), "cut short"),
            (file(&header("'<f4'", "False", "(2,)"), &[0; 9]), "more in the file"),
            (file("{'descr': '<f4'}", &[]), "damaged"),
        ];
        for (bytes, reason) in cases {
            let problem = read_bytes(&bytes).expect_err(reason);
            assert!(problem.contains(reason), "{problem:?} should name {reason:?}");
        }
        let huge = header("'<f8'", "False", "(18446744073709551615, 8)");
        assert!(read_bytes(&file(&huge, &[])).is_err());
        let large = header("'<f8'", "False", "(1152921504606846976,)");
        assert!(read(&file(&large, &[])[..], None).is_err(), "more than memory holds");
    }

    #[test]
    fn memory_is_taken_as_values_arrive_where_the_size_is_unknown() {
        let header = |count: usize| {
            let shape = format!("({count},)");
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}")
        };
        // More than the memory of any host, and none of it there.
        let problem = read(&file(&header(1 << 48), &[0; 100])[..], None).unwrap_err();
        assert!(problem.contains("cut short"), "{problem}");
        let count = 3 * FIRST_PART / 4 + 5;
        let values: Vec<u8> = (0..4 * count).map(|i| i as u8).collect();
        let array = read(&file(&header(count), &values)[..], None).unwrap();
        assert_eq!(array.bytes.as_slice(), values);
        assert!(read(&file(&header(count), &values[1..])[..], None).is_err());
    }

    #[test]
    fn one_dimension_is_in_both_orders_at_once() {
        let header = "{\"descr\": \"<i4\", \"fortran_order\": True, \"shape\": (1L,), }";
        let array = read_bytes(&file(header, &[7, 0, 0, 0])).unwrap();
        assert_eq!(array.bytes.values::<i32>(), [7]);
    }
}
