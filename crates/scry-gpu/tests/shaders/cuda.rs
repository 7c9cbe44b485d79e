//! Tests of the kernels in CUDA C, each against the WGSL kernel of the same name on the same
//! device.
//!
//! They need a CUDA device and NVRTC, and print what is missing otherwise.

use scry_gpu::shaders::cuda::{ENTRY, backward, elementwise, matmul, pairwise};
use scry_gpu::{
    BackendKind, Binding, Buffer, Device, GpuError, Kernel, Launch, NativeInterface, Result,
    shaders,
};
use scry_test_support::{devices, random_f32, succeed};

use crate::harness::{LENGTHS, assert_close_scaled, to_u32};

/// A kernel in WGSL and in CUDA C.
type Pair = [&'static str; 2];

/// Returns the CUDA devices that compile CUDA C.
fn cuda_devices() -> Vec<Device> {
    let cuda = devices().into_iter().filter(|gpu| gpu.backend_kind() == BackendKind::Cuda);
    let devices: Vec<Device> = cuda.filter(compiles_cuda_c).collect();
    if devices.is_empty() {
        eprintln!("skipped: no device here compiles CUDA C");
    }
    devices
}

fn compiles_cuda_c(gpu: &Device) -> bool {
    match compile_cuda_c(gpu, elementwise::RELU, &elementwise::unary(0)) {
        Ok(_) => true,
        Err(missing @ GpuError::Library(_)) => {
            eprintln!("skipped {}: {missing}", gpu.name());
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn compile_cuda_c(gpu: &Device, source: &str, interface: &NativeInterface) -> Result<Kernel> {
    // SAFETY: the tests pass sizes that match the lengths of the buffers.
    unsafe { gpu.compile_cuda_with(source, ENTRY, interface) }
}

/// Returns the outputs of both kernels for the same inputs.
fn outputs(
    gpu: &Device,
    [wgsl, cuda]: Pair,
    interface: &NativeInterface,
    (inputs, output): (&[&[f32]], usize),
    launch: &Launch,
) -> [Vec<f32>; 2] {
    let inputs: Vec<Buffer<f32>> = inputs.iter().map(|it| succeed(gpu.upload(it))).collect();
    let kernels = [gpu.compile(wgsl), compile_cuda_c(gpu, cuda, interface)].map(succeed);
    kernels.map(|kernel| {
        let output = succeed(gpu.upload(&vec![f32::NAN; output]));
        let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|it| it as _).collect();
        bindings.push(&output);
        succeed(gpu.run(&kernel, &bindings, launch.clone()));
        succeed(output.download())
    })
}

/// Checks that both outputs are equal within an error relative to `scale`.
fn assert_outputs_agree(what: &str, scale: f64, [wgsl, cuda]: [Vec<f32>; 2]) {
    let wgsl: Vec<f64> = wgsl.iter().map(|it| f64::from(*it)).collect();
    assert_close_scaled(scale, what, &cuda, &wgsl);
}

#[test]
fn matrix_products_agree() {
    let kernels: [(&str, u32, Pair); 3] = [
        ("TILED_16X16", 1, [shaders::matmul::TILED_16X16, matmul::TILED_16X16]),
        ("COARSE_64X64", 4, [shaders::matmul::COARSE_64X64, matmul::COARSE_64X64]),
        ("COARSE_8X8", 8, [shaders::matmul::COARSE_8X8, matmul::COARSE_8X8]),
    ];
    let shapes = [[1, 1, 1], [7, 33, 5], [33, 7, 127], [1, 1023, 33], [127, 129, 65], [65, 63, 17]];
    for gpu in cuda_devices() {
        for (name, edge, pair) in kernels {
            for [m, n, k] in shapes {
                let (a, b) = (random_f32(1, m * k), random_f32(2, k * n));
                let sizes = [m, n, k].map(to_u32);
                let grid = [sizes[1].div_ceil(edge), sizes[0].div_ceil(edge)];
                let launch = Launch::invocations(grid).immediates(&sizes);
                let data: (&[&[f32]], _) = (&[&a, &b], m * n);
                let both = outputs(&gpu, pair, &matmul::interface(), data, &launch);
                assert_outputs_agree(&format!("{name}, m {m}, n {n}, k {k}"), k as f64, both);
            }
        }
    }
}

#[test]
fn distances_agree() {
    let pair = [shaders::pairwise::EUCLIDEAN_SQUARED, pairwise::EUCLIDEAN_SQUARED];
    let shapes = [[1, 1, 1], [7, 33, 5], [33, 7, 127], [1023, 1, 3], [127, 65, 17]];
    for gpu in cuda_devices() {
        for [n_q, n_t, d] in shapes {
            let (queries, points) = (random_f32(1, n_q * d), random_f32(2, n_t * d));
            let sizes = [n_q, n_t, d].map(to_u32);
            let grid = [sizes[1].div_ceil(4), sizes[0].div_ceil(4)];
            let launch = Launch::invocations(grid).immediates(&sizes);
            let data: (&[&[f32]], _) = (&[&queries, &points], n_q * n_t);
            let both = outputs(&gpu, pair, &pairwise::interface(), data, &launch);
            assert_outputs_agree(&format!("n_q {n_q}, n_t {n_t}, d {d}"), d as f64, both);
        }
    }
}

#[test]
fn unary_kernels_agree() {
    use shaders::elementwise as wgsl;
    let kernels: [(&str, Pair, &[f32]); 9] = [
        ("RELU", [wgsl::RELU, elementwise::RELU], &[]),
        ("SIGMOID", [wgsl::SIGMOID, elementwise::SIGMOID], &[]),
        ("TANH", [wgsl::TANH, elementwise::TANH], &[]),
        ("SILU", [wgsl::SILU, elementwise::SILU], &[]),
        ("GELU", [wgsl::GELU, elementwise::GELU], &[]),
        ("SCALE", [wgsl::SCALE, elementwise::SCALE], &[-2.5]),
        ("LEAKY_RELU", [wgsl::LEAKY_RELU, elementwise::LEAKY_RELU], &[0.125]),
        ("ELU", [wgsl::ELU, elementwise::ELU], &[1.5]),
        ("CLAMP", [wgsl::CLAMP, elementwise::CLAMP], &[-2.0, 3.5]),
    ];
    for gpu in cuda_devices() {
        for (name, pair, parameters) in kernels {
            for n in LENGTHS {
                let x: Vec<f32> = random_f32(n as u64, n).iter().map(|x| 8.0 * x).collect();
                let interface = elementwise::unary(to_u32(parameters.len()));
                let launch = with_parameters(Launch::invocations(n), parameters);
                let both = outputs(&gpu, pair, &interface, (&[&x], n), &launch);
                assert_outputs_agree(&format!("{name}, {n} elements"), 8.0, both);
            }
        }
    }
}

fn with_parameters(launch: Launch, parameters: &[f32]) -> Launch {
    match parameters {
        [] => launch,
        [one] => launch.immediates(one),
        [one, two] => launch.immediates(&[*one, *two]),
        more => panic!("no kernel here has {} parameters", more.len()),
    }
}

#[test]
fn binary_kernels_agree() {
    use shaders::backward as gradients;
    use shaders::elementwise as wgsl;
    let kernels: [(&str, Pair); 7] = [
        ("ADD", [wgsl::ADD, elementwise::ADD]),
        ("SUB", [wgsl::SUB, elementwise::SUB]),
        ("MUL", [wgsl::MUL, elementwise::MUL]),
        ("DIV", [wgsl::DIV, elementwise::DIV]),
        ("RELU_BACKWARD", [gradients::RELU_BACKWARD, backward::RELU_BACKWARD]),
        ("SIGMOID_BACKWARD", [gradients::SIGMOID_BACKWARD, backward::SIGMOID_BACKWARD]),
        ("TANH_BACKWARD", [gradients::TANH_BACKWARD, backward::TANH_BACKWARD]),
    ];
    for gpu in cuda_devices() {
        for (name, pair) in kernels {
            for n in LENGTHS {
                let a = random_f32(n as u64, n);
                // From 1 to 3: quotients are bounded by 1.
                let b: Vec<f32> = random_f32(n as u64 + 1, n).iter().map(|b| b + 2.0).collect();
                let launch = Launch::invocations(n);
                let data: (&[&[f32]], _) = (&[&a, &b], n);
                let both = outputs(&gpu, pair, &elementwise::binary(), data, &launch);
                assert_outputs_agree(&format!("{name}, {n} elements"), 3.0, both);
            }
        }
    }
}

#[test]
fn matrix_kernels_agree() {
    let bias_add = [shaders::elementwise::BIAS_ADD, elementwise::BIAS_ADD];
    let transpose = [shaders::backward::TRANSPOSE, backward::TRANSPOSE];
    let reduce_cols = [shaders::backward::REDUCE_COLS, backward::REDUCE_COLS];
    for gpu in cuda_devices() {
        for [rows, columns] in [[1, 1], [7, 33], [33, 7], [127, 129], [1023, 1], [1, 1023]] {
            let what = format!("{rows} × {columns}");
            let (x, bias) = (random_f32(1, rows * columns), random_f32(2, columns));
            let launch = Launch::invocations(x.len());
            let data: (&[&[f32]], _) = (&[&x, &bias], x.len());
            let both = outputs(&gpu, bias_add, &elementwise::bias_add(), data, &launch);
            assert_outputs_agree(&what, 2.0, both);

            let (sizes, interface) = ([to_u32(rows), to_u32(columns)], backward::of_matrix());
            let launch = Launch::invocations([sizes[1], sizes[0].div_ceil(4)]);
            let launch = launch.immediates(&sizes);
            let [wgsl, cuda] = outputs(&gpu, transpose, &interface, (&[&x], x.len()), &launch);
            assert_eq!(cuda, wgsl, "{what}");

            let launch = Launch::workgroups([sizes[1].div_ceil(32), 3, 1]).immediates(&sizes);
            let both = outputs(&gpu, reduce_cols, &interface, (&[&x], 3 * columns), &launch);
            assert_outputs_agree(&what, rows as f64, both);
        }
    }
}
