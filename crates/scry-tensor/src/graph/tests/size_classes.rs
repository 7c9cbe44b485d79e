//! How many kernels the sizes of named dimensions need.

use std::ops::RangeInclusive;

use scry_gpu::{BackendKind, testing};

use super::super::size_classes::Search;
use crate::{Attention, DType, Device, Draw, Graph, Plan, Result, Tensor};

const HIDDEN: usize = 384;
const HEADS: usize = 12;

/// The mean of the vectors of tokens.
const MEAN: &str = "
    @group(0) @binding(0) var<storage, read> tokens: array<u32>;
    @group(0) @binding(1) var<storage, read> vectors: array<f32>;
    @group(0) @binding(2) var<storage, read_write> means: array<f32>;

    @compute @workgroup_size(64)
    fn mean(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&means) { return; }
        let length = arrayLength(&tokens) / (arrayLength(&means) / 384u);
        var sum = 0.0;
        for (var at = 0u; at < length; at++) {
            sum += vectors[(id.x / 384u * length + at) * 384u + id.x % 384u];
        }
        means[id.x] = sum / f32(length);
    }";

/// Returns a null device with the properties of an H200, so that plans are those for CUDA.
fn null_h200() -> Device {
    let mut info = testing::null_info();
    info.backend = BackendKind::Cuda;
    info.compute_capability = Some([9, 0]);
    info.multiprocessors = Some(132);
    info.limits.max_workgroup_memory = 227 << 10;
    info.limits.max_immediates = 4096;
    testing::observed(info).0
}

/// Returns a null device, for which plans are those for Vulkan.
fn null_vulkan() -> Device {
    let mut info = testing::null_info();
    info.backend = BackendKind::Vulkan;
    testing::observed(info).0
}

/// Returns the tensor after a norm.
fn norm(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let weight = Tensor::zeros([HIDDEN], dtype, x.device())?.contiguous()?;
    x.layer_norm(Some(&weight), Some(&weight), 1e-12)
}

/// Returns the plan of an encoder of the BERT family.
fn encoder(gpu: &Device, dtype: DType, sizes: [RangeInclusive<usize>; 2]) -> Result<Plan> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, dtype, gpu)?.contiguous();
    let linear = |x: &Tensor, to: usize| {
        let from = x.shape()[x.shape().len() - 1];
        x.linear(&zeros(&[to, from])?, Some(&zeros(&[to])?))
    };
    let g = Graph::new(gpu)?;
    let [batch, length] = sizes;
    let (batch, length) = (g.dim("batch", batch), g.dim("length", length));
    let tokens = g.input_with_dtype("tokens", (&batch, &length), DType::U32)?;
    let positions = g.input_with_dtype("positions", (length, HIDDEN), dtype)?;
    let is_token = tokens.lt(1000i64)?;
    let bias = is_token.where_(0.0, f64::from(f32::NEG_INFINITY))?.cast(dtype)?;
    let bias = bias.unsqueeze(1)?.unsqueeze(1)?;
    let mut x = norm(&zeros(&[1000, HIDDEN])?.embedding(&tokens)?.add(&positions)?, dtype)?;
    for _ in 0..2 {
        let weight = zeros(&[3, HEADS, HIDDEN / HEADS, HIDDEN])?;
        let all = x.einsum("blh,sndh->blsnd", &weight)?;
        let all = all.add(&zeros(&[3, HEADS, HIDDEN / HEADS])?)?;
        let part = |n: i64| all.i((.., .., n))?.transpose(1, 2);
        let masked = Attention { bias: Some(&bias), ..Attention::default() };
        let seen = part(0)?.attention(&part(1)?, &part(2)?, &masked)?;
        let weight = zeros(&[HIDDEN, HEADS, HIDDEN / HEADS])?;
        let seen = seen.einsum("bnld,hnd->blh", &weight)?;
        x = norm(&x.add(&seen.add(&zeros(&[HIDDEN])?)?)?, dtype)?;
        let down = linear(&linear(&x, 4 * HIDDEN)?.gelu()?, HIDDEN)?;
        x = norm(&x.add(&down)?, dtype)?;
    }
    // A custom kernel, as products and reductions have kernels for classes of lengths.
    let means = [((batch, HIDDEN).into(), DType::F32)];
    let pooled = g.kernel(MEAN, &[&tokens, &x.cast(DType::F32)?], &means)?.remove(0);
    let length = pooled.square()?.sum_keepdim(1)?.sqrt()?;
    g.compile(&[pooled.div(&length.maximum(1e-12)?)?])
}

/// Returns sizes of the encoder.
fn sizes(batch: usize, length: usize) -> Vec<(String, usize)> {
    vec![("batch".to_owned(), batch), ("length".to_owned(), length)]
}

/// Sizes are arguments of kernels: their classes are few, and all of them are compiled with the
/// plan.
#[test]
fn no_size_compiles_a_kernel() {
    let cpu = || testing::open_with_limits("cpu", |_| ()).unwrap();
    let devices: [&dyn Fn() -> Device; 3] = [&null_h200, &null_vulkan, &cpu];
    for (open, dtype) in devices.into_iter().zip([DType::F16, DType::F16, DType::F32]) {
        let single = encoder(&open(), dtype, [64..=64, 128..=128]).unwrap().compiled_kernels();
        let plan = encoder(&open(), dtype, [1..=64, 8..=256]).unwrap();
        let all = plan.compiled_kernels();
        let mut random = Draw(3);
        for n in 0..200 {
            let batch = if n % 8 == 0 { 1 } else { random.from_to(1, 64) };
            let sizes = sizes(batch, random.from_to(1, 32) * 8);
            Search::new(plan.shared()).compile(sizes.clone()).unwrap();
            let name = plan.device().name();
            assert_eq!(plan.compiled_kernels(), all, "{name}, {sizes:?}");
        }
        assert!(all <= 2 * single, "{single} kernels for one size, {all} for all");
    }
}

/// Returns the plan of a feed-forward block with its norm.
fn feed_forward(gpu: &Device, sizes: [RangeInclusive<usize>; 2]) -> Result<Plan> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F16, gpu)?.contiguous();
    let g = Graph::new(gpu)?;
    let [batch, length] = sizes;
    let (batch, length) = (g.dim("batch", batch), g.dim("length", length));
    let x = g.input_with_dtype("x", (batch, length, HIDDEN), DType::F16)?;
    let up = x.linear(&zeros(&[4 * HIDDEN, HIDDEN])?, Some(&zeros(&[4 * HIDDEN])?))?.gelu()?;
    let down = up.linear(&zeros(&[HIDDEN, 4 * HIDDEN])?, Some(&zeros(&[HIDDEN])?))?;
    g.compile(&[norm(&x.add(&down)?, DType::F16)?])
}

/// Returns how many kernels of the plan and of the library were compiled.
fn compiled(plan: &Plan) -> usize {
    plan.compiled_kernels() as usize + plan.shared().library.compiled_kernels()
}

/// Products with varying rows have few kernels of the library, which are compiled with the plan.
#[test]
fn no_size_compiles_a_product() {
    let single = compiled(&feed_forward(&null_h200(), [64..=64, 128..=128]).unwrap());
    for sizes_of in [[1..=64, 1..=256], [1..=64, 1..=2048]] {
        let plan = feed_forward(&null_h200(), sizes_of).unwrap();
        let all = compiled(&plan);
        let mut random = Draw(5);
        for _ in 0..20 {
            let sizes = sizes(random.from_to(1, 64), random.from_to(1, 256));
            plan.shared().specialise(&sizes).unwrap();
            assert_eq!(compiled(&plan), all, "{sizes:?}");
        }
        assert!(all <= 3 * single, "{single} kernels for one size, {all} for all");
    }
}

/// All kernels of an encoder are compiled with its plan, whatever the sizes of runs.
#[test]
fn encoder_compiles_nothing_after_its_plan() {
    let single = compiled(&encoder(&null_h200(), DType::F16, [64..=64, 128..=128]).unwrap());
    let plan = encoder(&null_h200(), DType::F16, [1..=64, 8..=256]).unwrap();
    let all = compiled(&plan);
    let mut random = Draw(9);
    for n in 0..100 {
        let batch = if n % 8 == 0 { 1 } else { random.from_to(1, 64) };
        let sizes = sizes(batch, random.from_to(1, 32) * 8);
        plan.shared().specialise(&sizes).unwrap();
        assert_eq!(compiled(&plan), all, "{sizes:?}");
    }
    // The custom kernel counts, too.
    let [single, all] = [single, all].map(|count| count + 1);
    assert!(all <= 2 * single, "{single} kernels for one size, {all} for all");
}
