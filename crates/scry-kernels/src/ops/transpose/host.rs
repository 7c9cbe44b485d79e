//! Permutations on the CPU device.

use scry_gpu::{Element, HostArguments, PreparedLaunch, Result};

use super::{Axes, Permute};
use crate::host::{self, MIN_PART};
use crate::operation::{Operation, Preparation};

/// Rows and columns that are moved at once. The lines of a tile stay in the L1 cache, even if
/// they are a large power of two apart.
const TILE: usize = 8;

/// An axis of the result.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    /// The distances between neighbours in the input and in the result.
    x_stride: usize,
    y_stride: usize,
}

/// Prepares the permutation.
pub(super) fn prepare(it: &Permute, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let axes = axes_of_result(&it.axes);
    let permute = match it.dtype.size() {
        2 => permute::<u16>,
        _ => permute::<u32>,
    };
    preparation.host("permute", it.arguments(), move |arguments| permute(arguments, &axes))
}

fn axes_of_result(axes: &Axes) -> Vec<Axis> {
    let axis = |(nth, axis): (usize, &usize)| Axis {
        size: axes.dims[*axis] as usize,
        x_stride: axes.x_stride(*axis) as usize,
        y_stride: axes.y_stride(nth) as usize,
    };
    axes.order.iter().enumerate().map(axis).collect()
}

fn permute<T: Element + Sync>(arguments: &mut HostArguments<'_>, axes: &[Axis]) {
    let (x, y) = (arguments.read::<T>(0), arguments.write::<T>(1));
    let [first, ..] = axes else { return };
    let y = &mut y[..first.size * first.y_stride];
    // A part has whole neighbours along the first axis.
    let part_len = MIN_PART.div_ceil(first.y_stride) * first.y_stride;
    host::for_each_part(y, part_len, |start, part| {
        let mut axes = axes.to_vec();
        axes[0].size = part.len() / first.y_stride;
        permute_part(&x[start / first.y_stride * first.x_stride..], part, &axes);
    });
}

/// Permutes the axes of the elements of a part of the result.
fn permute_part<T: Copy>(x: &[T], y: &mut [T], axes: &[Axis]) {
    let Some((rows, outer)) = axes.split_last() else { return };
    let Some(nth) = outer.iter().position(|axis| axis.x_stride == 1) else {
        // The last axis stays the last.
        return for_each_start(outer, [0, 0], &mut |[from, to]| {
            y[to..to + rows.size].copy_from_slice(&x[from..from + rows.size]);
        });
    };
    let mut outer = outer.to_vec();
    let columns = outer.remove(nth);
    for_each_start(&outer, [0, 0], &mut |[from, to]| {
        transpose(&x[from..], &mut y[to..], rows, &columns);
    });
}

/// Calls a function with the positions in input and result of each element along some axes.
fn for_each_start(axes: &[Axis], start: [usize; 2], function: &mut impl FnMut([usize; 2])) {
    let Some((axis, inner)) = axes.split_first() else { return function(start) };
    for nth in 0..axis.size {
        let [from, to] = start;
        let start = [from + nth * axis.x_stride, to + nth * axis.y_stride];
        for_each_start(inner, start, function);
    }
}

/// Transposes a matrix whose rows are contiguous in the input, and whose columns are in the result.
fn transpose<T: Copy>(x: &[T], y: &mut [T], rows: &Axis, columns: &Axis) {
    for first_row in (0..rows.size).step_by(TILE) {
        let height = TILE.min(rows.size - first_row);
        for first_column in (0..columns.size).step_by(TILE) {
            for column in first_column..columns.size.min(first_column + TILE) {
                let to = column * columns.y_stride + first_row;
                let from = x[first_row * rows.x_stride + column..].iter().step_by(rows.x_stride);
                y[to..to + height].iter_mut().zip(from).for_each(|(y, x)| *y = *x);
            }
        }
    }
}
