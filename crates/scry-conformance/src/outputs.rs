//! The contents of bindings after the launches.

use crate::ty::{Ty, unpack};

/// The contents of the bindings of a case after its launches.
pub struct Outputs(pub(crate) Vec<Vec<u8>>);

impl Outputs {
    /// Returns the bytes of a binding.
    pub fn bytes(&self, binding: usize) -> &[u8] {
        &self.0[binding]
    }

    /// Returns the words of a binding, without bytes after the last whole word.
    pub fn words(&self, binding: usize) -> Vec<u32> {
        let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        self.0[binding].chunks_exact(4).map(word).collect()
    }

    /// Returns the bits of the first `len` values of a type in a binding.
    pub fn values(&self, binding: usize, ty: Ty, len: usize) -> Vec<u64> {
        unpack(ty, &self.words(binding), len)
    }

    /// Returns the first `len` floats of a type in a binding, converted to f64.
    pub fn floats(&self, binding: usize, ty: Ty, len: usize) -> Vec<f64> {
        self.values(binding, ty, len).into_iter().map(|bits| ty.float(bits)).collect()
    }
}
