//! Tests of racy kernels on several threads: whatever the results, no access may be a data race in
//! Rust. Miri checks that, so the kernels are small; without Miri the tests check the defined
//! results.

use scry_ir::kir::{Access, AddressSpace, AtomicOp, BinaryOp, Builder, Builtin, Kir, Place, Type};

use super::support::{BuilderExt, TestLaunch, bytes, noise, words};
use crate::Machine;

/// Returns a kernel with workgroups of this width, and one buffer.
fn kernel(width: u32, fill: impl FnOnce(&mut Builder)) -> Kir {
    let mut b = Builder::new("race", [width, 1, 1]);
    b.buffer(Access::ReadWrite);
    fill(&mut b);
    b.finish()
}

/// Returns the content of a buffer of `length` words after a launch on several threads.
fn race(kir: &Kir, groups: u32, length: usize) -> Vec<u32> {
    let launch = TestLaunch::new([groups, 1, 1], &[bytes(&noise(length))]);
    words(&launch.run_split(kir, 2)[0])
}

#[test]
fn miri_all_invocations_write_one_element() {
    let kir = kernel(4, |b| {
        let number = b.global_index();
        let first = b.u32(1);
        b.store_word(0, first, number);
    });
    let out = race(&kir, 4, 3);
    assert!(out[1] < 16, "{out:?}");
    assert_eq!([out[0], out[2]], [noise(3)[0], noise(3)[2]]);
}

#[test]
fn miri_neighbours_read_concurrent_writes() {
    let kir = kernel(16, |b| {
        let number = b.global_index();
        let one = b.u32(1);
        let next = b.add(number, one);
        let value = b.load_word(0, next);
        b.store_word(0, number, value);
    });
    let out = race(&kir, 4, 64);
    // Each invocation reads its neighbour's element before or after the write; the last one reads
    // out of bounds.
    assert_eq!(out[63], 0);
}

#[test]
fn miri_rows_written_by_several_threads() {
    let mut b = Builder::new("race", [16, 2, 1]);
    b.buffer(Access::ReadWrite);
    let x = b.global_x();
    let row = b.builtin(Builtin::GroupId(1));
    let old = b.load_word(0, x);
    let changed = b.binary(BinaryOp::Xor, old, old);
    let new = b.add(row, changed);
    b.store_word(0, x, new);
    let launch = TestLaunch::new([2, 2, 1], &[bytes(&noise(32))]);
    let out = words(&launch.run_split(&b.finish(), 2)[0]);
    assert!(out.iter().all(|row| *row < 2), "{out:?}");
}

#[test]
fn miri_scattered_writes_meet_scattered_reads() {
    let kir = kernel(16, |b| {
        let number = b.global_index();
        let factor = b.u32(7);
        let product = b.mul(number, factor);
        let mask = b.u32(15);
        let index = b.binary(BinaryOp::And, product, mask);
        let old = b.load_word(0, index);
        let other = b.binary(BinaryOp::Xor, old, mask);
        b.store_word(0, other, number);
        b.store_word(0, index, number);
    });
    assert!(race(&kir, 4, 16).iter().all(|word| *word < 64));
}

/// Returns the kernel `out[i] = out[i] + 1` with a clamped index. In a one-dimensional launch, all
/// elements but the last are accessed by one invocation only. If workgroups fill whole blocks of
/// lanes, most of these accesses are not atomic.
fn own_elements(width: u32) -> Kir {
    kernel(width, |b| {
        let x = b.global_x();
        let index = b.clamped(x, 0, 0, 4);
        let old = b.load_word(0, index);
        let one = b.u32(1);
        let new = b.add(old, one);
        b.store_word(0, index, new);
    })
}

#[test]
fn miri_clamped_indices_share_last_element() {
    for length in [64, 50, 33, 20, 1] {
        let out = race(&own_elements(16), 4, length);
        let before = noise(length);
        let last = length - 1;
        for (found, before) in out[..last].iter().zip(&before) {
            assert_eq!(*found, before.wrapping_add(1));
        }
        let added = out[last].wrapping_sub(before[last]) as usize;
        assert!((1..=64 - last).contains(&added), "{length} elements: {added} were added");
    }
}

#[test]
fn miri_own_elements_in_partial_blocks() {
    // Lanes beyond a workgroup correspond to elements of the next workgroup.
    for width in [1, 5, 17, 33] {
        let length = 4 * width as usize + 3;
        let out = race(&own_elements(width), 4, length);
        let (before, own) = (noise(length), 4 * width as usize);
        assert!(out[..own].iter().zip(&before).all(|(a, b)| *a == b.wrapping_add(1)), "{width}");
        assert_eq!(out[own..], before[own..]);
    }
}

#[test]
fn miri_own_struct_elements_after_header() {
    // Elements of two words after a header of one word; a single word at the end is not an element.
    let kir = kernel(16, |b| {
        let x = b.global_x();
        let index = b.clamped(x, 0, 4, 8);
        let first = Place::new(AddressSpace::Binding(0), Some(index), 8, 4);
        b.store(first, vec![x]);
    });
    for length in 32..37 {
        let out = race(&kir, 4, length);
        let (before, elements) = (noise(length), (length - 1) / 2);
        for (element, pair) in out[1..].chunks_exact(2).enumerate() {
            let last = element == elements - 1;
            assert!(
                pair[0] == element as u32 || last && (element..64).contains(&(pair[0] as usize))
            );
            assert_eq!(pair[1], before[2 * element + 2]);
        }
    }
}

#[test]
fn miri_index_clamped_to_other_buffer() {
    // Invocations beyond the length of the shorter buffer share its last index.
    let mut b = Builder::new("race", [16, 1, 1]);
    let (short, long) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let x = b.global_x();
    let index = b.clamped(x, short, 0, 4);
    b.store_word(long, index, x);
    let kir = b.finish();
    let launch = TestLaunch::new([4, 1, 1], &[bytes(&noise(16)), bytes(&noise(64))]);
    let out = words(&launch.run_split(&kir, 2)[1]);
    assert!(out[..15].iter().zip(0..).all(|(found, number)| *found == number));
    assert!((15..64).contains(&out[15]));
    assert_eq!(out[16..], noise(64)[16..]);
}

#[test]
fn miri_own_elements_in_2d_launches() {
    // Workgroups of different rows have the same positions along x.
    let launch = TestLaunch::new([2, 2, 1], &[bytes(&noise(40))]);
    let out = words(&launch.run_split(&own_elements(16), 4)[0]);
    for (found, before) in out.iter().zip(noise(40)).take(32) {
        assert!((1..=2).contains(&found.wrapping_sub(before)));
    }
}

#[test]
fn miri_elements_of_other_sizes() {
    for ty in [Type::U16, Type::U64, Type::F16] {
        let kir = kernel(16, |b| {
            let x = b.global_x();
            let zero = b.u32(0);
            let size = ty.size();
            let index = b.clamped(x, 0, 0, size);
            let shared = Place::new(AddressSpace::Binding(0), Some(zero), size, 0);
            let own = Place::new(AddressSpace::Binding(0), Some(index), size, 0);
            let value = b.load(ty, shared, 1)[0];
            b.store(own, vec![value]);
        });
        let out = race(&kir, 3, 96);
        assert_eq!(out.len(), 96);
    }
}

#[test]
fn miri_atomic_slots_are_unique() {
    let kir = kernel(8, |b| {
        let zero = b.u32(0);
        let place = Place::new(AddressSpace::Binding(0), Some(zero), 4, 0);
        let one = b.u32(1);
        let old = b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
        // The slot belongs to this invocation alone.
        let slot = b.add(old, one);
        b.store_word(0, slot, one);
    });
    let launch = TestLaunch::new([4, 1, 1], &[bytes(&[0; 33])]);
    let out = words(&launch.run_split(&kir, 2)[0]);
    assert_eq!(out[0], 32);
    assert!(out[1..].iter().all(|slot| *slot == 1));
}

#[test]
fn miri_machine_with_several_threads() {
    // A kernel with a loop has no cost estimate, so that several threads are used.
    let kir = kernel(16, |b| {
        let x = b.global_x();
        b.finite_loop(|b, label| {
            let zero = b.u32(0);
            b.store_word(0, zero, x);
            b.store_word(0, x, x);
            b.break_to(label);
        });
    });
    let launch = TestLaunch::new([6, 1, 1], &[bytes(&noise(96))]);
    let machine = Machine::new(3);
    for _ in 0..2 {
        let out = words(&launch.run(&kir, &machine)[0]);
        assert!((1..96).all(|n| out[n] == n as u32) && out[0] < 96);
    }
}

#[test]
fn miri_divergence_with_every_memory_space() {
    let mut b = Builder::new("all", [6, 2, 1]);
    let buffer = b.buffer(Access::ReadWrite);
    let (shared, local) = (b.workgroup_array(Type::U32, 12), b.local_array(Type::U16, 3));
    b.immediates(8);
    let own = b.local_index();
    let number = b.global_index();
    let place = Place::new(AddressSpace::Immediate, None, 4, 4);
    let immediate = b.load(Type::U32, place, 1)[0];
    let low = b.compare(BinaryOp::Lt, own, 5);
    b.if_else(
        low,
        |b| {
            let sum = b.add(number, immediate);
            b.store(Place::new(shared, Some(own), 4, 0), vec![sum]);
        },
        |b| {
            let short = b.convert(Type::U16, number);
            let three = b.u32(3);
            let index = b.binary(BinaryOp::Rem, own, three);
            b.store(Place::new(local, Some(index), 2, 0), vec![short]);
            let back = b.load(Type::U16, Place::new(local, None, 2, 2), 1)[0];
            let wide = b.convert(Type::U32, back);
            b.store(Place::new(shared, Some(own), 4, 0), vec![wide]);
        },
    );
    let value = b.load(Type::U32, Place::new(shared, Some(own), 4, 0), 1)[0];
    b.store_word(buffer, number, value);
    let mut launch = TestLaunch::new([2, 1, 1], &[bytes(&[0; 24])]);
    launch.immediates = bytes(&[1, 100]);
    let out = words(&launch.run_split(&b.finish(), 2)[0]);
    assert_eq!(out[..6], [100, 101, 102, 103, 104, 0]);
    assert_eq!(out[7..9], [7, 0]);
}
