//! Element types of data on the host.

use half::{bf16, f16};

use crate::dtype::DType;

/// A Rust type of which tensors are created, and to which they are read: `f32`, `f16`, `bf16`,
/// `i32`, `u32`, `bool`, and `i64`, which becomes `i32` if every value fits.
///
/// ```
/// use scry_tensor::{DType, Element};
///
/// assert_eq!(<bool as Element>::DTYPE, DType::Bool);
/// assert_eq!(<i64 as Element>::DTYPE, DType::I32);
/// ```
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The element type of tensors created from such values.
    const DTYPE: DType;

    /// Appends the bytes of the stored value; returns false if the value is out of range.
    #[doc(hidden)]
    fn append_to(self, bytes: &mut Vec<u8>) -> bool;

    /// Returns the value as text, for errors.
    #[doc(hidden)]
    fn describe(self) -> String;

    /// Returns the value with these bytes, which are those of a stored element.
    #[doc(hidden)]
    fn from_stored(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty, $stored:ty: $dtype:ident, $to:expr, $from:expr;)*) => {
        $(
            impl sealed::Sealed for $ty {}

            impl Element for $ty {
                const DTYPE: DType = DType::$dtype;

                fn append_to(self, bytes: &mut Vec<u8>) -> bool {
                    let to: fn($ty) -> Option<$stored> = $to;
                    let stored = to(self);
                    bytes.extend_from_slice(&stored.unwrap_or_default().to_ne_bytes());
                    stored.is_some()
                }

                fn describe(self) -> String {
                    self.to_string()
                }

                fn from_stored(bytes: &[u8]) -> Self {
                    let from: fn($stored) -> $ty = $from;
                    from(<$stored>::from_ne_bytes(bytes.try_into().unwrap_or_default()))
                }
            }
        )*
    };
}

elements! {
    f32, f32: F32, Some, |value| value;
    f16, f16: F16, Some, |value| value;
    bf16, bf16: BF16, Some, |value| value;
    i32, i32: I32, Some, |value| value;
    u32, u32: U32, Some, |value| value;
    bool, u8: Bool, |value| Some(value.into()), |byte| byte != 0;
    i64, i32: I32, |value| value.try_into().ok(), Into::into;
}

/// Returns the bytes of elements as they are stored, padded to whole words of 4 bytes.
///
/// # Errors
/// The position of the first value that is out of range.
pub(crate) fn to_bytes<T: Element>(data: &[T]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(data.len() * T::DTYPE.size() + 3);
    for (position, value) in data.iter().enumerate() {
        if !value.append_to(&mut bytes) {
            return Err(position);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Ok(bytes)
}

/// Returns the elements with these bytes.
pub(crate) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::DTYPE.size()).map(T::from_stored).collect()
}
