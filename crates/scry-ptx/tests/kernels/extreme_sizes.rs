//! Tests of implausible sizes: planning returns an error with a text, or a plan within the limits
//! of launches, of tensor maps, and of its buffers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;
use proptest::sample::select;
use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};
use scry_ptx::kernels::gemm::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
use scry_ptx::kernels::norm::{self, Norm, NormKind};
use scry_ptx::kernels::quant::{self, BlockFormat, MatMul};
use scry_ptx::kernels::rows::Rows;
use scry_ptx::kernels::softmax::{self, SoftmaxKind};
use scry_ptx::kernels::{
    GpuSpec, Parameter, Plan, PlanError, PtxKernel, TensorMapElement, TensorMapSpec,
};
use scry_ptx::{PtxType, Target};

use crate::steps::check_steps;

/// GPUs to plan for. The last three are GPUs of a later generation with much and with little shared
/// memory, and one with less shared memory than any real GPU.
const GPUS: [GpuSpec; 8] = [
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_90A, multiprocessors: 1, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 },
    GpuSpec { target: Target::SM_89, multiprocessors: 128, shared_memory: 99 << 10 },
    GpuSpec { target: Target::SM_75, multiprocessors: 40, shared_memory: 64 << 10 },
    GpuSpec { target: Target::SM_90, multiprocessors: 148, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_90, multiprocessors: 170, shared_memory: 99 << 10 },
    GpuSpec { target: Target::SM_90A, multiprocessors: 30, shared_memory: 48 << 10 },
];

/// The limits of every GPU: blocks of a launch on each axis, threads of a block, blocks of a
/// cluster.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
const MAX_THREADS: u32 = 1024;
const MAX_CLUSTER: u32 = 8;

fn gpu() -> impl Strategy<Value = GpuSpec> {
    select(&GPUS[..])
}

/// Small and medium sizes, and sizes around powers of two from 2^15 to 2^63 and other limits.
fn extreme_size() -> impl Strategy<Value = u64> {
    let ends = [16, 24, 31, 32, 33, 40, 53, 60, 63].map(|bits| 1u64 << bits);
    let ends = ends.into_iter().flat_map(|end| [end / 2 + 1, end - 1, end, end + 1]);
    let others = [0, (1 << 31) - 1024, (1 << 31) - 513, (1 << 31) - 512, (1 << 31) - 511, u64::MAX];
    let huge: Vec<u64> = ends.chain(others).collect();
    prop_oneof![8 => 0..300u64, 4 => 0..70_000u64, 1 => select(huge)]
}

fn extreme_u32() -> impl Strategy<Value = u32> {
    extreme_size().prop_map(|size| u32::try_from(size).unwrap_or(u32::MAX))
}

fn element() -> impl Strategy<Value = PtxType> {
    let others = select(&[PtxType::F64, PtxType::B8][..]);
    prop_oneof![20 => select(&[PtxType::F32, PtxType::F16, PtxType::Bf16][..]), 1 => others]
}

fn special_float() -> impl Strategy<Value = f32> {
    select(&[0.0, 1.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40][..])
}

fn rarely<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.1, value)
}

/// The layout of a matrix of this size: mostly without gaps.
fn layout(rows: u64, columns: u64) -> impl Strategy<Value = MatrixLayout> {
    let order = select(&[Layout::RowMajor, Layout::ColMajor][..]);
    (order, rarely(extreme_size()), rarely(extreme_size())).prop_map(move |(order, ld, stride)| {
        let packed = MatrixLayout::packed(order, rows, columns);
        let ld = ld.unwrap_or(packed.ld);
        MatrixLayout { ld, stride: stride.unwrap_or(packed.stride), ..packed }
    })
}

fn epilogue() -> impl Strategy<Value = Epilogue> {
    let activations = [
        Activation::None,
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluErf,
        Activation::Silu,
    ];
    (special_float(), special_float(), any::<bool>(), select(activations.to_vec()))
        .prop_map(|(alpha, beta, bias, activation)| Epilogue { alpha, beta, bias, activation })
}

fn gemm() -> impl Strategy<Value = Gemm> {
    let precisions = [Precision::Full, Precision::Tf32, Precision::Tf32x3];
    let sides = (
        extreme_size(),
        extreme_size(),
        extreme_size(),
        prop_oneof![2 => Just(1), 1 => extreme_size()],
    );
    (sides, element(), any::<bool>(), select(precisions.to_vec()), epilogue()).prop_flat_map(
        |((m, n, k, batch), element, wide, precision, epilogue)| {
            let output = if wide { PtxType::F32 } else { element };
            let gemm = Gemm { batch, output, precision, ..Gemm::new(m, n, k, element) };
            (layout(m, k), layout(k, n), layout(m, n)).prop_map(move |(a, b, out)| Gemm {
                a,
                b,
                out,
                epilogue,
                ..gemm
            })
        },
    )
}

fn strides(packed: Strides) -> impl Strategy<Value = Strides> {
    let any = (extreme_size(), extreme_size(), extreme_size());
    let any = any.prop_map(|(batch, head, row)| Strides { batch, head, row });
    prop_oneof![12 => Just(packed), 1 => any]
}

fn bias() -> impl Strategy<Value = Option<AttentionBias>> {
    let one = (element(), strides(Strides { batch: 0, head: 0, row: 0 }), 0..3u32);
    rarely(one.prop_map(|(element, strides, column_stride)| AttentionBias {
        element,
        strides,
        column_stride,
    }))
}

fn attention() -> impl Strategy<Value = Attention> {
    let mostly_small = || prop_oneof![12 => 0..9u32, 1 => extreme_u32()];
    let sizes =
        ((mostly_small(), mostly_small(), mostly_small()), extreme_u32(), extreme_u32(), 0..300u32);
    (sizes, element(), any::<bool>(), special_float(), bias()).prop_flat_map(
        |(((batch, heads, group), queries, keys, head_dim), element, causal, scale, bias)| {
            let attention = Attention::new([batch, heads], queries, keys, head_dim, element);
            let attention = attention.grouped(if group < 3 { heads } else { group - 2 });
            let attention = Attention { causal, scale, bias, ..attention };
            (
                strides(attention.q),
                strides(attention.k),
                strides(attention.v),
                strides(attention.out),
            )
                .prop_map(move |(q, k, v, out)| Attention {
                    q,
                    k,
                    v,
                    out,
                    ..attention
                })
        },
    )
}

/// Checks a plan against all limits of a GPU; returns whether there is a plan.
fn check(plan: Result<Plan, PlanError>, gpu: GpuSpec) -> bool {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            return false;
        }
    };
    check_steps(&plan);
    plan.steps.iter().for_each(|step| check_launch(&*step.kernel, gpu));
    true
}

/// Returns the bytes of shared memory and the blocks of a cluster that a kernel's text declares.
/// Cached by name, which determines the text.
fn declared_resources(kernel: &dyn PtxKernel, target: Target) -> (u32, u32) {
    static CACHE: Mutex<BTreeMap<(String, String), (u32, u32)>> = Mutex::new(BTreeMap::new());
    let key = (kernel.name(), target.to_string());
    let cache = || CACHE.lock().expect("nothing panics while it is locked");
    if let Some(cached) = cache().get(&key) {
        return *cached;
    }
    // Missing features of the target are an error before the launch.
    let Ok(text) = kernel.emit_ptx_for(target) else { return (0, 1) };
    let numbers = |line: &str| -> Vec<u32> {
        let parts = line.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().expect("it is a number")).collect()
    };
    let starting = |start: &'static str| text.lines().filter(move |l| l.trim().starts_with(start));
    // `.shared .align 16 .b8 shared0[1024];`
    let shared = starting(".shared").map(|line| numbers(line).pop().expect("an array has a size"));
    let cluster = starting(".reqnctapercluster").map(|line| numbers(line).iter().product::<u32>());
    let found = (shared.sum(), cluster.max().unwrap_or(1));
    cache().insert(key, found);
    found
}

/// Checks a kernel's launch and tensor maps against the limits of a GPU.
fn check_launch(kernel: &dyn PtxKernel, gpu: GpuSpec) {
    let (name, launch) = (kernel.name(), kernel.launch());
    let fits = launch.grid.iter().zip(MAX_GRID).all(|(blocks, max)| (1..=max).contains(blocks));
    assert!(fits, "{name}: {launch:?}");
    let threads: u32 = launch.block.iter().product();
    assert!((1..=MAX_THREADS).contains(&threads), "{name}: {launch:?}");
    let (shared, cluster) = declared_resources(kernel, gpu.target);
    let total = shared + launch.dynamic_shared;
    assert!(total <= gpu.shared_memory, "{name}: {total} bytes of shared memory on {gpu:?}");
    assert!(cluster <= MAX_CLUSTER && launch.grid[0].is_multiple_of(cluster), "{name}: {launch:?}");
    let interface = kernel.interface();
    for parameter in &interface.parameters {
        let Parameter::TensorMap(buffer_index, map) = parameter else { continue };
        let buffer = &interface.buffers[*buffer_index];
        let bytes = buffer.len * u64::from(buffer.element.size());
        // No device has the memory for more.
        if bytes < 1 << 40 {
            check_map(&name, map, bytes);
        }
    }
}

/// Checks a tensor map against the limits of CUDA's driver, and the end of its buffer.
fn check_map(name: &str, map: &TensorMapSpec, bytes: u64) {
    let element_size = match map.element {
        TensorMapElement::U8 => 1,
        TensorMapElement::F16 | TensorMapElement::Bf16 => 2,
        TensorMapElement::F32 => 4,
    };
    let rank = map.dims.len();
    assert!((1..=5).contains(&rank) && map.strides.len() == rank - 1, "{name}: {map:?}");
    assert!(map.dims.iter().all(|dim| (1..=1 << 32).contains(dim)), "{name}: {map:?}");
    let fits = |stride: &u64| stride.is_multiple_of(16) && *stride < 1 << 40;
    assert!(map.strides.iter().all(fits), "{name}: {map:?}");
    assert!(map.tile.iter().all(|side| (1..=256).contains(side)), "{name}: {map:?}");
    let steps = map.dims[1..].iter().zip(&map.strides).map(|(dim, stride)| (dim - 1) * stride);
    let end = map.offset + steps.sum::<u64>() + map.dims[0] * element_size;
    assert!(end <= bytes.next_multiple_of(16), "{name}: {map:?} ends at {end} of {bytes}");
}

/// The sizes are realistic ones, for which plans choose the largest tiles.
#[test]
fn plans_respect_the_shared_memory_limit() {
    for gpu in GPUS {
        let is_ampere = gpu.target.supports(Target::SM_80);
        for element in [PtxType::F16, PtxType::Bf16, PtxType::F32] {
            for [m, n, k] in [[4096, 4096, 4096], [64, 8192, 4096], [16, 4096, 8192]] {
                for precision in [Precision::Full, Precision::Tf32] {
                    let gemm = Gemm { precision, ..Gemm::new(m, n, k, element) };
                    let is_supported = is_ampere || element != PtxType::Bf16;
                    assert_eq!(check(gemm.plan(gpu), gpu), is_supported, "{gemm:?}");
                }
            }
            for head_dim in [64, 128, 192, 256] {
                let attention = Attention::new([2, 16], 1024, 1024, head_dim, element);
                assert_eq!(check(attention.plan(gpu), gpu), is_ampere, "{attention:?}");
            }
            for length in [4096, 32768, 1 << 20] {
                let rows = Rows { count: 8, length, element };
                let plan = softmax::plan(SoftmaxKind::Softmax, rows, gpu);
                assert_eq!(check(plan, gpu), is_ampere, "{rows:?}");
            }
        }
        for format in BlockFormat::ALL {
            for columns in [1, 4, 8, 64] {
                let (rows, k, f16) = (8192, 28672, PtxType::F16);
                let product = MatMul { format, rows, k, columns, activations: f16, output: f16 };
                assert_eq!(check(product.plan(gpu), gpu), is_ampere, "{product:?}");
            }
        }
    }
}

#[test]
fn f32_precision_does_not_affect_f16() {
    for element in [PtxType::F16, PtxType::Bf16] {
        let text = |precision| {
            let plan = Gemm { precision, ..Gemm::new(1000, 700, 300, element) }.plan(GPUS[0]);
            let plan = plan.expect("it is an ordinary product");
            plan.steps.iter().map(|step| step.kernel.emit_ptx()).collect::<Vec<_>>()
        };
        let full = text(Precision::Full);
        assert!(full == text(Precision::Tf32) && full == text(Precision::Tf32x3), "{element:?}");
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        max_shrink_iters: 3000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gemm_plans_respect_limits(gemm in gemm(), gpu in gpu()) {
        check(gemm.plan(gpu), gpu);
    }

    #[test]
    fn attention_plans_respect_limits(attention in attention(), gpu in gpu()) {
        check(attention.plan(gpu), gpu);
        check(attention.naive(), gpu);
    }

    #[test]
    fn row_plans_respect_limits(
        count in extreme_size(),
        length in extreme_size(),
        element in element(),
        epsilon in special_float(),
        gpu in gpu(),
    ) {
        let rows = Rows { count, length, element };
        for softmax in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
            check(softmax::plan(softmax, rows, gpu), gpu);
        }
        for kind in [NormKind::Layer, NormKind::LayerWeightBias, NormKind::RmsWeight] {
            check(norm::plan(Norm { kind, epsilon }, rows, gpu), gpu);
        }
    }

    #[test]
    fn quantised_plans_respect_limits(
        format in select(&BlockFormat::ALL[..]),
        sizes in (extreme_size(), extreme_size(), prop_oneof![0..12u64, extreme_size()]),
        types in (element(), element()),
        gpu in gpu(),
    ) {
        let ((rows, k, columns), (activations, output)) = (sizes, types);
        let whole_blocks = k.saturating_mul(256);
        for k in [k, whole_blocks] {
            let product = MatMul { format, rows, k, columns, activations, output };
            check(product.plan(gpu), gpu);
            check(quant::quantize_plan(format, k), gpu);
            check(quant::dequantize_plan(format, output, k), gpu);
        }
    }
}
