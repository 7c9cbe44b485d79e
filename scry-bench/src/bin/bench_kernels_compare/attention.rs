//! Attention, compared with PyTorch's (cuDNN's or its own flash attention, where supported).

use anyhow::{Result, ensure};
use scry_gpu::{Binding, Buffer, f16};
use scry_kernels::{Attention, Op, PtxType};

use crate::Bench;
use crate::element::{Element, Rng};
use scry_bench::table::Goal;

/// Batch, heads, sequence length, head dimension; whether causal; minimum ratio to PyTorch.
type Case = ([u32; 4], bool, f64);

/// The cases of `f16`.
const F16_CASES: [Case; 3] = [
    ([4, 16, 4096, 128], false, 0.7),
    ([4, 16, 4096, 128], true, 0.7),
    ([8, 12, 512, 64], true, 1.0),
];

/// The cases of `f32`.
const F32_CASES: [Case; 1] = [([4, 16, 4096, 128], false, 1.0)];

/// Compares all shapes. Does nothing if random shapes are asked for.
pub fn run(bench: &mut Bench) -> Result<()> {
    if bench.shape_seed.is_some() {
        return Ok(());
    }
    F16_CASES.iter().try_for_each(|case| compare::<f16>(bench, case, PtxType::F16))?;
    F32_CASES.iter().try_for_each(|case| compare::<f32>(bench, case, PtxType::F32))
}

fn compare<T: Element>(bench: &mut Bench, case: &Case, element: PtxType) -> Result<()> {
    let (shape, causal, min_ratio) = *case;
    let [batch, heads, length, head_dim] = shape;
    let plain = Attention::new([batch, heads], length, length, head_dim, element);
    let attention = if causal { plain.causal() } else { plain };
    let device = bench.kernels.device().clone();
    let count = shape.iter().map(|n| *n as usize).product();
    let mut rng = Rng(1);
    let data = [(); 3].map(|()| rng.elements::<T>(count));
    let [q, k, v] = data.each_ref().map(|data| device.upload(data));
    let (q, k, v) = (q?, k?, v?);
    let out = device.upload(&vec![T::round_from(f32::NAN); count])?;
    let buffers: [&dyn Binding; 4] = [&q, &k, &v, &out];
    let prepared = bench.kernels.attention(&attention, &buffers)?;
    check(&attention, &prepared, &data, &out)?;
    let how = if causal { " causal" } else { "" };
    let name = format!("attention {} {batch}x{heads}x{length}x{head_dim}{how}", T::NAME);
    let numbers = shape.iter().map(|n| *n as usize).chain([usize::from(causal)]).collect();
    let peer = (format!("attention {}", T::NAME), numbers);
    // Causal attention needs half of the scores.
    let fraction = if causal { 0.5 } else { 1.0 };
    let bytes = 4 * count * size_of::<T>();
    let work = 4.0 * count as f64 * f64::from(length) * fraction;
    bench.row(&name, &prepared, peer, ("TFLOP/s", work), bytes, Goal::AtLeast(min_ratio))
}

/// Runs it once, and compares some rows with f64 arithmetic.
fn check<T: Element>(
    attention: &Attention,
    prepared: &Op,
    [q, k, v]: &[Vec<T>; 3],
    out: &Buffer<T>,
) -> Result<()> {
    prepared.run()?;
    let out = out.download()?;
    ensure!(
        out.iter().all(|x| x.widen().is_finite()),
        "{attention:?}: some elements are not finite: not written, or NaN or infinite results"
    );
    let (rows, columns) = (attention.queries as usize, attention.head_dim as usize);
    let count = out.len() / columns;
    for at in (0..count).step_by((count / 16) | 1).chain([count - 1]) {
        let (head, row) = (at / rows * rows * columns, at % rows);
        let key_count = if attention.causal { row + 1 } else { rows };
        let row_of = |data: &[T], index: usize| -> Vec<f64> {
            data[head + index * columns..][..columns].iter().map(|x| x.widen()).collect()
        };
        let q = row_of(q, row);
        let dot = |key: usize| q.iter().zip(row_of(k, key)).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<f64> =
            (0..key_count).map(|key| dot(key) * f64::from(attention.scale)).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
        let mut expected = vec![0.0; columns];
        for (key, score) in scores.iter().enumerate() {
            let weight = (score - max).exp() / sum;
            expected
                .iter_mut()
                .zip(row_of(v, key))
                .for_each(|(expected, v)| *expected += weight * v);
        }
        for (got, expected) in row_of(&out, row).iter().zip(expected) {
            ensure!(
                (got - expected).abs() <= T::MAX_ERROR,
                "row {at}: {got}, it should be {expected}"
            );
        }
    }
    Ok(())
}
