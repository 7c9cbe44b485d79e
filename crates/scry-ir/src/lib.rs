//! WGSL compute kernels as data.
//!
//! [`Program::parse`] reads a WGSL source once: it is parsed, validated, its `override`s are
//! applied, and what the host has to know of it stands in an [`Interface`]. From then on every
//! backend works from the [`Program`]. Nothing here touches a device, and no input, however
//! hostile, panics or overflows the stack.

#![forbid(unsafe_code)]

mod advice;
mod align;
mod bitcasts;
mod bits;
mod bools;
mod bounding;
mod budget;
mod build_id;
mod bytes;
mod calls;
mod constant_shifts;
mod cooperative;
mod cut_loops;
mod declarations;
mod directives;
mod divisions;
mod entry;
mod error;
mod features;
mod fold;
mod guard;
mod handles;
mod indices;
mod initial;
mod integers;
mod interface;
pub mod kir;
mod layout;
mod lex;
mod loops;
mod mixes;
mod naga_error;
mod near;
mod nesting;
mod numbers;
mod outline;
mod overrides;
mod pipeline;
mod pointers;
mod program;
mod rebuild;
mod reflect;
mod report;
mod scan;
mod shifts;
mod spirv;
mod types;
mod uniformity;
mod used;
mod validate;
mod widen;
mod workarounds;

pub use build_id::build_id;
pub use error::{Location, ShaderError, ShaderErrorKind};
pub use features::Features;
pub use interface::{Access, Binding, Immediates, Interface, Override, OverrideValue, Space};
pub use layout::{Member, Scalar, ScalarKind, TypeLayout};
pub use near::nearest;
pub use outline::Outline;
pub use program::{Options, Program};
pub use spirv::{ControlFlow, FoldParams, GridSource, SpirvOptions, runnable_workgroups};
pub use workarounds::SpirvWorkarounds;
