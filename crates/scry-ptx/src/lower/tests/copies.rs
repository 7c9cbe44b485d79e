//! Tests of kernels that only load and store.

use scry_ir::kir::{Access, AddressSpace, Builder, Kir, Place, Type};

use super::support;

/// Returns a kernel that copies one value of a type.
fn kernel(ty: Type) -> Kir {
    let mut b = Builder::new("copy", [32, 1, 1]);
    let buffer = b.buffer(Access::ReadWrite);
    let value = b.load(ty, Place::new(AddressSpace::Binding(buffer), None, 0, 0), 1);
    b.store(Place::new(AddressSpace::Binding(buffer), None, 0, 16), value);
    b.finish()
}

#[test]
fn copies_of_every_type_assemble() {
    // Buffers cannot have elements of type bool.
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Bool) {
        support::assert_assembles(&kernel(ty));
    }
}
