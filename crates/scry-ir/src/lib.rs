//! WGSL front end, kernel IR (KIR), and emitters of SPIR-V and WGSL.
//!
//! [`Program::parse`] reads a WGSL source once: it parses and validates it, applies its
//! `override`s, and describes its interface to the host as an [`Interface`]. Every backend compiles
//! the resulting [`Program`]. This crate accesses no device. It never panics or overflows the
//! stack, whatever the input.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod build_id;
mod error;
mod features;
mod grid;
mod interface;
pub mod kir;
mod layout;
mod matrix_products;
mod pipeline;
mod program;
mod similar_names;
mod spirv;
mod wgsl;
mod wgsl_out;

pub use build_id::build_id;
pub use error::{Location, ShaderError, ShaderErrorKind};
pub use features::Features;
pub use grid::{GridSource, LinearisedGrid, runnable_workgroups};
pub use interface::{
    Access, BindingInfo, BufferBindingType, Immediates, Interface, Override, OverrideValue,
};
pub use layout::{Member, Scalar, ScalarKind, TypeLayout};
pub use matrix_products::MatrixProducts;
pub use program::{Options, Program};
pub use similar_names::nearest_name;
pub use spirv::{ControlFlow, FloatTypes, SpirvOptions, SpirvWorkarounds, spirv_text};
pub use wgsl::outline::{AssumedOverrides, Outline};
pub use wgsl_out::{HiddenLength, LaunchBlock, WgslKernel, WgslOptions};
