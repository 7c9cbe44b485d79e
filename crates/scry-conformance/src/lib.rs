//! The conformance suite of scry-gpu as data: guarantees of WGSL and of the API.
//!
//! A [`Test`] is a list of [`Case`]s: kernels with their inputs and expected results, computed on
//! the host from the rules of WGSL, never recorded from a device. [`run()`] checks a case with
//! blocking calls, [`run_async`] with asynchronous ones: a test program and a web page run the same
//! list. Nothing here needs threads, processes or files.
//!
//! ```
//! use scry_conformance::{find, run, run_async};
//! use scry_gpu::Device;
//!
//! let gpu = Device::open("cpu").unwrap();
//! let test = find("arithmetic", "short_circuits_skip_the_second_operand").unwrap();
//! for case in (test.cases)(gpu.info()) {
//!     run(&gpu, &case).unwrap();
//!     pollster::block_on(run_async(&gpu, &case)).unwrap();
//! }
//! ```

#![forbid(unsafe_code)]

mod bounds_test;
mod case;
mod cases;
mod check;
mod guarded;
mod judge;
mod outputs;
mod random;
mod registry;
mod run;
mod table;
mod ty;
mod typed;

use scry_gpu::DeviceInfo;

pub use case::{
    BufferBinding, Case, CaseLaunch, Content, Data, Expected, ExpectedValue, Failure, Needs,
    OnUnsupportedOp, Property,
};
pub use judge::{Mismatch, Report};
pub use outputs::Outputs;
pub use random::random_f32;
pub use registry::{find, tests};
pub use run::{run, run_async};
pub use ty::Ty;

/// A guarantee, and the cases that check it.
pub struct Test {
    /// The topic: the module that the test is in.
    pub topic: &'static str,
    /// The name, unique within the topic.
    pub name: &'static str,
    /// The cases for a device, to be run in order. Sizes may depend on its limits.
    pub cases: fn(&DeviceInfo) -> Cases,
}

/// The cases of a test, computed lazily.
pub struct Cases(Box<dyn Iterator<Item = Case>>);

impl Cases {
    /// Creates a lazy list of cases.
    pub fn new(cases: impl Iterator<Item = Case> + 'static) -> Self {
        Self(Box::new(cases))
    }
}

impl Iterator for Cases {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        self.0.next()
    }
}

impl From<Case> for Cases {
    fn from(case: Case) -> Self {
        Self::new(std::iter::once(case))
    }
}

impl From<Vec<Case>> for Cases {
    fn from(cases: Vec<Case>) -> Self {
        Self::new(cases.into_iter())
    }
}
