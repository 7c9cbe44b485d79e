//! Tests of addresses, up to those in bindings of the maximum size, and of the barriers of uniform
//! loads.

use scry_ir::kir::{Access, AddressSpace, Builder, Builtin, Place, Type, Value};

use crate::lower::{Param, PtxOptions, translate};
use crate::target::Target;

/// Maximum size of a binding in bytes.
const MAX_BINDING: u64 = (4 << 30) - 4;

#[test]
fn largest_binding_has_32_bit_indices() {
    for (stride, scalars) in [(4, 1), (12, 3), (16, 4), (2, 1), (24, 6), (1 << 20, 1 << 18)] {
        let length = Param::Length { buffer: 0, offset: 0, stride };
        let elements = u64::from(length.elements(MAX_BINDING));
        assert_eq!(elements, MAX_BINDING / u64::from(stride));
        assert!(elements * scalars <= 1 << 31 && elements <= u64::from(u32::MAX / stride));
    }
    let with_header = Param::Length { buffer: 0, offset: 16, stride: 4 };
    assert_eq!(with_header.elements(MAX_BINDING), (1 << 30) - 5);
}

/// Returns the PTX of a kernel that copies the `u32` at an index of a buffer.
fn copy_kernel(index: &dyn Fn(&mut Builder) -> Value) -> String {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    let (to, from) = (b.buffer(Access::ReadWrite), b.buffer(Access::Read));
    let index = index(&mut b);
    let word = b.load(Type::U32, Place::new(AddressSpace::Binding(from), Some(index), 4, 0), 1)[0];
    b.store(Place::new(AddressSpace::Binding(to), None, 4, 0), vec![word]);
    translate(&b.finish(), &PtxOptions::new(Target::SM_75)).text
}

/// Returns the barriers and the loads from shared memory of a kernel, in order, from the first load
/// on. `fill` emits the code before its last load.
fn barriers_and_loads(fill: impl FnOnce(&mut Builder, AddressSpace)) -> Vec<&'static str> {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
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
    let adjacent =
        barriers_and_loads(|b, shared| [0, 16].iter().for_each(|at| load(b, shared, *at)));
    assert_eq!(adjacent, ["load", "load", "barrier", "load"]);
    let separate = barriers_and_loads(|b, shared| {
        load(b, shared, 0);
        let one = b.u32(1);
        b.store(Place::new(shared, None, 0, 8), vec![one]);
        load(b, shared, 16);
    });
    assert_eq!(separate, ["load", "barrier", "barrier", "load", "barrier", "load"]);
}

#[test]
fn binding_offsets_have_64_bits() {
    let varying = copy_kernel(&|b| b.builtin(Builtin::LocalId(0)));
    assert!(varying.contains("mad.wide.u32 %d"), "{varying}");
    let constant = copy_kernel(&|b| b.u32((1 << 30) - 2));
    assert!(constant.contains("add.u64 %d") && constant.contains(", 4294967288;"), "{constant}");
}
