//! Convolutions on the CPU device: each row of results is a sum of weighted rows of the input.

use scry_gpu::{HostArguments, PreparedLaunch, Result};

use super::{Conv2d, Convolution};
use crate::host::{self, HostNumbers, MIN_PART, write_as_f32};
use crate::operation::{Operation, Preparation};
use crate::ops::taps::{WindowAxis, for_each_inside};

/// The operands as `f32`.
struct Operands<'a> {
    x: &'a [f32],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
}

/// Prepares the convolution.
pub(super) fn prepare(
    it: &Convolution,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let convolution = it.clone();
    preparation
        .host("host_conv", it.arguments(), move |arguments| convolve(&convolution, arguments))
}

fn convolve(it: &Convolution, arguments: &mut HostArguments<'_>) {
    let [x, weights] = [0, 1].map(|binding| HostNumbers::read(arguments, binding, it.dtype));
    let bias = it.has_bias.then(|| HostNumbers::read(arguments, 2, it.dtype));
    let operands = Operands {
        x: x.as_slice(),
        weights: weights.as_slice(),
        bias: bias.as_ref().map(HostNumbers::as_slice),
    };
    let conv = &it.conv;
    let [height, width] = conv.output_size();
    let count = it.lens()[2] as usize;
    // A part has whole rows.
    let taps = (conv.in_channels / conv.groups * conv.kernel[0] * conv.kernel[1]).max(1);
    let rows_of_part = MIN_PART.div_ceil(taps * width);
    write_as_f32(arguments, 2 + usize::from(it.has_bias), it.dtype, |y| {
        host::for_each_part(&mut y[..count], rows_of_part * width, |start, part| {
            for (nth, row) in part.chunks_mut(width).enumerate() {
                let row_number = start / width + nth;
                compute_row(conv, &operands, row_number / height, row_number % height, row);
            }
        });
    });
}

/// Computes a row of a plane of results: of an output channel of an image.
fn compute_row(conv: &Conv2d, operands: &Operands<'_>, plane: usize, row: usize, y: &mut [f32]) {
    let in_channels = conv.in_channels / conv.groups;
    let channel = plane % conv.out_channels;
    // The number of the group among those of all images.
    let group = plane / (conv.out_channels / conv.groups);
    let [rows, columns] = [0, 1].map(|axis| axis_of(conv, axis));
    y.fill(0.0);
    for nth in 0..in_channels {
        let in_plane = (group * in_channels + nth) * conv.size[0];
        let kernel = (channel * in_channels + nth) * conv.kernel[0];
        for kernel_row in 0..conv.kernel[0] {
            let at = row * rows.stride + kernel_row * rows.dilation;
            let at = at.checked_sub(rows.padding).filter(|at| *at < rows.input);
            let weights = &operands.weights[(kernel + kernel_row) * conv.kernel[1]..];
            for (tap, weight) in weights[..conv.kernel[1]].iter().enumerate() {
                if !weight.is_finite() {
                    add_padding(&columns, tap, at.is_some(), *weight, y);
                }
                let Some(at) = at else { continue };
                let x = &operands.x[(in_plane + at) * conv.size[1]..][..conv.size[1]];
                for_each_inside(&columns, tap, (x, y), |y, x| *y += weight * x);
            }
        }
    }
    if let Some(bias) = operands.bias {
        y.iter_mut().for_each(|y| *y += bias[channel]);
    }
}

fn axis_of(conv: &Conv2d, axis: usize) -> WindowAxis {
    WindowAxis {
        input: conv.size[axis],
        output: conv.output_size()[axis],
        stride: conv.stride[axis],
        padding: conv.padding[axis],
        dilation: conv.dilation[axis],
    }
}

/// Adds a weight times the zeros of the padding: NaN for an infinite weight.
fn add_padding(columns: &WindowAxis, tap: usize, has_row: bool, weight: f32, y: &mut [f32]) {
    let inside = if has_row { columns.inside(tap).0 } else { 0..0 };
    for (nth, y) in y.iter_mut().enumerate() {
        if !inside.contains(&nth) {
            *y += weight * 0.0;
        }
    }
}
