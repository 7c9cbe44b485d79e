//! Tests of pooling.

use scry_gpu::Device;
use scry_kernels::{Kernels, Pool, Pool2d};
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

const POOLS: [Pool; 3] = [
    Pool::Max,
    Pool::Average { count_include_pad: false },
    Pool::Average { count_include_pad: true },
];

/// Pooling in f64, as documented.
fn pooled(pool: Pool, x: &[f64], sizes: &Pool2d) -> Vec<f64> {
    let ([height, width], [rows, columns]) = (sizes.size, sizes.kernel);
    let [out_height, out_width] = sizes.output_size();
    let window = |at: usize| {
        let (plane, y, x_at) = (
            at / out_width / out_height,
            at / out_width % out_height * sizes.stride[0],
            at % out_width * sizes.stride[1],
        );
        let elements = (0..rows * columns).filter_map(|nth| {
            let y = (y + nth / columns).checked_sub(sizes.padding[0]).filter(|y| *y < height)?;
            let at = (x_at + nth % columns).checked_sub(sizes.padding[1])?;
            (at < width).then(|| x[(plane * height + y) * width + at])
        });
        let elements: Vec<_> = elements.collect();
        let sum: f64 = elements.iter().sum();
        match pool {
            Pool::Max if sum.is_nan() => f64::NAN,
            Pool::Max => elements.into_iter().fold(f64::NEG_INFINITY, f64::max),
            Pool::Average { count_include_pad: true } => sum / (rows * columns) as f64,
            Pool::Average { .. } => sum / elements.len() as f64,
        }
    };
    (0..sizes.planes * out_height * out_width).map(window).collect()
}

fn cases() -> Vec<Pool2d> {
    let plain = Pool2d::new;
    vec![
        plain(1, [1, 1], [1, 1]),
        plain(1, [3, 127], [2, 2]),
        plain(5, [33, 31], [3, 2]),
        plain(300, [2, 2], [2, 2]),
        Pool2d { stride: [1, 1], padding: [1, 1], ..plain(2, [9, 130], [3, 3]) },
        Pool2d { stride: [2, 3], padding: [0, 2], ..plain(3, [17, 20], [4, 5]) },
        Pool2d { stride: [7, 1], padding: [2, 39], ..plain(1, [10, 1009], [3, 40]) },
        Pool2d { stride: [1, 1], ..plain(1, [257, 3], [129, 3]) },
    ]
}

fn check_pool<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for (sizes, pool) in cases().iter().flat_map(|sizes| POOLS.map(|pool| (sizes, pool))) {
        let x: Vec<T> = random(1, sizes.planes * sizes.size[0] * sizes.size[1]);
        let wide: Vec<f64> = x.iter().map(|x| x.wide()).collect();
        let expected = pooled(pool, &wide, sizes);
        let (input, y) = (succeed(gpu.upload(&x)), poisoned::<T>(gpu, expected.len() + 1));
        let Some(op) = supported(kernels.pool2d(pool, &input, &y, sizes)) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        let what = format!("{what}, {} {pool:?} {sizes:?}", type_name::<T>());
        assert_close(&what, 4.0, 1.0, &y[..expected.len()], &expected);
        assert!(y[expected.len()].wide().is_nan(), "{what}: wrote beyond the planes");
    }
}

#[test]
fn pooling_matches_reference() {
    each_variant("pool2d", |kernels, what| {
        for_each_float!(check_pool(kernels, what));
    });
}

#[test]
fn maxima_of_special_values() {
    const NAN: f32 = f32::NAN;
    const LOW: f32 = f32::NEG_INFINITY;
    let x = [
        [NAN, 1.0, 5.0, NAN, LOW, LOW, f32::MAX, 3.0],
        [2.0, 3.0, 6.0, 7.0, LOW, LOW, f32::INFINITY, LOW],
    ];
    let expected = [f64::NAN, f64::NAN, f64::NEG_INFINITY, f64::INFINITY];
    each_variant("pool2d", |kernels, what| {
        let gpu = kernels.device();
        let (input, y) = (succeed(gpu.upload(x.as_flattened())), poisoned::<f32>(gpu, 4));
        let sizes = Pool2d::new(1, [2, 8], [2, 2]);
        let Some(op) = supported(kernels.pool2d(Pool::Max, &input, &y, &sizes)) else { return };
        succeed(op.run());
        assert_close(what, 0.0, 1.0, &succeed(y.download()), &expected);
        // The padding has no elements, also if all others are negative.
        let negative = succeed(gpu.upload(&[-5.0f32; 4]));
        let y = poisoned::<f32>(gpu, 9);
        let sizes = Pool2d { padding: [1, 1], stride: [1, 1], ..Pool2d::new(1, [2, 2], [2, 2]) };
        let Some(op) = supported(kernels.pool2d(Pool::Max, &negative, &y, &sizes)) else { return };
        succeed(op.run());
        assert_eq!(succeed(y.download()), [-5.0; 9], "{what}");
    });
}

#[test]
fn no_planes_launch_nothing() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (x, y) = (succeed(gpu.alloc::<f32>(4)), poisoned::<f32>(gpu, 4));
        let op = kernels.pool2d(Pool::Max, &x, &y, &Pool2d::new(0, [2, 2], [2, 2]));
        assert!(succeed(op).kernel_names().is_empty());
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, y) = (succeed(gpu.alloc::<f32>(8)), succeed(gpu.alloc::<f32>(8)));
    let error = |sizes: Pool2d| kernels.pool2d(Pool::Max, &x, &y, &sizes).unwrap_err().to_string();
    let plain = Pool2d::new(1, [3, 3], [2, 2]);
    assert_eq!(
        error(Pool2d { padding: [0, 2], ..plain }),
        "Kernels::pool2d: `padding` is [0, 2], but windows of [2, 2] would be in it as a whole; \
         help: pass less than the kernel"
    );
    assert_eq!(
        error(Pool2d { stride: [0, 2], ..plain }),
        "Kernels::pool2d: `stride` is 0; help: pass at least 1"
    );
    assert_eq!(
        error(Pool2d { kernel: [4, 1], ..plain }),
        "Kernels::pool2d: `kernel` exceeds the padded input; help: pass a smaller kernel, or more \
         padding"
    );
    assert_eq!(
        error(plain),
        "Kernels::pool2d: buffer `x` has 8 elements, but planes=1, height=3, width=3, kernel \
         height=2, kernel width=2 needs at least 9; help: pass a longer buffer, or smaller sizes"
    );
}
