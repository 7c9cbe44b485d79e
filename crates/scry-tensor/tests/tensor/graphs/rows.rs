//! Row kernels: reductions of rows with the operations around them, against operations one by one.

use half::{bf16, f16};
use scry_gpu::Device;
use scry_tensor::{DType, Element, Ellipsis, Fusion, Graph, Result, Tensor, step};
use scry_test_support::on_each_device;

use super::random::Random;
use crate::support::{Host, assert_close, cpu, ok};

fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = (x - x.max_keepdim(-1)?)?.exp()?;
    &e / e.sum_keepdim(-1)?
}

fn log_softmax(x: &Tensor) -> Result<Tensor> {
    let centred = (x - x.max_keepdim(-1)?)?;
    &centred - centred.exp()?.sum_keepdim(-1)?.log()?
}

fn layer_norm(x: &Tensor) -> Result<Tensor> {
    let centred = (x - x.mean_keepdim(-1)?)?;
    let variance = centred.square()?.mean_keepdim(-1)?;
    centred.mul((variance + 1e-5)?.rsqrt()?)
}

fn rms_norm(x: &Tensor) -> Result<Tensor> {
    x.mul((x.square()?.mean_keepdim(-1)? + 1e-6)?.rsqrt()?)
}

fn root_mean_square(x: &Tensor) -> Result<Tensor> {
    x.square()?.mean(-1)?.sqrt()
}

type Function = fn(&Tensor) -> Result<Tensor>;
const FUNCTIONS: [Function; 5] = [softmax, log_softmax, layer_norm, rms_norm, root_mean_square];

fn data(shape: &[usize], seed: u64, gpu: &Device) -> Tensor {
    super::random::input(shape, seed, gpu)
}

/// Compares a plan of one input with its operations: each kernel in `check`, and the outputs with
/// those of eager operations, by a tolerance. Returns the number of kernels.
fn compare(function: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor, tolerance: f64) -> usize {
    let g = ok(Graph::new(x.device()));
    let input = ok(g.input_with_dtype("x", x.shape(), x.dtype()));
    let plan = ok(g.compile(&[ok(function(&input))]));
    let report = ok(plan.explain());
    plan.check(&[("x", x)]).unwrap_or_else(|error| panic!("{} {error}\n{report}", x.shape()));
    let wanted = Host::download(&ok(function(x)));
    for _ in 0..2 {
        let found = Host::download(&ok(plan.run(&[("x", x)]))[0]);
        assert_close(&found, &wanted, tolerance, &format!("{report}\nof {}", x.shape()));
    }
    report.kernels.len()
}

#[test]
fn norms_are_one_kernel() {
    on_each_device(|gpu| {
        for (n, function) in FUNCTIONS.into_iter().enumerate() {
            for (rows, columns) in [(1, 2), (3, 5), (7, 33), (2, 257), (3, 1031), (63, 64)] {
                let x = data(&[rows, columns], (n * columns) as u64, gpu);
                assert_eq!(compare(function, &x, 1e-5), 1, "{n}: {rows} x {columns}");
            }
        }
    });
}

#[test]
fn rows_of_any_size_agree() {
    let gpu = cpu();
    let sizes = [1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 127, 255, 256, 257, 1023, 2049, 8191, 8192, 8193];
    for (n, columns) in sizes.into_iter().enumerate() {
        for (m, function) in FUNCTIONS.into_iter().enumerate() {
            let rows = [1, 2, 31, 257, 0][(n + m) % 5];
            let rows = if columns > 1000 { rows.min(3) } else { rows };
            let kernels = compare(function, &data(&[rows, columns], n as u64, &gpu), 1e-5);
            // The kernel library reduces large operands on the processor.
            let is_small = rows * columns <= 4096 || m < 4;
            let is_fused = (2..=8192).contains(&columns) && rows > 0 && is_small;
            assert_eq!(kernels == 1, is_fused || rows == 0 && kernels == 1, "{rows} x {columns}");
        }
    }
}

#[test]
fn special_values_agree() {
    const SPECIAL: [f32; 10] = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        1e-45,
        -1.0,
        88.0,
    ];
    on_each_device(|gpu| {
        let mut random = Random::new(3);
        for columns in [2, 5, 64] {
            let values: Vec<f32> =
                (0..12 * columns).map(|_| SPECIAL[random.below(SPECIAL.len())]).collect();
            let x = ok(Tensor::from_slice(&values, [12, columns], gpu));
            for function in [softmax, log_softmax, |x: &Tensor| x.neg()?.min_keepdim(-1)?.sub(x)] {
                compare(function, &x, 1e-5);
            }
            // The sign of a zero that is an extreme.
            let zeros: Vec<f32> = (0..12 * columns).map(|_| [0.0, -0.0][random.below(2)]).collect();
            let x = ok(Tensor::from_slice(&zeros, [12, columns], gpu));
            let signs = |x: &Tensor| x.max(-1)?.reciprocal()?.mul(x.neg()?.min(-1)?.reciprocal()?);
            assert_eq!(compare(signs, &x, 0.0), 1);
        }
    });
}

#[test]
fn views_and_broadcasts_agree() {
    on_each_device(|gpu| {
        let x = data(&[4, 6, 10], 5, gpu);
        let (scale, offset) = (data(&[10], 6, gpu), data(&[6, 1], 7, gpu));
        let affine = |x: &Tensor| (layer_norm(x)?.mul(&scale)? + &offset)?.silu();
        assert_eq!(compare(affine, &x, 1e-5), 1);
        // Rows of two axes.
        let both = |x: &Tensor| x.sub(x.mean_keepdim([-2, -1])?)?.exp();
        assert_eq!(compare(both, &x, 1e-5), 1);
        // Strided operands, and rows of another order.
        let strided = |x: &Tensor| softmax(&x.i((step(.., -1), step(1.., 2), step(.., -3)))?);
        assert!(compare(strided, &x, 1e-5) <= 2);
        let permuted = |x: &Tensor| softmax(&(x.permute([2, 0, 1])? * 0.5)?);
        assert!(compare(permuted, &x, 1e-5) <= 2);
        let columns = |x: &Tensor| x.sub(x.max_keepdim(1)?)?.tanh();
        assert!(compare(columns, &x, 1e-5) <= 3);
        let one = |x: &Tensor| softmax(&x.i((Ellipsis, 2..3))?.expand([4, 6, 9])?);
        compare(one, &x, 1e-5);
    });
}

#[test]
fn types_agree() {
    fn cast<T: Element>(x: &Tensor) -> Tensor {
        ok(x.cast(T::DTYPE))
    }
    on_each_device(|gpu| {
        for columns in [3, 34, 258] {
            let x = ok(data(&[5, columns], 9, gpu).mul(0.5));
            let has_16_bits = ok(x.cast(DType::F16)).sum(-1).is_ok();
            for function in FUNCTIONS.into_iter().skip(columns % 2).filter(|_| has_16_bits) {
                // Each rounding to 16 bits may differ by a unit after sums in another order.
                compare(function, &cast::<f16>(&x), 4e-3);
                compare(function, &cast::<bf16>(&x), 3e-2);
            }
            let mixed = |x: &Tensor| rms_norm(&x.cast(DType::F32)?)?.cast(DType::F16);
            let kernels = compare(mixed, &x, 2e-3);
            assert_eq!(kernels == 1, columns % 2 == 0, "{columns}");
            let integers = ok(x.cast(DType::I32));
            let counts = |x: &Tensor| x.sub(x.min_keepdim(-1)?)?.mul(x.abs()?.sum_keepdim(-1)?);
            assert_eq!(compare(counts, &integers, 0.0), 1);
            let unsigned = ok(ok(integers.abs()).cast(DType::U32));
            let wraps = |x: &Tensor| x.mul(1 << 30)?.sum_keepdim(-1)?.add(x.max_keepdim(-1)?);
            compare(wraps, &unsigned, 0.0);
            let bools = |x: &Tensor| x.gt(0.5)?.any(-1);
            compare(bools, &x, 0.0);
        }
    });
}

#[test]
fn exact_fusion_keeps_order_of_sums() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [9, 300]));
    let outputs = [ok(softmax(&x)), ok(x.exp())];
    g.set_fusion(Fusion::Exact);
    let plan = ok(g.compile(&outputs));
    let data = data(&[9, 300], 1, &gpu);
    let found = ok(ok(plan.run(&[("x", &data)]))[0].to_vec::<f32>());
    assert_eq!(found, ok(ok(softmax(&data)).to_vec::<f32>()));
}

#[test]
fn results_that_others_use_are_stored() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [4, 8]));
    let max = ok(x.max_keepdim(-1));
    let e = ok(ok(&x - &max).exp());
    let outputs = [ok(&e / &ok(e.sum_keepdim(-1))), e, max];
    let plan = ok(g.compile(&outputs));
    let data = data(&[4, 8], 2, &gpu);
    assert!(ok(plan.check(&[("x", &data)])) >= 3);
    // What is read before a write keeps its value.
    let state = ok(g.state("s", [4, 8]));
    let before = ok(state.read().max_keepdim(-1));
    ok(state.write(.., &x));
    let plan = ok(g.compile(&[ok(softmax(&state.read())), ok(x.sub(&before))]));
    for expected in [0.0, 1.0] {
        let out = ok(plan.run(&[("x", &ok(Tensor::from_slice(&[1.0f32; 32], [4, 8], &gpu)))]));
        assert_eq!(ok(out[0].to_vec::<f32>()), [0.125; 32]);
        assert_eq!(ok(out[1].to_vec::<f32>()), [1.0 - expected; 32]);
    }
}

#[test]
fn sizes_share_row_kernels() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", (g.dim("rows", 1..=64), g.dim("columns", 2..=1000))));
    let plan = ok(g.compile(&[ok(softmax(&x))]));
    for columns in 2..60 {
        ok(plan.run(&[("x", &data(&[1 + columns % 7, columns], 0, &gpu))]));
    }
    // One for each number of threads.
    assert!(plan.compiled_kernels() <= 4, "{}", plan.compiled_kernels());
}
