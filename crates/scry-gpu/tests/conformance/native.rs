//! Tests of native kernels and cuBLAS, on every available CUDA device.

use scry_gpu::{
    BackendKind, Buffer, Device, GpuError, Kernel, Launch, NativeBinding, NativeInterface, Scalar,
    bf16, f16,
};
use scry_test_support::{devices, random_f32};

/// `x[i] = factor * x[i] + offset`, with two parameters after the length.
const SCALE: &str = "
    .version 7.0
    .target sm_75
    .address_size 64
    .visible .entry scale(
        .param .u64 x, .param .u64 n, .param .f32 factor, .param .f32 offset)
    {
        .reg .pred %out;
        .reg .b32 %i, %b, %w;
        .reg .f32 %v, %f, %o;
        .reg .b64 %x, %n, %at;
        ld.param.u64 %x, [x];
        ld.param.u64 %n, [n];
        ld.param.f32 %f, [factor];
        ld.param.f32 %o, [offset];
        mov.u32 %i, %tid.x;
        mov.u32 %b, %ctaid.x;
        mov.u32 %w, %ntid.x;
        mad.lo.u32 %i, %b, %w, %i;
        cvt.u64.u32 %at, %i;
        setp.ge.u64 %out, %at, %n;
        @%out bra END;
        cvta.to.global.u64 %x, %x;
        shl.b64 %at, %at, 2;
        add.u64 %x, %x, %at;
        ld.global.f32 %v, [%x];
        fma.rn.f32 %v, %v, %f, %o;
        st.global.f32 [%x], %v;
    END:
        ret;
    }";

/// [`SCALE`] in CUDA C, with a structure as its last parameter, and a kernel that reverses blocks
/// in dynamic shared memory.
const CUDA_C: &str = r#"
    struct Affine { float factor, offset; };
    extern "C" __global__ void scale(float *x, unsigned long long n, Affine affine) {
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < n) x[i] = fmaf(affine.factor, x[i], affine.offset);
    }
    extern "C" __global__ void reverse(const unsigned *x, unsigned *y) {
        extern __shared__ unsigned block[];
        block[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
        __syncthreads();
        y[blockIdx.x * blockDim.x + threadIdx.x] = block[blockDim.x - 1 - threadIdx.x];
    }"#;

fn on_each_cuda_device(test: impl Fn(&Device)) {
    let devices = devices();
    let mut cuda = devices.iter().filter(|it| it.backend_kind() == BackendKind::Cuda).peekable();
    if cuda.peek().is_none() {
        eprintln!("skipped: no CUDA device is present");
    }
    cuda.for_each(test);
}

/// Returns the value; prints a message and returns `None` if a library is not installed.
fn skip_without_library<T>(result: Result<T, GpuError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(missing @ GpuError::Library(_)) => {
            eprintln!("skipped: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the interface of the kernels `scale`.
fn scale_interface() -> NativeInterface {
    let x = NativeBinding::read_write("x", Scalar::F32).with_length();
    NativeInterface::new([x], [64, 1, 1]).immediates(8)
}

/// Runs a kernel `scale` twice in a batch, and twice in a recording, with several blocks.
fn check_scale(gpu: &Device, kernel: &Kernel) {
    let x = random_f32(1, 1001);
    let expected: Vec<f32> = x.iter().map(|x| 2.0 * (2.0 * x + 0.5) + 0.5).collect();
    let run = || {
        let data = gpu.upload(&x)?;
        let launch = Launch::invocations(x.len()).immediates(&[2.0f32, 0.5]);
        let mut batch = gpu.batch();
        batch.run(kernel, &[&data], launch.clone())?;
        batch.run(kernel, &[&data], launch.clone())?;
        batch.submit()?;
        let submitted = data.download()?;
        // A recording keeps a copy of the immediates for all of its replays.
        let mut batch = gpu.batch();
        batch.run(kernel, &[&data], launch)?;
        let recording = batch.record()?;
        data.write(&x)?;
        recording.replay()?.wait()?;
        recording.replay()?.wait()?;
        Ok::<_, GpuError>([submitted, data.download()?])
    };
    let results = run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(results, [expected.clone(), expected]);
}

#[test]
fn ptx_receives_declared_parameters() {
    on_each_cuda_device(|gpu| {
        // SAFETY: each thread accesses one element below the length.
        let kernel = unsafe { gpu.compile_ptx(SCALE, "scale", &scale_interface()) }.unwrap();
        check_scale(gpu, &kernel);
    });
}

#[test]
fn cuda_c_receives_structure_parameter() {
    on_each_cuda_device(|gpu| {
        // SAFETY: each thread accesses one element below the length.
        let kernel = unsafe { gpu.compile_cuda_with(CUDA_C, "scale", &scale_interface()) };
        let Some(kernel) = skip_without_library(kernel) else { return };
        check_scale(gpu, &kernel);
    });
}

#[test]
fn blocks_get_declared_shared_memory() {
    on_each_cuda_device(|gpu| {
        let interface = NativeInterface::new(2, [96, 1, 1]).dynamic_shared(96 * 4);
        // SAFETY: the buffers have as many elements as there are threads.
        let kernel = unsafe { gpu.compile_cuda_with(CUDA_C, "reverse", &interface) };
        let Some(kernel) = skip_without_library(kernel) else { return };
        let x: Vec<u32> = (0..192).collect();
        let (input, output) = (gpu.upload(&x).unwrap(), gpu.alloc::<u32>(192).unwrap());
        gpu.run(&kernel, &[&input, &output], 192).unwrap();
        let expected: Vec<u32> =
            x.chunks(96).flat_map(|block| block.iter().rev().copied()).collect();
        assert_eq!(output.download().unwrap(), expected);
    });
}

#[test]
fn errors_contain_compiler_messages() {
    on_each_cuda_device(|gpu| {
        let invalid = SCALE.replace("fma.rn.f32", "fma.nr.f32");
        // SAFETY: the kernel is not launched.
        let error = unsafe { gpu.compile_ptx(&invalid, "scale", &scale_interface()) }.unwrap_err();
        assert!(matches!(error, GpuError::Source(_)), "{error}");
        assert!(error.to_string().contains("INVALID_PTX"), "{error}");
        // SAFETY: the kernel is not launched.
        let error = unsafe { gpu.compile_ptx(SCALE, "other", &scale_interface()) }.unwrap_err();
        assert!(error.to_string().contains("its kernels are scale"), "{error}");
        // SAFETY: the kernel is not launched.
        match unsafe { gpu.compile_ptx(SCALE, "scale", &scale_interface().immediates(32)) } {
            Err(error) => assert!(error.to_string().contains("has 24 bytes"), "{error}"),
            Ok(_) => eprintln!("this driver does not report the parameters of kernels"),
        }
        let invalid = CUDA_C.replace("fmaf(", "no_such_function(");
        // SAFETY: the kernel is not launched.
        match unsafe { gpu.compile_cuda_with(&invalid, "scale", &scale_interface()) } {
            Err(missing @ GpuError::Library(_)) => eprintln!("skipped: {missing}"),
            Err(error) => assert!(error.to_string().contains("no_such_function"), "{error}"),
            Ok(_) => panic!("the source is invalid"),
        }
        let mangled = CUDA_C.replace("extern \"C\"", "");
        // SAFETY: the kernel is not launched.
        match unsafe { gpu.compile_cuda_with(&mangled, "scale", &scale_interface()) } {
            Err(missing @ GpuError::Library(_)) => eprintln!("skipped: {missing}"),
            Err(error) => assert!(error.to_string().contains("extern \"C\""), "{error}"),
            Ok(_) => panic!("the name is mangled, and not `scale`"),
        }
        // The device stays usable.
        assert_eq!(gpu.upload(&[1u32]).unwrap().download().unwrap(), [1]);
    });
}

/// Returns C = A × B.
fn product(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let at = |row: usize, column: usize| {
        (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + column])).sum()
    };
    (0..m * n).map(|index| at(index / n, index % n)).collect()
}

/// Checks that each element is within `k * tolerance` of the expected one.
fn assert_near(what: &str, k: usize, tolerance: f64, results: &[f32], expected: &[f64]) {
    for (i, (result, expected)) in results.iter().zip(expected).enumerate() {
        let error = (f64::from(*result) - expected).abs();
        let is_near = error <= tolerance * k as f64;
        assert!(is_near, "{what}: element {i} is {result} instead of {expected}");
    }
}

/// m, n and k.
const SHAPES: [[usize; 3]; 6] =
    [[1, 1, 1], [7, 33, 5], [33, 7, 127], [1, 1023, 33], [127, 129, 65], [256, 512, 384]];

#[test]
fn cublas_meets_its_stated_precision() {
    on_each_cuda_device(|gpu| {
        for [m, n, k] in SHAPES {
            let (a, b) = (random_f32(1, m * k), random_f32(2, k * n));
            let expected = product(&a, &b, [m, n, k]);
            let what = format!("m {m}, n {n}, k {k}");
            let (x, y) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
            // One extra element, which must stay unchanged.
            let z = gpu.upload(&vec![-7.0f32; m * n + 1]).unwrap();
            let Some(()) = skip_without_library(gpu.cublas_matmul(&x, &y, &z, m, n, k)) else {
                return;
            };
            let result = z.download().unwrap();
            // The error of TF32 would be a thousand times as large.
            assert_near(&what, k, 3e-7, &result, &expected);
            assert_eq!(result[m * n], -7.0, "{what}");
            gpu.cublas_matmul_tf32(&x, &y, &z, m, n, k).unwrap();
            assert_near(&what, k, 2e-3, &z.download().unwrap(), &expected);
        }
    });
}

#[test]
fn cublas_multiplies_f16_and_bf16() {
    on_each_cuda_device(|gpu| {
        for [m, n, k] in SHAPES {
            let (a, b) = (random_f32(3, m * k), random_f32(4, k * n));
            let expected = product(&a, &b, [m, n, k]);
            let what = format!("m {m}, n {n}, k {k}");
            let to_f16 =
                |data: &[f32]| -> Vec<f16> { data.iter().copied().map(f16::from_f32).collect() };
            let x: Buffer<f16> = gpu.upload(&to_f16(&a)).unwrap();
            let (y, z) = (gpu.upload(&to_f16(&b)).unwrap(), gpu.alloc::<f16>(m * n).unwrap());
            let Some(()) = skip_without_library(gpu.cublas_matmul(&x, &y, &z, m, n, k)) else {
                return;
            };
            let result: Vec<f32> = z.download().unwrap().iter().map(|it| it.to_f32()).collect();
            assert_near(&what, k, 2e-3, &result, &expected);
            let to_bf16 =
                |data: &[f32]| -> Vec<bf16> { data.iter().copied().map(bf16::from_f32).collect() };
            let x: Buffer<bf16> = gpu.upload(&to_bf16(&a)).unwrap();
            let (y, z) = (gpu.upload(&to_bf16(&b)).unwrap(), gpu.alloc::<bf16>(m * n).unwrap());
            gpu.cublas_matmul(&x, &y, &z, m, n, k).unwrap();
            let result: Vec<f32> = z.download().unwrap().iter().map(|it| it.to_f32()).collect();
            assert_near(&what, k, 1.6e-2, &result, &expected);
        }
    });
}

#[test]
fn cublas_products_are_ordered() {
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] += 1.0; }
        }";
    on_each_cuda_device(|gpu| {
        const N: usize = 96;
        let identity: Vec<f32> =
            (0..N * N).map(|at| f32::from(u8::from(at / N == at % N))).collect();
        let identity = gpu.upload(&identity).unwrap();
        let [a, b] = [0.0f32, 0.0].map(|x| gpu.upload(&vec![x; N * N]).unwrap());
        let Some(()) = skip_without_library(gpu.cublas_matmul(&identity, &a, &b, N, N, N)) else {
            return;
        };
        let kernel = gpu.compile(wgsl).unwrap();
        // Small independent kernels, so that launches and products are distributed over streams.
        let others: Vec<Buffer<f32>> = (0..20).map(|_| gpu.alloc(64).unwrap()).collect();
        let rounds = || {
            let mut batch = gpu.batch();
            for _ in 0..10 {
                batch.run(&kernel, &[&a], N * N).unwrap();
                others.iter().for_each(|it| {
                    batch.run(&kernel, &[it], 64).unwrap();
                });
                batch.cublas_matmul(&identity, &a, &b, N, N, N).unwrap();
                batch.run(&kernel, &[&b], N * N).unwrap();
                batch.cublas_matmul(&b, &identity, &a, N, N, N).unwrap();
            }
            batch
        };
        rounds().submit().unwrap();
        let recording = rounds().record().unwrap();
        for times in [1.0, 2.0, 3.0] {
            assert_eq!(a.download().unwrap(), vec![20.0 * times; N * N]);
            assert!(others.iter().all(|it| it.download().unwrap() == [10.0 * times; 64]));
            drop(recording.replay().unwrap());
        }
    });
}

/// The products of a recording share cuBLAS's workspace; `k` is large, so that they use split-K.
#[test]
fn recorded_products_share_workspace_safely() {
    on_each_cuda_device(|gpu| {
        let [m, n, k] = [64, 48, 1 << 15];
        let lhs: Vec<_> =
            (0..8).map(|seed| gpu.upload(&random_f32(seed, m * k)).unwrap()).collect();
        let rhs = gpu.upload(&random_f32(9, k * n)).unwrap();
        let outs: Vec<Buffer<f32>> = (0..8).map(|_| gpu.alloc(m * n).unwrap()).collect();
        let download_all = || outs.iter().map(|out| out.download().unwrap()).collect::<Vec<_>>();
        let mut batch = gpu.batch();
        for (a, out) in lhs.iter().zip(&outs) {
            let Some(()) = skip_without_library(gpu.cublas_matmul(a, &rhs, out, m, n, k)) else {
                return;
            };
            batch.cublas_matmul(a, &rhs, out, m, n, k).unwrap();
        }
        let expected = download_all();
        let recording = batch.record().unwrap();
        for _ in 0..5 {
            outs.iter().for_each(|out| out.fill(f32::NAN).unwrap());
            drop(recording.replay().unwrap());
            // A product between replays uses the same workspace.
            gpu.cublas_matmul(&lhs[0], &rhs, &outs[0], m, n, k).unwrap();
            assert!(download_all() == expected);
        }
    });
}
