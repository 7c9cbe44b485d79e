//! `#[derive(Element)]` for `scry-gpu`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod element;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `scry_gpu::Element` for a `#[repr(C)]` structure of elements, and describes its
/// layout: when a buffer is bound, the types at each offset are compared with the kernel's
/// `struct`, and so are the offsets of fields and members with the same name.
///
/// Compile-time errors: structures that are packed or not `#[repr(C)]`, or that have padding bytes,
/// generic parameters or no fields; enums and unions.
///
/// Padding bytes of WGSL's layout must be explicit fields: `vec3<f32>` has a size of 12 bytes and
/// an alignment of 16.
#[proc_macro_derive(Element)]
pub fn derive_element(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    element::implement(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
