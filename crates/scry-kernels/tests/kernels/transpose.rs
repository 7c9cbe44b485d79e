//! Tests of transposes and permutations of axes.

use scry_gpu::{Binding, Device};
use scry_kernels::Kernels;
use scry_test_support::{on_each_device, succeed};

use crate::for_each_number;
use crate::support::{Bits, any_bits, bits_of, each_variant, supported, type_name};

/// Batch, rows and columns: whole and partial tiles of blocks, tiles of every shape, and matrices
/// that are too small for tiles.
const SHAPES: [[usize; 3]; 22] = [
    [1, 1, 1],
    [1, 1, 129],
    [1, 129, 1],
    [2, 2, 3],
    [1, 3, 2],
    [300, 3, 5],
    [1, 64, 64],
    [2, 48, 52],
    [1, 128, 68],
    [1, 192, 132],
    [1, 65, 129],
    [2, 33, 127],
    [1, 31, 1009],
    [1, 3, 4097],
    [1, 4097, 3],
    [2, 2, 1009],
    [1, 1009, 2],
    [1, 257, 16],
    [1, 9, 257],
    [1, 20, 48],
    [3, 4, 64],
    [1, 17, 65],
];

/// Permutes the axes of a row-major array.
fn permuted<T: Copy>(x: &[T], dims: &[usize], axes: &[usize]) -> Vec<T> {
    let stride = |axis: usize| dims[axis + 1..].iter().product::<usize>();
    let position = |mut at: usize| {
        let mut from = 0;
        for axis in axes.iter().rev() {
            from += at % dims[*axis] * stride(*axis);
            at /= dims[*axis];
        }
        from
    };
    (0..x.len()).map(|at| x[position(at)]).collect()
}

/// Uploads elements, and as many others and one more, which must not be written.
fn input_and_output<T: Bits>(gpu: &Device, x: &[T]) -> [scry_gpu::Buffer<T>; 2] {
    [succeed(gpu.upload(x)), succeed(gpu.upload(&any_bits::<T>(7, x.len() + 1)))]
}

#[track_caller]
fn assert_written<T: Bits>(what: &str, y: &scry_gpu::Buffer<T>, expected: &[T]) {
    let y = succeed(y.download());
    let differs = y.iter().zip(expected).position(|(y, expected)| y.bits() != expected.bits());
    assert_eq!(differs, None, "{what}: an element differs");
    let poison = any_bits::<T>(7, y.len());
    assert_eq!(y[expected.len()].bits(), poison[expected.len()].bits(), "{what}: wrote beyond");
}

fn check_transpose<T: Bits>(kernels: &Kernels, what: &str) {
    for [batch, rows, columns] in SHAPES {
        let x = any_bits::<T>(1, batch * rows * columns);
        let [input, y] = input_and_output(kernels.device(), &x);
        let op = match batch {
            1 => kernels.transpose(&input, &y, rows, columns),
            _ => kernels.transpose_batch(&input, &y, batch, rows, columns),
        };
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let expected = permuted(&x, &[batch, rows, columns], &[0, 2, 1]);
        let what = format!("{what}, {} {batch} x {rows} x {columns}", type_name::<T>());
        assert_written(&what, &y, &expected);
    }
}

#[test]
fn transposes_are_exact() {
    each_variant("transpose", |kernels, what| {
        for_each_number!(check_transpose(kernels, what));
    });
}

/// Sizes and orders of axes: each method with up to four further axes.
const PERMUTATIONS: [(&[usize], &[usize]); 16] = [
    (&[], &[]),
    (&[5], &[0]),
    (&[1, 7, 1], &[2, 1, 0]),
    (&[4097], &[0]),
    (&[3, 5, 8], &[1, 0, 2]),
    (&[3, 5, 7], &[1, 0, 2]),
    (&[3, 5, 6], &[1, 0, 2]),
    (&[2, 3, 4, 5, 6, 7], &[0, 2, 1, 4, 3, 5]),
    (&[2, 3, 4, 5, 6, 7], &[5, 4, 3, 2, 1, 0]),
    (&[2, 3, 2, 2, 65, 66], &[3, 5, 1, 0, 2, 4]),
    (&[2, 3, 2, 2, 64, 52], &[3, 5, 1, 0, 2, 4]),
    (&[2, 50, 3, 40, 3], &[4, 2, 0, 3, 1]),
    (&[4, 9, 300], &[2, 1, 0]),
    (&[3, 52, 5, 64], &[2, 3, 0, 1]),
    (&[2, 3, 1, 2, 5, 3, 1, 4, 33], &[8, 0, 1, 2, 7, 6, 5, 3, 4]),
    (&[3, 2, 3, 2, 3, 2, 3, 2], &[6, 7, 4, 5, 2, 3, 0, 1]),
];

fn check_permute<T: Bits>(kernels: &Kernels, what: &str) {
    for (dims, axes) in PERMUTATIONS {
        let x = any_bits::<T>(1, dims.iter().product());
        let [input, y] = input_and_output(kernels.device(), &x);
        let Some(op) = supported(kernels.permute(&input, &y, dims, axes)) else { return };
        succeed(op.run());
        let what = format!("{what}, {} {dims:?} as {axes:?}", type_name::<T>());
        assert_written(&what, &y, &permuted(&x, dims, axes));
    }
}

#[test]
fn permutations_are_exact() {
    each_variant("permute", |kernels, what| {
        for_each_number!(check_permute(kernels, what));
    });
}

#[test]
fn large_matrix_is_transposed() {
    let [rows, columns] = [1030, 1500];
    each_variant("transpose", |kernels, what| {
        let x = any_bits::<u32>(1, rows * columns);
        let [input, y] = input_and_output(kernels.device(), &x);
        let Some(op) = supported(kernels.transpose(&input, &y, rows, columns)) else { return };
        succeed(op.run());
        assert_written(what, &y, &permuted(&x, &[rows, columns], &[1, 0]));
    });
}

#[test]
fn many_small_matrices_are_transposed() {
    let dims = [70_001, 2, 3];
    each_variant("transpose_batch", |kernels, what| {
        let x = any_bits::<u32>(1, dims.iter().product());
        let [input, y] = input_and_output(kernels.device(), &x);
        let op = kernels.transpose_batch(&input, &y, dims[0], dims[1], dims[2]);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        assert_written(what, &y, &permuted(&x, &dims, &[0, 2, 1]));
    });
}

#[test]
fn empty_arrays_launch_nothing() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let x = any_bits::<f32>(1, 4);
        let [x, y] = input_and_output(gpu, &x);
        let none = succeed(gpu.alloc::<f32>(0));
        for (x, y) in [(&x, &y), (&none, &y)] {
            let op = succeed(kernels.transpose(x, y, 0, 4));
            assert!(op.kernel_names().is_empty());
            succeed(op.run());
            assert!(succeed(kernels.permute(x, y, &[3, 0], &[1, 0])).kernel_names().is_empty());
        }
        assert_eq!(bits_of(&succeed(y.download())), bits_of(&any_bits::<f32>(7, 5)));
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, y) = (succeed(gpu.alloc::<f32>(6)), succeed(gpu.alloc::<f32>(6)));
    let permute = |dims: &[usize], axes: &[usize]| {
        kernels.permute(&x, &y, dims, axes).unwrap_err().to_string()
    };
    assert_eq!(
        permute(&[2, 3], &[1, 1]),
        "Kernels::permute: `axes` is [1, 1], which is not a permutation of the 2 axes of `x`; \
         help: list each axis of `x` once, from 0 on, in the order of `y`"
    );
    assert_eq!(
        permute(&[2, 3], &[0]),
        "Kernels::permute: `axes` is [0], which is not a permutation of the 2 axes of `x`; \
         help: list each axis of `x` once, from 0 on, in the order of `y`"
    );
    assert_eq!(
        permute(&[2; 7], &[6, 5, 4, 3, 2, 1, 0]),
        "Kernels::permute: `axes` leaves 7 axes after merging, but at most 6 are supported; \
         help: permute in two steps"
    );
    assert_eq!(
        permute(&[usize::MAX, 3], &[1, 0]),
        "Kernels::permute: `x` has more than 2^64 - 1 elements with \
         dims[0]=18446744073709551615, dims[1]=3; help: pass smaller sizes"
    );
    let transpose =
        |x: &dyn Binding, y: &dyn Binding| kernels.transpose(x, y, 2, 4).unwrap_err().to_string();
    assert_eq!(
        transpose(&x, &y),
        "Kernels::transpose: buffer `x` has 6 elements, but rows=2, columns=4 needs at least 8; \
         help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        transpose(&succeed(gpu.alloc::<u8>(8)), &y),
        "Kernels::transpose: buffer `x` has elements of u8, but f32, f16, bf16, i32 or u32 is \
         needed; help: pass a buffer of f32, f16, bf16, i32 or u32"
    );
    let long = succeed(gpu.alloc::<f32>(8));
    assert_eq!(
        transpose(&long, &succeed(gpu.alloc::<u32>(8))),
        "Kernels::transpose: buffer `y` has elements of u32, but f32 is needed; help: pass a \
         buffer of f32"
    );
    assert_eq!(
        transpose(&long, &long),
        "Kernels::transpose: buffer `y` is written, but shares bytes 0..32 of its memory with \
         buffer `x`; help: pass buffers or slices that do not overlap"
    );
}
