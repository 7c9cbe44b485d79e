//! Metadata of files: keys with typed values.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// Declares the scalar types of values.
macro_rules! values {
    ($($variant:ident($ty:ty) $name:literal,)*) => {
        /// A value of a file's metadata. Those of safetensors files are strings.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Value {
            $(#[doc = concat!("A value of type `", $name, "`.")] $variant($ty),)*
            /// An array.
            Array(Array),
        }

        /// An array of a file's metadata.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Array {
            $(#[doc = concat!("Elements of type `", $name, "`.")] $variant(Vec<$ty>),)*
            /// Elements that are arrays.
            Array(Vec<Self>),
        }

        impl Value {
            /// Returns the name of the type: `u32`, `string`, `array`.
            #[must_use]
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Array(_) => "array",
                }
            }
        }

        impl Array {
            /// Returns the name of the type of the elements.
            #[must_use]
            pub fn element_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Array(_) => "array",
                }
            }

            /// Returns the number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(elements) => elements.len(),)*
                    Self::Array(elements) => elements.len(),
                }
            }

            /// Returns whether there are no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

values! {
    U8(u8) "u8",
    I8(i8) "i8",
    U16(u16) "u16",
    I16(i16) "i16",
    U32(u32) "u32",
    I32(i32) "i32",
    U64(u64) "u64",
    I64(i64) "i64",
    F32(f32) "f32",
    F64(f64) "f64",
    Bool(bool) "bool",
    String(String) "string",
}

impl Value {
    /// Returns an integer of any type; `None` for other values.
    ///
    /// ```
    /// use scry_models::Value;
    ///
    /// assert_eq!(Value::U8(3).as_int(), Some(3));
    /// assert_eq!(Value::F32(3.0).as_int(), None);
    /// ```
    #[must_use]
    pub fn as_int(&self) -> Option<i128> {
        Some(match self {
            Self::U8(value) => (*value).into(),
            Self::I8(value) => (*value).into(),
            Self::U16(value) => (*value).into(),
            Self::I16(value) => (*value).into(),
            Self::U32(value) => (*value).into(),
            Self::I32(value) => (*value).into(),
            Self::U64(value) => (*value).into(),
            Self::I64(value) => (*value).into(),
            _ => return None,
        })
    }
}

/// Prints scalars as they are, strings in quotes, and of arrays the number and type of elements.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32(value) => write!(f, "{value}"),
            Self::F64(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::String(value) => write!(f, "{value:?}"),
            Self::Array(array) => write!(f, "[{} × {}]", array.len(), array.element_name()),
            other => write!(f, "{}", other.as_int().unwrap_or_default()),
        }
    }
}

/// A Rust type that metadata can be read as.
pub trait FromValue<'m>: Sized {
    /// What values must be, for errors.
    #[doc(hidden)]
    const WANTED: &'static str;

    /// Converts a value; `None` if it is of another type or out of range.
    #[doc(hidden)]
    fn from_value(value: &'m Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($ty:ty: $wanted:literal, $value:ident => $result:expr;)*) => {
        $(impl<'m> FromValue<'m> for $ty {
            const WANTED: &'static str = $wanted;

            fn from_value($value: &'m Value) -> Option<Self> {
                $result
            }
        })*
    };
}

from_value! {
    u64: "an integer from 0 to 2^64 - 1", value => value.as_int()?.try_into().ok();
    u32: "an integer from 0 to 2^32 - 1", value => value.as_int()?.try_into().ok();
    usize: "an integer of at least 0", value => value.as_int()?.try_into().ok();
    i64: "an integer", value => value.as_int()?.try_into().ok();
    f64: "a float", value => match value {
        Value::F32(value) => Some((*value).into()),
        Value::F64(value) => Some(*value),
        _ => None,
    };
    f32: "a float", value => f64::from_value(value).map(|value| value as Self);
    bool: "a bool", value => match value {
        Value::Bool(value) => Some(*value),
        _ => None,
    };
    &'m str: "a string", value => match value {
        Value::String(value) => Some(value),
        _ => None,
    };
    &'m [String]: "an array of strings", value => match value {
        Value::Array(Array::String(values)) => Some(values),
        _ => None,
    };
    &'m [f32]: "an array of f32", value => match value {
        Value::Array(Array::F32(values)) => Some(values),
        _ => None,
    };
    Vec<i64>: "an array of integers", value => match value {
        Value::Array(array) => array.to_ints(),
        _ => None,
    };
}

impl Array {
    /// Returns the elements as integers of 64 bits; `None` for other types.
    fn to_ints(&self) -> Option<Vec<i64>> {
        Some(match self {
            Self::U8(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::I8(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::U16(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::I16(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::U32(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::I32(values) => values.iter().map(|it| (*it).into()).collect(),
            Self::U64(values) => {
                values.iter().map(|it| (*it).try_into().ok()).collect::<Option<Vec<i64>>>()?
            }
            Self::I64(values) => values.clone(),
            _ => return None,
        })
    }
}

/// The metadata of a file: keys with values, in the order of the file.
///
/// ```no_run
/// use scry_models::Weights;
///
/// let weights = Weights::open("model.gguf")?;
/// let metadata = weights.metadata();
/// let layers: usize = metadata.require("llama.block_count")?;
/// let theta: f32 = metadata.find("llama.rope.freq_base")?.unwrap_or(10_000.0);
/// # Ok::<(), scry_models::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Metadata {
    path: PathBuf,
    entries: Vec<(String, Value)>,
    positions: HashMap<String, usize>,
}

impl Metadata {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Appends a value; returns false, and changes nothing, if the key exists.
    pub(super) fn insert(&mut self, key: String, value: Value) -> bool {
        if self.positions.contains_key(&key) {
            return false;
        }
        self.positions.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        true
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the keys with their values, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Returns the value of a key, of any type.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.positions.get(key).map(|position| &self.entries[*position].1)
    }

    /// Returns the value of a key as a type; `None` if there is no such key.
    ///
    /// Integers of any width can be read as `usize`, `u32`, `u64` and `i64`, floats as `f32` and
    /// `f64`, strings as `&str`, and arrays as `&[String]`, `&[f32]` and `Vec<i64>`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the value is of another type, or out of range.
    pub fn find<'m, T: FromValue<'m>>(&'m self, key: &str) -> Result<Option<T>> {
        self.find_for("Metadata::find", key)
    }

    /// Returns the value of a key as a type, as [`Metadata::find`] does, or an error if there is no
    /// such key.
    ///
    /// # Errors
    /// [`ErrorKind::Keys`] if there is no such key; [`ErrorKind::DType`] if the value is of
    /// another type, or out of range.
    pub fn require<'m, T: FromValue<'m>>(&'m self, key: &str) -> Result<T> {
        const CALL: &str = "Metadata::require";
        self.find_for(CALL, key)?.ok_or_else(|| {
            let problem = format!("the metadata has no key `{key}` (expected: {})", T::WANTED);
            let help = "use a complete GGUF file: `scry model info` lists its keys";
            Error::new(CALL, ErrorKind::Keys, problem, help).in_file(&self.path)
        })
    }

    /// Returns an error about the metadata.
    pub(crate) fn error(
        &self,
        call: &'static str,
        kind: ErrorKind,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Error {
        Error::new(call, kind, problem, help).in_file(&self.path)
    }

    fn find_for<'m, T: FromValue<'m>>(
        &'m self,
        call: &'static str,
        key: &str,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        T::from_value(value).map(Some).ok_or_else(|| {
            let (ty, wanted) = (value.type_name(), T::WANTED);
            let problem = format!("`{key}` is {value} (type {ty}), but must be {wanted}");
            let help = "read the key as another type, or convert the model to GGUF again";
            Error::new(call, ErrorKind::DType, problem, help).in_file(&self.path)
        })
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, value)| (key, value.to_string()))).finish()
    }
}
