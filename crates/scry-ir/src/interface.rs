//! The interface of a kernel to the host, as plain data.

use std::fmt;

use crate::{Features, TypeLayout};

/// The interface of one entry point.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// Name of the entry point.
    pub entry_point: String,
    /// Invocations of one workgroup along x, y and z; overrides applied.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory that the entry point uses. In WGSL, the size of each variable is
    /// rounded up to 16 bytes, as WebGPU requires.
    pub workgroup_memory: u32,
    /// Buffers that the entry point uses, ordered by (group, binding).
    pub bindings: Vec<BindingInfo>,
    /// The `var<immediate>`, if the entry point uses one.
    pub immediates: Option<Immediates>,
    /// Every override that the source declares, in source order.
    pub overrides: Vec<Override>,
    /// Optional features that the kernel uses.
    pub features: Features,
}

/// One buffer that a kernel uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingInfo {
    /// The `@group` index.
    pub group: u32,
    /// The `@binding` index.
    pub binding: u32,
    /// Name of the variable.
    pub name: String,
    /// The variable's address space.
    pub ty: BufferBindingType,
    /// The actual accesses of the entry point, which may be fewer than its declaration permits.
    pub access: Access,
    /// Layout of the variable's type.
    pub layout: TypeLayout,
}

/// The type of a buffer binding: the address space of its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferBindingType {
    /// `var<uniform>`.
    Uniform,
    /// `var<storage, …>`.
    Storage,
}

/// How a kernel uses a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only read; or only its length is used.
    Read,
    /// Written, or read and written. Atomic operations count as both, except for `atomicLoad`.
    ReadWrite,
}

impl Access {
    /// Returns whether the kernel may write.
    #[must_use]
    pub fn writes(self) -> bool {
        self == Self::ReadWrite
    }
}

/// The `var<immediate>` of a kernel: a small block of parameters of each launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Immediates {
    /// Name of the variable.
    pub name: String,
    /// Layout of its type.
    pub layout: TypeLayout,
}

/// A value of an `override`, converted from a `bool`, `i32`, `u32`, `f32` or `f64`.
///
/// A number must be in the range of the override's type, and whole unless that is a float type: 8.0
/// is valid for a `u32`, 8.5 and -1 are not. `true` and `false` are for overrides of type `bool`,
/// which accept 1 and 0 too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OverrideValue {
    /// A `bool`.
    Bool(bool),
    /// A number of any type.
    Number(f64),
}

impl From<bool> for OverrideValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

macro_rules! override_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for OverrideValue {
            fn from(value: $number) -> Self {
                Self::Number(value.into())
            }
        })*
    };
}

override_numbers!(i32, u32, f32, f64);

impl fmt::Display for OverrideValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
        }
    }
}

/// One `override` declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Name in the source.
    pub name: String,
    /// The `@id`, if it has one.
    pub id: Option<u16>,
    /// Type as WGSL spells it: `bool`, or `i`, `u` or `f` and the number of bits, such as `u32`.
    pub ty: String,
    /// The value in effect: the one from the options, else the default if it is a literal; `None`
    /// otherwise. Bools are 0 or 1.
    pub value: Option<f64>,
}

impl Override {
    /// Returns whether `key` is the override's name or its decimal `@id`.
    #[must_use]
    pub fn matches_key(&self, key: &str) -> bool {
        self.name == key || self.id.is_some_and(|id| key.parse() == Ok(id))
    }
}
