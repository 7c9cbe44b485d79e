//! Tests of loads and stores with all kinds of indices.

use scry_ir::kir::{Access, AddressSpace, BinaryOp, Builder, Kir, Place, Type, Value};

use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise, words};
use crate::Machine;

/// Returns a kernel that reads one buffer and writes another.
fn kernel(shape: [u32; 3], fill: impl FnOnce(&mut Builder, AddressSpace, AddressSpace)) -> Kir {
    let mut b = Builder::new("memory", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    fill(&mut b, AddressSpace::Binding(input), AddressSpace::Binding(out));
    b.finish()
}

/// Asserts that a kernel computes the results of the reference interpreter in workgroups of every
/// shape, on buffers with about `words_each` words per invocation.
fn assert_agrees(words_each: u32, fill: impl Fn(&mut Builder, AddressSpace, AddressSpace)) {
    for shape in SHAPES {
        for extra in [0, 3, -2] {
            let size = (shape.iter().product::<u32>() * 4 * words_each) as i32 + extra;
            let size = usize::try_from(size).unwrap_or(0);
            let buffers = [bytes(&noise(size)), bytes(&vec![7; size])];
            TestLaunch::new([2, 2, 1], &buffers).assert_agrees(&kernel(shape, &fill));
        }
    }
}

/// Returns the place of an element.
fn at(space: AddressSpace, index: Value, stride: u32, offset: u32) -> Place {
    Place::new(space, Some(index), stride, offset)
}

#[test]
fn consecutive_elements_and_vectors() {
    for count in 1..=4u8 {
        for member in [0, 4] {
            assert_agrees(u32::from(count), |b, input, out| {
                let number = b.global_index();
                let stride = 4 * u32::from(count);
                let values = b.load(Type::U32, at(input, number, stride, member), count);
                b.store(at(out, number, stride, member), values);
            });
        }
    }
}

#[test]
fn strided_and_repeated_elements() {
    for factor in [0, 2, 3, 5] {
        assert_agrees(2, |b, input, out| {
            let number = b.global_index();
            let factor = b.u32(factor);
            let index = b.mul(number, factor);
            let value = b.load(Type::U32, at(input, index, 4, 0), 1);
            b.store(at(out, number, 8, 4), value);
        });
    }
}

#[test]
fn reversed_and_row_indices() {
    assert_agrees(1, |b, input, out| {
        let number = b.global_index();
        let last = b.u32(50);
        let index = b.binary(BinaryOp::Sub, last, number);
        let value = b.load(Type::U32, at(input, index, 4, 0), 1);
        b.store(at(out, number, 4, 0), value);
    });
    assert_agrees(1, |b, input, out| {
        let [x, y, z] = [0, 1, 2].map(|axis| b.local_id(axis));
        let [row, slice] = [32, 5].map(|size| b.u32(size));
        let rows = b.mul(y, row);
        let slices = b.mul(z, slice);
        let index = b.add(rows, x);
        let index = b.add(index, slices);
        let value = b.load(Type::U32, at(input, index, 4, 0), 1);
        let number = b.global_index();
        b.store(at(out, number, 4, 0), value);
    });
}

#[test]
fn gather_scatter_and_out_of_bounds() {
    // An odd factor maps each invocation to an element of its own.
    assert_agrees(1, |b, input, out| {
        let number = b.global_index();
        let factor = b.u32(0x9e37_79b1);
        let mixed = b.mul(number, factor);
        let low = b.u32(63);
        let near = b.binary(BinaryOp::And, mixed, low);
        let value = b.load(Type::U32, at(input, near, 4, 0), 1)[0];
        let far = b.load(Type::U32, at(input, mixed, 8, 4), 2);
        let sum = b.add(value, far[0]);
        let sum = b.add(sum, far[1]);
        b.store(at(out, number, 4, 0), vec![sum]);
        b.store(at(out, mixed, 4, 0), vec![number]);
    });
}

#[test]
fn uniform_addresses() {
    assert_agrees(1, |b, input, out| {
        let first = b.load(Type::U32, Place::new(input, None, 4, 0), 2);
        let x = b.builtin(scry_ir::kir::Builtin::GroupId(0));
        let second = b.load(Type::U32, at(input, x, 4, 4), 1);
        let sum = b.add(first[1], second[0]);
        let number = b.global_index();
        b.store(at(out, number, 4, 0), vec![sum]);
    });
    // All invocations write the same value.
    assert_agrees(1, |b, _, out| {
        let nine = b.u32(9);
        b.store(Place::new(out, None, 4, 4), vec![nine]);
    });
}

#[test]
fn last_invocation_wins_write_conflict() {
    let kir = kernel([7, 3, 2], |b, _, out| {
        let index = b.local_index();
        b.store(Place::new(out, None, 4, 0), vec![index]);
    });
    let launch = TestLaunch::new([1, 1, 1], &[Vec::new(), bytes(&[5, 6])]);
    assert_eq!(words(&launch.run(&kir, &Machine::new(1))[1]), [41, 6]);
}

#[test]
fn inactive_lanes_do_not_store() {
    assert_agrees(2, |b, input, out| {
        let number = b.global_index();
        let noise = b.load(Type::U32, at(input, number, 4, 0), 1)[0];
        let one = b.u32(1);
        let bit = b.binary(BinaryOp::And, noise, one);
        let odd = b.compare(BinaryOp::Eq, bit, 1);
        b.if_then(odd, |b| {
            let other = b.load(Type::U32, at(input, number, 8, 0), 2);
            b.store(at(out, number, 8, 0), other);
        });
        let late = b.compare(BinaryOp::Ge, number, 9);
        b.if_then(late, |b| b.store(at(out, number, 8, 4), vec![number]));
    });
}

#[test]
fn elements_of_every_size() {
    for ty in [Type::U16, Type::I16, Type::F16, Type::U64, Type::I64, Type::F64, Type::F32] {
        assert_agrees(4, |b, input, out| {
            let (number, size) = (b.global_index(), ty.size());
            let values = b.load(ty, at(input, number, 2 * size, 0), 2);
            let one = b.u32(1);
            let next = b.add(number, one);
            let other = b.load(ty, at(input, next, size, 0), 1)[0];
            b.store(at(out, number, 2 * size, 0), vec![values[1], other]);
        });
    }
}

#[test]
fn clamped_global_indices() {
    // Whole blocks of elements are written non-atomically, except near the last element, which all
    // clamped indices share.
    for (stride, count) in [(4, 1), (8, 2), (16, 3), (16, 4)] {
        for width in [16, 33, 64, 256] {
            let kir = kernel([width, 1, 1], |b, input, out| {
                let x = b.global_x();
                let binding = |space: AddressSpace| match space {
                    AddressSpace::Binding(binding) => binding,
                    _ => unreachable!("these are buffers"),
                };
                let from = b.clamped(x, binding(input), 0, stride);
                let to = b.clamped(x, binding(out), 0, stride);
                let values = b.load(Type::U32, at(input, from, stride, 0), count);
                b.store(at(out, to, stride, 0), values);
            });
            for elements in [1, 15, 64, 257, 1024] {
                let size = elements * stride as usize / 4;
                let buffers = [bytes(&noise(size)), bytes(&vec![7; size])];
                TestLaunch::new([4, 1, 1], &buffers).assert_agrees(&kir);
            }
        }
    }
}

#[test]
fn private_arrays() {
    for ty in [Type::U16, Type::U32, Type::U64] {
        assert_agrees(2, |b, input, out| {
            let array = b.local_array(ty, 5);
            let number = b.global_index();
            let size = ty.size();
            let noise = b.load(Type::U32, at(input, number, 4, 0), 1)[0];
            let value = b.convert(ty, noise);
            let seven = b.u32(7);
            // Uniform, strided and scattered; 5 and 6 are out of bounds.
            b.store(Place::new(array, None, size, size), vec![value, value]);
            let x = b.local_id(0);
            b.store(at(array, x, size, 0), vec![value]);
            let index = b.binary(BinaryOp::Rem, noise, seven);
            let high = b.compare(BinaryOp::Gt, index, 2);
            b.if_then(high, |b| {
                let inverted = b.not(value);
                b.store(at(array, index, size, 0), vec![inverted]);
            });
            let [first, fourth] = [0, 4 * size].map(|offset| {
                let element = b.load(ty, Place::new(array, None, size, offset), 1)[0];
                b.convert(Type::U32, element)
            });
            let loaded = b.load(ty, at(array, index, size, 0), 1)[0];
            let loaded = b.convert(Type::U32, loaded);
            let sum = b.add(first, loaded);
            let sum = b.binary(BinaryOp::Xor, sum, fourth);
            b.store(at(out, number, 4, 0), vec![sum]);
        });
    }
}

#[test]
fn workgroup_memory_and_out_of_bounds() {
    for ty in [Type::U16, Type::U32, Type::U64] {
        assert_agrees(1, |b, input, out| {
            let len = b.kir().workgroup_size.iter().product();
            let (array, size) = (b.workgroup_array(ty, len), ty.size());
            let other = b.workgroup_array(ty, 3);
            let (index, number) = (b.local_index(), b.global_index());
            let before = b.load(ty, at(array, index, size, 0), 1)[0];
            let noise = b.load(Type::U32, at(input, number, 4, 0), 1)[0];
            let value = b.convert(ty, noise);
            let sum = b.add(value, before);
            let low = b.compare(BinaryOp::Lt, noise, 1 << 31);
            b.if_then(low, |b| b.store(at(array, index, size, 0), vec![sum]));
            let back = b.load(ty, at(array, index, size, 0), 1)[0];
            // Far out of bounds.
            let far = b.u32(1 << 30);
            let beyond = b.add(number, far);
            b.store(at(other, beyond, size, 0), vec![value]);
            let next = b.u32(1 << 20);
            let beyond = b.add(beyond, next);
            let zero = b.load(ty, at(other, beyond, size, 0), 1)[0];
            let result = b.add(back, zero);
            let result = b.convert(Type::U32, result);
            b.store(at(out, number, 4, 0), vec![result]);
        });
    }
}

#[test]
fn immediates_of_all_sizes() {
    let kir = kernel([5, 1, 1], |b, _, out| {
        b.immediates(24);
        let number = b.global_index();
        let word = b.load(Type::U32, at(AddressSpace::Immediate, number, 4, 0), 1)[0];
        let pair = b.load(Type::U32, Place::new(AddressSpace::Immediate, None, 4, 16), 2);
        let long = b.load(Type::U64, Place::new(AddressSpace::Immediate, None, 8, 8), 1)[0];
        let short = b.load(Type::U16, Place::new(AddressSpace::Immediate, None, 2, 6), 1)[0];
        let [long, short] = [long, short].map(|value| b.convert(Type::U32, value));
        let sum = [pair[0], pair[1], long, short].into_iter().fold(word, |a, c| b.add(a, c));
        b.store(at(out, number, 4, 0), vec![sum]);
    });
    let mut launch = TestLaunch::new([3, 1, 1], &[Vec::new(), bytes(&[0; 15])]);
    launch.immediates = bytes(&noise(6));
    launch.assert_agrees(&kir);
}
