//! Random, well-defined WGSL kernels: every device must compute the same bytes, except for the sign
//! of zeros.
//!
//! A seed determines the kernel and its data, on every machine. By construction, the kernels
//! have no data races, stay within bounds, terminate, and have only behaviour that WGSL defines:
//! integers wrap, indices are reduced to the length, and floats are exact, so that no device rounds
//! (the bounds of all values are tracked). A kernel that shows a difference can be
//! [shrunk](shrink).
//!
//! A second family, [`hostile`], attacks memory safety instead.
//!
//! This crate only generates sources and data; it accesses no device.
//!
//! ```
//! let kernel = scry_fuzz::kernel(7, scry_fuzz::Features::default());
//! let case = kernel.case();
//! assert!(case.source.contains("@compute"));
//! assert_eq!(case, scry_fuzz::kernel(7, scry_fuzz::Features::default()).case());
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod draw;
mod exact;
pub mod hostile;
mod print;
mod random;
mod shrinking;
mod tree;
mod types;
mod walk;

pub use shrinking::shrink;
pub use tree::RandomKernel;

use tree::{Global, Space};
use types::layout;

/// Optional language features that a kernel may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// 16-bit floats.
    pub f16: bool,
    /// 64-bit floats.
    pub f64: bool,
    /// 64-bit integers.
    pub i64: bool,
    /// 16-bit integers.
    pub i16: bool,
}

impl Features {
    /// All features.
    pub const ALL: Self = Self { f16: true, f64: true, i64: true, i16: true };

    /// Returns the features to use for the kernel of a seed: none for half of the seeds, all but
    /// `f64` for a quarter. So differences that no feature causes appear in plain kernels, too.
    #[must_use]
    pub fn for_seed(self, seed: u64) -> Self {
        match seed % 4 {
            0 | 1 => Self::default(),
            2 => Self { f64: false, ..self },
            _ => self,
        }
    }
}

/// A kernel as text, with its data and its launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The seed that it was generated from.
    pub seed: u64,
    /// The WGSL source, with one entry point.
    pub source: String,
    /// The content of each buffer before the launch, in the order of the bindings.
    pub buffers: Vec<Vec<u8>>,
    /// The value of `var<immediate>`, if there is one.
    pub immediates: Option<Vec<u8>>,
    /// Workgroups to launch along x, y and z.
    pub groups: [u32; 3],
}

/// Generates the kernel of a seed.
#[must_use]
pub fn kernel(seed: u64, features: Features) -> RandomKernel {
    draw::kernel(seed, features)
}

impl RandomKernel {
    /// Returns the kernel as text, with its data.
    #[must_use]
    pub fn case(&self) -> Case {
        let source = print::source(self);
        let used: Vec<&Global> = print::used_globals(self, &source).collect();
        let bound = used.iter().filter(|global| print::is_bound(global.space));
        let buffers = bound.map(|global| self.content(global)).collect();
        let immediate = used.iter().find(|global| global.space == Space::Immediate);
        let immediates = immediate.map(|global| global.content.clone());
        Case { seed: self.seed, source, buffers, immediates, groups: self.groups }
    }

    /// Returns the initial content of a buffer; outputs are zero.
    fn content(&self, global: &Global) -> Vec<u8> {
        if global.space != Space::Output {
            return global.content.clone();
        }
        let (align, size) = layout(&global.ty, &self.structs);
        let invocations: u32 = self.workgroup_size.iter().chain(&self.groups).product();
        vec![0; size.next_multiple_of(align) * global.count * invocations as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_depend_on_seed_only() {
        for seed in 0..20 {
            assert_eq!(kernel(seed, Features::ALL), kernel(seed, Features::ALL));
            assert_ne!(
                kernel(seed, Features::ALL).case().source,
                kernel(seed + 1, Features::ALL).case().source
            );
        }
    }

    #[test]
    fn no_float_is_rounded() {
        for seed in 0..1000 {
            assert!(walk::is_exact(&kernel(seed, Features::ALL)), "seed {seed}");
        }
    }
}
