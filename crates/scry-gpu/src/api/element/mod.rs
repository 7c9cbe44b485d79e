//! Elements of buffers: plain data with the same bytes on the host and in a kernel.

#[cfg(feature = "glam")]
mod glam;
#[cfg(feature = "bytemuck")]
mod pod;

use std::fmt;
use std::mem::{size_of, size_of_val};

use scry_ir::{Scalar, ScalarKind};

use crate::core::huge_pages;

#[cfg(feature = "bytemuck")]
pub use pod::PodElement;

/// A type whose values can be copied to a device and back, byte for byte.
///
/// Implemented for `f16`, `bf16`, `f32`, `f64`, the integers of 8 to 64 bits and arrays of
/// elements. For structures there is a derive, which also defines [`Element::LAYOUT`]: launches
/// check each field against the kernel's `struct`:
///
/// ```
/// use scry_gpu::Element;
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32, // fills the four bytes that WGSL leaves unused after a vec3
/// }
/// ```
///
/// The derive rejects, at compile time, types that cannot be copied byte for byte, such as those
/// with padding:
///
/// ```compile_fail,E0080
/// # use scry_gpu::Element;
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Pixel {
///     alpha: u8,
///     color: u32, // three bytes before it are padding: declare them as a field
/// }
/// ```
///
/// # Which WGSL types an element fits
///
/// A buffer is compared with the type that the kernel declares for its binding, scalar by scalar:
///
/// - Every scalar of the WGSL type must have the same scalar at the same byte of the buffer.
///   `f32` fits `array<f32>`, `array<vec4<f32>>` and `array<mat4x4<f32>>`; `[f32; 4]` fits all
///   three as well; `u32` fits `array<atomic<u32>>`. `f32` does not fit `array<u32>`.
/// - The size of an element must divide the stride of a WGSL array, or the stride the size. If the
///   element contains structures, the stride must divide the size. `[f32; 3]` (12 bytes) does not
///   fit `array<vec3<f32>>` (stride 16); `[f32; 4]` does.
/// - Where WGSL leaves bytes unused, elements must be at least as large as the WGSL type, and no
///   field may straddle the end of the unused bytes: such a field is at the wrong offset.
/// - Where a Rust structure and a WGSL structure begin at the same byte, a field must have the
///   offset of the member of the same name. Names that only one of them has, and names that begin
///   with `_`, are not compared: `struct { b: f32, a: f32 }` does not fit
///   `struct { a: f32, b: f32 }`, but `struct { x: f32, y: f32 }` does.
/// - Scalars narrower than 32 bits may also be read as packed words: `u8`, `i8`, `u16`, `i16`,
///   `f16` and `bf16` fit wherever WGSL has `u32`, as in `array<u32>` or `array<vec4<u32>>`. The
///   lowest byte of a word is the first in the buffer.
/// - A buffer need not be a whole number of WGSL elements long: as in WebGPU `arrayLength` is
///   rounded down, and the kernel accesses none of the bytes after the last whole element. Seven
///   `u8` bound to `array<u32>` are one word. At least one element is required.
/// - Types without a known layout ([`ElementLayout::Opaque`]) are checked for size and stride.
///
/// # Types of other crates
///
/// With the feature `glam`, vectors, quaternions and matrices of [glam](https://docs.rs/glam) are
/// elements: each is the array of its numbers, a matrix by columns.
///
/// | glam | as | fits, in addition to arrays of its scalar |
/// | --- | --- | --- |
/// | `Vec2`, `Vec4`, `Quat` | `[f32; 2]`, `[f32; 4]` | `vec2<f32>`, `vec4<f32>` |
/// | `Vec3` | `[f32; 3]`, 12 bytes | `vec3<f32>` in structures, not `array<vec3<f32>>` |
/// | `Mat2`, `Mat4` | `[[f32; 2]; 2]`, `[[f32; 4]; 4]` | `mat2x2<f32>`, `mat4x4<f32>` |
/// | `Mat3` | `[[f32; 3]; 3]`, 36 bytes | nothing: columns of `mat3x3<f32>` are 16 bytes apart |
/// | `IVec*`, `UVec*`, `DVec*`, `DMat*` and others | arrays of their scalar | as those above |
///
/// `Vec3A`, `Mat3A` and the affine transformations have padding and are not elements.
///
/// ```
/// use glam::{Vec3, Vec4};
/// use scry_gpu::{Device, Element};
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Light {
///     position: Vec3,
///     power: f32, // fills the four bytes that WGSL leaves unused after a vec3
/// }
///
/// let gpu = Device::open("cpu")?;
/// let lights = gpu.upload(&[Light { position: Vec3::new(1.0, 2.0, 3.0), power: 0.5 }])?;
/// let out = gpu.alloc::<Vec4>(1)?;
/// gpu.dispatch("
///     struct Light { position: vec3<f32>, power: f32 }
///     @group(0) @binding(0) var<storage, read> lights: array<Light>;
///     @group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
///     @compute @workgroup_size(1)
///     fn shade() { out[0] = vec4(lights[0].power * lights[0].position, 1.0); }
/// ", &[&lights, &out], 1)?;
/// assert_eq!(out.download()?, [Vec4::new(0.5, 1.0, 1.5, 1.0)]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
///
/// With the feature `bytemuck`, `PodElement` makes an element of any type that is `bytemuck::Pod`.
///
/// # Safety
///
/// Implementing types have no padding or otherwise uninitialised bytes, are valid for every bit
/// pattern, have no interior mutability, hold no pointers or references, and are not zero-sized.
/// `LAYOUT`, where it is not `Opaque`, is correct: its size is the size of the type, and each
/// scalar is at the offset that it states.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element of a buffer",
    label = "not an `Element`",
    note = "elements are f16, bf16, f32, f64, i8 to i64, u8 to u64 and arrays of them",
    note = "for a structure, write `#[derive(Clone, Copy, Element)] #[repr(C)]`"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The layout of a value; `Opaque` where it is not known.
    const LAYOUT: ElementLayout = ElementLayout::Opaque;
}

/// Structures that the derive rejects; its own messages are tested with the derive.
///
/// Padding at the end:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C)]
/// struct Tail(u32, u8);
/// ```
///
/// Padding by alignment:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C, align(16))]
/// struct Aligned([f32; 3]);
/// ```
///
/// Fields that are not elements:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C)]
/// struct Flag(bool);
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C)]
/// struct Pointer(&'static u32);
/// ```
///
/// Arrays without elements:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C)]
/// struct Empty([u32; 0], u32);
/// const LAYOUT: scry_gpu::ElementLayout = <Empty as scry_gpu::Element>::LAYOUT;
/// ```
///
/// Similar structures that are accepted:
///
/// ```
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C, align(16))]
/// struct Accepted([f32; 3], u32);
///
/// #[derive(Clone, Copy, scry_gpu::Element)]
/// #[repr(C)]
/// pub(crate) struct Nested {
///     pub r#type: [Accepted; 2],
///     rest: [u8; 16],
/// }
///
/// use scry_gpu::{Element, ElementLayout};
/// let ElementLayout::Struct { name, size, fields } = <Nested as Element>::LAYOUT else {
///     panic!("a derived layout is a structure");
/// };
/// assert_eq!((name, size), ("Nested", 48));
/// assert_eq!((fields[0].name, fields[0].offset, fields[0].size), ("type", 0, 32));
/// assert_eq!((fields[1].name, fields[1].offset, fields[1].size), ("rest", 32, 16));
/// ```
#[cfg(doctest)]
struct Derived;

/// The layout of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementLayout {
    /// One number.
    Scalar(Scalar),
    /// Values of one layout, without gaps.
    Array {
        /// Layout of each value.
        element: &'static ElementLayout,
        /// Number of values.
        len: usize,
    },
    /// A `#[repr(C)]` structure without padding.
    Struct {
        /// Name of the type.
        name: &'static str,
        /// Size in bytes.
        size: usize,
        /// Fields in order of offset.
        fields: &'static [Field],
    },
    /// Unknown: only the size of the type is checked.
    Opaque,
}

/// One field of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name in the source; the index for a tuple structure.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub offset: usize,
    /// Bytes of the field.
    pub size: usize,
    /// Layout of the field.
    pub layout: &'static ElementLayout,
}

impl ElementLayout {
    /// Returns the size of a value in bytes; `None` if the layout, or a part of it, is opaque.
    #[must_use]
    pub const fn size(&self) -> Option<usize> {
        match self {
            Self::Scalar(scalar) => Some(scalar.width as usize),
            Self::Array { element, len } => match element.size() {
                Some(size) => size.checked_mul(*len),
                None => None,
            },
            Self::Struct { size, .. } => Some(*size),
            Self::Opaque => None,
        }
    }

    const fn scalar(kind: ScalarKind, width: u8) -> Self {
        Self::Scalar(Scalar { kind, width })
    }
}

impl fmt::Display for ElementLayout {
    /// Writes the type as Rust spells it: `f32`, `[f32; 4]`, the name of a structure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::Array { element, len } => write!(f, "[{element}; {len}]"),
            Self::Struct { name, .. } => f.write_str(name),
            Self::Opaque => f.write_str("an opaque type"),
        }
    }
}

// SAFETY: two bytes of plain data, every bit pattern valid.
unsafe impl Element for half::f16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Float, 2);
}
// SAFETY: two bytes of plain data, every bit pattern valid.
unsafe impl Element for half::bf16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Bfloat, 2);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for f32 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Float, 4);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for f64 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Float, 8);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for i8 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Sint, 1);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for i16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Sint, 2);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for i32 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Sint, 4);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for i64 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Sint, 8);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for u8 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Uint, 1);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for u16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Uint, 2);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for u32 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Uint, 4);
}
// SAFETY: plain data, every bit pattern valid.
unsafe impl Element for u64 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Uint, 8);
}

// SAFETY: an array is its elements without gaps. An empty one does not compile, because every
// use of a buffer reads `LAYOUT`.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const LAYOUT: ElementLayout = {
        assert!(N > 0, "an empty array cannot be the element of a buffer");
        ElementLayout::Array { element: &T::LAYOUT, len: N }
    };
}

/// Returns the whole elements at the beginning of bytes.
///
/// # Panics
/// If the bytes are not aligned for the element type.
pub(crate) fn elements_of<T: Element>(bytes: &[u8]) -> &[T] {
    let len = bytes.len() / size_of::<T>();
    assert!(bytes.as_ptr().cast::<T>().is_aligned(), "the bytes are not aligned for an element");
    // SAFETY: the bytes are readable, aligned, and as long as `len` elements; `Element` is valid
    // for every bit pattern.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) }
}

/// [`elements_of`], to be changed.
///
/// # Panics
/// If the bytes are not aligned for the element type.
pub(crate) fn elements_of_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    let len = bytes.len() / size_of::<T>();
    assert!(bytes.as_ptr().cast::<T>().is_aligned(), "the bytes are not aligned for an element");
    // SAFETY: the bytes are exclusive, aligned, and as long as `len` elements; `Element` is valid
    // for every bit pattern, and has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) }
}

/// Returns the bytes of elements.
#[must_use]
pub fn bytes_of<T: Element>(data: &[T]) -> &[u8] {
    const { assert!(size_of::<T>() > 0, "an element of a buffer must have a size") }
    // SAFETY: the slice is readable for its size in bytes, `Element` has no uninitialised bytes
    // and no interior mutability, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) }
}

/// Returns the bytes of elements, mutably.
#[must_use]
pub fn bytes_of_mut<T: Element>(data: &mut [T]) -> &mut [u8] {
    const { assert!(size_of::<T>() > 0, "an element of a buffer must have a size") }
    // SAFETY: the slice is writable for its size in bytes and borrowed exclusively, `Element` has
    // no uninitialised bytes, and any bytes are valid values.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast::<u8>(), size_of_val(data)) }
}

/// Returns a vector of `len` zeros. The system provides its pages on first access. Aborts the
/// process if the host is out of memory, as every vector does.
pub(crate) fn zeroed<T: Element>(len: usize) -> Vec<T> {
    let layout = std::alloc::Layout::array::<T>(len).expect("a buffer of this length exists");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout has a size. The allocation is of `len` elements, by the allocator that
    // vectors use, and zero bytes are valid elements.
    let mut zeros = unsafe {
        let start = std::alloc::alloc_zeroed(layout);
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(start.cast::<T>(), len, len)
    };
    huge_pages::prefer(bytes_of_mut(&mut zeros));
    zeros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_display_as_rust_types() {
        assert_eq!(<f32 as Element>::LAYOUT.to_string(), "f32");
        assert_eq!(<half::bf16 as Element>::LAYOUT.to_string(), "bf16");
        assert_eq!(<[[u8; 3]; 2] as Element>::LAYOUT.to_string(), "[[u8; 3]; 2]");
    }

    #[test]
    fn layouts_have_sizes() {
        assert_eq!(<[[half::f16; 3]; 5] as Element>::LAYOUT.size(), Some(30));
        assert_eq!(<i64 as Element>::LAYOUT.size(), Some(8));
        assert_eq!(ElementLayout::Opaque.size(), None);
    }

    #[test]
    fn bytes_are_those_in_memory() {
        let mut words = [[0x0403_0201_u32, 5], [6, 7]];
        assert_eq!(bytes_of(&words)[..5], [1, 2, 3, 4, 5]);
        assert_eq!(bytes_of(&words).len(), 16);
        bytes_of_mut(&mut words)[4..8].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(words[0][1], 0x0100_0000);
        assert!(bytes_of::<f64>(&[]).is_empty());
    }
}
