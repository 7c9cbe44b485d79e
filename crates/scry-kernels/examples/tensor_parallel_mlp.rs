//! A perceptron with one hidden layer, split over several devices (tensor parallelism).
//!
//! The first layer is split by columns: each rank computes some hidden features from the whole
//! input. The second one is split by rows: each rank multiplies its hidden features, and one
//! all-reduce adds the products up. Rank 0 compares the result with that of all features on its own
//! device. The number of hidden features need not be a multiple of the number of ranks.
//!
//! As processes, one for each rank, on CUDA each with the GPU of its local rank:
//!
//!     cargo build --release -p scry-kernels --example tensor_parallel_mlp
//!     scry launch --ranks 2 -- target/release/examples/tensor_parallel_mlp
//!
//! On its own, the program is a group of all GPUs present, or of two CPU devices.

#[path = "../../scry-gpu/examples/shared/random.rs"]
mod random;
#[path = "../../scry-gpu/examples/shared/ranks.rs"]
mod ranks;

use std::ops::Range;

use random::random_f32;
use scry_gpu::{Buffer, DeviceGroup, GroupTransport, Result};
use scry_kernels::{
    Activation, ColumnParallelLinear, Epilogue, Gemm, Kernels, Layout, ParallelOp, PtxType,
    RowParallelLinear, shard,
};

/// Rows of the input.
const TOKENS: usize = 32;
/// Features of the input and of the output.
const WIDTH: usize = 192;
/// Features between the layers.
const HIDDEN: usize = 770;

fn main() -> Result<()> {
    ranks::run(compute)
}

/// Computes the perceptron with all ranks of a group.
fn compute(group: &DeviceGroup) -> Result<()> {
    let (gpu, kernels) = (group.device(), Kernels::new(group.device())?);
    let weights = Weights::random();
    let x = gpu.upload(&random_f32(1, TOKENS * WIDTH))?;
    let features = shard(HIDDEN, group.rank(), group.world_size());
    let [up, up_bias, down] = weights.of(&features).map(|part| gpu.upload(&part));
    let (up, up_bias, down, down_bias) = (up?, up_bias?, down?, gpu.upload(&weights.down_bias)?);
    let hidden = gpu.alloc::<f32>(TOKENS * features.len())?;
    let out = gpu.alloc::<f32>(TOKENS * WIDTH)?;

    let first = ColumnParallelLinear::new(TOKENS, WIDTH, HIDDEN);
    let first = first.with_bias().with_activation(Activation::Gelu);
    let first = kernels.column_parallel_linear(group, &first, &[&x, &up, &up_bias, &hidden])?;
    let second = RowParallelLinear::new(TOKENS, HIDDEN, WIDTH).with_bias();
    let second =
        kernels.row_parallel_linear(group, &second, &[&hidden, &down, &down_bias, &out])?;
    run(group, &[first, second])?;

    if group.rank() == 0 {
        let whole = weights.on_one_device(&kernels, &x)?;
        let pairs = whole.iter().zip(out.download()?);
        let largest = pairs.map(|(one, all)| (one - all).abs()).fold(0.0f32, f32::max);
        assert!(largest < 1e-4, "the result depends on the number of ranks: {largest}");
        println!(
            "{TOKENS} × {WIDTH} × {HIDDEN} × {WIDTH} on {} ranks, through {}: at most \
             {largest:.1e} from one {}",
            group.world_size(),
            group.transport(),
            gpu.name()
        );
    }
    Ok(())
}

/// Runs both layers: with NCCL as one recording, else one after the other.
fn run(group: &DeviceGroup, layers: &[ParallelOp]) -> Result<()> {
    if group.transport() != GroupTransport::Nccl {
        return layers.iter().try_for_each(|layer| layer.run(group));
    }
    let mut batch = group.device().batch();
    layers.iter().try_for_each(|layer| layer.add_to(&mut batch, group))?;
    batch.record()?.replay()?.wait()
}

/// The weights of both layers, each output features × input features.
struct Weights {
    up: Vec<f32>,
    up_bias: Vec<f32>,
    down: Vec<f32>,
    down_bias: Vec<f32>,
}

impl Weights {
    fn random() -> Self {
        let scaled = |seed, len| random_f32(seed, len).into_iter().map(|x| 0.1 * x).collect();
        Self {
            up: scaled(2, HIDDEN * WIDTH),
            up_bias: scaled(3, HIDDEN),
            down: scaled(4, WIDTH * HIDDEN),
            down_bias: scaled(5, WIDTH),
        }
    }

    /// Returns what a rank with these hidden features needs: rows of the first weights, their
    /// biases, and columns of the second weights.
    fn of(&self, features: &Range<usize>) -> [Vec<f32>; 3] {
        let up = self.up[features.start * WIDTH..features.end * WIDTH].to_vec();
        let down = self.down.chunks(HIDDEN).flat_map(|row| &row[features.clone()]).copied();
        [up, self.up_bias[features.clone()].to_vec(), down.collect()]
    }

    /// Returns the result of all features on one device.
    fn on_one_device(&self, kernels: &Kernels, x: &Buffer<f32>) -> Result<Vec<f32>> {
        let gpu = kernels.device();
        let hidden = gpu.alloc::<f32>(TOKENS * HIDDEN)?;
        let out = gpu.alloc::<f32>(TOKENS * WIDTH)?;
        let layer = |n: usize, k: usize, activation| {
            let gemm = Gemm::new(TOKENS as u64, n as u64, k as u64, PtxType::F32)
                .with_layouts(Layout::RowMajor, Layout::ColMajor);
            Gemm { epilogue: Epilogue { bias: true, activation, ..Epilogue::NONE }, ..gemm }
        };
        let (up, up_bias) = (gpu.upload(&self.up)?, gpu.upload(&self.up_bias)?);
        let first = layer(HIDDEN, WIDTH, Activation::Gelu);
        kernels.gemm(&first, &[x, &up, &up_bias, &hidden])?.run()?;
        let (down, down_bias) = (gpu.upload(&self.down)?, gpu.upload(&self.down_bias)?);
        let second = layer(WIDTH, HIDDEN, Activation::None);
        kernels.gemm(&second, &[&hidden, &down, &down_bias, &out])?.run()?;
        out.download()
    }
}
