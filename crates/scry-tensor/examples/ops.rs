//! A tour of the operations on tensors: statistics, sorting, matrix products, convolution,
//! indexing, joining, random numbers and losses. `scry ops` lists all of them.
//!
//!     cargo run --release -p scry-tensor --example ops

use std::io::{self, Write};

use scry_tensor::{Attention, Conv2d, DType, Device, Metric, NewAxis, Tensor};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let gpu = Device::auto()?;
    println!("on {}", gpu.name());
    write_all(&gpu, &mut io::stdout())
}

/// Writes results of all groups of operations.
pub(crate) fn write_all(gpu: &Device, out: &mut impl Write) -> Outcome {
    rows(gpu, out)?;
    products(gpu, out)?;
    images(gpu, out)?;
    indices(gpu, out)?;
    training(gpu, out)
}

/// Functions of rows.
fn rows(gpu: &Device, out: &mut impl Write) -> Outcome {
    let x = Tensor::new([[1.0f32, 4.0, 2.0], [3.0, 3.0, 9.0]], gpu)?;
    writeln!(out, "softmax\n{}", x.softmax(-1)?)?;
    writeln!(out, "layer norm\n{}", x.layer_norm(None, None, 1e-5)?)?;
    writeln!(out, "mean {}, variance {}", x.mean(-1)?, x.var(-1, 1)?)?;
    let (largest, indices) = x.topk(2, -1)?;
    writeln!(out, "the two largest\n{largest}\nat\n{indices}")?;
    writeln!(out, "sums so far\n{}", x.cumsum(-1)?)?;
    Ok(())
}

/// Products of tensors.
fn products(gpu: &Device, out: &mut impl Write) -> Outcome {
    let x = Tensor::arange(6, DType::F32, gpu)?.reshape([2, 3])?;
    writeln!(out, "einsum ij,kj->ik\n{}", x.einsum("ij,kj->ik", &x)?)?;
    writeln!(out, "distances\n{}", x.pairwise_distances(&x, Metric::Euclidean)?)?;
    let heads = x.i((NewAxis, NewAxis))?;
    let causal = Attention { is_causal: true, ..Default::default() };
    writeln!(out, "attention\n{}", heads.attention(&heads, &heads, &causal)?)?;
    Ok(())
}

/// Convolutions and pooling.
fn images(gpu: &Device, out: &mut impl Write) -> Outcome {
    let x = Tensor::arange(16, DType::F32, gpu)?.reshape([1, 1, 4, 4])?;
    let edges = Tensor::new([[[[-1.0f32, 1.0]]]], gpu)?;
    writeln!(out, "conv2d\n{}", x.conv2d(&edges, None, &Conv2d::default())?.i((0, 0))?)?;
    writeln!(out, "max_pool2d\n{}", x.max_pool2d([2, 2], [2, 2], [0, 0])?.i((0, 0))?)?;
    Ok(())
}

/// Selecting, joining and moving.
fn indices(gpu: &Device, out: &mut impl Write) -> Outcome {
    let x = Tensor::arange(12, DType::I32, gpu)?.reshape([3, 4])?;
    let (rows, columns) = (Tensor::new([0, 2], gpu)?, Tensor::new([1, -1], gpu)?);
    writeln!(out, "x[[0, 2], [1, -1]] is {}", x.i((&rows, &columns))?)?;
    writeln!(out, "x[x % 5 == 0] is {}", x.i(&x.remainder(5)?.eq(0)?)?)?;
    writeln!(out, "rolled and padded\n{}", x.roll(1, 1)?.pad(&[[0, 0], [1, 1]], 0)?)?;
    let parts = x.split(&[1, 2], 0)?;
    writeln!(out, "joined again\n{}", Tensor::concat(&[&parts[1], &parts[0]], 0)?)?;
    writeln!(out, "rows added by index\n{}", x.index_add(0, &rows, &x.i(1..)?)?)?;
    Ok(())
}

/// Random numbers and losses.
fn training(gpu: &Device, out: &mut impl Write) -> Outcome {
    let scores = Tensor::randn([4, 3], 7, DType::F32, gpu)?;
    writeln!(out, "dropout\n{}", scores.dropout(0.5, 9)?)?;
    let classes = Tensor::new([0u32, 2, 1, 1], gpu)?;
    writeln!(out, "cross entropy {}", scores.cross_entropy(&classes)?)?;
    writeln!(out, "mean squared error {}", scores.mse_loss(&scores.round()?)?)?;
    Ok(())
}
