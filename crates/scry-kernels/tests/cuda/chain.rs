//! Tests of chains of launches with programmatic dependent launch, each of which reads the previous
//! one's output: results must equal those of sequential execution.

use scry_gpu::{Buffer, Element, bf16};
use scry_kernels::{BlockFormat, Gemm, Kernels, Op, PtxType};
use scry_test_support::succeed;

use crate::harness::{kernels, poisoned, random};

/// Number of runs of a chain, with alternating inputs.
const REPETITIONS: usize = 1000;

/// Computes a chain from each input launch by launch, then many times as a recording and as a
/// batch, and compares all bits of the results.
fn check<X: Element, Y: Element + PartialEq>(
    kernels: &Kernels,
    steps: &[Op],
    (inputs, x): (&[Buffer<X>], &Buffer<X>),
    results: &[&Buffer<Y>],
) {
    let gpu = kernels.device();
    let download_all = || results.iter().map(|y| succeed(y.download())).collect::<Vec<_>>();
    let one_by_one = |input: &Buffer<X>| {
        succeed(input.copy_to(x));
        for step in steps {
            succeed(step.run());
            // Waits for the step.
            succeed(x.download());
        }
        download_all()
    };
    let expected: Vec<_> = inputs.iter().map(one_by_one).collect();
    let batch = || {
        let mut batch = gpu.batch();
        steps.iter().for_each(|step| succeed(step.add_to(&mut batch)));
        batch
    };
    let recording = succeed(batch().record());
    for run in 0..REPETITIONS {
        let input = run % inputs.len();
        succeed(inputs[input].copy_to(x));
        if run % 2 == 0 {
            succeed(succeed(recording.replay()).wait());
        } else {
            succeed(batch().submit());
        }
        assert!(
            download_all() == expected[input],
            "run {run}: the results of input {input} differ"
        );
    }
}

/// Returns different inputs of `count` elements each.
fn inputs(kernels: &Kernels, count: usize) -> Vec<Buffer<f32>> {
    let upload = |seed| succeed(kernels.device().upload(&random::<f32>(seed, count)));
    (10..17).map(upload).collect()
}

fn check_quantised(kernels: &Kernels, format: BlockFormat) {
    /// Columns of all weights, and rows of most.
    const K: usize = 1024;
    /// Rows of the weights that the chain computes.
    const ROWS: usize = 16;
    let gpu = kernels.device();
    let bytes = |rows| rows * K / format.block_len() * format.block_bytes();
    let weights = |seed, rows: usize| {
        let numbers = succeed(gpu.upload(&random::<f32>(seed, rows * K)));
        let blocks = succeed(gpu.alloc::<u8>(bytes(rows)));
        succeed(succeed(kernels.quantize(format, &numbers, &blocks, rows * K)).run());
        blocks
    };
    let (a, b, tall) = (weights(1, K), weights(2, K), weights(3, ROWS * K));
    let computed = succeed(gpu.alloc::<u8>(bytes(ROWS)));
    let (x, u, v) = (poisoned(gpu, K), poisoned(gpu, K), poisoned(gpu, K));
    let (matrix, last) = (poisoned(gpu, ROWS * K), poisoned(gpu, ROWS));
    let product = |weights: &Buffer<u8>, x: &Buffer<f32>, y: &Buffer<f32>, rows| {
        succeed(kernels.quantized_matmul(format, weights, x, y, [rows, K], 1))
    };
    let steps = [
        product(&a, &x, &u, K),
        // Activations are the previous launch's output.
        product(&b, &u, &v, K),
        // The output overwrites the previous launch's input.
        product(&a, &v, &u, K),
        product(&tall, &u, &matrix, ROWS * K),
        succeed(kernels.quantize(format, &matrix, &computed, ROWS * K)),
        // Weights are the previous launch's output.
        product(&computed, &v, &last, ROWS),
        product(&b, &x, &v, K),
    ];
    check(kernels, &steps, (&inputs(kernels, K), &x), &[&u, &v, &matrix, &last]);
}

#[test]
fn chained_quantised_products_match_sequential() {
    for kernels in kernels() {
        BlockFormat::ALL.into_iter().for_each(|format| check_quantised(&kernels, format));
    }
}

fn check_products(kernels: &Kernels) {
    /// Rows of small activations.
    const FEW: u64 = 16;
    /// Rows of `x`, `y` and `z`, which are activations of some products and weights of others.
    const MANY: u64 = 512;
    /// All other sizes.
    const SIDE: u64 = 1024;
    let gpu = kernels.device();
    let numbers = |seed, rows: u64, columns: u64| {
        let scaled = random::<f32>(seed, (rows * columns) as usize).into_iter().map(|x| x / 16.0);
        succeed(gpu.upload(&scaled.map(bf16::from_f32).collect::<Vec<_>>()))
    };
    let matrix = |rows: u64| poisoned::<bf16>(gpu, (rows * SIDE) as usize);
    let product = |a, b, out, [m, n, k]: [u64; 3]| {
        let gemm = Gemm::new(m, n, k, PtxType::Bf16);
        succeed(
            kernels.gemm(&gemm, &[a as &Buffer<bf16>, b as &Buffer<bf16>, out as &Buffer<bf16>]),
        )
    };
    let blocks = succeed(gpu.alloc::<u8>((SIDE * SIDE / 32 * 34) as usize));
    let weights = succeed(gpu.upload(&random::<f32>(5, (SIDE * SIDE) as usize)));
    let quantised = kernels.quantize(BlockFormat::Q8_0, &weights, &blocks, weights.len());
    succeed(succeed(quantised).run());
    let [decoded, a, b] = [matrix(SIDE), numbers(1, SIDE, SIDE), numbers(2, SIDE, SIDE)];
    let (small, lhs) = (matrix(FEW), numbers(4, FEW, MANY));
    let [x, y, z] = [(); 3].map(|()| matrix(MANY));
    let [u, v, last] = [(); 3].map(|()| matrix(FEW));
    let mnk = [FEW, SIDE, SIDE];
    let dequantize = |blocks: &Buffer<u8>, y: &Buffer<bf16>| {
        succeed(kernels.dequantize(BlockFormat::Q8_0, blocks, y, (SIDE * SIDE) as usize))
    };
    let steps = [
        product(&lhs, &x, &small, [FEW, SIDE, MANY]),
        product(&small, &a, &u, mnk),
        // Activations are the previous launch's output.
        product(&u, &b, &v, mnk),
        // The output overwrites the previous launch's input.
        product(&v, &a, &u, mnk),
        product(&x, &b, &y, [MANY, SIDE, SIDE]),
        product(&y, &a, &z, [MANY, SIDE, SIDE]),
        // Weights are the previous launch's output.
        product(&lhs, &z, &v, [FEW, SIDE, MANY]),
        dequantize(&blocks, &decoded),
        product(&v, &decoded, &last, mnk),
    ];
    let inputs: Vec<_> = (10..17).map(|seed| numbers(seed, MANY, SIDE)).collect();
    check(kernels, &steps, (&inputs, &x), &[&u, &v, &y, &z, &last]);
}

#[test]
fn chained_matmuls_match_sequential() {
    kernels().iter().for_each(check_products);
}
