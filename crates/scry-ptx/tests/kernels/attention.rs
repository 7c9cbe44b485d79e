//! Tests of attention: choice of kernels, their instructions, and invalid arguments.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests fail by panicking too")]

use std::collections::BTreeMap;

use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};
use scry_ptx::kernels::{GpuSpec, Parameter, Plan, PlanError, TensorMapElement};
use scry_ptx::{KernelParam, PtxType, Target};

use crate::resource_snapshot;
use crate::steps::check_steps;

const HOPPER: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };
const AMPERE: GpuSpec =
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 };
const TYPES: [PtxType; 3] = [PtxType::F16, PtxType::Bf16, PtxType::F32];

fn square(rows: u32, head_dim: u32, element: PtxType) -> Attention {
    Attention::new([2, 4], rows, rows, head_dim, element)
}

fn bias(attention: &Attention, element: PtxType) -> AttentionBias {
    AttentionBias {
        element,
        strides: Strides { head: 0, ..Strides::packed(1, attention.queries, attention.keys) },
        column_stride: 1,
    }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.kernel.name()).collect()
}

fn plan_error(attention: &Attention) -> String {
    attention.plan(HOPPER).unwrap_err().to_string()
}

/// Plans with every kind of kernel.
fn all_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (element, head_dims) in
        TYPES.into_iter().zip([&[64, 128, 192, 256][..], &[128], &[64, 128, 192, 256]])
    {
        for head_dim in head_dims {
            let small = square(300, *head_dim, element);
            let large = Attention::new([40, 40], 2000, 2000, *head_dim, element);
            let decoding = [300, 200, 3000]
                .map(|keys| Attention { queries: 1, ..square(keys, *head_dim, element) });
            let others = [small, small.causal(), large, large.causal()];
            for attention in others.into_iter().chain(decoding) {
                plans.push(attention.plan(HOPPER).unwrap());
                plans.push(attention.biased(bias(&attention, PtxType::F32)).plan(HOPPER).unwrap());
            }
            plans.push(small.plan(AMPERE).unwrap());
            plans.push(small.causal().biased(bias(&small, element)).plan(AMPERE).unwrap());
            plans.push(small.naive().unwrap());
        }
    }
    plans.push(square(300, 77, PtxType::F32).plan(HOPPER).unwrap());
    plans
}

#[test]
fn equal_names_have_equal_text() {
    let mut texts = BTreeMap::new();
    let others = TYPES.map(|element| square(1000, 80, element).grouped(2));
    let others = others
        .iter()
        .flat_map(|attention| [attention.plan(HOPPER), attention.plan(AMPERE), attention.naive()]);
    let others: Vec<Plan> = others.map(Result::unwrap).collect();
    for step in all_plans().iter().chain(&others).flat_map(|plan| &plan.steps) {
        let text = step.kernel.emit_ptx();
        let name = step.kernel.name();
        assert!(text.contains(&format!(".entry {name}(")));
        assert_eq!(*texts.entry(name).or_insert(text.clone()), text);
    }
    assert!(texts.len() > 40, "{}", texts.len());
}

#[test]
fn launches_match_kernel_parameters() {
    for step in all_plans().iter().flat_map(|plan| &plan.steps) {
        let kernel = step.kernel.write(step.kernel.default_target());
        let interface = step.kernel.interface();
        assert_eq!(kernel.params.len(), interface.parameters.len(), "{}", kernel.name);
        for (declared, passed) in kernel.params.iter().zip(&interface.parameters) {
            let matches = match (declared, passed) {
                (KernelParam::Pointer { .. }, Parameter::Pointer(nth))
                | (KernelParam::TensorMap { .. }, Parameter::TensorMap(nth, _)) => {
                    *nth < interface.buffers.len()
                }
                (KernelParam::Scalar { ty, .. }, Parameter::U32(_)) => *ty == PtxType::U32,
                (KernelParam::Scalar { ty, .. }, Parameter::U64(_)) => *ty == PtxType::U64,
                (KernelParam::Scalar { ty, .. }, Parameter::F32(_)) => *ty == PtxType::F32,
                _ => false,
            };
            assert!(matches, "{}: {declared:?} is passed {passed:?}", kernel.name);
        }
    }
}

#[test]
fn kernels_do_not_spill() {
    resource_snapshot::compare("attention.txt", all_plans());
}

#[test]
fn variants_follow_sizes_and_devices() {
    let large = Attention::new([4, 16], 3000, 3000, 128, PtxType::F16);
    assert_eq!(
        names(&large.plan(HOPPER).unwrap()),
        ["attention_sm90_f16_d128_128x128_s2_o1_overlap"]
    );
    assert_eq!(names(&large.plan(AMPERE).unwrap()), ["attention_mma_f16_d128_64x64_s2_o2"]);
    let short = names(&square(300, 128, PtxType::F16).plan(HOPPER).unwrap());
    assert_eq!(short, ["attention_sm90_f16_d128_64x64_s2_o2_overlap"]);
    let decoding = names(&Attention { queries: 3, ..large }.plan(HOPPER).unwrap());
    assert_eq!(decoding.len(), 2);
    assert!(
        decoding[0].ends_with("_splitkv") && decoding[1].starts_with("attention_combine"),
        "{decoding:?}"
    );
    let short = Attention::new([1, 8], 3, 300, 64, PtxType::F16);
    for gpu in [HOPPER, AMPERE] {
        assert_eq!(names(&short.plan(gpu).unwrap()), ["attention_decode_f16_d64_w16"]);
    }
    let batch = Attention::new([8, 8], 1, 256, 64, PtxType::F16);
    assert_eq!(names(&batch.plan(HOPPER).unwrap()), ["attention_decode_f16_d64_w8"]);
    let both = Attention::new([2, 8], 2, 300, 64, PtxType::F16);
    assert!(names(&both.plan(HOPPER).unwrap())[0].ends_with("_splitkv"));
    let parts = names(&square(300, 128, PtxType::F32).plan(HOPPER).unwrap());
    assert_eq!(parts[..3], ["attention_split3"; 3]);
    assert!(parts[3].starts_with("attention_sm90_f32_d128"), "{parts:?}");
    let odd = square(300, 77, PtxType::F16).plan(HOPPER).unwrap();
    assert_eq!(names(&odd), ["attention_naive_f16_d96"]);
}

/// FlashAttention would multiply scores of 0 by an infinite factor.
#[test]
fn huge_scales_use_the_naive_kernel() {
    for gpu in [HOPPER, AMPERE] {
        for scale in [f32::MAX, f32::MIN, 2.4e38] {
            let attention = Attention { scale, ..square(300, 64, PtxType::F16) };
            assert_eq!(names(&attention.plan(gpu).unwrap()), ["attention_naive_f16_d64"]);
        }
        let largest = Attention { scale: 2.3e38, ..square(300, 64, PtxType::F16) };
        assert!(!names(&largest.plan(gpu).unwrap())[0].contains("naive"));
    }
}

#[test]
fn f16_needs_one_product_f32_six() {
    let products = |attention: Attention| {
        let plan = attention.plan(HOPPER).unwrap();
        let text = plan.steps.last().unwrap().kernel.emit_ptx();
        text.matches("wgmma.mma_async").count()
    };
    // The code has three copies of the score MMAs, 8 K steps of 16 columns, and of the value MMAs,
    // 8 K steps of 16 keys: overlapped tiles, with and without mask, and the prologue or epilogue.
    assert_eq!(products(Attention::new([9, 99], 300, 300, 128, PtxType::F16)), 3 * (8 + 8));
    // Two copies, with and without mask: 8 K steps of 16 columns, 4 of 16 keys.
    assert_eq!(products(square(300, 128, PtxType::F32)), 2 * 6 * (8 + 4));
}

/// Returns the number of tasks and of blocks of a plan, and 1 if a task is a pair of tiles, else 0.
fn schedule(attention: Attention) -> (u32, u32, u32) {
    let plan = attention.plan(HOPPER).unwrap();
    let kernel = &plan.steps[0].kernel;
    let parameters = kernel.interface().parameters;
    let [.., Parameter::U32(pairs), Parameter::U32(units), Parameter::F32(_)] = parameters[..]
    else {
        panic!("{parameters:?}")
    };
    (units, kernel.launch().grid[0], pairs)
}

#[test]
fn causal_tiles_are_paired() {
    let attention = Attention::new([4, 16], 4096, 4096, 128, PtxType::F16);
    assert_eq!(schedule(attention), (4 * 16 * 32, 132, 0));
    // 1024 pairs are 7.8 waves: the last one is nearly full.
    assert_eq!(schedule(attention.causal()), (4 * 16 * 16, 132, 1));
    // 192 pairs would be 1.5 waves.
    let short = Attention::new([8, 12], 512, 512, 128, PtxType::F16);
    assert_eq!(schedule(short.causal()), (8 * 12 * 4, 132, 0));
}

#[test]
fn tensor_maps_match_the_shape() {
    let attention = square(300, 80, PtxType::Bf16).grouped(2);
    let plan = attention.plan(HOPPER).unwrap();
    let parameters = plan.steps[0].kernel.interface().parameters;
    let Parameter::TensorMap(1, map) = &parameters[1] else { panic!("{parameters:?}") };
    assert_eq!(map.element, TensorMapElement::Bf16);
    assert_eq!(map.dims, [80, 300, 2, 2]);
    assert_eq!(map.strides, [160, 48000, 96000]);
    assert_eq!(map.tile, [64, 64, 1, 1]);
}

#[test]
fn scratch_buffers_fit_their_contents() {
    for attention in [square(300, 77, PtxType::F32), square(9, 64, PtxType::F16).grouped(1)] {
        let attention = Attention { keys: 2000, ..attention };
        let attention = attention.grouped(attention.kv_heads);
        let plan = attention.plan(HOPPER).unwrap();
        assert!(plan.steps.len() > 1);
        check_steps(&plan);
    }
}

#[test]
fn empty_problems_launch_nothing() {
    let empty = Attention::new([0, 4], 3, 3, 64, PtxType::F16).plan(HOPPER).unwrap();
    assert!(empty.steps.is_empty());
    assert_eq!(empty.arguments.len(), 4);
    let keyless = Attention::new([1, 4], 3, 0, 64, PtxType::F16).plan(HOPPER).unwrap();
    assert_eq!(names(&keyless), ["attention_naive_f16_d64"]);
}

#[test]
fn invalid_arguments_are_rejected() {
    let attention = square(300, 128, PtxType::F16);
    assert_eq!(
        plan_error(&attention.grouped(3)),
        "`attention`: kv_heads is 3, which does not divide 4 heads; help: use a divisor of \
         heads"
    );
    assert!(plan_error(&square(3, 257, PtxType::F16)).contains("head_dim is 257"));
    assert!(plan_error(&square(3, 64, PtxType::F64)).contains("element is f64"));
    assert!(
        plan_error(&attention.biased(bias(&attention, PtxType::Bf16)))
            .contains("bias.element is bf16")
    );
    let close = Strides { row: 100, ..attention.out };
    assert!(plan_error(&Attention { out: close, ..attention }).contains("results overlap"));
    assert!(plan_error(&Attention { scale: f32::NAN, ..attention }).contains("scale is NaN"));
    assert!(plan_error(&square(u32::MAX, 64, PtxType::F16)).contains("queries is 4294967295"));
    let far = Strides { batch: u64::MAX, ..attention.q };
    assert!(plan_error(&Attention { q: far, ..attention }).contains("exceed 64-bit addresses"));
    assert!(matches!(attention.grouped(0).plan(HOPPER), Err(PlanError::Argument { .. })));
}

#[test]
fn gpus_before_sm_80_are_rejected() {
    let turing = GpuSpec { target: Target::SM_75, ..HOPPER };
    for element in [PtxType::F16, PtxType::F32] {
        let error = square(300, 128, element).plan(turing).unwrap_err();
        assert!(matches!(error, PlanError::Target { needed: Target::SM_80, .. }), "{error}");
    }
}

#[test]
fn results_allow_any_stride_order() {
    let attention = square(300, 128, PtxType::F16);
    let rows_first = Strides { batch: 300 * 512, head: 128, row: 512 };
    assert!(Attention { out: rows_first, ..attention }.plan(HOPPER).is_ok());
}

#[test]
fn too_many_batches_are_rejected() {
    let huge_batch = Attention::new([800_000_000, 1], 1, 1, 1, PtxType::F32);
    assert!(plan_error(&huge_batch).contains("batch is 800000000 with 3 terms each"));
    // The product of all sizes overflows 64 bits.
    let _ = Attention::new([2, 1 << 30], 1 << 30, 1, 256, PtxType::F16).plan(HOPPER);
}
