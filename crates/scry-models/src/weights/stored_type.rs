//! Element types of tensors in files.

use std::fmt;

use scry_tensor::DType;

/// The element type of a tensor in a file. Quantised types have blocks of several weights.
///
/// ```
/// use scry_models::StoredType;
///
/// let q4 = StoredType::of_gguf(3).expect("GGUF defines it");
/// assert_eq!((q4.name(), q4.block_len(), q4.block_bytes()), ("q4_1", 32, 20));
/// assert_eq!(q4.dtype(), Some(scry_tensor::DType::Q4_1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredType {
    name: &'static str,
    block_len: u16,
    block_bytes: u16,
}

/// GGUF's types, each with its number.
const GGUF: [(u32, StoredType); 34] = [
    (0, of("f32", 1, 4)),
    (1, of("f16", 1, 2)),
    (2, of("q4_0", 32, 18)),
    (3, of("q4_1", 32, 20)),
    (6, of("q5_0", 32, 22)),
    (7, of("q5_1", 32, 24)),
    (8, of("q8_0", 32, 34)),
    (9, of("q8_1", 32, 36)),
    (10, of("q2_k", 256, 84)),
    (11, of("q3_k", 256, 110)),
    (12, of("q4_k", 256, 144)),
    (13, of("q5_k", 256, 176)),
    (14, of("q6_k", 256, 210)),
    (15, of("q8_k", 256, 292)),
    (16, of("iq2_xxs", 256, 66)),
    (17, of("iq2_xs", 256, 74)),
    (18, of("iq3_xxs", 256, 98)),
    (19, of("iq1_s", 256, 50)),
    (20, of("iq4_nl", 32, 18)),
    (21, of("iq3_s", 256, 110)),
    (22, of("iq2_s", 256, 82)),
    (23, of("iq4_xs", 256, 136)),
    (24, of("i8", 1, 1)),
    (25, of("i16", 1, 2)),
    (26, of("i32", 1, 4)),
    (27, of("i64", 1, 8)),
    (28, of("f64", 1, 8)),
    (29, of("iq1_m", 256, 56)),
    (30, of("bf16", 1, 2)),
    (34, of("tq1_0", 256, 54)),
    (35, of("tq2_0", 256, 66)),
    (39, of("mxfp4", 32, 17)),
    (40, of("nvfp4", 64, 36)),
    (41, of("q1_0", 128, 18)),
];

/// Types of safetensors files. Elements smaller than a byte are blocks of whole bytes.
const SAFETENSORS: [(&str, StoredType); 22] = [
    ("BOOL", of("bool", 1, 1)),
    ("U8", of("u8", 1, 1)),
    ("I8", of("i8", 1, 1)),
    ("F8_E5M2", of("f8_e5m2", 1, 1)),
    ("F8_E4M3", of("f8_e4m3", 1, 1)),
    ("F8_E5M2FNUZ", of("f8_e5m2fnuz", 1, 1)),
    ("F8_E4M3FNUZ", of("f8_e4m3fnuz", 1, 1)),
    ("F8_E8M0", of("f8_e8m0", 1, 1)),
    ("I16", of("i16", 1, 2)),
    ("U16", of("u16", 1, 2)),
    ("F16", of("f16", 1, 2)),
    ("BF16", of("bf16", 1, 2)),
    ("I32", of("i32", 1, 4)),
    ("U32", of("u32", 1, 4)),
    ("F32", of("f32", 1, 4)),
    ("F64", of("f64", 1, 8)),
    ("I64", of("i64", 1, 8)),
    ("U64", of("u64", 1, 8)),
    ("C64", of("c64", 1, 8)),
    ("F4", of("f4", 2, 1)),
    ("F6_E2M3", of("f6_e2m3", 4, 3)),
    ("F6_E3M2", of("f6_e3m2", 4, 3)),
];

const fn of(name: &'static str, block_len: u16, block_bytes: u16) -> StoredType {
    StoredType { name, block_len, block_bytes }
}

impl StoredType {
    /// Returns the type that a number means in GGUF files; `None` for numbers without a type.
    ///
    /// ```
    /// assert!(scry_models::StoredType::of_gguf(4).is_none());
    /// ```
    #[must_use]
    pub fn of_gguf(number: u32) -> Option<Self> {
        GGUF.iter().find(|(other, _)| *other == number).map(|(_, it)| *it)
    }

    /// Returns the type that a name such as `BF16` means in safetensors files.
    pub(crate) fn of_safetensors(name: &str) -> Option<Self> {
        SAFETENSORS.iter().find(|(other, _)| *other == name).map(|(_, it)| *it)
    }

    /// Returns the name in lower case: `f32`, `i64`, `q4_1`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the number of elements in a block; 1 for types that are not quantised.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.block_len as usize
    }

    /// Returns the size of a block in bytes.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        self.block_bytes as usize
    }

    /// Returns the type of the tensor that [`Weights::tensor`](crate::Weights::tensor) makes of
    /// such elements: the same where devices have it, else `i32` or `f32`; `None` for types that
    /// are not supported.
    #[must_use]
    pub fn dtype(self) -> Option<DType> {
        Some(match self.name {
            "f32" | "f64" => DType::F32,
            "f16" => DType::F16,
            "bf16" => DType::BF16,
            "i8" | "i16" | "i32" | "i64" | "u8" | "u16" => DType::I32,
            "u32" | "u64" => DType::U32,
            "bool" => DType::Bool,
            "q4_0" => DType::Q4_0,
            "q4_1" => DType::Q4_1,
            "q8_0" => DType::Q8_0,
            "q4_k" => DType::Q4K,
            "q5_k" => DType::Q5K,
            "q6_k" => DType::Q6K,
            _ => return None,
        })
    }

    /// Returns the size in bytes of a number of elements; `None` if it overflows, or if they are
    /// not whole blocks.
    pub(crate) fn bytes_of(self, elements: u64) -> Option<u64> {
        let len = u64::from(self.block_len);
        let blocks = elements.is_multiple_of(len).then_some(elements / len)?;
        blocks.checked_mul(self.block_bytes.into())
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
