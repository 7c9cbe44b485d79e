//! Convolutions and pooling.

use scry_kernels::{Conv1d, Conv2d, Pool, Pool2d};

use super::{Result, Tour, check, wide};

pub(super) fn visit(tour: &mut Tour) -> Result {
    conv2d(tour)?;
    conv1d(tour)?;
    pool2d(tour)
}

/// Returns the convolution of one image without padding.
fn convolved(x: &[f64], weights: &[f64], conv: &Conv2d) -> Vec<f64> {
    let ([_, width], [kernel_height, kernel_width]) = (conv.size, conv.kernel);
    let [out_height, out_width] = conv.output_size();
    let plane = conv.size[0] * width;
    let mut y = Vec::with_capacity(conv.out_channels * out_height * out_width);
    for weights in weights.chunks(conv.in_channels * kernel_height * kernel_width) {
        for (row, column) in (0..out_height * out_width).map(|at| (at / out_width, at % out_width))
        {
            let products = weights.iter().enumerate().map(|(nth, weight)| {
                let (i, j) = (nth / kernel_width % kernel_height, nth % kernel_width);
                let channel = nth / kernel_width / kernel_height;
                weight * x[channel * plane + (row + i) * width + column + j]
            });
            y.push(products.sum());
        }
    }
    y
}

fn conv2d(tour: &mut Tour) -> Result {
    let conv = Conv2d::new([3, 4], [20 * tour.scale, 40], [5, 3]);
    let [height, width] = conv.output_size();
    let (len, out_len) = (3 * conv.size[0] * conv.size[1], 4 * height * width);
    let ((x, host_x), (weights, host_weights)) = (tour.random(1, len)?, tour.random(2, 4 * 45)?);
    let y = tour.gpu.alloc::<f32>(out_len)?;
    let expected = convolved(&wide(&host_x), &wide(&host_weights), &conv);
    let op = tour.kernels.conv2d(&x, &weights, None, &y, &conv);
    let sizes = format!("f32 3 x {} x 40, 4 x 5 x 3", conv.size[0]);
    tour.show("conv2d", &sizes, op, 4 * (len + out_len), || check(&y, &expected, 1e-5))
}

fn conv1d(tour: &mut Tour) -> Result {
    let conv = Conv1d::new([2, 3], 1000 * tour.scale, 7);
    let (len, out_len) = (2 * conv.length, 3 * conv.output_length());
    let ((x, host_x), (weights, host_weights)) = (tour.random(1, len)?, tour.random(2, 42)?);
    let y = tour.gpu.alloc::<f32>(out_len)?;
    let of_rows = Conv2d::new([2, 3], [1, conv.length], [1, 7]);
    let expected = convolved(&wide(&host_x), &wide(&host_weights), &of_rows);
    let op = tour.kernels.conv1d(&x, &weights, None, &y, &conv);
    let sizes = format!("f32 2 x {}, 3 x 7", conv.length);
    tour.show("conv1d", &sizes, op, 4 * (len + out_len), || check(&y, &expected, 1e-5))
}

fn pool2d(tour: &mut Tour) -> Result {
    let pool = Pool2d::new(3, [20 * tour.scale, 40], [2, 4]);
    let (x, host_x) = tour.random(1, 3 * pool.size[0] * 40)?;
    let [height, width] = pool.output_size();
    let y = tour.gpu.alloc::<f32>(3 * height * width)?;
    let window = |at: usize| {
        // The output has half the rows of all planes.
        let (row, column) = (at / width, at % width);
        let rows = [2 * row, 2 * row + 1].map(|row| &host_x[row * 40 + 4 * column..][..4]);
        f64::from(rows.concat().into_iter().fold(f32::NEG_INFINITY, f32::max))
    };
    let expected: Vec<f64> = (0..3 * height * width).map(window).collect();
    let op = tour.kernels.pool2d(Pool::Max, &x, &y, &pool);
    let sizes = format!("f32 3 x {} x 40, max 2 x 4", pool.size[0]);
    tour.show("pool2d", &sizes, op, 4 * host_x.len(), || check(&y, &expected, 0.0))
}
