//! A tour of the operations on tensors: statistics, sorting, matrix products, convolution,
//! indexing, joining, random numbers and losses. `scry ops` lists all of them.
//!
//!     cargo run --release -p scry-tensor --example ops

use scry_tensor::{Attention, Conv2d, DType, Device, Metric, NewAxis, Result, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Device::auto()?;
    println!("on {}", gpu.name());
    rows(&gpu)?;
    products(&gpu)?;
    images(&gpu)?;
    indices(&gpu)?;
    training(&gpu)?;
    Ok(())
}

/// Functions of rows.
fn rows(gpu: &Device) -> Result<()> {
    let x = Tensor::new([[1.0f32, 4.0, 2.0], [3.0, 3.0, 9.0]], gpu)?;
    println!("softmax\n{}", x.softmax(-1)?);
    println!("layer norm\n{}", x.layer_norm(None, None, 1e-5)?);
    println!("mean {}, variance {}", x.mean(-1)?, x.var(-1, 1)?);
    let (largest, indices) = x.topk(2, -1)?;
    println!("the two largest\n{largest}\nat\n{indices}");
    println!("sums so far\n{}", x.cumsum(-1)?);
    Ok(())
}

/// Products of tensors.
fn products(gpu: &Device) -> Result<()> {
    let x = Tensor::arange(6, DType::F32, gpu)?.reshape([2, 3])?;
    println!("einsum ij,kj->ik\n{}", x.einsum("ij,kj->ik", &x)?);
    println!("distances\n{}", x.pairwise_distances(&x, Metric::Euclidean)?);
    let heads = x.i((NewAxis, NewAxis))?;
    let causal = Attention { is_causal: true, ..Default::default() };
    println!("attention\n{}", heads.attention(&heads, &heads, &causal)?);
    Ok(())
}

/// Convolutions and pooling.
fn images(gpu: &Device) -> Result<()> {
    let x = Tensor::arange(16, DType::F32, gpu)?.reshape([1, 1, 4, 4])?;
    let edges = Tensor::new([[[[-1.0f32, 1.0]]]], gpu)?;
    println!("conv2d\n{}", x.conv2d(&edges, None, &Conv2d::default())?.i((0, 0))?);
    println!("max_pool2d\n{}", x.max_pool2d([2, 2], [2, 2], [0, 0])?.i((0, 0))?);
    Ok(())
}

/// Selecting, joining and moving.
fn indices(gpu: &Device) -> Result<()> {
    let x = Tensor::arange(12, DType::I32, gpu)?.reshape([3, 4])?;
    let (rows, columns) = (Tensor::new([0, 2], gpu)?, Tensor::new([1, -1], gpu)?);
    println!("x[[0, 2], [1, -1]] is {}", x.i((&rows, &columns))?);
    println!("x[x % 5 == 0] is {}", x.i(&x.remainder(5)?.eq(0)?)?);
    println!("rolled and padded\n{}", x.roll(1, 1)?.pad(&[[0, 0], [1, 1]], 0)?);
    let parts = x.split(&[1, 2], 0)?;
    println!("joined again\n{}", Tensor::concat(&[&parts[1], &parts[0]], 0)?);
    println!("rows added by index\n{}", x.index_add(0, &rows, &x.i(1..)?)?);
    Ok(())
}

/// Random numbers and losses.
fn training(gpu: &Device) -> Result<()> {
    let scores = Tensor::randn([4, 3], 7, DType::F32, gpu)?;
    println!("dropout\n{}", scores.dropout(0.5, 9)?);
    let classes = Tensor::new([0u32, 2, 1, 1], gpu)?;
    println!("cross entropy {}", scores.cross_entropy(&classes)?);
    println!("mean squared error {}", scores.mse_loss(&scores.round()?)?);
    Ok(())
}
