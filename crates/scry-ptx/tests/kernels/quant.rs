//! Tests of quantised matrices: choice of kernels, their instructions, and invalid arguments.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

use std::collections::BTreeMap;

use scry_ptx::kernels::quant::{
    BlockFormat, MatMul, MatVec, Prologue, dequantize, dequantize_plan, quantize, quantize_plan,
};
use scry_ptx::kernels::{BufferSlot, GpuSpec, Parameter, Plan, PlanError, PtxKernel};
use scry_ptx::{PtxType, Target};

use crate::resource_snapshot;
use crate::steps::check_steps;

const HOPPER: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };
const AMPERE: GpuSpec =
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 };
const TYPES: [PtxType; 3] = [PtxType::F32, PtxType::F16, PtxType::Bf16];

fn product(format: BlockFormat, rows: u64, k: u64, columns: u32) -> MatVec {
    let (activations, prologue) = (PtxType::F32, Prologue::None);
    MatVec { format, rows, k, columns, activations, prologue }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.kernel.name()).collect()
}

/// Plans with every kind of kernel for products with few columns.
fn sample_plans(format: BlockFormat) -> Vec<Plan> {
    let mut plans = Vec::new();
    for k in [512, 4096, 14336, 28672] {
        for columns in 1..=8 {
            let matvec = product(format, 4096, k, columns);
            plans.push(matvec.plan(HOPPER).expect("the sizes fit"));
            plans.push(matvec.plan(AMPERE).expect("the sizes fit"));
        }
    }
    let typed = TYPES.map(|activations| MatVec { activations, ..product(format, 33, 512, 1) });
    plans.extend(typed.iter().map(|matvec| matvec.plan(HOPPER).expect("the sizes fit")));
    plans
}

/// Plans with every kind of kernel of this module.
fn all_plans() -> Vec<Plan> {
    let mut plans: Vec<Plan> = BlockFormat::ALL.into_iter().flat_map(sample_plans).collect();
    for format in BlockFormat::ALL {
        plans.push(quantize_plan(format, 4096).expect("the sizes fit"));
        plans.extend(
            TYPES.map(|element| dequantize_plan(format, element, 4096).expect("the sizes fit")),
        );
    }
    plans
}

#[test]
fn kernels_do_not_spill() {
    resource_snapshot::compare("quant.txt", all_plans());
}

#[test]
fn steps_match_kernel_interfaces() {
    all_plans().iter().for_each(check_steps);
}

#[test]
fn equal_names_have_equal_text() {
    let mut texts = BTreeMap::new();
    for plan in all_plans() {
        for step in plan.steps {
            let text = step.kernel.emit_ptx();
            let first = texts.entry(step.kernel.name()).or_insert_with(|| text.clone());
            assert_eq!(*first, text, "{}", step.kernel.name());
        }
    }
    assert!(texts.len() > 80, "{}", texts.len());
}

#[test]
fn matvec_variants_follow_the_target() {
    let portable_only = [BlockFormat::Q4_0, BlockFormat::Q4_1];
    for format in portable_only {
        let plan = product(format, 4096, 14336, 1).plan(HOPPER).unwrap();
        assert!(names(&plan)[1].starts_with("matvec_dot_q4"), "{:?}", names(&plan));
    }
    for format in BlockFormat::ALL.into_iter().filter(|it| !portable_only.contains(it)) {
        let one = product(format, 4096, 14336, 1);
        let stream = &one.plan(HOPPER).unwrap().steps[0].kernel;
        let text = stream.emit_ptx();
        assert_eq!(stream.default_target(), Target::SM_90);
        let copies = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [";
        assert_eq!(text.matches(copies).count(), 1);
        // Eight times 32 weights, and offsets unless there are none.
        let mma_count = if format == BlockFormat::Q8_0 { 8 } else { 10 };
        assert_eq!(text.matches("mma.sync.aligned").count(), mma_count, "{format:?}");
        let portable = one.plan(AMPERE).unwrap();
        assert_eq!(portable.steps.len(), 2);
        assert_eq!(portable.steps[1].kernel.default_target(), Target::SM_75);
        assert!(portable.steps[1].kernel.emit_ptx().contains("dp4a.s32.s32"));
    }
}

#[test]
fn activations_are_quantised_once() {
    let matvec = product(BlockFormat::Q4K, 4096, 14336, 1).plan(HOPPER).unwrap();
    assert_eq!(names(&matvec), ["matvec_stream_q4k_f32_n1_limbs2_sums32"]);
    let wide = product(BlockFormat::Q4K, 4096, 14336, 8).plan(HOPPER).unwrap();
    let expected =
        ["matvec_limbs_f32_n8_limbs1_sums32", "matvec_stream_q4k_prepared_n8_limbs1_sums32"];
    assert_eq!(names(&wide), expected);
    // For each of 56 spans of 256 values of 8 columns: limbs, their sums (one for every 32 limbs,
    // hence `sums32`; 32 bytes in all), a scale.
    assert_eq!(wide.scratch, [56 * 8 * (256 + 32 + 4)]);
    assert_eq!(wide.steps[0].buffers, [BufferSlot::Argument(1), BufferSlot::Scratch(0)]);
    assert_eq!(
        wide.steps[1].buffers,
        [BufferSlot::Argument(0), BufferSlot::Scratch(0), BufferSlot::Argument(2)]
    );
}

/// Returns the first column and the number of columns of each product that a plan launches.
fn launched_columns(plan: &Plan) -> Vec<(u32, u32)> {
    let streams = plan.steps.iter().filter(|step| step.kernel.name().contains("stream"));
    let number = |parameter: &Parameter| match parameter {
        Parameter::U32(number) => *number,
        other => panic!("{other:?} is not a number"),
    };
    let part = |parameters: &[Parameter]| (number(&parameters[5]), number(&parameters[6]));
    streams.map(|step| part(&step.kernel.interface().parameters)).collect()
}

#[test]
fn columns_split_for_memory_or_precision() {
    let split = |k, columns| {
        launched_columns(&product(BlockFormat::Q6K, 64, k, columns).plan(HOPPER).unwrap())
    };
    assert_eq!(split(14336, 8), [(0, 8)]);
    // Short columns (K up to 2048) need two limbs per value, which fit for at most 4 columns.
    assert_eq!(split(512, 7), [(0, 4), (4, 3)]);
    // The activations of 4 long columns do not fit in shared memory.
    assert_eq!(split(28672, 5), [(0, 2), (2, 2), (4, 1)]);
    let huge_k = product(BlockFormat::Q6K, 64, 1 << 20, 1).plan(HOPPER).unwrap();
    assert_eq!(names(&huge_k)[1], "matvec_dot_q6k_n1");
}

/// Returns the bytes of static shared memory that a kernel declares, with the padding between
/// arrays at its maximum.
fn static_shared_bytes(kernel: &dyn PtxKernel) -> u32 {
    let text = kernel.emit_ptx();
    let declarations = text.lines().filter_map(|line| line.trim().strip_prefix(".shared .align "));
    let bytes = declarations.map(|declaration| {
        let (align, array) = declaration.split_once(' ').expect("a type follows the alignment");
        let size = array.split(['[', ']']).nth(1).expect("the size is in brackets");
        let [align, size] = [align, size].map(|number| number.parse::<u32>().expect("a number"));
        size + align - 1
    });
    bytes.sum()
}

#[test]
fn shared_memory_stays_within_limit() {
    for plan in all_plans() {
        for step in plan.steps {
            let bytes = static_shared_bytes(&*step.kernel) + step.kernel.launch().dynamic_shared;
            assert!(bytes <= HOPPER.shared_memory, "{bytes} bytes: {step:?}");
        }
    }
}

#[test]
fn many_columns_use_16_bit_gemm() {
    let wide = MatMul {
        format: BlockFormat::Q4K,
        rows: 4096,
        k: 14336,
        columns: 512,
        activations: PtxType::F16,
        output: PtxType::F16,
    };
    let plan = wide.plan(HOPPER).unwrap();
    assert_eq!(names(&plan)[0], "dequantize_q4k_f16");
    assert!(names(&plan)[1].starts_with("gemm_sm90_f16"), "{:?}", names(&plan));
    assert_eq!(plan.scratch[0], 2 * 4096 * 14336);
    assert_eq!(plan.steps[0].buffers, [BufferSlot::Argument(0), BufferSlot::Scratch(0)]);
    assert_eq!(plan.arguments.iter().map(|b| b.name).collect::<Vec<_>>(), ["weights", "x", "y"]);
    let narrow = MatMul { columns: 3, output: PtxType::F32, ..wide };
    assert_eq!(
        names(&narrow.plan(HOPPER).unwrap()),
        ["matvec_limbs_f16_n4_limbs2_sums32", "matvec_stream_q4k_prepared_n4_limbs2_sums32"]
    );
}

#[test]
fn empty_products_need_no_launch() {
    for (rows, columns) in [(0, 1), (5, 0)] {
        let plan = product(BlockFormat::Q4K, rows, 512, columns).plan(HOPPER).unwrap();
        assert_eq!((plan.steps.len(), plan.arguments.len()), (0, 3));
    }
    let plan = product(BlockFormat::Q4K, 5, 0, 1).plan(HOPPER).unwrap();
    assert_eq!(plan.steps.len(), 1, "empty sums are zeros, which have to be stored");
    assert!(quantize_plan(BlockFormat::Q5K, 0).unwrap().steps.is_empty());
    assert!(dequantize_plan(BlockFormat::Q5K, PtxType::F16, 0).unwrap().steps.is_empty());
}

#[test]
fn unsupported_products_are_rejected() {
    let error_text = |matvec: MatVec| matvec.plan(HOPPER).unwrap_err().to_string();
    let good = product(BlockFormat::Q4K, 4096, 512, 1);
    assert!(error_text(MatVec { k: 500, ..good }).contains("k is 500, not a multiple of 256"));
    assert!(error_text(MatVec { rows: 1 << 31, ..good }).contains("pass less than 2^31 rows"));
    assert!(error_text(MatVec { columns: 9, ..good }).contains("columns is 9"));
    let bytes = MatVec { activations: PtxType::U8, ..good };
    assert!(error_text(bytes).contains("activations is u8; help: use f32, f16 or bf16"));
    assert!(error_text(MatVec { k: 1 << 28, columns: 8, ..good }).contains("2^30"));
    assert!(quantize_plan(BlockFormat::Q4K, 100).is_err());
    assert!(dequantize_plan(BlockFormat::Q4K, PtxType::U8, 256).is_err());
    let turing = Target::SM_75;
    let f16_plan = dequantize_plan(BlockFormat::Q4K, PtxType::F16, 256).unwrap();
    let error = f16_plan.steps[0].kernel.emit_ptx_for(turing).unwrap_err();
    assert!(matches!(error, PlanError::Target { .. }), "{error}");
}

#[test]
fn partial_blocks_are_rejected() {
    for (columns, output) in [(1, PtxType::F32), (9, PtxType::F32), (8, PtxType::F16)] {
        let format = BlockFormat::Q8_0;
        let odd = MatMul { format, rows: 64, k: 100, columns, activations: PtxType::F16, output };
        let error = odd.plan(HOPPER).unwrap_err().to_string();
        assert!(error.contains("k is 100, not a multiple of 32"), "{error}");
    }
}

#[test]
fn errors_of_products_name_their_arguments() {
    let good = MatMul {
        format: BlockFormat::Q8_0,
        rows: 64,
        k: 64,
        columns: 16,
        activations: PtxType::F16,
        output: PtxType::F16,
    };
    let cases = [
        (MatMul { columns: 1 << 31, ..good }, "columns is 2147483648, beyond 2147483136"),
        (MatMul { rows: 1 << 31, ..good }, "rows is 2147483648, beyond 2147483136"),
        (MatMul { activations: PtxType::U32, ..good }, "activations is u32; help: use f32"),
        (MatMul { output: PtxType::Bf16, ..good }, "output is bf16 for activations of f16"),
    ];
    for (product, expected) in cases {
        let error = product.plan(HOPPER).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`matmul`: {expected}")), "{error}");
    }
    let error = quantize_plan(BlockFormat::Q8_0, 1 << 50).unwrap_err().to_string();
    assert!(error.contains("count is 1125899906842624, above the limit of a launch"), "{error}");
}

#[test]
fn host_conversions_name_function_and_argument() {
    let error = quantize(BlockFormat::Q8_0, &[0.0; 31]).unwrap_err().to_string();
    let expected =
        "`quantize`: weights has 31 elements, not a multiple of 32; help: pass whole blocks";
    assert_eq!(error, expected);
    let error = dequantize(BlockFormat::Q8_0, &[0; 33]).unwrap_err().to_string();
    let expected =
        "`dequantize`: blocks has 33 bytes, not a multiple of 34; help: pass whole blocks";
    assert_eq!(error, expected);
}
