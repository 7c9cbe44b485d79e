//! The contents of bindings after the launches.

use crate::ty::{Ty, unpack};

/// The contents of the bindings of a case after its launches.
pub struct Outputs(pub(crate) Vec<Vec<u8>>);

impl Outputs {
    /// The bytes of a binding.
    pub fn bytes(&self, binding: usize) -> &[u8] {
        &self.0[binding]
    }

    /// The words of a binding; bytes after the last whole word are omitted.
    pub fn words(&self, binding: usize) -> Vec<u32> {
        let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        self.0[binding].chunks_exact(4).map(word).collect()
    }

    /// The bits of the first values of a type in a binding.
    pub fn values(&self, binding: usize, ty: Ty, len: usize) -> Vec<u64> {
        unpack(ty, &self.words(binding), len)
    }

    /// The first floats of a type in a binding.
    pub fn floats(&self, binding: usize, ty: Ty, len: usize) -> Vec<f64> {
        self.values(binding, ty, len).into_iter().map(|bits| ty.float(bits)).collect()
    }
}
