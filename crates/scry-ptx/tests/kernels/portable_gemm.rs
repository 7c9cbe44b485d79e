//! Tests of GEMM without `wgmma`: planned launches, the instructions of kernels, and invalid
//! arguments.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

use std::collections::BTreeMap;

use scry_ptx::kernels::gemm::{
    Activation, Epilogue, Gemm, GemmKernel, Layout, MatrixLayout, Precision,
};
use scry_ptx::kernels::{GpuSpec, Plan, PlanError};
use scry_ptx::{PtxType, Target};

use crate::resource_snapshot;
use crate::steps::check_steps;

const H200: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };
const A100: GpuSpec =
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 };
/// With Hopper's shared memory, but without `wgmma`, which needs `sm_90a`.
const HOPPER_WITHOUT_WGMMA: GpuSpec =
    GpuSpec { target: Target::SM_90, multiprocessors: 132, shared_memory: 227 << 10 };
/// Of compute capability 8.6, which runs code for `sm_80`.
const SMALL_SHARED: GpuSpec = GpuSpec { shared_memory: 99 << 10, ..A100 };
const T4: GpuSpec = GpuSpec { target: Target::SM_75, multiprocessors: 40, shared_memory: 64 << 10 };
const PORTABLE_KERNELS: [&str; 5] = ["dot", "ffma", "mma", "naive", "tiled"];
const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];

fn names(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.kernel.name()).collect()
}

fn planned_names(gpu: GpuSpec, gemm: Gemm) -> Vec<String> {
    names(&gemm.plan(gpu).expect("the arguments are valid"))
}

/// A GEMM with every part of the epilogue.
fn with_epilogue(gemm: Gemm) -> Gemm {
    let epilogue = Epilogue { alpha: 0.5, beta: 2.0, bias: true, activation: Activation::Gelu };
    Gemm { epilogue, ..gemm }
}

/// GEMMs for every kind of kernel: large ones, with odd sides, narrow ones, with large K.
fn sample_gemms() -> Vec<Gemm> {
    let mut gemms = Vec::new();
    let sizes = [
        [4096, 4096, 4096],
        [4097, 4095, 1023],
        [2000, 1000, 256],
        [300, 200, 100],
        [40, 4096, 512],
        [16, 4096, 4096],
        [8, 4096, 4096],
        [4, 4097, 4095],
        [4096, 16, 4096],
        [4096, 1, 4096],
        [1, 4096, 4096],
        [42, 2, 450],
        [3, 333, 777],
    ];
    for [m, n, k] in sizes {
        for (a, b) in LAYOUTS.into_iter().flat_map(|a| LAYOUTS.map(|b| (a, b))) {
            for element in [PtxType::F32, PtxType::F16, PtxType::Bf16] {
                gemms.push(Gemm::new(m, n, k, element).with_layouts(a, b));
            }
            let precision = Precision::Tf32;
            let single = Gemm::new(m, n, k, PtxType::F32).with_layouts(a, b);
            gemms.push(Gemm { precision, ..single });
        }
        let col_major = MatrixLayout::packed(Layout::ColMajor, m, n);
        for element in [PtxType::F32, PtxType::Bf16] {
            gemms.push(with_epilogue(Gemm::new(m, n, k, element)));
            gemms.push(with_epilogue(Gemm { out: col_major, ..Gemm::new(m, n, k, element) }));
        }
    }
    gemms
}

fn sample_plans() -> Vec<Plan> {
    let gpus = [SMALL_SHARED, HOPPER_WITHOUT_WGMMA];
    let mut plans: Vec<_> = sample_gemms()
        .iter()
        .flat_map(|gemm| gpus.map(|gpu| gemm.plan(gpu).expect("the arguments are valid")))
        .collect();
    for element in [PtxType::F32, PtxType::F16] {
        let gemm = with_epilogue(Gemm::new(33, 65, 17, element));
        plans.push(gemm.plan(T4).expect("the arguments are valid"));
        plans.push(Plan::single(Box::new(
            GemmKernel::of(&gemm, None).expect("the arguments are valid"),
        )));
    }
    for tile in [8, 16, 32] {
        plans.push(Plan::single(Box::new(
            GemmKernel::tiled(33, 65, 17, tile).expect("the arguments are valid"),
        )));
    }
    plans
}

#[test]
fn equal_names_have_equal_text() {
    let mut texts = BTreeMap::new();
    for step in sample_plans().iter().flat_map(|plan| &plan.steps) {
        let (name, text) = (step.kernel.name(), step.kernel.emit_ptx());
        assert!(text.contains(&format!(".entry {name}(")));
        assert_eq!(*texts.entry(name).or_insert(text.clone()), text);
    }
    assert!(texts.len() > 50, "{}", texts.len());
}

#[test]
fn kernels_do_not_spill() {
    let mut plans = sample_plans();
    for plan in &mut plans {
        // Repacking and reduction kernels are in the snapshot of the Hopper GEMMs.
        plan.steps
            .retain(|step| PORTABLE_KERNELS.iter().any(|name| step.kernel.name().contains(name)));
    }
    resource_snapshot::compare("gemm_portable.txt", plans);
}

#[test]
fn steps_match_kernel_interfaces() {
    sample_plans().iter().for_each(check_steps);
}

#[test]
fn blocks_fit_small_shared_memory() {
    let plans: Vec<_> = sample_gemms()
        .iter()
        .map(|gemm| gemm.plan(SMALL_SHARED).expect("the arguments are valid"))
        .collect();
    for step in plans.iter().flat_map(|plan| &plan.steps) {
        let bytes = step.kernel.launch().dynamic_shared;
        assert!(bytes <= 99 << 10, "{}: {bytes}", step.kernel.name());
    }
    let planned_names = |gpu| planned_names(gpu, Gemm::new(4096, 4096, 4096, PtxType::F16));
    for large in [A100, HOPPER_WITHOUT_WGMMA] {
        assert_eq!(planned_names(large), ["gemm_mma_f16_tt_128x256_s3_w2x4_vec4"]);
    }
    // The shared memory decides, not the generation.
    assert_eq!(
        planned_names(GpuSpec { target: Target::SM_90, ..SMALL_SHARED }),
        planned_names(SMALL_SHARED)
    );
}

#[test]
fn k_step_updates_each_accumulator_once() {
    let count = |gemm: Gemm, what: &str| {
        let plan = gemm.plan(A100).expect("the arguments are valid");
        plan.steps[0].kernel.emit_ptx().matches(what).count()
    };
    // FFMA: 16 × 8 accumulators per thread, 8 elements along K per stage. MMA: 64 × 64 accumulators
    // per warp, in tiles of 16 × 8, four K steps per stage.
    assert_eq!(count(Gemm::new(4096, 4096, 4096, PtxType::F32), "fma.rn.f32"), 8 * 16 * 8);
    assert_eq!(count(Gemm::new(4096, 4096, 4096, PtxType::F16), "mma.sync"), 4 * 4 * 8);
}

#[test]
fn kernels_follow_shapes() {
    let single = |m, n, k| planned_names(H200, Gemm::new(m, n, k, PtxType::F32));
    assert_eq!(single(8192, 8192, 8192), ["gemm_ffma_f32_tt_128x256x8_s4_w2x4_l4_vecb_vec4"]);
    let skinny = single(16, 4096, 4096);
    assert!(skinny[0].contains("_16x256x"), "{skinny:?}");
    assert_eq!(skinny[1], "gemm_reduce_f32");
    let k_major = |m, n| {
        let gemm = Gemm::new(m, n, 4096, PtxType::F32);
        planned_names(H200, gemm.with_layouts(Layout::RowMajor, Layout::ColMajor))
    };
    assert_eq!(k_major(3, 4096), ["gemm_dot_f32_tn_m4_vec"]);
    assert_eq!(k_major(4096, 1), ["gemm_dot_f32_tn_m1_vec"]);
    assert!(k_major(3, 7)[0].starts_with("gemm_ffma"), "too few columns for all multiprocessors");
    let names_16bit = planned_names(A100, Gemm::new(4097, 4095, 1023, PtxType::F16));
    assert_eq!(names_16bit[0], "gemm_align16_x2");
    assert!(names_16bit[1].starts_with("gemm_mma_f16_tt_128x"), "{names_16bit:?}");
    let hopper = planned_names(H200, Gemm::new(4096, 4096, 4096, PtxType::F16));
    assert!(hopper[0].starts_with("gemm_sm90"), "{hopper:?}");
}

/// Tensor cores need 16-byte aligned rows: for them the operands would have to be repacked by a
/// launch of its own.
#[test]
fn few_unaligned_rows_need_one_launch() {
    let names_16bit = |m, n, k| planned_names(H200, Gemm::new(m, n, k, PtxType::Bf16));
    assert_eq!(names_16bit(934, 1, 155), ["gemm_dot_bf16_tn_m1_smem"]);
    assert_eq!(names_16bit(42, 2, 450), ["gemm_dot_bf16_nn_m2_smem"]);
    assert_eq!(names_16bit(20000, 3, 1023), ["gemm_dot_bf16_nn_m4"]);
    assert_eq!(names_16bit(3, 2, 100_001), ["gemm_dot_bf16_nn_m2_splitk8"]);
    let older = planned_names(HOPPER_WITHOUT_WGMMA, Gemm::new(1, 5, 5573, PtxType::Bf16));
    assert_eq!(older, ["gemm_dot_bf16_nn_m8_splitk4"]);
    // A single column is contiguous along K in either layout.
    let column = names_16bit(4096, 1, 4096);
    assert!(column.len() == 1 && column[0].starts_with("gemm_sm90"), "{column:?}");
    assert_eq!(
        planned_names(H200, Gemm::new(4096, 1, 4096, PtxType::F32)),
        ["gemm_dot_f32_tn_m1_vec"]
    );
    assert_eq!(names_16bit(3, 204, 3058), ["gemm_dot_bf16_tt_m4_splitk8"]);
    assert_eq!(names_16bit(1, 4097, 4095), ["gemm_dot_bf16_tt_m1_splitk8"]);
    // K is too large for CUDA cores with so few columns.
    assert_eq!(names_16bit(3, 2, 1_000_001)[0], "gemm_align16_x2");
    // A product whose blocks suffice for all multiprocessors, with a short K.
    assert_eq!(names_16bit(1584, 1, 321), ["gemm_dot_bf16_tn_m1"]);
    // Products with five to eight rows, here of the transposed product, need a small matrix `b`.
    assert!(names_16bit(8191, 8, 1023)[0].starts_with("gemm_mma_bf16"));
    // These are small, but row-major.
    assert!(names_16bit(8, 204, 3058)[0].starts_with("gemm_mma_bf16"));
    assert!(names_16bit(4, 5628, 2670)[0].starts_with("gemm_mma_bf16"));
}

/// Repacking is a launch of its own, which takes longer than the slower copies of few tiles.
#[test]
fn small_unaligned_products_are_not_repacked() {
    for gpu in [H200, HOPPER_WITHOUT_WGMMA, A100] {
        let names = |m, n, k| planned_names(gpu, Gemm::new(m, n, k, PtxType::Bf16)).join(" ");
        for [m, n, k] in [[17, 10, 220], [109, 65, 196], [276, 86, 251], [5358, 216, 2]] {
            let names = names(m, n, k);
            assert!(names.starts_with("gemm_mma_bf16_tt_align"), "{names}");
            assert!(!names.contains(' '), "{names}");
        }
        assert!(names(136, 524, 4338).starts_with("gemm_align16"));
        assert!(names(64, 64, 192).find("align").is_none());
    }
    let float = planned_names(
        A100,
        Gemm { precision: Precision::Tf32, ..Gemm::new(33, 65, 197, PtxType::F32) },
    );
    assert!(float[0].starts_with("gemm_split"), "{float:?}");
}

#[test]
fn precision_is_never_below_the_request() {
    let single = Gemm::new(512, 512, 512, PtxType::F32);
    let tf32x3 = Gemm { precision: Precision::Tf32x3, ..single };
    assert!(planned_names(A100, tf32x3)[0].starts_with("gemm_ffma"));
    assert!(planned_names(A100, single)[0].starts_with("gemm_ffma"));
    assert!(planned_names(H200, single)[0].starts_with("gemm_ffma"));
    let tf32 = Gemm { precision: Precision::Tf32, ..single };
    assert!(planned_names(A100, tf32)[0].starts_with("gemm_mma_tf32"));
}

#[test]
fn unsuitable_shapes_use_the_tiled_kernel() {
    let gemm = Gemm::new(100, 100, 100, PtxType::F32);
    assert_eq!(planned_names(T4, gemm), ["gemm_tiled16_f32"]);
    let mut large_ld = gemm;
    large_ld.a.ld = 1 << 33;
    assert_eq!(planned_names(H200, large_ld), ["gemm_tiled16_f32"]);
    let bf16 = Gemm::new(100, 100, 100, PtxType::Bf16);
    let error = bf16.plan(T4).unwrap_err();
    assert!(matches!(error, PlanError::Target { needed: Target::SM_80, .. }), "{error}");
}

#[test]
fn products_without_terms_run_on_any_target() {
    let zero_k = |element| Gemm::new(100, 100, 0, element);
    for element in [PtxType::F32, PtxType::F16] {
        let plan = zero_k(element).plan(T4).unwrap();
        assert_eq!(plan.steps[0].kernel.default_target(), Target::SM_75);
    }
    let error = zero_k(PtxType::Bf16).plan(T4).unwrap_err();
    assert!(matches!(error, PlanError::Target { needed: Target::SM_80, .. }), "{error}");
}

#[test]
fn empty_problems_launch_nothing() {
    assert!(planned_names(A100, Gemm::new(0, 5, 7, PtxType::F32)).is_empty());
    let zero_k = planned_names(A100, with_epilogue(Gemm::new(3, 5, 0, PtxType::F32)));
    assert_eq!(zero_k, ["gemm_reduce_f32_k0_beta_biasn_gelu"]);
}

#[test]
fn unsupported_gemms_are_rejected() {
    let error_text = |kernel: Result<GemmKernel, PlanError>| match kernel {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let tile = error_text(GemmKernel::tiled(4, 4, 4, 7));
    assert_eq!(tile, "`gemm`: tile is 7; help: use tiles of 8, 16 or 32 elements a side");
    let side = error_text(GemmKernel::naive(1 << 31, 4, 4));
    assert!(side.contains("m is 2147483648, beyond"), "{side}");
    let blocks = error_text(GemmKernel::naive(1 << 30, 1 << 20, 4));
    assert!(blocks.contains("too many blocks"), "{blocks}");
}

#[test]
fn errors_name_the_batch_that_is_too_large() {
    let error = |gemm: Gemm| gemm.plan(A100).unwrap_err().to_string();
    let no_terms = Gemm { batch: 70_000, ..Gemm::new(3, 3, 0, PtxType::F32) };
    let packed = MatrixLayout::packed(Layout::RowMajor, 3, 3);
    let error = error(Gemm { out: packed, ..no_terms });
    assert!(error.contains("out is 70000 matrices of 3 by 3, above the limit"), "{error}");
    assert!(error.contains("a smaller batch"), "{error}");
    let side = (1 << 31) - 512;
    let error = Gemm::new(side, side, 8, PtxType::F32).plan(A100).unwrap_err().to_string();
    assert!(error.contains("together 2^60 elements or more"), "{error}");
}

#[test]
fn huge_products_are_planned_or_rejected() {
    for [m, n, k] in [[1 << 28, 1 << 28, 1 << 20], [1 << 20, 1 << 20, 1 << 30], [1, 1, 1 << 30]] {
        for element in [PtxType::F32, PtxType::F16] {
            let gemm = Gemm::new(m, n, k, element);
            match gemm.plan(A100) {
                Ok(plan) => assert!(!plan.steps.is_empty()),
                Err(error) => assert!(error.to_string().contains("too many"), "{error}"),
            }
        }
    }
}

#[test]
fn too_long_rows_are_not_repacked() {
    let large_k =
        Gemm::new(65, 4, 1 << 26, PtxType::F32).with_layouts(Layout::ColMajor, Layout::RowMajor);
    let names = planned_names(A100, Gemm { precision: Precision::Tf32, ..large_k });
    assert!(matches!(&names[..], [one] if one.contains("naive") || one.contains("tiled")));
}

#[test]
fn huge_sizes_do_not_overflow() {
    let huge = [1 << 29, (1 << 31) - 513];
    let sizes = huge.into_iter().flat_map(|m| huge.map(|n| [m, n, 1 << 14]));
    for [m, n, k] in sizes.chain([[1, 4096, 4096], [65, 4, 1 << 26]]) {
        for element in [PtxType::F32, PtxType::F16] {
            for (a, b) in LAYOUTS.into_iter().flat_map(|a| LAYOUTS.map(|b| (a, b))) {
                let mut gemm = Gemm::new(m, n, k, element).with_layouts(a, b);
                // With one row and one matrix the strides are unused.
                (gemm.a.stride, gemm.b.stride) = (u64::MAX, u64::MAX);
                if m == 1 && a == Layout::RowMajor {
                    gemm.a.ld = u64::MAX;
                }
                let _ = [H200, A100, T4].map(|gpu| gemm.plan(gpu).map(|plan| names(&plan)));
            }
        }
    }
}
