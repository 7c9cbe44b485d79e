//! Implausible sizes: every plan is an error with a text, or within the limits of launches, of
//! tensor maps, and of its buffers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;
use proptest::sample::select;
use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};
use scry_ptx::kernels::gemm::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
use scry_ptx::kernels::norm::{self, Norm, NormKind};
use scry_ptx::kernels::quant::{self, BlockFormat, MatMul};
use scry_ptx::kernels::rows::Rows;
use scry_ptx::kernels::softmax::{self, Softmax};
use scry_ptx::kernels::{
    GpuSpec, Parameter, Plan, PlanError, PtxKernel, TensorMapElement, TensorMapSpec,
};
use scry_ptx::{PtxType, Target};

use crate::steps::check_steps;

/// The last ones are large and small devices of a later generation, and one whose shared memory is
/// less than any has.
const MACHINES: [GpuSpec; 8] = [
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_90A, multiprocessors: 1, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 },
    GpuSpec { target: Target::SM_89, multiprocessors: 128, shared_memory: 99 << 10 },
    GpuSpec { target: Target::SM_75, multiprocessors: 40, shared_memory: 64 << 10 },
    GpuSpec { target: Target::SM_90, multiprocessors: 148, shared_memory: 227 << 10 },
    GpuSpec { target: Target::SM_90, multiprocessors: 170, shared_memory: 99 << 10 },
    GpuSpec { target: Target::SM_90A, multiprocessors: 30, shared_memory: 48 << 10 },
];

/// Blocks of a launch on each axis, threads of a block, and blocks of a cluster on every device.
const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
const THREADS: u32 = 1024;
const CLUSTER: u32 = 8;

fn machine() -> impl Strategy<Value = GpuSpec> {
    select(&MACHINES[..])
}

/// Sizes near limits: tiles, vectors, numbers of 16, 31, 32, 40, 60 and 64 bits.
fn size() -> impl Strategy<Value = u64> {
    let ends = [16, 24, 31, 32, 33, 40, 53, 60, 63].map(|bits| 1u64 << bits);
    let ends = ends.into_iter().flat_map(|end| [end / 2 + 1, end - 1, end, end + 1]);
    let others = [0, (1 << 31) - 1024, (1 << 31) - 513, (1 << 31) - 512, (1 << 31) - 511, u64::MAX];
    let huge: Vec<u64> = ends.chain(others).collect();
    prop_oneof![8 => 0..300u64, 4 => 0..70_000u64, 1 => select(huge)]
}

fn small_or_huge() -> impl Strategy<Value = u32> {
    size().prop_map(|size| u32::try_from(size).unwrap_or(u32::MAX))
}

fn element() -> impl Strategy<Value = PtxType> {
    let others = select(&[PtxType::F64, PtxType::B8][..]);
    prop_oneof![20 => select(&[PtxType::F32, PtxType::F16, PtxType::Bf16][..]), 1 => others]
}

fn number() -> impl Strategy<Value = f32> {
    select(&[0.0, 1.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40][..])
}

fn sometimes<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.1, value)
}

/// A layout of such a matrix without gaps, or any.
fn layout(rows: u64, columns: u64) -> impl Strategy<Value = MatrixLayout> {
    let order = select(&[Layout::RowMajor, Layout::ColMajor][..]);
    (order, sometimes(size()), sometimes(size())).prop_map(move |(order, ld, stride)| {
        let packed = MatrixLayout::packed(order, rows, columns);
        let ld = ld.unwrap_or(packed.ld);
        MatrixLayout { ld, stride: stride.unwrap_or(packed.stride), ..packed }
    })
}

fn epilogue() -> impl Strategy<Value = Epilogue> {
    let activations = [Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu];
    (number(), number(), any::<bool>(), select(activations.to_vec()))
        .prop_map(|(alpha, beta, bias, activation)| Epilogue { alpha, beta, bias, activation })
}

fn gemm() -> impl Strategy<Value = Gemm> {
    let precisions = [Precision::Full, Precision::Tf32, Precision::Tf32x3];
    let sides = (size(), size(), size(), prop_oneof![2 => Just(1), 1 => size()]);
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
    let any = (size(), size(), size());
    let any = any.prop_map(|(batch, head, row)| Strides { batch, head, row });
    prop_oneof![12 => Just(packed), 1 => any]
}

fn bias() -> impl Strategy<Value = Option<AttentionBias>> {
    let one = (element(), strides(Strides { batch: 0, head: 0, row: 0 }), 0..3u32);
    sometimes(one.prop_map(|(element, strides, column)| AttentionBias { element, strides, column }))
}

fn attention() -> impl Strategy<Value = Attention> {
    let few = || prop_oneof![12 => 0..9u32, 1 => small_or_huge()];
    let sizes = ((few(), few(), few()), small_or_huge(), small_or_huge(), 0..300u32);
    (sizes, element(), any::<bool>(), number(), bias()).prop_flat_map(
        |(((batch, heads, group), queries, keys, head_dim), element, causal, scale, bias)| {
            let all = Attention::new([batch, heads], queries, keys, head_dim, element);
            let all = all.grouped(if group < 3 { heads } else { group - 2 });
            let all = Attention { causal, scale, bias, ..all };
            (strides(all.q), strides(all.k), strides(all.v), strides(all.out))
                .prop_map(move |(q, k, v, out)| Attention { q, k, v, out, ..all })
        },
    )
}

/// Checks a plan against all limits of a device; returns whether there is a plan.
fn check(plan: Result<Plan, PlanError>, machine: GpuSpec) -> bool {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            return false;
        }
    };
    check_steps(&plan);
    plan.steps.iter().for_each(|step| check_launch(&*step.kernel, machine));
    true
}

/// Returns the bytes of shared memory and the blocks of a cluster that a kernel's text declares.
/// Cached by name, which determines the text.
fn declared(kernel: &dyn PtxKernel, target: Target) -> (u32, u32) {
    static KNOWN: Mutex<BTreeMap<(String, String), (u32, u32)>> = Mutex::new(BTreeMap::new());
    let key = (kernel.name(), target.to_string());
    let known = || KNOWN.lock().expect("nothing panics while it is locked");
    if let Some(known) = known().get(&key) {
        return *known;
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
    known().insert(key, found);
    found
}

fn check_launch(kernel: &dyn PtxKernel, machine: GpuSpec) {
    let (name, launch) = (kernel.name(), kernel.launch());
    let fits = launch.grid.iter().zip(GRID).all(|(blocks, most)| (1..=most).contains(blocks));
    assert!(fits, "{name}: {launch:?}");
    let threads: u32 = launch.block.iter().product();
    assert!((1..=THREADS).contains(&threads), "{name}: {launch:?}");
    let (shared, cluster) = declared(kernel, machine.target);
    let all = shared + launch.dynamic_shared;
    assert!(all <= machine.shared_memory, "{name}: {all} bytes of shared memory on {machine:?}");
    assert!(cluster <= CLUSTER && launch.grid[0].is_multiple_of(cluster), "{name}: {launch:?}");
    let interface = kernel.interface();
    for parameter in &interface.parameters {
        let Parameter::Map(of, map) = parameter else { continue };
        let buffer = &interface.buffers[*of];
        let bytes = buffer.len * u64::from(buffer.element.size());
        // No device has the memory for more.
        if bytes < 1 << 40 {
            check_map(&name, map, bytes);
        }
    }
}

/// The limits of a tensor map in CUDA's driver, and the end of its buffer.
fn check_map(name: &str, map: &TensorMapSpec, bytes: u64) {
    let size = match map.element {
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
    let end = map.offset + steps.sum::<u64>() + map.dims[0] * size;
    assert!(end <= bytes.next_multiple_of(16), "{name}: {map:?} ends at {end} of {bytes}");
}

/// Realistic sizes, for which plans choose the largest tiles.
#[test]
fn plans_respect_the_shared_memory_limit() {
    for machine in MACHINES {
        for element in [PtxType::F16, PtxType::Bf16, PtxType::F32] {
            for [m, n, k] in [[4096, 4096, 4096], [64, 8192, 4096], [16, 4096, 8192]] {
                for precision in [Precision::Full, Precision::Tf32] {
                    let gemm = Gemm { precision, ..Gemm::new(m, n, k, element) };
                    assert!(check(gemm.plan(machine), machine), "{gemm:?}");
                }
            }
            for head_dim in [64, 128, 192, 256] {
                let attention = Attention::new([2, 16], 1024, 1024, head_dim, element);
                assert!(check(attention.plan(machine), machine), "{attention:?}");
            }
            for length in [4096, 32768, 1 << 20] {
                let rows = Rows { count: 8, length, element };
                assert!(check(softmax::plan(Softmax::Linear, rows, machine), machine), "{rows:?}");
            }
        }
        for format in BlockFormat::ALL {
            for columns in [1, 4, 8, 64] {
                let (rows, k, half) = (8192, 28672, PtxType::F16);
                let product = MatMul { format, rows, k, columns, activations: half, output: half };
                assert!(check(product.plan(machine), machine), "{product:?}");
            }
        }
    }
}

#[test]
fn f32_precision_does_not_affect_f16() {
    for element in [PtxType::F16, PtxType::Bf16] {
        let text = |precision| {
            let plan = Gemm { precision, ..Gemm::new(1000, 700, 300, element) }.plan(MACHINES[0]);
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
    fn products(gemm in gemm(), machine in machine()) {
        check(gemm.plan(machine), machine);
    }

    #[test]
    fn attention_of_any_shape(attention in attention(), machine in machine()) {
        check(attention.plan(machine), machine);
        check(attention.naive(), machine);
    }

    #[test]
    fn functions_of_rows(
        count in size(),
        length in size(),
        element in element(),
        epsilon in number(),
        machine in machine(),
    ) {
        let rows = Rows { count, length, element };
        for softmax in [Softmax::Linear, Softmax::Log] {
            check(softmax::plan(softmax, rows, machine), machine);
        }
        for kind in [NormKind::Layer, NormKind::LayerWeightBias, NormKind::RmsWeight] {
            check(norm::plan(Norm { kind, epsilon }, rows, machine), machine);
        }
    }

    #[test]
    fn quantised_weights(
        format in select(&BlockFormat::ALL[..]),
        sizes in (size(), size(), prop_oneof![0..12u64, size()]),
        types in (element(), element()),
        machine in machine(),
    ) {
        let ((rows, k, columns), (activations, output)) = (sizes, types);
        let whole = k.saturating_mul(256);
        for k in [k, whole] {
            let product = MatMul { format, rows, k, columns, activations, output };
            check(product.plan(machine), machine);
            check(quant::quantize_plan(format, k), machine);
            check(quant::dequantize_plan(format, output, k), machine);
        }
    }
}
