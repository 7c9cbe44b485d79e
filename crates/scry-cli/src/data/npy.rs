//! NumPy's .npy files, versions 1 to 3.
//!
//! A file is a magic number, a version, the length of a header, the header, which is a Python
//! dictionary in text, and the values. npyz is not used, since it multiplies the lengths of
//! dimensions without overflow checks, and converts values one by one.

use std::io::{self, Read, Write};

use py_literal::Value as Python;

use super::array::{Array, Bytes, Shape};
use super::dtype::{Dtype, Value, Visitor};
use crate::report::Failure;

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy's own limit, in bytes.
const MAX_HEADER_BYTES: u32 = 10_000;
/// Maximum number of brackets in a header, since the parser may recurse at each. An array of
/// numbers has two: the dictionary's and the shape's.
const MAX_BRACKETS: usize = 200;
/// NumPy's own limit.
const MAX_DIMENSIONS: usize = 64;
/// Bytes of the first read if the size of a file is unknown.
const FIRST_READ: usize = 1 << 20;

/// The description of a file's problem, to which the caller adds the path.
pub type Problem = String;

/// Reads an array. `size` is that of the whole file in bytes, if known.
pub fn read(mut file: impl Read, size: Option<u64>) -> Result<Array, Problem> {
    let text = header_text(&mut file)?;
    let Header { dtype, big_endian, fortran, shape } = Header::parse(&text)?;
    let len = shape.bytes(dtype.size() as u64).map_err(Failure::into_text)?;
    if size.is_some_and(|size| size < len as u64) {
        return Err(truncated(&shape, dtype));
    }
    let mut bytes =
        Bytes::zeroed(if size.is_some() { len } else { 0 }).map_err(Failure::into_text)?;
    let read = |file: &mut _, part: &mut [u8]| {
        Read::read_exact(file, part).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => truncated(&shape, dtype),
            _ => error.to_string(),
        })
    };
    read(&mut file, bytes.as_mut_slice())?;
    // The size of a stream is unknown: memory is allocated as values arrive.
    while bytes.len() < len {
        let old_len = bytes.len();
        bytes
            .grow(len.min(old_len.saturating_mul(2).max(FIRST_READ)))
            .map_err(Failure::into_text)?;
        read(&mut file, &mut bytes.as_mut_slice()[old_len..])?;
    }
    if file.read(&mut [0]).map_err(|error| error.to_string())? != 0 {
        return Err(format!("the file has more data than the {shape} {dtype} of its header"));
    }
    if big_endian {
        bytes.as_mut_slice().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if fortran {
        bytes =
            dtype.visit(Transpose { from: &bytes, shape: &shape }).map_err(Failure::into_text)?;
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
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}");
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

/// Copies values from column-major ("Fortran") to row-major ("C") order.
struct Transpose<'a> {
    from: &'a Bytes,
    shape: &'a Shape,
}

impl Visitor for Transpose<'_> {
    type Output = Result<Bytes, Failure>;

    fn visit<T: Value>(self) -> Self::Output {
        let mut to = Bytes::zeroed(self.from.len())?;
        let from = self.from.values::<T>();
        // Dimensions of length 1 do not affect the order.
        let dims: Vec<usize> =
            self.shape.0.iter().map(|dim| *dim as usize).filter(|dim| *dim != 1).collect();
        let strides: Vec<usize> = dims
            .iter()
            .scan(1, |stride, dim| Some(std::mem::replace(stride, *stride * dim)))
            .collect();
        let mut index = vec![0; dims.len()];
        let mut at = 0;
        for out in to.values_mut::<T>() {
            *out = from[at];
            for axis in (0..dims.len()).rev() {
                index[axis] += 1;
                at += strides[axis];
                if index[axis] < dims[axis] {
                    break;
                }
                at -= strides[axis] * dims[axis];
                index[axis] = 0;
            }
        }
        Ok(to)
    }
}

fn truncated(shape: &Shape, dtype: Dtype) -> Problem {
    format!("the file is truncated: its header declares {shape} {dtype}")
}

/// Reads the text of the header; its length is checked first.
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
    let width = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => {
            return Err(format!("version {version} of .npy is not supported, only 1 to 3 are"));
        }
    };
    let mut len = [0; 4];
    fill(&mut len[..width])?;
    let len = u32::from_le_bytes(len);
    if len > MAX_HEADER_BYTES {
        return Err(format!(
            "the header of {len} bytes exceeds NumPy's limit of {MAX_HEADER_BYTES} bytes"
        ));
    }
    let mut text = vec![0; len as usize];
    fill(&mut text)?;
    String::from_utf8(text).map_err(|_| "the header is not UTF-8".to_owned())
}

/// The contents of the header.
#[derive(Debug, PartialEq)]
struct Header {
    dtype: Dtype,
    big_endian: bool,
    fortran: bool,
    shape: Shape,
}

impl Header {
    fn parse(text: &str) -> Result<Self, Problem> {
        let damaged = || {
            let shown: String = text.trim().chars().take(200).collect();
            format!("the header is damaged: {shown}")
        };
        if text.matches(['(', '[', '{']).count() > MAX_BRACKETS {
            return Err(damaged());
        }
        // Python 2 wrote long integers as `3L`.
        let modern = text.trim().replace("L,", ",").replace("L)", ")");
        let Ok(Python::Dict(entries)) = modern.parse() else { return Err(damaged()) };
        let value = |key: &str| {
            let mut entries = entries.iter().rev();
            let entry = entries.find(|(name, _)| name.as_string().is_some_and(|name| name == key));
            entry.map(|(_, value)| value).ok_or_else(damaged)
        };
        let Python::Boolean(fortran) = *value("fortran_order")? else { return Err(damaged()) };
        let Python::Tuple(dims) = value("shape")? else { return Err(damaged()) };
        if dims.len() > MAX_DIMENSIONS {
            let count = dims.len();
            return Err(format!("{count} dimensions are more than the {MAX_DIMENSIONS} of NumPy"));
        }
        let dim = |dim: &Python| u64::try_from(dim.as_integer()?).ok();
        let shape = dims.iter().map(dim).collect::<Option<_>>().map(Shape).ok_or_else(damaged)?;
        let (dtype, big_endian) = match value("descr")? {
            Python::String(code) => parse_type_code(code)?,
            Python::List(_) => {
                return Err(
                    "the array has named fields; save each field as a separate array".into()
                );
            }
            _ => return Err(damaged()),
        };
        Ok(Self { dtype, big_endian, fortran, shape })
    }
}

/// Returns the element type of a code such as `<f4`, and whether it is big-endian.
fn parse_type_code(code: &str) -> Result<(Dtype, bool), Problem> {
    let plain = code.trim_start_matches(['<', '>', '=', '|']);
    let dtype = Dtype::from_npy_code(plain).ok_or_else(|| {
        format!(
            "elements of type `{code}` are not supported, {} are; \
             convert them, for example with `array.astype(\"float32\")`",
            Dtype::names()
        )
    })?;
    Ok((dtype, code.starts_with('>')))
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
    fn arrays_round_trip() {
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
    fn headers_match_numpy() {
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
    fn big_endian_values_are_swapped() {
        let header = "{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }";
        let array = read_bytes(&file(header, &[0, 0, 0, 1, 0, 0, 1, 0])).unwrap();
        assert_eq!(array.bytes.values::<u32>(), [1, 256]);
    }

    #[test]
    fn unreadable_files_are_rejected() {
        let header = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        let cases: [(Vec<u8>, &str); 15] = [
            (b"PNG".to_vec(), "not a .npy file"),
            (b"\x93NUMPX\x01\x00\x00\x00".to_vec(), "magic number"),
            (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "4294967295 bytes"),
            (file(&header("'<c8'", "False", "(2,)"), &[0; 16]), "`<c8`"),
            (file(&header("'|O'", "False", "(2,)"), &[0; 16]), "`|O`"),
            (file(&header("[('a', '<f4')]", "False", "(2,)"), &[0; 8]), "named fields"),
            (file(&header("'<f4'", "False", "(2,)"), &[0; 7]), "truncated"),
            (file(&header("'<f4'", "False", "(2,)"), &[0; 9]), "the file has more data"),
            (file("{'descr': '<f4'}", &[]), "damaged"),
            (file(&header("'<f4'", "False", "(-1,)"), &[]), "damaged"),
            (file(&header("'<f4'", "False", "(1e3,)"), &[]), "damaged"),
            (file(&header("'<f4'", "False", &format!("({})", "9".repeat(9_000))), &[]), "damaged"),
            (file(&header("'<f4'", "False", &"(".repeat(9_000)), &[]), "damaged"),
            (file(&header("'<f4'", "False", &format!("({})", "1,".repeat(65))), &[]), "65 dim"),
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
    fn streams_allocate_as_values_arrive() {
        let header = |count: usize| {
            let shape = format!("({count},)");
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}")
        };
        // The header claims more than the memory of any host.
        let problem = read(&file(&header(1 << 48), &[0; 100])[..], None).unwrap_err();
        assert!(problem.contains("truncated"), "{problem}");
        let count = 3 * FIRST_READ / 4 + 5;
        let values: Vec<u8> = (0..4 * count).map(|i| i as u8).collect();
        let array = read(&file(&header(count), &values)[..], None).unwrap();
        assert_eq!(array.bytes.as_slice(), values);
        assert!(read(&file(&header(count), &values[1..])[..], None).is_err());
    }

    #[test]
    fn every_element_type_is_read() {
        let header =
            |descr| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}");
        let cases: [(&str, Dtype, &[u8]); 12] = [
            ("|b1", Dtype::Bool, &[0, 1]),
            ("|u1", Dtype::U8, &[0, 255]),
            ("|i1", Dtype::I8, &[128, 127]),
            ("<u2", Dtype::U16, &[1, 2, 3, 4]),
            ("<i2", Dtype::I16, &[1, 2, 3, 255]),
            ("<f2", Dtype::F16, &[0, 0x3c, 0, 0x40]),
            ("<f4", Dtype::F32, &[0; 8]),
            ("=f8", Dtype::F64, &[0; 16]),
            ("<i4", Dtype::I32, &[1, 2, 3, 255, 5, 6, 7, 8]),
            ("<u4", Dtype::U32, &[1, 2, 3, 255, 5, 6, 7, 8]),
            ("<i8", Dtype::I64, &[255; 16]),
            ("<u8", Dtype::U64, &[255; 16]),
        ];
        for (descr, dtype, data) in cases {
            let array = read_bytes(&file(&header(descr), data)).unwrap();
            assert_eq!((array.dtype, array.bytes.as_slice()), (dtype, data), "{descr}");
        }
    }

    #[test]
    fn fortran_order_is_transposed() {
        let fortran = |shape: &[u64]| {
            let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
            let header = format!("{{'descr': '|u1', 'fortran_order': True, 'shape': ({dims}), }}");
            // The value at [i, j, k] is ijk in decimal, in the order of the file.
            let at = |axis: usize| 0..shape.get(axis).copied().unwrap_or(1);
            let value = |i: u64, j: u64, k: u64| (100 * i + 10 * j + k) as u8;
            let mut data = Vec::new();
            for k in at(2) {
                at(1).for_each(|j| data.extend(at(0).map(|i| value(i, j, k))));
            }
            let array = read_bytes(&file(&header, &data)).unwrap();
            let mut wanted = Vec::new();
            for i in at(0) {
                at(1).for_each(|j| wanted.extend(at(2).map(|k| value(i, j, k))));
            }
            assert_eq!(array.bytes.as_slice(), wanted, "{shape:?}");
            assert_eq!(array.shape, Shape(shape.to_vec()));
        };
        for shape in [&[2, 3][..], &[2, 3, 4], &[1, 5, 2], &[3, 1, 1], &[0, 3], &[2, 0, 4], &[]] {
            fortran(shape);
        }
    }

    #[test]
    fn damaged_files_never_panic() {
        let mut good = Vec::new();
        let bytes = [1, 2, 3, 4, 5, 6];
        write(&mut good, Dtype::U8, &Shape(vec![2, 3]), &bytes).unwrap();
        for len in 0..good.len() {
            assert!(read_bytes(&good[..len]).is_err(), "{len} bytes");
        }
        let others = b"\0\xff\x80 (['{,-9L";
        for (at, other) in (0..good.len()).flat_map(|at| others.map(|other| (at, other))) {
            let mut bad = good.clone();
            bad[at] = other;
            if let Ok(array) = read_bytes(&bad) {
                let expected = array.shape.bytes(array.dtype.size() as u64).unwrap();
                assert_eq!(array.bytes.len(), expected, "byte {at} is {other}");
            }
            let _ = read(&bad[..], None);
        }
    }

    #[test]
    fn vectors_need_no_transposition() {
        let header = "{\"descr\": \"<i4\", \"fortran_order\": True, \"shape\": (1L,), }";
        let array = read_bytes(&file(header, &[7, 0, 0, 0])).unwrap();
        assert_eq!(array.bytes.values::<i32>(), [7]);
    }
}
