//! Addresses within the largest possible bindings: 4 GiB minus 4 bytes.

use scry_ir::kir::{AddressSpace, Builder, Builtin, Place, Type, Value};

use crate::lower::{Param, PtxOptions, translate};
use crate::target::Target;

const LARGEST: u64 = (4 << 30) - 4;

#[test]
fn largest_binding_has_32_bit_indices() {
    for (stride, scalars) in [(4, 1), (12, 3), (16, 4), (2, 1), (24, 6), (1 << 20, 1 << 18)] {
        let length = Param::Length { buffer: 0, offset: 0, stride };
        let elements = u64::from(length.elements(LARGEST));
        assert_eq!(elements, LARGEST / u64::from(stride));
        assert!(elements * scalars <= 1 << 31 && elements <= u64::from(u32::MAX / stride));
    }
    let behind = Param::Length { buffer: 0, offset: 16, stride: 4 };
    assert_eq!(behind.elements(LARGEST), (1 << 30) - 5);
}

/// Returns the code that copies the word at an index of a buffer.
fn copy(index: &dyn Fn(&mut Builder) -> Value) -> String {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    let (to, from) = (b.buffer(true), b.buffer(false));
    let index = index(&mut b);
    let word = b.load(Type::U32, Place::new(AddressSpace::Binding(from), Some(index), 4, 0), 1)[0];
    b.store(Place::new(AddressSpace::Binding(to), None, 4, 0), vec![word]);
    translate(&b.finish(), &PtxOptions::new(Target::SM_75)).text
}

#[test]
fn binding_offsets_have_64_bits() {
    let varies = copy(&|b| b.builtin(Builtin::LocalId(0)));
    assert!(varies.contains("mad.wide.u32 %d"), "{varies}");
    let last = copy(&|b| b.u32((1 << 30) - 2));
    assert!(last.contains("add.u64 %d") && last.contains(", 4294967288;"), "{last}");
}
