//! Generates PTX, the assembly language of NVIDIA's GPUs, from compute kernels, in pure Rust.
//!
//! [`translate`] converts a kernel in the intermediate representation of scry-ir to PTX text, which
//! NVIDIA's driver compiles. This needs neither a toolkit nor a device.
//!
//! ```
//! use scry_ir::{Program, kir::KirOptions};
//! use scry_ptx::{PtxOptions, Target, translate};
//!
//! let program = Program::parse(
//!     "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
//!      @compute @workgroup_size(64)
//!      fn double(@builtin(global_invocation_id) id: vec3<u32>) {
//!          if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
//!      }",
//! )?;
//! let kir = program.to_kir(&KirOptions { checked: true })?;
//! let ptx = translate(&kir, &PtxOptions::new(Target::SM_80));
//! assert!(ptx.text.contains(".visible .entry double("));
//! assert!(ptx.text.starts_with(".version 7.0\n.target sm_80\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`PtxEntry`] is the lower level: its [`Body`] is built instruction by instruction. It allocates
//! virtual registers, and emits loop exits in the form that ptxas optimises.
//!
//! The feature `kernels` adds the kernel library (`kernels`), and the typed builder that it is
//! written with (`typed`).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod asm;
#[cfg(test)]
mod assembler;
mod body;
mod build_id;
#[cfg(feature = "kernels")]
pub mod kernels;
mod lower;
mod module;
mod target;
#[cfg(feature = "kernels")]
pub mod typed;
mod types;

pub use asm::{Address, AddressBase, Arg, Guard, Instruction, Label, Line, Opcode};
pub use body::Body;
pub use build_id::build_id;
pub use lower::{MIN_RESIDENT_THREADS, Param, Ptx, PtxOptions, translate};
pub use module::{KernelParam, PtxEntry, PtxModule, SharedArray};
pub use target::{Target, Version};
pub use types::{Operand, PtxType, Reg, RegisterClass, StateSpace};
