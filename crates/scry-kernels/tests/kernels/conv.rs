//! Tests of convolutions.

use scry_gpu::{Binding, Device};
use scry_kernels::{Conv1d, Conv2d, Kernels};
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

/// The convolution in f64, as documented.
fn convolved(x: &[f64], weights: &[f64], bias: Option<&[f64]>, conv: &Conv2d) -> Vec<f64> {
    let ([height, width], [rows, columns]) = (conv.size, conv.kernel);
    let [out_height, out_width] = conv.output_size();
    let (per_group, of_group) = (conv.in_channels / conv.groups, conv.out_channels / conv.groups);
    let mut y = Vec::new();
    for (image, channel) in (0..conv.batch * conv.out_channels)
        .map(|at| (at / conv.out_channels, at % conv.out_channels))
    {
        let first = image * conv.in_channels + channel / of_group * per_group;
        for (out_y, out_x) in (0..out_height * out_width).map(|at| (at / out_width, at % out_width))
        {
            let mut sum = bias.map_or(0.0, |bias| bias[channel]);
            for (nth, row) in (0..per_group * rows).map(|at| (at / rows, at % rows)) {
                let in_y = out_y * conv.stride[0] + row * conv.dilation[0];
                let Some(in_y) = in_y.checked_sub(conv.padding[0]).filter(|y| *y < height) else {
                    continue;
                };
                for column in 0..columns {
                    let in_x = out_x * conv.stride[1] + column * conv.dilation[1];
                    let in_x = in_x.checked_sub(conv.padding[1]).filter(|x| *x < width);
                    let Some(in_x) = in_x else { continue };
                    let weight = ((channel * per_group + nth) * rows + row) * columns + column;
                    sum += x[((first + nth) * height + in_y) * width + in_x] * weights[weight];
                }
            }
            y.push(sum);
        }
    }
    y
}

/// The scale of the errors of a sum of products of numbers between -1 and 1: each partial sum is
/// rounded.
fn scale(terms: f64) -> f64 {
    terms.sqrt().max(terms / 4.0).max(1.0)
}

/// A convolution with stride, padding and dilation.
fn conv(
    channels: [usize; 2],
    size: [usize; 2],
    kernel: [usize; 2],
    [stride, padding, dilation]: [[usize; 2]; 3],
) -> Conv2d {
    Conv2d { stride, padding, dilation, ..Conv2d::new(channels, size, kernel) }
}

/// One-channel and deep images, kernels of every shape, partial tiles, groups, and kernels that are
/// too large for tiles.
fn cases() -> Vec<Conv2d> {
    let plain = Conv2d::new;
    const ONE: [usize; 2] = [1, 1];
    vec![
        plain([1, 1], [1, 1], [1, 1]),
        plain([1, 1], [33, 131], [7, 7]),
        plain([3, 8], [21, 70], [5, 5]),
        plain([2, 3], [1, 9], [1, 4]),
        plain([5, 17], [9, 7], [3, 2]),
        plain([9, 2], [70, 65], [1, 1]),
        plain([0, 2], [3, 3], [2, 2]),
        conv([4, 6], [15, 33], [3, 3], [ONE, ONE, ONE]),
        conv([2, 4], [20, 31], [3, 5], [[2, 1], [0, 3], ONE]),
        conv([1, 12], [31, 20], [4, 3], [[3, 2], [2, 1], [2, 3]]),
        conv([1, 1], [5, 5], [3, 3], [ONE, [9, 7], ONE]),
        conv([1, 2], [9, 9], [2, 2], [[11, 12], [0, 0], ONE]),
        conv([1, 1], [40, 129], [3, 3], [ONE, [20, 20], [20, 20]]),
        conv([1, 1], [60, 80], [50, 40], [[1, 2], [1, 0], ONE]),
        conv([1, 1], [40, 70], [31, 31], [ONE, [15, 15], ONE]),
        Conv2d { batch: 3, groups: 2, ..plain([4, 6], [9, 17], [3, 3]) },
        Conv2d { batch: 2, groups: 5, padding: ONE, ..plain([5, 5], [17, 40], [3, 3]) },
        Conv2d { groups: 3, ..plain([3, 27], [12, 10], [2, 2]) },
    ]
}

fn check_conv<T: Float>(kernels: &Kernels, what: &str, conv: &Conv2d, has_bias: bool) -> bool {
    let gpu = kernels.device();
    let group = conv.in_channels / conv.groups;
    let x: Vec<T> = random(1, conv.batch * conv.in_channels * conv.size[0] * conv.size[1]);
    let weights: Vec<T> = random(2, conv.out_channels * group * conv.kernel[0] * conv.kernel[1]);
    let bias: Vec<T> = random(3, conv.out_channels);
    let [input, filters, offsets] =
        [&x, &weights, &bias].map(|data| succeed(gpu.upload(data.as_slice())));
    let wide = |data: &[T]| -> Vec<f64> { data.iter().map(|x| x.wide()).collect() };
    let bias = has_bias.then(|| wide(&bias));
    let expected = convolved(&wide(&x), &wide(&weights), bias.as_deref(), conv);
    let y = poisoned::<T>(gpu, expected.len() + 1);
    let offsets = has_bias.then_some(&offsets as &dyn Binding);
    let Some(op) = supported(kernels.conv2d(&input, &filters, offsets, &y, conv)) else {
        return false;
    };
    succeed(op.run());
    let y = succeed(y.download());
    let what = format!("{what}, {} {conv:?}", type_name::<T>());
    let terms = (group * conv.kernel[0] * conv.kernel[1]) as f64;
    assert_close(&what, 8.0, scale(terms), &y[..expected.len()], &expected);
    assert!(y[expected.len()].wide().is_nan(), "{what}: wrote beyond the images");
    true
}

#[test]
fn convolutions_match_reference() {
    each_variant("conv2d", |kernels, what| {
        for (nth, conv) in cases().iter().enumerate() {
            if !check_conv::<f32>(kernels, what, conv, nth % 2 == 0) {
                return;
            }
        }
    });
}

fn check_types<T: Float>(kernels: &Kernels, what: &str) {
    let padded = conv([3, 5], [13, 37], [3, 3], [[1, 2], [1, 1], [1, 1]]);
    let large = conv([1, 1], [52, 45], [50, 40], [[1, 1]; 3]);
    for conv in [padded, large] {
        if !check_conv::<T>(kernels, what, &conv, true) {
            return;
        }
    }
}

#[test]
fn convolutions_of_each_type_match_reference() {
    each_variant("conv2d", |kernels, what| {
        for_each_float!(check_types(kernels, what));
    });
}

#[test]
fn signals_are_convolved() {
    let cases = [
        Conv1d::new([1, 1], 1, 1),
        Conv1d { padding: 2, ..Conv1d::new([1, 1], 5000, 5) },
        Conv1d { batch: 2, stride: 3, dilation: 2, ..Conv1d::new([3, 9], 1009, 4) },
        Conv1d { padding: 50, groups: 2, ..Conv1d::new([2, 4], 257, 101) },
        Conv1d::new([1, 1], 6000, 5000),
    ];
    each_variant("conv1d", |kernels, what| {
        let gpu = kernels.device();
        for case in &cases {
            let image = Conv2d {
                batch: case.batch,
                stride: [1, case.stride],
                padding: [0, case.padding],
                dilation: [1, case.dilation],
                groups: case.groups,
                ..Conv2d::new(
                    [case.in_channels, case.out_channels],
                    [1, case.length],
                    [1, case.kernel],
                )
            };
            assert_eq!([1, case.output_length()], image.output_size());
            let x: Vec<f32> = random(1, case.batch * case.in_channels * case.length);
            let group = case.in_channels / case.groups;
            let weights: Vec<f32> = random(2, case.out_channels * group * case.kernel);
            let (input, filters) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&weights)));
            let wide = |data: &[f32]| -> Vec<f64> { data.iter().map(|x| f64::from(*x)).collect() };
            let expected = convolved(&wide(&x), &wide(&weights), None, &image);
            let y = poisoned::<f32>(gpu, expected.len());
            let op = kernels.conv1d(&input, &filters, None, &y, case);
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            let scale = scale((group * case.kernel) as f64);
            let what = format!("{what}, {case:?}");
            assert_close(&what, 8.0, scale, &succeed(y.download()), &expected);
        }
    });
}

#[test]
fn special_values_reach_their_windows_only() {
    let conv = Conv2d { padding: [1, 1], ..Conv2d::new([1, 1], [4, 40], [3, 3]) };
    let mut x = vec![1.0f32; 160];
    (x[0], x[30]) = (f32::NAN, f32::INFINITY);
    each_variant("conv2d", |kernels, what| {
        let gpu = kernels.device();
        let (input, weights) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&[1.0f32; 9])));
        let y = poisoned::<f32>(gpu, 160);
        let Some(op) = supported(kernels.conv2d(&input, &weights, None, &y, &conv)) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        for (at, y) in y.iter().enumerate() {
            let (row, column) = (at / 40, at % 40);
            assert_eq!(y.is_nan(), row < 2 && column < 2, "{what}: {at}");
            let near = row < 2 && (29..32).contains(&column);
            assert_eq!(*y == f32::INFINITY, near, "{what}: {at}");
        }
    });
}

#[test]
fn infinite_weights_make_nan_of_padding() {
    let conv = Conv2d { padding: [1, 2], ..Conv2d::new([1, 1], [3, 40], [3, 3]) };
    each_variant("conv2d", |kernels, what| {
        let gpu = kernels.device();
        // Only the first element of the kernel, which meets the padding above and on the left.
        let weights: Vec<f32> =
            (0..9).map(|at| if at == 0 { f32::INFINITY } else { 1.0 }).collect();
        let (input, weights) = (succeed(gpu.upload(&[2.0f32; 120])), succeed(gpu.upload(&weights)));
        let [height, width] = conv.output_size();
        let y = poisoned::<f32>(gpu, height * width);
        let Some(op) = supported(kernels.conv2d(&input, &weights, None, &y, &conv)) else { return };
        succeed(op.run());
        for (at, y) in succeed(y.download()).iter().enumerate() {
            let is_padded = at / width == 0 || at % width < 2;
            assert_eq!(y.is_nan(), is_padded, "{what}: {at}");
            assert!(is_padded || *y == f32::INFINITY, "{what}: {at}");
        }
    });
}

#[test]
fn empty_batches_launch_nothing() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (x, y) = (succeed(gpu.alloc::<f32>(16)), poisoned::<f32>(gpu, 16));
        let conv = Conv2d { batch: 0, ..Conv2d::new([1, 1], [4, 4], [1, 1]) };
        assert!(succeed(kernels.conv2d(&x, &x, None, &y, &conv)).kernel_names().is_empty());
        let conv = Conv2d::new([1, 0], [4, 4], [1, 1]);
        assert!(succeed(kernels.conv2d(&x, &x, None, &y, &conv)).kernel_names().is_empty());
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, y) = (succeed(gpu.alloc::<f32>(30)), succeed(gpu.alloc::<f32>(30)));
    let error = |conv: Conv2d| kernels.conv2d(&x, &x, None, &y, &conv).unwrap_err().to_string();
    let plain = Conv2d::new([2, 4], [3, 5], [2, 2]);
    assert_eq!(
        error(Conv2d { stride: [1, 0], ..plain }),
        "Kernels::conv2d: `stride` is 0; help: pass at least 1"
    );
    assert_eq!(
        error(Conv2d { groups: 3, ..plain }),
        "Kernels::conv2d: `groups` is 3, but there are 2 input and 4 output channels; help: pass a \
         divisor of both"
    );
    assert_eq!(
        error(Conv2d { dilation: [3, 1], ..plain }),
        "Kernels::conv2d: `kernel` exceeds the padded input; help: pass a smaller kernel or \
         dilation, or more padding"
    );
    assert_eq!(
        error(plain),
        "Kernels::conv2d: buffer `weights` has 30 elements, but batch=1, in_channels=2, \
         out_channels=4, height=3, width=5, kernel height=2, kernel width=2 needs at least 32; \
         help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error(Conv2d { padding: [1 << 40, 0], stride: [1 << 40, 1], ..plain }),
        "Kernels::conv2d: the padded input has more than 2^32 - 1 rows or columns; help: pass less \
         padding"
    );
    let error = kernels.conv1d(&x, &x, None, &y, &Conv1d::new([1, 1], 31, 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::conv1d: buffer `x` has 30 elements, but batch=1, in_channels=1, out_channels=1, \
         length=31, kernel=2 needs at least 31; help: pass a longer buffer, or smaller sizes"
    );
}
