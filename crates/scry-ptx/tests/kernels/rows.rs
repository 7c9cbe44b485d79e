//! Tests of softmax and norms: choice of kernels, their instructions, and invalid arguments.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests fail by panicking too")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use scry_ptx::kernels::norm::{self, Norm, NormKind};
use scry_ptx::kernels::rows::{Rows, ThreadGroup};
use scry_ptx::kernels::softmax::{self, SoftmaxKind};
use scry_ptx::kernels::{
    BufferSlot, GpuSpec, KernelInterface, LaunchShape, Parameter, Plan, PlanError, PtxKernel,
};
use scry_ptx::{PtxEntry, PtxType, Target};

use crate::resource_snapshot;

const HOPPER: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };
const AMPERE: GpuSpec =
    GpuSpec { target: Target::SM_80, multiprocessors: 108, shared_memory: 163 << 10 };
const LAYER: Norm = Norm { kind: NormKind::LayerWeightBias, epsilon: 1e-5 };
const RMS: Norm = Norm { kind: NormKind::RmsWeight, epsilon: 1e-6 };
const KINDS: [NormKind; 5] = [
    NormKind::Layer,
    NormKind::LayerWeight,
    NormKind::LayerWeightBias,
    NormKind::Rms,
    NormKind::RmsWeight,
];
const TYPES: [PtxType; 3] = [PtxType::F32, PtxType::F16, PtxType::Bf16];

fn rows(count: u64, length: u64, element: PtxType) -> Rows {
    Rows { count, length, element }
}

fn softmax(count: u64, length: u64, gpu: GpuSpec) -> Plan {
    softmax::plan(SoftmaxKind::Softmax, rows(count, length, PtxType::F32), gpu).unwrap()
}

fn names(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.kernel.name()).collect()
}

fn text(plan: &Plan) -> String {
    plan.steps[0].kernel.emit_ptx_for(HOPPER.target).unwrap()
}

/// Row lengths for every kind of thread group, aligned and not.
fn lengths(element: PtxType) -> Vec<u64> {
    let vector = u64::from(16 / element.size());
    let warps = [1, 6, 33, 230].map(|vectors| vectors * vector);
    let elements = [2048, 4096, 8192, 15000, 30000, 60000, 131_072, 196_000, 262_144, 524_288];
    let aligned = warps.into_iter().chain(elements.map(|length| length / vector * vector));
    aligned.flat_map(|length| [length, length + 1, length + vector / 2]).collect()
}

/// Plans with every kind of kernel.
fn sample_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for element in TYPES {
        for length in lengths(element) {
            let few_rows = rows(7, length, element);
            for rows in [few_rows, rows(1000, length, element)] {
                plans.push(softmax::plan(SoftmaxKind::Softmax, rows, HOPPER).unwrap());
                plans.push(norm::plan(LAYER, rows, HOPPER).unwrap());
            }
            plans.push(softmax::plan(SoftmaxKind::LogSoftmax, few_rows, AMPERE).unwrap());
            plans.push(norm::plan(RMS, few_rows, AMPERE).unwrap());
        }
    }
    plans
}

/// Numbers of vectors at which the choice of thread group may change, and their successors.
fn vector_counts() -> impl Iterator<Item = u64> {
    // Thread groups within a warp depend on each number of vectors; the sizes of others are
    // multiples of 64 threads.
    (0..64).chain((1..=1025).flat_map(|nth| [64 * nth, 64 * nth + 1]))
}

/// What the choice of thread groups depends on besides the row length: the number of rows, and the
/// GPU's support of clusters.
fn conditions() -> [(u64, GpuSpec); 5] {
    let processors = u64::from(HOPPER.multiprocessors);
    let few_rows = [2, 4, 8].map(|blocks| (processors / blocks, HOPPER));
    [(10 * processors, AMPERE), (10 * processors, HOPPER), few_rows[0], few_rows[1], few_rows[2]]
}

/// Plans of softmax, log-softmax and every norm for these rows.
fn plans_of_all_functions(rows: Rows, gpu: GpuSpec) -> impl Iterator<Item = Plan> {
    let softmaxes = [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax];
    let softmaxes = softmaxes.map(|softmax| softmax::plan(softmax, rows, gpu).unwrap());
    let norms = KINDS.map(|kind| norm::plan(Norm { kind, ..LAYER }, rows, gpu).unwrap());
    softmaxes.into_iter().chain(norms)
}

/// A plan for every kernel that can be chosen.
fn reachable_plans() -> &'static [Plan] {
    static REACHABLE: LazyLock<Vec<Plan>> = LazyLock::new(collect_reachable_plans);
    &REACHABLE
}

fn collect_reachable_plans() -> Vec<Plan> {
    let mut kernels = BTreeMap::new();
    for element in TYPES {
        let vector = u64::from(16 / element.size());
        let aligned = vector_counts().map(|vectors| vectors * vector);
        let unaligned = [0, 1, 2, 4].into_iter().filter(|extra| *extra < vector);
        let lengths = aligned.flat_map(|length| unaligned.clone().map(move |extra| length + extra));
        for length in lengths.filter(|length| *length > 0) {
            let plans = conditions()
                .into_iter()
                .flat_map(|(count, gpu)| plans_of_all_functions(rows(count, length, element), gpu));
            let steps = plans.flat_map(|plan| plan.steps);
            kernels.extend(steps.map(|step| (step.kernel.name(), step.kernel)));
        }
    }
    kernels.into_values().map(Plan::single).collect()
}

#[test]
fn equal_names_have_equal_text() {
    let mut texts = BTreeMap::new();
    let others = [(3, 1000), (5000, 1004), (9, 1 << 20)].map(|(a, b)| softmax(a, b, HOPPER));
    for step in sample_plans().iter().chain(&others).flat_map(|plan| &plan.steps) {
        let (name, text) = (step.kernel.name(), step.kernel.emit_ptx());
        assert!(text.contains(&format!(".entry {name}(")));
        assert_eq!(*texts.entry(name).or_insert(text.clone()), text);
    }
    assert!(texts.len() > 200, "{}", texts.len());
}

#[test]
fn kernels_do_not_spill() {
    // Those with PDL have it on Hopper only.
    let plans = reachable_plans().iter().filter(|plan| plan.steps[0].kernel.pdl_reads().is_none());
    resource_snapshot::compare("rows.txt", plans);
}

/// A kernel whose default target is Hopper: for Hopper it may have more instructions (prefetches,
/// PDL) than for the oldest target that has its features.
#[derive(Debug)]
struct HopperKernel(&'static dyn PtxKernel);

impl PtxKernel for HopperKernel {
    fn name(&self) -> String {
        self.0.name()
    }

    fn default_target(&self) -> Target {
        HOPPER.target
    }

    fn write(&self, target: Target) -> PtxEntry {
        self.0.write(target)
    }

    fn launch(&self) -> LaunchShape {
        self.0.launch()
    }

    fn interface(&self) -> KernelInterface {
        self.0.interface()
    }
}

#[test]
fn kernels_for_hopper_do_not_spill() {
    let hopper_kernel = |plan: &'static Plan| HopperKernel(&*plan.steps[0].kernel);
    let has_more = |kernel: &HopperKernel| {
        let text = kernel.emit_ptx();
        ["bulk.prefetch", "griddepcontrol"].iter().any(|more| text.contains(more))
    };
    let kernels = reachable_plans().iter().map(hopper_kernel).filter(has_more);
    resource_snapshot::compare(
        "rows_sm_90a.txt",
        kernels.map(|kernel| Plan::single(Box::new(kernel))),
    );
}

#[test]
fn thread_groups_follow_the_row_length() {
    let kernel_names = |count, length, gpu| names(&softmax(count, length, gpu)).join(" ");
    assert_eq!(kernel_names(65536, 32, HOPPER), "softmax_f32_1x8x1_pdl");
    assert_eq!(kernel_names(65536, 128, HOPPER), "softmax_f32_1x32x1");
    assert_eq!(kernel_names(65536, 1023, HOPPER), "softmax_f32_1x64x4_vec1");
    assert_eq!(kernel_names(16384, 4096, HOPPER), "softmax_f32_1x256x4");
    assert_eq!(kernel_names(1000, 32768, HOPPER), "softmax_f32_2x512x8");
    assert_eq!(kernel_names(128, 131_072, HOPPER), "softmax_f32_8x256x16");
    assert_eq!(kernel_names(512, 131_070, HOPPER), "softmax_f32_8x512x8_vec1");
    assert_eq!(kernel_names(1000, 32768, AMPERE), "softmax_f32_1x1024x8");
    assert!(kernel_names(1000, 131_072, AMPERE).starts_with("softmax_stats_f32_1x1024x6 "));
    let split = "softmax_stats_f32_1x1024x6_vec1 softmax_apply_f32_1x1024x6_vec1";
    assert_eq!(kernel_names(1000, 131_071, AMPERE), split);
    let split = "softmax_stats_f32_1x1024x6_vec1_pdl softmax_apply_f32_1x1024x6_vec1_pdl";
    assert_eq!(kernel_names(9, 1_000_001, HOPPER), split);
}

#[test]
fn few_rows_are_spread_over_blocks() {
    assert_eq!(names(&softmax(1, 65536, HOPPER)), ["softmax_f32_8x512x4"]);
    assert_eq!(names(&softmax(30, 16384, HOPPER)), ["softmax_f32_4x512x2"]);
    assert_eq!(names(&softmax(30, 16384, AMPERE)), ["softmax_f32_1x512x8"]);
}

/// Kernels of few blocks start while the launch before them runs, and wait for it before they load
/// anything; others have no such instructions.
#[test]
fn few_blocks_overlap_with_the_launch_before() {
    for (count, gpu, overlaps) in
        [(2112, HOPPER, true), (2113, HOPPER, false), (500, HOPPER, true), (1, AMPERE, false)]
    {
        let plan = softmax(count, 4096, gpu);
        let (kernel, text) = (&plan.steps[0].kernel, text(&plan));
        assert_eq!(kernel.pdl_reads(), overlaps.then_some(&[][..]), "{count}");
        assert_eq!(kernel.name().ends_with("_pdl"), overlaps, "{count}");
        assert_eq!(text.matches("griddepcontrol.launch_dependents").count(), usize::from(overlaps));
        let wait = text.find("griddepcontrol.wait");
        assert_eq!(wait.is_some(), overlaps, "{count}");
        assert!(wait < text.find("ld.global"), "{count}");
    }
    assert_eq!(softmax(1, 65536, HOPPER).steps[0].kernel.pdl_reads(), None, "a cluster");
    let split = norm::plan(LAYER, rows(5, 1_000_001, PtxType::F32), HOPPER).unwrap();
    assert!(split.steps.iter().all(|step| step.kernel.pdl_reads() == Some(&[])));
}

#[test]
fn rows_are_read_and_written_once() {
    for (length, edges) in [(4096, 0), (4099, 1)] {
        let text = text(&softmax(3000, length, HOPPER));
        assert_eq!(text.matches("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32").count(), 4);
        assert_eq!(text.matches("st.global.v4.b32").count(), 4);
        assert_eq!(text.matches("ld.global").count(), 4 + edges);
        assert_eq!(text.matches("st.global").count(), 4 + edges);
        assert_eq!(text.matches("bar.sync").count(), 1);
        // Each element's, that of the merge, and that of the warp's share.
        assert_eq!(text.matches("ex2").count(), 16 + edges + 2);
    }
}

#[test]
fn later_rows_are_prefetched_on_hopper() {
    let plan = softmax(1000, 4096, HOPPER);
    assert_eq!(text(&plan).matches("cp.async.bulk.prefetch.L2.global").count(), 1);
    let parameters = plan.steps[0].kernel.interface().parameters;
    assert_eq!(parameters.last(), Some(&Parameter::U32(132 * 5)));
    assert!(!plan.steps[0].kernel.emit_ptx().contains("bulk.prefetch"));
    assert!(!text(&softmax(128, 131_072, HOPPER)).contains("bulk.prefetch"));
}

#[test]
fn aligned_column_operands_are_vectorised() {
    let loads = |length| {
        let plan = norm::plan(LAYER, rows(3000, length, PtxType::Bf16), HOPPER).unwrap();
        let text = text(&plan);
        ["v4.b32", "v2.b32", "b32", "b16"].map(|ty| text.matches(&format!("nc.{ty}")).count())
    };
    // The first element of the row, and an edge with its operands, are scalar loads.
    assert_eq!(loads(4096), [2 * 2, 0, 0, 1]);
    assert_eq!(loads(4100), [0, 2 * 2 * 2, 0, 1 + 3]);
    assert_eq!(loads(4098), [0, 0, 2 * 2 * 4, 1 + 3]);
    assert_eq!(loads(4097), [0, 0, 0, 2 * 2 * 8 + 1 + 3]);
}

#[test]
fn blocks_of_a_cluster_exchange_once() {
    let plan = softmax(128, 131_072, HOPPER);
    let text = text(&plan);
    assert!(text.contains(".reqnctapercluster 8, 1, 1"));
    assert_eq!(text.matches("st.shared::cluster.v2.b32").count(), 1);
    assert_eq!(text.matches("barrier.cluster.wait").count(), 2);
    assert_eq!(plan.steps[0].kernel.launch().grid, [1024, 1, 1]);
    let error = plan.steps[0].kernel.emit_ptx_for(Target::SM_80).unwrap_err();
    assert!(matches!(error, PlanError::Target { needed: Target::SM_90, .. }), "{error}");
}

#[test]
fn statistics_pass_between_two_launches() {
    let plan = norm::plan(LAYER, rows(5, 1_000_001, PtxType::F32), HOPPER).unwrap();
    let part = 512 * 6 * 4;
    let parts = 1_000_001_u64.div_ceil(part);
    assert_eq!(plan.scratch, [5 * parts * 4 * 4]);
    let buffers: Vec<_> = plan.arguments.iter().map(|buffer| buffer.name).collect();
    assert_eq!(buffers, ["x", "weight", "bias", "y"]);
    assert_eq!(plan.steps[0].buffers, [BufferSlot::Argument(0), BufferSlot::Scratch(0)]);
    let buffers = (0..4).map(BufferSlot::Argument).chain([BufferSlot::Scratch(0)]);
    assert_eq!(plan.steps[1].buffers, buffers.collect::<Vec<_>>());
    for step in &plan.steps {
        assert_eq!(step.kernel.launch().grid, [5 * parts as u32, 1, 1]);
        assert!(step.kernel.interface().parameters.contains(&Parameter::U32(parts as u32)));
    }
}

#[test]
fn buffers_match_the_function() {
    let buffers = |plan: Plan| {
        let buffers = plan.arguments.iter();
        buffers.map(|buffer| (buffer.name, buffer.len)).collect::<Vec<_>>()
    };
    let rows = rows(6, 10, PtxType::F16);
    let softmax = softmax::plan(SoftmaxKind::LogSoftmax, rows, AMPERE).unwrap();
    assert_eq!(buffers(softmax), [("x", 60), ("y", 60)]);
    let layer = norm::plan(LAYER, rows, AMPERE).unwrap();
    assert_eq!(buffers(layer), [("x", 60), ("weight", 10), ("bias", 10), ("y", 60)]);
    let rms = norm::plan(RMS, rows, AMPERE).unwrap();
    assert_eq!(buffers(rms), [("x", 60), ("weight", 10), ("y", 60)]);
}

#[test]
fn empty_matrices_need_no_launch() {
    for length in [1, 4096, 1 << 20] {
        let plan = softmax(0, length, HOPPER);
        assert!(plan.steps.is_empty());
        assert_eq!(plan.arguments.len(), 2);
    }
}

#[test]
fn invalid_shapes_are_rejected() {
    let error_text = |count, length, element| {
        let rows = rows(count, length, element);
        softmax::plan(SoftmaxKind::Softmax, rows, HOPPER).unwrap_err().to_string()
    };
    let error = error_text(3, 0, PtxType::F32);
    let expected = "`softmax`: length is 0; help: use rows of 1 to 2^31 - 2^16 elements";
    assert_eq!(error, expected);
    assert!(error_text(3, 1 << 31, PtxType::F32).contains("length is 2147483648"));
    assert!(error_text(3, 10, PtxType::F64).contains("element is F64; help: use F32, F16 or Bf16"));
    assert!(error_text(1 << 33, 10, PtxType::F32).contains("fewer rows"));
    assert!(error_text(1 << 31, 1 << 31, PtxType::F32).contains("less than 2^60"));
    assert!(error_text(1 << 26, 1 << 20, PtxType::F32).contains("fewer rows"));
}

#[test]
fn thread_group_must_hold_the_row() {
    let plan = |threads, blocks, vectors| {
        let thread_group = ThreadGroup { threads, blocks, vectors };
        softmax::plan_for(SoftmaxKind::Softmax, rows(9, 4096, PtxType::F32), thread_group, HOPPER)
    };
    assert_eq!(names(&plan(256, 1, 4).unwrap()), ["softmax_f32_1x256x4_pdl"]);
    assert_eq!(names(&plan(128, 2, 4).unwrap()), ["softmax_f32_2x128x4"]);
    for (threads, blocks, vectors) in
        [(0, 1, 8), (96, 1, 8), (2048, 1, 1), (128, 3, 4), (32, 2, 8), (64, 1, 17), (64, 16, 1)]
    {
        let error = plan(threads, blocks, vectors).unwrap_err().to_string();
        assert!(error.contains("see the limits of `ThreadGroup`"), "{error}");
    }
    for (threads, vectors) in [(128, 7), (512, 3)] {
        let error = plan(threads, 1, vectors).unwrap_err().to_string();
        assert!(error.contains("for rows of 1024 vectors"), "{error}");
    }
}
