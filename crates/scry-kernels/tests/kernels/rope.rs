//! Tests of rotary position embedding.

use scry_gpu::Device;
use scry_kernels::{Kernels, Rope};
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

/// Rotates heads in f64, as documented.
fn rotated(x: &[f64], positions: &[i64], rope: &Rope) -> Vec<f64> {
    let Rope { heads, head_dim, theta, interleaved } = *rope;
    let mut y = x.to_vec();
    for (row, position) in positions.iter().enumerate() {
        for (head, pair) in (0..heads * head_dim / 2).map(|at| (at * 2 / head_dim, at)) {
            let pair = pair % (head_dim / 2);
            let frequency = f64::from(theta).powf(-2.0 * pair as f64 / head_dim as f64);
            let (sin, cos) = (*position as f64 * frequency).sin_cos();
            let start = (row * heads + head) * head_dim;
            let (a, b) = match interleaved {
                true => (start + 2 * pair, start + 2 * pair + 1),
                false => (start + pair, start + pair + head_dim / 2),
            };
            (y[a], y[b]) = (x[a] * cos - x[b] * sin, x[b] * cos + x[a] * sin);
        }
    }
    y
}

/// Rows, heads and elements of a head: quads and pairs, heads that are no multiple of those of an
/// invocation.
const SHAPES: [[usize; 3]; 9] = [
    [1, 1, 2],
    [3, 1, 8],
    [31, 3, 6],
    [2, 5, 64],
    [257, 4, 16],
    [9, 33, 12],
    [5, 9, 80],
    [1, 2, 1022],
    [129, 7, 128],
];

fn check_rope<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for ([rows, heads, head_dim], interleaved) in
        SHAPES.into_iter().flat_map(|shape| [(shape, false), (shape, true)])
    {
        let rope = Rope { theta: 1e6, interleaved, ..Rope::new(heads, head_dim) };
        let len = rows * heads * head_dim;
        let x: Vec<T> = random(1, len);
        // Small and large ones.
        let positions: Vec<u32> = (0..rows as u32).map(|row| row * row * 1000 + row).collect();
        let (input, at) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&positions)));
        let y = poisoned::<T>(gpu, len + 1);
        let Some(op) = supported(kernels.rope(&input, &at, &y, rows, &rope)) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        let wide: Vec<f64> = x.iter().map(|x| x.wide()).collect();
        let positions: Vec<i64> = positions.into_iter().map(i64::from).collect();
        let what = format!("{what}, {} {rows}, {rope:?}", type_name::<T>());
        assert_close(&what, 8.0, 1.0, &y[..len], &rotated(&wide, &positions, &rope));
        assert!(y[len].wide().is_nan(), "{what}: wrote beyond the rows");
    }
}

#[test]
fn rope_matches_reference() {
    each_variant("rope", |kernels, what| {
        for_each_float!(check_rope(kernels, what));
    });
}

#[test]
fn positions_of_any_size_are_accurate() {
    let positions = [0, 1, -1, 7, -1000, 1_000_003, i32::MAX, i32::MIN, i32::MIN + 1];
    let rope = Rope::new(1, 64);
    let x: Vec<f32> = random(1, positions.len() * 64);
    let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    each_variant("rope", |kernels, what| {
        let gpu = kernels.device();
        let (input, y) = (succeed(gpu.upload(&x)), poisoned::<f32>(gpu, x.len()));
        let at = succeed(gpu.upload(&positions));
        let Some(op) = supported(kernels.rope(&input, &at, &y, positions.len(), &rope)) else {
            return;
        };
        succeed(op.run());
        let expected = rotated(&wide, &positions.map(i64::from), &rope);
        assert_close(what, 8.0, 1.0, &succeed(y.download()), &expected);
        // The same bits are the large positions of u32.
        let unsigned = positions.map(|position| position as u32);
        let at = succeed(gpu.upload(&unsigned));
        succeed(succeed(kernels.rope(&input, &at, &y, positions.len(), &rope)).run());
        let expected = rotated(&wide, &unsigned.map(i64::from), &rope);
        assert_close(what, 8.0, 1.0, &succeed(y.download()), &expected);
    });
}

#[test]
fn special_values_stay_in_their_pair() {
    let x = [f32::NAN, 1.0, f32::INFINITY, 0.0, -0.0, 0.0];
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (input, y) = (succeed(gpu.upload(&x)), poisoned::<f32>(gpu, 6));
        let at = succeed(gpu.upload(&[1u32]));
        let rope = Rope { interleaved: true, ..Rope::new(1, 6) };
        succeed(succeed(kernels.rope(&input, &at, &y, 1, &rope)).run());
        let y = succeed(y.download());
        assert!(y[0].is_nan() && y[1].is_nan());
        assert_eq!(y[2..4], [f32::INFINITY, f32::INFINITY]);
        assert_eq!(y[4..], [0.0, 0.0]);
    });
}

#[test]
fn empty_rows_launch_nothing() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (x, at) = (succeed(gpu.alloc::<f32>(4)), succeed(gpu.alloc::<u32>(1)));
        let y = poisoned::<f32>(gpu, 4);
        for (rows, rope) in [(0, Rope::new(1, 4)), (1, Rope::new(0, 4)), (1, Rope::new(1, 0))] {
            let op = succeed(kernels.rope(&x, &at, &y, rows, &rope));
            assert!(op.kernel_names().is_empty());
        }
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, at) = (succeed(gpu.alloc::<f32>(12)), succeed(gpu.alloc::<u32>(1)));
    let y = succeed(gpu.alloc::<f32>(12));
    let error =
        |rows: usize, rope: Rope| kernels.rope(&x, &at, &y, rows, &rope).unwrap_err().to_string();
    assert_eq!(
        error(1, Rope::new(1, 3)),
        "Kernels::rope: `Rope::head_dim` is 3, but heads have pairs of elements; help: pass an \
         even number"
    );
    assert_eq!(
        error(1, Rope { theta: -1.0, ..Rope::new(1, 4) }),
        "Kernels::rope: `Rope::theta` is -1; help: pass a positive, finite number, such as 10000.0"
    );
    assert_eq!(
        error(2, Rope::new(1, 4)),
        "Kernels::rope: buffer `positions` has 1 elements, but rows=2, heads=1, head_dim=4 needs \
         at least 2; help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error(1, Rope::new(4, 4)),
        "Kernels::rope: buffer `x` has 12 elements, but rows=1, heads=4, head_dim=4 needs at least \
         16; help: pass a longer buffer, or smaller sizes"
    );
}
