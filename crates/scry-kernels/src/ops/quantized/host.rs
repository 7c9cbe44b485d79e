//! Quantisation and dequantisation on the CPU device, by the reference of scry-ptx.

use std::thread;

use scry_gpu::{DType, PreparedLaunch, Result, bf16, f16};
use scry_ptx::kernels::quant::{self, BlockFormat};

use super::{Dequantize, Quantize};
use crate::operation::{Operation, Preparation};

pub(super) fn quantize(
    it: &Quantize,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let (format, count) = (it.format, it.count as usize);
    preparation.host("host_quantize", it.arguments(), move |arguments| {
        let x = &arguments.read::<f32>(0)[..count];
        let blocks = arguments.write::<u8>(1);
        let lens = [format.block_len(), format.block_bytes()];
        in_parallel(x, blocks, lens, |x, blocks| {
            let encoded = quant::quantize(format, x).expect("parts are whole blocks");
            blocks.copy_from_slice(&encoded);
        });
    })
}

pub(super) fn dequantize(
    it: &Dequantize,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let (format, dtype) = (it.format, it.dtype);
    let bytes = it.count as usize / format.block_len() * format.block_bytes();
    preparation.host("host_dequantize", it.arguments(), move |arguments| {
        let blocks = &arguments.read::<u8>(0)[..bytes];
        match dtype {
            DType::F16 => decode(format, blocks, arguments.write(1), f16::from_f32),
            DType::BF16 => decode(format, blocks, arguments.write(1), bf16::from_f32),
            _ => decode(format, blocks, arguments.write(1), |weight: f32| weight),
        }
    })
}

fn decode<T: Send>(
    format: BlockFormat,
    blocks: &[u8],
    y: &mut [T],
    round: impl Fn(f32) -> T + Sync,
) {
    let lens = [format.block_bytes(), format.block_len()];
    in_parallel(blocks, y, lens, |blocks, y| {
        let weights = quant::dequantize(format, blocks).expect("parts are whole blocks");
        y.iter_mut().zip(weights).for_each(|(y, weight)| *y = round(weight));
    });
}

/// The fewest blocks for which threads are worth starting.
const MIN_BLOCKS: usize = 2048;

/// Calls `convert` with parts of the input and the output, on all threads. A block has `lens`
/// elements of the input and of the output; the input is whole blocks.
fn in_parallel<X: Sync, Y: Send>(
    x: &[X],
    y: &mut [Y],
    [x_len, y_len]: [usize; 2],
    convert: impl Fn(&[X], &mut [Y]) + Sync,
) {
    let blocks = x.len() / x_len;
    // One where there are no threads, as in WebAssembly.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    if threads == 1 || blocks < MIN_BLOCKS {
        let len = blocks * y_len;
        return convert(x, &mut y[..len]);
    }
    let each = blocks.div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts = x.chunks(each * x_len).zip(y.chunks_mut(each * y_len));
        for (x, y) in parts {
            // The last part of the output may be longer: buffers may be.
            let len = x.len() / x_len * y_len;
            let convert = &convert;
            scope.spawn(move || convert(x, &mut y[..len]));
        }
    });
}
