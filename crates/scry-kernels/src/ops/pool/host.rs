//! Pooling on the CPU device: each row of results combines rows of the input.

use scry_gpu::{HostArguments, PreparedLaunch, Result};

use super::{Pool, Pool2d, Pooling};
use crate::host::{self, HostNumbers, MIN_PART, write_as_f32};
use crate::operation::{Operation, Preparation};
use crate::ops::taps::{WindowAxis, for_each_inside};

/// Prepares the pooling.
pub(super) fn prepare(it: &Pooling, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let pooling = it.clone();
    preparation.host("host_pool", it.arguments(), move |arguments| pool(&pooling, arguments))
}

fn pool(it: &Pooling, arguments: &mut HostArguments<'_>) {
    let x = HostNumbers::read(arguments, 0, it.dtype);
    let [height, width] = it.sizes.output_size();
    let count = it.lens()[1] as usize;
    // A part has whole rows.
    let rows_of_part = MIN_PART.div_ceil(width);
    write_as_f32(arguments, 1, it.dtype, |y| {
        host::for_each_part(&mut y[..count], rows_of_part * width, |start, part| {
            for (nth, row) in part.chunks_mut(width).enumerate() {
                let row_number = start / width + nth;
                compute_row(it, x.as_slice(), row_number / height, row_number % height, row);
            }
        });
    });
}

/// Computes a row of a plane of results.
fn compute_row(it: &Pooling, x: &[f32], plane: usize, row: usize, y: &mut [f32]) {
    let [rows, columns] = [0, 1].map(|axis| axis_of(&it.sizes, axis));
    let mut rows_inside = 0;
    y.fill(if it.pool == Pool::Max { f32::NEG_INFINITY } else { 0.0 });
    for kernel_row in 0..it.sizes.kernel[0] {
        let at = (row * rows.stride + kernel_row).checked_sub(rows.padding);
        let Some(at) = at.filter(|at| *at < rows.input) else { continue };
        rows_inside += 1;
        let x = &x[(plane * rows.input + at) * columns.input..][..columns.input];
        for tap in 0..it.sizes.kernel[1] {
            match it.pool {
                // Keeps the first of equal elements, and the last NaN.
                Pool::Max => for_each_inside(&columns, tap, (x, y), |y, x| {
                    *y = if x > *y || x.is_nan() { x } else { *y };
                }),
                Pool::Average { .. } => {
                    for_each_inside(&columns, tap, (x, y), |y, x| *y += x);
                }
            }
        }
    }
    if let Pool::Average { count_include_pad } = it.pool {
        let [height, width] = it.sizes.kernel;
        for (nth, y) in y.iter_mut().enumerate() {
            let inside = rows_inside * columns_inside(&columns, width, nth);
            *y /= if count_include_pad { height * width } else { inside } as f32;
        }
    }
}

fn axis_of(sizes: &Pool2d, axis: usize) -> WindowAxis {
    WindowAxis {
        input: sizes.size[axis],
        output: sizes.output_size()[axis],
        stride: sizes.stride[axis],
        padding: sizes.padding[axis],
        dilation: 1,
    }
}

/// Returns how many columns of a window are inside of the input.
fn columns_inside(columns: &WindowAxis, width: usize, output: usize) -> usize {
    let start = output * columns.stride;
    let end = (start + width).min(columns.padding + columns.input);
    end.saturating_sub(start.max(columns.padding))
}
