//! Shapes, bytes and arrays.

use std::fmt;
use std::str::FromStr;

use super::dtype::{Dtype, Value, Visitor};
use crate::report::Failure;

/// The lengths of an array's dimensions, outermost first; none for a single value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

impl Shape {
    /// Returns the number of elements; `None` on overflow.
    pub fn count(&self) -> Option<u64> {
        self.0.iter().try_fold(1u64, |count, dim| count.checked_mul(*dim))
    }

    /// Returns the size in bytes of an array with elements of `size` bytes; an error if it exceeds
    /// the address space.
    pub fn bytes(&self, size: u64) -> Result<usize, Failure> {
        let bytes = self.count().and_then(|count| count.checked_mul(size));
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
            Failure::Usage(format!("an array of {self} elements exceeds the address space"))
        })
    }

    /// Appends inner dimensions to the shape.
    pub fn with_inner_dimensions(mut self, inner: &[u64]) -> Self {
        self.0.extend_from_slice(inner);
        self
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("1");
        }
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

impl FromStr for Shape {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let dims: Option<Vec<u64>> = text.split('x').map(|dim| dim.parse().ok()).collect();
        dims.map(Self).ok_or_else(|| {
            Failure::Usage(format!("`{text}` is not a shape such as 1024 or 1000x10"))
        })
    }
}

/// Allocations of up to this many bytes are not checked against the available memory.
const MAX_UNCHECKED: usize = 256 << 20;

/// Returns the available host memory in bytes, as Linux reports it; `None` on other systems.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Bytes aligned for every element type.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes {
    words: Vec<u64>,
    len: usize,
}

impl Bytes {
    /// Returns `len` zero bytes.
    pub fn zeroed(len: usize) -> Result<Self, Failure> {
        let mut bytes = Self { words: Vec::new(), len: 0 };
        bytes.grow(len)?;
        Ok(bytes)
    }

    /// Appends zero bytes up to a length of `len`.
    pub fn grow(&mut self, len: usize) -> Result<(), Failure> {
        // Linux overcommits memory, and kills a process that touches too much. MemAvailable
        // excludes existing allocations.
        let more = len.saturating_sub(self.len);
        if more > MAX_UNCHECKED
            && let Some(available) = available_memory()
            && more as u64 > available
        {
            return Err(Failure::Runtime(format!(
                "out of host memory: an array needs {len} bytes, and {available} bytes are \
                 available; help: use less data"
            )));
        }
        let count = len.div_ceil(8);
        self.words.try_reserve_exact(count.saturating_sub(self.words.len())).map_err(|_| {
            Failure::Runtime(format!(
                "out of host memory: an array needs {len} bytes; help: use less data"
            ))
        })?;
        self.words.resize(count, 0);
        self.len = len;
        Ok(())
    }

    /// Truncates to the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.words.truncate(self.len.div_ceil(8));
        // `grow` relies on zeros behind the last byte.
        if let Some(word) = self.words.last_mut() {
            bytemuck::bytes_of_mut(word)[(self.len - 1) % 8 + 1..].fill(0);
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// Returns the bytes, mutably.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }

    /// Returns the bytes as values, without an incomplete last one.
    pub fn values<T: Value>(&self) -> &[T] {
        &bytemuck::cast_slice(&self.words)[..self.len / size_of::<T>()]
    }

    /// Returns the bytes as values, mutably.
    pub fn values_mut<T: Value>(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len / size_of::<T>()]
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

/// Values in row-major ("C") order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Type of the values.
    pub dtype: Dtype,
    /// Lengths of the dimensions.
    pub shape: Shape,
    /// The values.
    pub bytes: Bytes,
}

/// Formats the first values of an array.
pub fn preview(dtype: Dtype, bytes: &Bytes) -> String {
    dtype.visit(Preview(bytes))
}

struct Preview<'a>(&'a Bytes);

impl Visitor for Preview<'_> {
    type Output = String;

    fn visit<T: Value>(self) -> String {
        const MAX_SHOWN: usize = 8;
        let values = self.0.values::<T>();
        let shown: Vec<String> = values.iter().take(MAX_SHOWN).map(|value| value.text()).collect();
        let rest = if values.len() > MAX_SHOWN { ", …" } else { "" };
        format!("[{}{rest}]", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_fit_into_memory() {
        for len in [1 << 45, usize::MAX] {
            let Err(Failure::Runtime(text)) = Bytes::zeroed(len) else { panic!("{len} bytes") };
            assert!(text.contains(&format!("{len} bytes")) && text.contains("help: "), "{text}");
        }
        if cfg!(target_os = "linux") {
            let available = available_memory().unwrap();
            assert!((1 << 20..1 << 45).contains(&available), "{available}");
        }
    }

    #[test]
    fn shapes_round_trip() {
        for text in ["1024", "1000x10", "2x3x4", "0"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        for wrong in ["", "x", "10x", "-1", "1e3"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn shapes_beyond_memory_are_rejected() {
        let shape = Shape(vec![u64::MAX, 2]);
        assert_eq!(shape.count(), None);
        assert!(shape.bytes(4).is_err());
        assert!(Shape(vec![u64::MAX]).bytes(4).is_err());
        assert_eq!(Shape(vec![]).bytes(4).unwrap(), 4);
    }

    #[test]
    fn bytes_are_viewed_as_any_type() {
        let mut bytes = Bytes::zeroed(12).unwrap();
        bytes.values_mut::<f32>().copy_from_slice(&[1.0, 2.0, 3.0]);
        assert_eq!(bytes.values::<u32>(), [0x3f80_0000, 0x4000_0000, 0x4040_0000]);
        assert_eq!(bytes.values::<u64>().len(), 1, "the last four bytes are no whole value");
        assert_eq!(preview(Dtype::F32, &bytes), "[1.0, 2.0, 3.0]");
    }

    #[test]
    fn grown_bytes_are_zero_after_truncation() {
        let mut bytes = Bytes::zeroed(12).unwrap();
        bytes.as_mut_slice().fill(7);
        bytes.truncate(3);
        bytes.grow(12).unwrap();
        assert_eq!(bytes.as_slice(), [7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.truncate(0);
        bytes.grow(2).unwrap();
        assert_eq!(bytes.as_slice(), [0, 0]);
    }
}
