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

/// The barriers, and loads from shared memory, of a kernel.
fn synchronisation(fill: impl FnOnce(&mut Builder, AddressSpace)) -> Vec<&'static str> {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    let out = b.buffer(true);
    let shared = b.workgroup_array(Type::U32, 8);
    fill(&mut b, shared);
    let word = b.load(Type::U32, Place::new(shared, None, 0, 4), 1)[0];
    b.store(Place::new(AddressSpace::Binding(out), None, 4, 0), vec![word]);
    let text = translate(&b.finish(), &PtxOptions::new(Target::SM_75)).text;
    let names = [("bar.sync", "barrier"), ("barrier.sync", "barrier"), ("ld.shared", "load")];
    text.lines()
        .skip_while(|line| !line.contains("ld.shared") && !line.contains("ld.volatile"))
        .filter_map(|line| names.iter().find(|(op, _)| line.contains(op)).map(|(_, name)| *name))
        .collect()
}

#[test]
fn adjacent_uniform_loads_share_barriers() {
    let load = |b: &mut Builder, shared, offset| {
        b.workgroup_uniform_load(Type::U32, Place::new(shared, None, 0, offset), 1);
    };
    let adjacent = synchronisation(|b, shared| [0, 16].iter().for_each(|at| load(b, shared, *at)));
    assert_eq!(adjacent, ["load", "load", "barrier", "load"]);
    let apart = synchronisation(|b, shared| {
        load(b, shared, 0);
        let one = b.u32(1);
        b.store(Place::new(shared, None, 0, 8), vec![one]);
        load(b, shared, 16);
    });
    assert_eq!(apart, ["load", "barrier", "barrier", "load", "barrier", "load"]);
}

#[test]
fn binding_offsets_have_64_bits() {
    let varies = copy(&|b| b.builtin(Builtin::LocalId(0)));
    assert!(varies.contains("mad.wide.u32 %d"), "{varies}");
    let last = copy(&|b| b.u32((1 << 30) - 2));
    assert!(last.contains("add.u64 %d") && last.contains(", 4294967288;"), "{last}");
}
