//! Products with a vector on the CPU device.

use scry_gpu::{HostArguments, PreparedLaunch, Result};
use scry_ptx::kernels::gemm::Layout;

use super::{Gemv, Product};
use crate::host_gemm::{HostStrides, host_gemm};
use crate::operation::{Operation, Preparation};
use crate::ops::matmul;

/// Columns of a column-major matrix that are added in `f32`, one by one: more would lose accuracy.
const COLUMNS: usize = 256;

/// Prepares products of `f32`.
pub(super) fn prepare(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let gemv = it.gemv;
    preparation.host("host_gemv", it.arguments(), move |arguments| multiply(&gemv, arguments))
}

fn multiply(gemv: &Gemv, arguments: &mut HostArguments<'_>) {
    let [a, x] = [0, 1].map(|binding| arguments.read::<f32>(binding));
    let threads = arguments.threads();
    let y = arguments.write::<f32>(2);
    let strides = matmul::host::strides(gemv.a);
    let vector = HostStrides { rows: 1, columns: 1 };
    for z in 0..gemv.batch as usize {
        let [a, x] = [(a, gemv.a.stride), (x, gemv.x_stride)]
            .map(|(numbers, stride)| numbers.get(z * stride as usize..).unwrap_or_default());
        let y = &mut y[z * gemv.y_stride as usize..];
        let [rows, columns] = [gemv.rows, gemv.columns].map(|size| size as usize);
        let product = |first: usize, columns: usize, y: &mut [f32]| {
            let a = (a.get(first * strides.columns..).unwrap_or_default(), strides);
            let x = (x.get(first..).unwrap_or_default(), vector);
            host_gemm(Some(threads), [rows, 1, columns], [1.0, 0.0], a, x, (y, vector));
        };
        if gemv.a.order == Layout::RowMajor || columns <= COLUMNS {
            product(0, columns, y);
            continue;
        }
        let (mut part, mut sums) = (vec![0.0; rows], vec![0.0; rows]);
        for first in (0..columns).step_by(COLUMNS) {
            product(first, COLUMNS.min(columns - first), &mut part);
            sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += f64::from(*part));
        }
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = sum as f32);
    }
}
