//! Unusual numbers, orders of events, sizes and sources.

use std::thread;

use scry_gpu::cuda::kernels::{
    Attention, BlockFormat, Epilogue, Gemm, Kernels, Precision, PreparedOp, PtxType,
};
use scry_gpu::{Batch, Buffer, Device, GpuError, Launch, NativeInterface, f16};

use crate::harness::{TestElement, kernels, null_h200_kernels, poisoned, random, succeed};

/// `out` of a product of random numbers from 0 to 1, with its initial value and a bias of 0.5.
fn product(kernels: &Kernels, gemm: &Gemm, was: f32) -> Vec<f32> {
    let gpu = kernels.device();
    let positive = |count: u64| {
        let numbers = random::<f32>(1, count as usize).into_iter();
        succeed(gpu.upload(&numbers.map(f32::abs).collect::<Vec<_>>()))
    };
    let (a, b) = (positive(gemm.m * gemm.k), positive(gemm.k * gemm.n));
    let bias = succeed(gpu.upload(&vec![0.5f32; gemm.n as usize]));
    let out = succeed(gpu.upload(&vec![was; (gemm.m * gemm.n) as usize]));
    succeed(succeed(kernels.gemm(gemm, &[&a, &b, &bias, &out])).run());
    succeed(out.download())
}

#[test]
fn special_alpha_and_beta_follow_formula() {
    let with = |k, alpha, beta| {
        let epilogue = Epilogue { alpha, beta, bias: true, ..Epilogue::NONE };
        Gemm { epilogue, ..Gemm::new(33, 65, k, PtxType::F32) }
    };
    for kernels in kernels() {
        let all = |gemm: Gemm, was: f32, holds: fn(f32) -> bool| {
            let out = product(&kernels, &gemm, was);
            assert!(out.iter().all(|x| holds(*x)), "{gemm:?}: {:?}", &out[..4]);
        };
        for k in [0, 7, 4097] {
            // The initial value is not read if beta is 0, of either sign.
            all(with(k, 0.0, 0.0), f32::NAN, |x| x == 0.5);
            all(with(k, 0.0, -0.0), f32::NAN, |x| x == 0.5);
            all(with(k, 0.0, 2.0), 3.0, |x| x == 6.5);
            all(with(k, 0.0, f32::INFINITY), -1.0, |x| x == f32::NEG_INFINITY);
            all(with(k, 0.0, f32::NAN), 1.0, f32::is_nan);
        }
        all(with(7, f32::INFINITY, 0.0), f32::NAN, |x| x == f32::INFINITY);
        all(with(4097, f32::NAN, 1.0), 1.0, f32::is_nan);
    }
}

#[test]
fn f32_precision_leaves_f16_unchanged() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let (m, n, k) = (129, 257, 1000);
        let (a, b) = (random::<f16>(1, m * k), random::<f16>(2, k * n));
        let (a, b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
        let by = |precision| {
            let gemm = Gemm::new(m as u64, n as u64, k as u64, PtxType::F16);
            let out = poisoned::<f16>(gpu, m * n);
            let gemm = Gemm { precision, ..gemm };
            succeed(succeed(kernels.gemm(&gemm, &[&a, &b, &out])).run());
            succeed(out.download())
        };
        let full = by(Precision::Full);
        assert!(full == by(Precision::Tf32) && full == by(Precision::Tf32x3));
    }
}

/// A product whose operands are repacked and whose split-K parts are added by a second launch.
struct RepackedGemm {
    sides: [usize; 3],
    a: Buffer<f16>,
    b: Buffer<f16>,
    out: Buffer<f16>,
}

impl RepackedGemm {
    fn new(gpu: &Device, nth: usize) -> Self {
        let [m, n, k] = [9 + nth, 65, 3001 + 500 * nth];
        Self {
            sides: [m, n, k],
            a: succeed(gpu.upload(&random::<f16>(1 + nth as u64, m * k))),
            b: succeed(gpu.upload(&random::<f16>(2, k * n))),
            out: poisoned(gpu, m * n),
        }
    }

    fn add_to(&self, kernels: &Kernels, batch: &mut Batch) {
        let [m, n, k] = self.sides;
        succeed(succeed(kernels.matmul(&self.a, &self.b, &self.out, m, n, k)).add_to(batch));
    }

    /// The result, as bits.
    fn computed(&self, kernels: &Kernels) -> Vec<u16> {
        succeed(self.out.fill(f16::POISON));
        let mut batch = kernels.device().batch();
        self.add_to(kernels, &mut batch);
        succeed(batch.submit());
        self.result()
    }

    fn result(&self) -> Vec<u16> {
        succeed(self.out.download()).into_iter().map(f16::to_bits).collect()
    }
}

#[test]
fn threads_share_scratch_memory() {
    for kernels in kernels() {
        let products: Vec<_> = (0..8).map(|nth| RepackedGemm::new(kernels.device(), nth)).collect();
        let want: Vec<_> = products.iter().map(|product| product.computed(&kernels)).collect();
        // Scratch memory grows while others use the old allocation.
        let shared = succeed(Kernels::new(kernels.device()));
        thread::scope(|scope| {
            for (product, want) in products.iter().zip(&want) {
                let shared = shared.clone();
                scope.spawn(move || {
                    for _ in 0..20 {
                        assert!(product.computed(&shared) == *want, "{:?}", product.sides);
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
        let own = succeed(Kernels::new(gpu));
        let RepackedGemm { sides, a, b, out } = RepackedGemm::new(gpu, 0);
        let product = RepackedGemm { sides, a, b, out };
        let want = product.computed(&own);
        let mut batch = gpu.batch();
        product.add_to(&own, &mut batch);
        let recording = succeed(batch.record());
        let RepackedGemm { out, a, b, .. } = product;
        drop((a, b, own));
        for nth in 1..4 {
            // Would reuse the scratch memory if it had been freed.
            let other = RepackedGemm::new(gpu, nth);
            assert!(other.result().iter().all(|bits| f16::from_bits(*bits).is_nan()));
            other.computed(&kernels);
            succeed(out.fill(f16::POISON));
            succeed(succeed(recording.replay()).wait());
            let got: Vec<u16> = succeed(out.download()).into_iter().map(f16::to_bits).collect();
            assert!(got == want, "replay {nth}");
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
        succeed(succeed(kernels.softmax(&none, &other, [0, 1 << 20])).run());
        succeed(succeed(kernels.softmax(&none, &some, [0, 7])).run());
        succeed(succeed(kernels.rms_norm(&none, Some(&some), &other, [0, 8], 1e-5)).run());
        assert!(succeed(some.download()).iter().all(|x| x.is_nan()), "it is not written");
    }
}

/// Sizes of which products of two or three overflow some integer type.
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

/// Runs an accepted operation on a device that computes nothing; returns whether it was rejected.
fn is_refused(prepared: scry_gpu::Result<PreparedOp<'_>>) -> bool {
    match prepared.and_then(|prepared| prepared.run()) {
        Ok(()) => false,
        Err(GpuError::Argument(_)) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_size_runs_or_is_rejected() {
    let kernels = null_h200_kernels();
    let gpu = kernels.device();
    let numbers = || succeed(gpu.alloc::<f32>(768));
    let [x, y, w] = [numbers(), numbers(), numbers()];
    let (blocks, format) = (succeed(gpu.alloc::<u8>(144)), BlockFormat::Q4K);
    let pairs = SIZES.into_iter().flat_map(|a| SIZES.map(|b| (a, b)));
    for (a, b) in pairs {
        let fits = a.checked_mul(b).is_some_and(|count| count <= 768);
        let taken = fits && b > 0 && b < (1 << 31) - 1;
        let sizes = format!("{a} and {b}");
        assert_eq!(is_refused(kernels.softmax(&x, &y, [a, b])), !taken, "{sizes}");
        let norm = kernels.layer_norm(&x, Some(&w), None, &y, [a, b], f32::NAN);
        assert_eq!(is_refused(norm), !(taken && b <= 768), "{sizes}");
        let product = kernels.matmul(&x, &w, &y, a as u64, b as u64, 1u64);
        assert_eq!(is_refused(product), !(fits && a <= 768 && b <= 768), "{sizes}");
        let all = kernels.matmul(&x, &w, &y, a as u64, b as u64, u64::MAX);
        assert!(is_refused(all), "{sizes}");
        let attention = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let shape = Attention::new([1, attention(a)], attention(b), 3, 1, PtxType::F32);
        let result = kernels.attention(&shape, &[&x, &w, &w, &y]);
        assert_eq!(is_refused(result), !(fits && a <= 256 && b < (1 << 31) - 1), "{sizes}");
        let product = kernels.quantized_matmul(format, &blocks, &x, &y, [a, b], 3);
        let whole = b.is_multiple_of(256) && b <= 256;
        assert_eq!(is_refused(product), !(whole && (a <= 1 || b == 0 && a <= 256)), "{sizes}");
    }
    for count in SIZES {
        let taken = count == 0 || count == 256;
        assert_eq!(is_refused(kernels.quantize(format, &x, &blocks, count)), !taken, "{count}");
        assert_eq!(is_refused(kernels.dequantize(format, &blocks, &y, count)), !taken, "{count}");
    }
}

/// Writes its block index to the address that it is passed.
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

fn compiled(gpu: &Device, text: &str) -> Result<scry_gpu::Kernel, GpuError> {
    let interface = NativeInterface::new(1, [1; 3]);
    // SAFETY: the kernel writes one word of its buffer; the other sources are never launched.
    unsafe { gpu.compile_ptx(text, "good", &interface) }
}

#[test]
fn invalid_ptx_is_rejected_harmlessly() {
    let replaced = |from: &str, to: &str| GOOD.replace(from, to);
    let texts = [
        String::new(),
        "no kernels".to_owned(),
        GOOD[..GOOD.len() / 2].to_owned(),
        GOOD[..GOOD.len() - 1].to_owned(),
        replaced(".version 8.0", ".version 99.0"),
        replaced(".version 8.0", ""),
        replaced("sm_80", "sm_999"),
        replaced("sm_80", "sm_120a"),
        replaced("entry good", "entry other"),
        replaced("ret;", "ret; bra NOWHERE;"),
        replaced(".param .u64 x", ".param .u64 x, .param .b8 y[40000]"),
        replaced(".param .u64 x", ".param .u64 x, .param .u64 y"),
        replaced("mov.u32 %b, 7;", "call helper;"),
        GOOD.repeat(2),
        "a".repeat(1 << 20),
    ];
    for kernels in kernels() {
        let gpu = kernels.device();
        for target in ["sm_80", "sm_90a"] {
            for (nth, text) in texts.iter().enumerate() {
                let refused = compiled(gpu, &text.replace("sm_80", target));
                let error = refused.expect_err(&format!("text {nth} for {target}"));
                let is_usual = matches!(
                    error,
                    GpuError::Source(_) | GpuError::Argument(_) | GpuError::TooLarge(_)
                );
                assert!(is_usual, "text {nth} for {target}: {error:?}");
            }
            let good = succeed(compiled(gpu, &GOOD.replace("sm_80", target)));
            let x = succeed(gpu.alloc::<u32>(1));
            succeed(gpu.run(&good, &[&x], Launch::workgroups([1; 3])));
            assert_eq!(succeed(x.download()), [7], "{target}");
        }
    }
}
