//! Robustness tests of the kernel library: special alpha and beta, threads and lifetimes, extreme
//! sizes, and invalid PTX.

use std::thread;

use scry_gpu::{Batch, Buffer, Device, GpuError, Launch, NativeInterface, f16};
use scry_kernels::{Attention, BlockFormat, Epilogue, Gemm, Kernels, Op, Precision, PtxType};
use scry_test_support::succeed;

use crate::harness::{
    TestElement, having_variant, kernels, null_h200_kernels, poisoned, ptx_kernels, random,
};

/// Multiplies random numbers from 0 to 1, with a bias of 0.5; returns `out`, whose elements are
/// `initial` before.
fn run_gemm(kernels: &Kernels, gemm: &Gemm, initial: f32) -> Vec<f32> {
    let gpu = kernels.device();
    let positive = |count: u64| {
        let numbers = random::<f32>(1, count as usize).into_iter();
        succeed(gpu.upload(&numbers.map(f32::abs).collect::<Vec<_>>()))
    };
    let (a, b) = (positive(gemm.m * gemm.k), positive(gemm.k * gemm.n));
    let bias = succeed(gpu.upload(&vec![0.5f32; gemm.n as usize]));
    let out = succeed(gpu.upload(&vec![initial; (gemm.m * gemm.n) as usize]));
    succeed(succeed(kernels.gemm(gemm, &[&a, &b, &bias, &out])).run());
    succeed(out.download())
}

#[test]
fn special_alpha_and_beta_follow_formula() {
    let gemm_with = |k, alpha, beta| {
        let epilogue = Epilogue { alpha, beta, bias: true, ..Epilogue::NONE };
        Gemm { epilogue, ..Gemm::new(33, 65, k, PtxType::F32) }
    };
    for kernels in kernels() {
        let check = |gemm: Gemm, initial: f32, is_expected: fn(f32) -> bool| {
            let out = run_gemm(&kernels, &gemm, initial);
            assert!(out.iter().all(|x| is_expected(*x)), "{gemm:?}: {:?}", &out[..4]);
        };
        for k in [0, 7, 4097] {
            // The initial value is not read if beta is 0, of either sign.
            check(gemm_with(k, 0.0, 0.0), f32::NAN, |x| x == 0.5);
            check(gemm_with(k, 0.0, -0.0), f32::NAN, |x| x == 0.5);
            check(gemm_with(k, 0.0, 2.0), 3.0, |x| x == 6.5);
            check(gemm_with(k, 0.0, f32::INFINITY), -1.0, |x| x == f32::NEG_INFINITY);
            check(gemm_with(k, 0.0, f32::NAN), 1.0, f32::is_nan);
        }
        check(gemm_with(7, f32::INFINITY, 0.0), f32::NAN, |x| x == f32::INFINITY);
        check(gemm_with(4097, f32::NAN, 1.0), 1.0, f32::is_nan);
    }
}

#[test]
fn f16_gemm_ignores_precision() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let (m, n, k) = (129, 257, 1000);
        let (a, b) = (random::<f16>(1, m * k), random::<f16>(2, k * n));
        let (a, b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
        let run_with = |precision| {
            let gemm = Gemm::new(m as u64, n as u64, k as u64, PtxType::F16);
            let out = poisoned::<f16>(gpu, m * n);
            let gemm = Gemm { precision, ..gemm };
            succeed(succeed(kernels.gemm(&gemm, &[&a, &b, &out])).run());
            succeed(out.download())
        };
        let full = run_with(Precision::Full);
        assert!(full == run_with(Precision::Tf32) && full == run_with(Precision::Tf32x3));
    }
}

/// A product whose operands are repacked, and whose partial sums (split-K) a second launch adds up.
struct RepackedGemm {
    mnk: [usize; 3],
    a: Buffer<f16>,
    b: Buffer<f16>,
    out: Buffer<f16>,
}

impl RepackedGemm {
    /// Creates a product whose sizes and operands differ for each `index`.
    fn new(gpu: &Device, index: usize) -> Self {
        let [m, n, k] = [9 + index, 65, 3001 + 500 * index];
        Self {
            mnk: [m, n, k],
            a: succeed(gpu.upload(&random::<f16>(1 + index as u64, m * k))),
            b: succeed(gpu.upload(&random::<f16>(2, k * n))),
            out: poisoned(gpu, m * n),
        }
    }

    fn add_to(&self, kernels: &Kernels, batch: &mut Batch) {
        let [m, n, k] = self.mnk;
        succeed(succeed(kernels.matmul(&self.a, &self.b, &self.out, m, n, k)).add_to(batch));
    }

    /// Poisons `out`, runs the product and returns its result, as bits.
    fn run_and_download(&self, kernels: &Kernels) -> Vec<u16> {
        succeed(self.out.fill(f16::POISON));
        let mut batch = kernels.device().batch();
        self.add_to(kernels, &mut batch);
        succeed(batch.submit());
        self.download_bits()
    }

    fn download_bits(&self) -> Vec<u16> {
        succeed(self.out.download()).into_iter().map(f16::to_bits).collect()
    }
}

#[test]
fn threads_share_scratch_memory() {
    for kernels in kernels() {
        let products: Vec<_> = (0..8).map(|i| RepackedGemm::new(kernels.device(), i)).collect();
        let expected: Vec<_> =
            products.iter().map(|product| product.run_and_download(&kernels)).collect();
        // Scratch memory grows while other threads use the old allocation.
        let shared = ptx_kernels(kernels.device());
        thread::scope(|scope| {
            for (product, expected) in products.iter().zip(&expected) {
                let shared = shared.clone();
                scope.spawn(move || {
                    for _ in 0..20 {
                        let result = product.run_and_download(&shared);
                        assert!(result == *expected, "{:?}", product.mnk);
                    }
                });
            }
        });
    }
}

#[test]
fn recording_outlives_buffers_and_kernels() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let own = ptx_kernels(gpu);
        let product = RepackedGemm::new(gpu, 0);
        let expected = product.run_and_download(&own);
        let mut batch = gpu.batch();
        product.add_to(&own, &mut batch);
        let recording = succeed(batch.record());
        let RepackedGemm { out, a, b, .. } = product;
        drop((a, b, own));
        for i in 1..4 {
            // These buffers would reuse the scratch memory if it had been freed.
            let other = RepackedGemm::new(gpu, i);
            assert!(other.download_bits().iter().all(|bits| f16::from_bits(*bits).is_nan()));
            other.run_and_download(&kernels);
            succeed(out.fill(f16::POISON));
            succeed(succeed(recording.replay()).wait());
            let result: Vec<u16> = succeed(out.download()).into_iter().map(f16::to_bits).collect();
            assert!(result == expected, "replay {i}");
        }
    }
}

#[test]
fn empty_operations_write_nothing() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let none = succeed(gpu.alloc::<f32>(0));
        let other = succeed(gpu.alloc::<f32>(0));
        let some = poisoned::<f32>(gpu, 8);
        succeed(succeed(kernels.softmax(&none, &other, 0, 1 << 20)).run());
        succeed(succeed(kernels.softmax(&none, &some, 0, 7)).run());
        succeed(succeed(kernels.rms_norm(&none, Some(&some), &other, 0, 8, 1e-5)).run());
        assert!(succeed(some.download()).iter().all(|x| x.is_nan()), "the weights were written");
    }
}

/// Sizes whose products overflow u32, u64 or usize, and small ones.
const SIZES: [usize; 12] = [
    0,
    1,
    3,
    256,
    (1 << 16) + 1,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 32) + 1,
    1 << 53,
    1 << 63,
    usize::MAX,
];

/// Returns whether the preparation of an operation is rejected, because of its arguments or because
/// the requested variant does not support them; otherwise runs it on the null device.
fn is_rejected(prepared: scry_gpu::Result<Op>) -> bool {
    match prepared {
        Err(GpuError::Argument(_)) => return true,
        Err(GpuError::Capability(error)) if error.needed().contains("the options") => return true,
        prepared => succeed(succeed(prepared).run()),
    }
    false
}

#[test]
fn every_size_runs_or_is_rejected() {
    let kernels = null_h200_kernels();
    // WGSL is used for empty rows, and for rows longer than PTX supports.
    check_every_size(&kernels, usize::MAX);
    check_every_size(&having_variant(&kernels, "ptx"), (1 << 31) - (1 << 16));
}

/// Prepares and runs operations of all sizes; rows of 1 to `max_columns` elements are supported,
/// and empty ones if that is the maximum of the type.
fn check_every_size(kernels: &Kernels, max_columns: usize) {
    let gpu = kernels.device();
    let numbers = || succeed(gpu.alloc::<f32>(768));
    let [x, y, w] = [numbers(), numbers(), numbers()];
    let (blocks, format) = (succeed(gpu.alloc::<u8>(144)), BlockFormat::Q4K);
    let pairs = SIZES.into_iter().flat_map(|a| SIZES.map(|b| (a, b)));
    for (a, b) in pairs {
        let fits = a.checked_mul(b).is_some_and(|count| count <= 768);
        let accepted = fits && b <= max_columns && (b > 0 || max_columns == usize::MAX);
        let sizes = format!("{a} and {b}");
        assert_eq!(is_rejected(kernels.softmax(&x, &y, a, b)), !accepted, "{sizes}");
        let norm = kernels.layer_norm(&x, Some(&w), None, &y, a, b, f32::NAN);
        assert_eq!(is_rejected(norm), !(accepted && b <= 768), "{sizes}");
        let product = kernels.matmul(&x, &w, &y, a, b, 1);
        assert_eq!(is_rejected(product), !(fits && a <= 768 && b <= 768), "{sizes}");
        let huge_k = kernels.matmul(&x, &w, &y, a, b, usize::MAX);
        assert!(is_rejected(huge_k), "{sizes}");
        let to_u32 = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let shape = Attention::new([1, to_u32(a)], to_u32(b), 3, 1, PtxType::F32);
        let result = kernels.attention(&shape, &[&x, &w, &w, &y]);
        assert_eq!(is_rejected(result), !(fits && a <= 256 && b < (1 << 31) - 1), "{sizes}");
        let product = kernels.quantized_matmul(format, &blocks, &x, &y, [a, b], 3);
        let is_whole_blocks = b.is_multiple_of(256) && b <= 256;
        assert_eq!(
            is_rejected(product),
            !(is_whole_blocks && (a <= 1 || b == 0 && a <= 256)),
            "{sizes}"
        );
    }
    for count in SIZES {
        let accepted = count == 0 || count == 256;
        assert_eq!(is_rejected(kernels.quantize(format, &x, &blocks, count)), !accepted, "{count}");
        assert_eq!(
            is_rejected(kernels.dequantize(format, &blocks, &y, count)),
            !accepted,
            "{count}"
        );
    }
}

/// A kernel that stores 7 to the address in its parameter.
const GOOD: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry good(.param .u64 x)
{
    .reg .b32 %b;
    .reg .b64 %x;
    ld.param.u64 %x, [x];
    cvta.to.global.u64 %x, %x;
    mov.u32 %b, 7;
    st.global.u32 [%x], %b;
    ret;
}";

fn compile(gpu: &Device, source: &str) -> Result<scry_gpu::Kernel, GpuError> {
    let interface = NativeInterface::new(1, [1; 3]);
    // SAFETY: callers launch only `GOOD`, which writes one word of its buffer.
    unsafe { gpu.compile_ptx(source, "good", &interface) }
}

#[test]
fn invalid_ptx_is_rejected_harmlessly() {
    let replace = |from: &str, to: &str| GOOD.replace(from, to);
    let sources = [
        String::new(),
        "no kernels".to_owned(),
        GOOD[..GOOD.len() / 2].to_owned(),
        GOOD[..GOOD.len() - 1].to_owned(),
        replace(".version 8.0", ".version 99.0"),
        replace(".version 8.0", ""),
        replace("sm_80", "sm_999"),
        replace("sm_80", "sm_120a"),
        replace("entry good", "entry other"),
        replace("ret;", "ret; bra NOWHERE;"),
        replace(".param .u64 x", ".param .u64 x, .param .b8 y[40000]"),
        replace(".param .u64 x", ".param .u64 x, .param .u64 y"),
        replace("mov.u32 %b, 7;", "call helper;"),
        GOOD.repeat(2),
        "a".repeat(1 << 20),
    ];
    for kernels in kernels() {
        let gpu = kernels.device();
        for target in ["sm_80", "sm_90a"] {
            for (i, source) in sources.iter().enumerate() {
                let result = compile(gpu, &source.replace("sm_80", target));
                let error = result.expect_err(&format!("source {i} for {target}"));
                let is_expected = matches!(
                    error,
                    GpuError::Source(_) | GpuError::Argument(_) | GpuError::TooLarge(_)
                );
                assert!(is_expected, "source {i} for {target}: {error:?}");
            }
            let good = succeed(compile(gpu, &GOOD.replace("sm_80", target)));
            let x = succeed(gpu.alloc::<u32>(1));
            succeed(gpu.run(&good, &[&x], Launch::workgroups([1; 3])));
            assert_eq!(succeed(x.download()), [7], "{target}");
        }
    }
}
