//! Identifies the version of the code that compiles sources to a `Program` and its KIR.

use std::any::TypeId;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// Identifies this build of the crate: two builds with the same number generate the same KIR from
/// the same source. Caches of generated code include it in their keys.
///
/// It is a hash of the crate's sources, which its build script computes, and of the `TypeId` of a
/// type of naga, which differs between versions of naga and of the compiler.
#[must_use]
pub fn build_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("SOURCE_HASH").hash(&mut hasher);
    TypeId::of::<naga::Module>().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_build_has_one_id() {
        assert_eq!(super::build_id(), super::build_id());
        assert_ne!(env!("SOURCE_HASH").parse(), Ok(0_u64));
    }
}
