//! An identifier of the code generator.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// Returns an identifier of this build of the crate and of scry-ir: two builds with the same
/// identifier translate the same source to the same PTX. Caches of generated code use it as part of
/// their keys.
#[must_use]
pub fn build_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("SOURCE_HASH").hash(&mut hasher);
    scry_ir::build_id().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn id_differs_from_that_of_scry_ir() {
        assert_eq!(super::build_id(), super::build_id());
        assert_ne!(super::build_id(), scry_ir::build_id());
    }
}
