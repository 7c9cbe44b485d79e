//! Tests of GEMM on Hopper's tensor cores: planned launches, the instructions of kernels, and
//! invalid arguments.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

use std::collections::BTreeMap;

use scry_ptx::kernels::gemm::hopper::{Choice, HopperTile};
use scry_ptx::kernels::gemm::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
use scry_ptx::kernels::{BufferSlot, GpuSpec, Parameter, Plan};
use scry_ptx::{PtxType, Target};

use crate::resource_snapshot;
use crate::steps::check_steps;

const H200: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };
const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];

/// Warpgroups, columns and blocks of split-K clusters: with a receive buffer, with accumulators in
/// the memory of the stages, and single blocks with few or many accumulators.
const SPLIT_TILES: [(u32, u32, u32); 5] =
    [(1, 16, 8), (2, 32, 8), (3, 192, 2), (1, 16, 1), (1, 128, 1)];

fn names(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.kernel.name()).collect()
}

fn choice_of_tile(tile: HopperTile) -> Option<Choice> {
    Some(Choice { tile, splits: 1, transposed: false })
}

/// A GEMM with every part of the epilogue.
fn with_epilogue(gemm: Gemm) -> Gemm {
    let epilogue = Epilogue { alpha: 0.5, beta: 2.0, bias: true, activation: Activation::Gelu };
    Gemm { epilogue, ..gemm }
}

/// Plans with every kind of kernel: of many tiles, of sizes that are not multiples of tiles, with
/// split-K over clusters and through global memory.
fn sample_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    let sizes = [[4096, 4096, 4096], [4097, 4095, 1023], [16, 4096, 4096], [64, 64, 65536]];
    for [m, n, k] in sizes {
        for (a, b) in LAYOUTS.into_iter().flat_map(|a| LAYOUTS.map(|b| (a, b))) {
            for element in [PtxType::F16, PtxType::Bf16] {
                plans.push(Gemm::new(m, n, k, element).with_layouts(a, b).plan(H200));
            }
        }
        for precision in [Precision::Tf32, Precision::Tf32x3] {
            let single = Gemm { precision, ..Gemm::new(m, n, k, PtxType::F32) };
            plans.push(single.plan(H200));
        }
        let gemm = Gemm::new(m, n, k, PtxType::F16);
        plans.push(with_epilogue(gemm).plan(H200));
        plans.push(with_epilogue(Gemm { output: PtxType::F32, ..gemm }).plan(H200));
        let col_major = MatrixLayout::packed(Layout::ColMajor, m, n);
        plans.push(with_epilogue(Gemm { out: col_major, ..gemm }).plan(H200));
    }
    for tile in [HopperTile::new(2, 256, 2), HopperTile::new(3, 128, 1), HopperTile::new(1, 64, 1)]
    {
        let bias = Epilogue { bias: true, activation: Activation::Silu, ..Epilogue::NONE };
        let gemm = Gemm { epilogue: bias, ..Gemm::new(512, 512, 512, PtxType::Bf16) };
        plans.push(gemm.plan_with(H200, choice_of_tile(tile)));
    }
    for (groups, columns, split_k) in SPLIT_TILES {
        let choice = Choice {
            tile: HopperTile::split(groups, columns, split_k),
            splits: 1,
            transposed: true,
        };
        let gemm = with_epilogue(Gemm::new(300, 200, 2000, PtxType::Bf16));
        plans.push(
            gemm.with_layouts(Layout::RowMajor, Layout::ColMajor).plan_with(H200, Some(choice)),
        );
    }
    plans.push(with_epilogue(Gemm::new(5, 7, 0, PtxType::Bf16)).plan(H200));
    plans.into_iter().map(Result::unwrap).collect()
}

#[test]
fn equal_names_have_equal_text() {
    let mut texts = BTreeMap::new();
    let other = [1000, 2000, 3000].map(|k| Gemm::new(3000, k + 8, k, PtxType::Bf16).plan(H200));
    let other: Vec<_> = other.into_iter().map(Result::unwrap).collect();
    for step in sample_plans().iter().chain(&other).flat_map(|plan| &plan.steps) {
        let (name, text) = (step.kernel.name(), step.kernel.emit_ptx());
        assert!(text.contains(&format!(".entry {name}(")));
        assert_eq!(*texts.entry(name).or_insert(text.clone()), text);
    }
    assert!(texts.len() > 25, "{}", texts.len());
}

#[test]
fn kernels_do_not_spill() {
    resource_snapshot::compare("gemm_hopper.txt", sample_plans());
}

#[test]
fn steps_match_kernel_interfaces() {
    sample_plans().iter().for_each(check_steps);
}

#[test]
fn kernels_follow_shapes() {
    let planned_names = |m, n, k| names(&Gemm::new(m, n, k, PtxType::Bf16).plan(H200).unwrap());
    assert_eq!(planned_names(8192, 8192, 8192), ["gemm_sm90_bf16_tt_128x256_cluster2"]);
    // Rows that straddle cache lines favour tiles that read less.
    assert_eq!(planned_names(2040, 2040, 2040), ["gemm_sm90_bf16_tt_128x256_cluster2"]);
    let odd = planned_names(4097, 4095, 1023);
    assert_eq!(odd[0], "gemm_align16_x2");
    assert!(odd[1].ends_with("_unaligned"), "{odd:?}");
    let skinny = planned_names(16, 4096, 4096);
    assert!(skinny.len() == 1 && skinny[0].contains("_splitk"), "{skinny:?}");
    let large_k = planned_names(64, 64, 1 << 20);
    assert_eq!(large_k.last().unwrap(), "gemm_reduce_bf16");
}

/// A cluster barrier with release semantics would make all blocks wait for each other's stores.
#[test]
fn split_k_accumulators_are_sent() {
    for (groups, columns, split_k) in SPLIT_TILES {
        let choice = Choice {
            tile: HopperTile::split(groups, columns, split_k),
            splits: 1,
            transposed: true,
        };
        let gemm = Gemm::new(300, 200, 2000, PtxType::Bf16);
        let plan =
            gemm.with_layouts(Layout::RowMajor, Layout::ColMajor).plan_with(H200, Some(choice));
        let text = plan.unwrap().steps[0].kernel.emit_ptx();
        // Large tiles are read from distributed shared memory, those of one block are local.
        let (sums, sent) = (columns / 2, split_k > 1 && columns < 192);
        let sends = if sent { sums / (sums / split_k).min(4) } else { 0 };
        assert_eq!(text.matches("st.async").count() as u32, sends, "{groups} {columns} {split_k}");
        let orders = text.contains("barrier.cluster.arrive.release");
        assert_eq!(orders, split_k > 1 && !sent, "{groups} {columns} {split_k}");
    }
}

/// Staging is double-buffered. After a tile with an odd number of slabs the next one starts with
/// the buffer that was used last.
#[test]
fn staging_is_reused_after_stores_finish() {
    let pending = |columns| {
        let gemm = Gemm::new(4096, 4096, 64, PtxType::Bf16);
        let plan = gemm.plan_with(H200, choice_of_tile(HopperTile::new(1, columns, 1))).unwrap();
        let text = plan.steps[0].kernel.emit_ptx();
        let waits = text.lines().filter_map(|line| line.trim().strip_prefix(WAIT));
        waits.map(|pending| pending.trim_end_matches(';').parse().unwrap()).collect::<Vec<u32>>()
    };
    // The last wait is for all stores, before the block ends.
    assert_eq!(pending(64), [0, 0]);
    assert_eq!(pending(128), [1, 1, 0]);
    assert_eq!(pending(192), [0, 1, 1, 0]);
}

const WAIT: &str = "cp.async.bulk.wait_group.read ";

#[test]
fn operands_read_once_are_evicted_first() {
    let hints = |m, n, k| {
        let plan = Gemm::new(m, n, k, PtxType::Bf16).plan(H200).unwrap();
        let kernel = &plan.steps[0].kernel;
        (kernel.name(), kernel.emit_ptx().matches("L2::cache_hint").count())
    };
    // The weights, not the activations, which all blocks read.
    let (name, count) = hints(16, 4096, 4096);
    assert!(name.contains("_nn_") && name.contains("_evicta") && count == 1, "{name}: {count}");
    let (name, count) = hints(8192, 64, 8192);
    assert!(name.contains("_tt_") && name.contains("_evicta") && count == 1, "{name}: {count}");
    let (name, count) = hints(4096, 4096, 4096);
    assert!(name.contains("_tt_") && !name.contains("_evict") && count == 0, "{name}: {count}");
    // All products of the batch read the same weights.
    let mut gemm = Gemm { batch: 4, ..Gemm::new(16, 4096, 4096, PtxType::Bf16) };
    gemm.b.stride = 0;
    let name = gemm.plan(H200).unwrap().steps[0].kernel.name();
    assert!(name.contains("_nn_") && !name.contains("_evict"), "{name}");
}

/// Activations are mostly the output of the preceding launch.
#[test]
fn dominant_weights_are_prefetched_by_pdl() {
    let pdl = |m, n, k| {
        let plan = Gemm::new(m, n, k, PtxType::Bf16).plan(H200).unwrap();
        let step = &plan.steps[0];
        let pdl = step.kernel.pdl_reads().expect("it uses PDL");
        pdl.iter().map(|at| step.buffers[*at]).collect::<Vec<_>>()
    };
    assert_eq!(pdl(16, 4096, 4096), [BufferSlot::Argument(1)]);
    assert_eq!(pdl(64, 8192, 8192), [BufferSlot::Argument(1)]);
    assert_eq!(pdl(8192, 64, 8192), [BufferSlot::Argument(0)]);
    assert_eq!(pdl(4096, 4096, 4096), []);
    assert_eq!(pdl(32768, 256, 128), []);
}

/// TMA would store zeros after a row that ends within 16 bytes.
#[test]
fn tma_stores_need_16_byte_rows() {
    let mut gemm = Gemm::new(300, 1001, 520, PtxType::Bf16);
    gemm.out.ld = 1008;
    let plan = gemm.plan_with(H200, choice_of_tile(HopperTile::new(2, 128, 1))).unwrap();
    assert!(names(&plan)[1].ends_with("_unaligned"), "{:?}", names(&plan));
    let parts = Some(Choice { tile: HopperTile::new(2, 128, 1), splits: 2, transposed: false });
    let plan = gemm.plan_with(H200, parts).unwrap();
    let kernel = &plan.steps[1].kernel;
    let parameters = kernel.interface().parameters;
    let Some(Parameter::TensorMap(2, map)) =
        parameters.iter().rfind(|p| matches!(p, Parameter::TensorMap(..)))
    else {
        panic!("{} writes no tiles", kernel.name())
    };
    assert_eq!((map.dims[0], map.strides[0]), (1004, 4 * 1004));
}

/// Returns how many loads follow each other without a store between them.
fn runs_of_loads(plan: &Plan) -> Vec<usize> {
    let text = plan.steps[0].kernel.emit_ptx();
    let runs = text.split("st.global").map(|part| part.matches("ld.global").count());
    runs.filter(|loads| *loads > 0).collect()
}

/// A load after a store waits for it: 16 rows in turn took 10 us.
#[test]
fn previous_results_are_loaded_before_any_is_stored() {
    let mut gemm = Gemm::new(16, 384, 384, PtxType::F16);
    gemm.epilogue.beta = 1.0;
    let plan = gemm.plan(H200).unwrap();
    assert!(names(&plan)[0].contains("_unaligned"), "{:?}", names(&plan));
    // Two groups of 32 columns, with 16 rows each.
    assert_eq!(runs_of_loads(&plan), [16, 16]);

    // The parts of a thread's results that are stored together.
    for (groups, columns, split_k) in SPLIT_TILES {
        let tile = HopperTile::split(groups, columns, split_k);
        let choice = Choice { tile, splits: 1, transposed: true };
        gemm.epilogue.bias = true;
        let plan = gemm.plan_with(H200, Some(choice)).unwrap();
        let together = match (split_k, columns < 192) {
            (1, _) => (columns / 2).min(8),
            (_, true) => (columns / 2 / split_k).min(4),
            (_, false) => 8,
        };
        let runs = runs_of_loads(&plan);
        let expected = 2 * together as usize;
        let is_expected = !runs.is_empty() && runs.iter().all(|loads| *loads == expected);
        assert!(is_expected, "{:?}: {runs:?}", names(&plan));
    }
}

/// Threads wait for the bias of narrow tiles while operands are loaded, not after the product.
#[test]
fn bias_of_narrow_tiles_is_loaded_before_the_product() {
    for (columns, is_early) in [(64, true), (128, false)] {
        let mut gemm = Gemm::new(64, 512, 384, PtxType::F16);
        gemm.epilogue.bias = true;
        let plan = gemm.plan_with(H200, choice_of_tile(HopperTile::new(1, columns, 1))).unwrap();
        let text = plan.steps[0].kernel.emit_ptx();
        let (before, after) = text.split_once("wgmma.mma_async").unwrap();
        let [before, after] = [before, after].map(|part| part.matches("ld.global").count());
        // Two columns of each eight; without the early loads, for both rows of a thread.
        let expected = if is_early { [16, 0] } else { [0, 64] };
        assert_eq!([before, after], expected, "{:?}", names(&plan));
    }
}

#[test]
fn small_products_take_one_launch() {
    let plan = Gemm::new(229, 3, 6, PtxType::F16).plan(H200).unwrap();
    assert_eq!(names(&plan), ["gemm_tiled16_f16"]);
}

#[test]
fn mma_count_follows_the_stage() {
    let count = |gemm: Gemm, tile| {
        let plan = gemm.plan_with(H200, choice_of_tile(tile)).unwrap();
        plan.steps.last().unwrap().kernel.emit_ptx().matches("wgmma.mma_async").count()
    };
    let f16 = Gemm::new(512, 512, 512, PtxType::F16);
    assert_eq!(count(f16, HopperTile::new(2, 256, 1)), 4);
    let single = Gemm { precision: Precision::Tf32, ..Gemm::new(512, 512, 512, PtxType::F32) };
    assert_eq!(count(single, HopperTile::new(2, 256, 1)), 4);
    // TF32x3: three products of two terms.
    let exact = Gemm { precision: Precision::Tf32x3, ..single };
    assert_eq!(count(exact, HopperTile::new(2, 128, 1)), 12);
}

#[test]
fn batched_operands_are_contiguous_or_broadcast() {
    let mut gemm = Gemm { batch: 3, ..Gemm::new(100, 72, 88, PtxType::F16) };
    gemm.b.stride = 0;
    let plan = gemm.plan(H200).unwrap();
    let parameters = plan.steps[0].kernel.interface().parameters;
    let maps: Vec<_> = parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::TensorMap(nth, map) => Some((*nth, map.dims.clone(), map.strides.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(maps[0], (0, vec![88, 100, 3], vec![176, 17600]));
    assert_eq!(maps[1].1, [72, 88, 1]);
}

#[test]
fn empty_problems_launch_nothing() {
    let none = Gemm::new(0, 5, 7, PtxType::F16).plan(H200).unwrap();
    assert!(none.steps.is_empty());
    assert_eq!(none.arguments.len(), 3);
    let zero_k = Gemm::new(3, 5, 0, PtxType::F16).plan(H200).unwrap();
    assert_eq!(names(&zero_k), ["gemm_reduce_f16_k0"]);
}

#[test]
fn unsupported_operands_are_rejected() {
    let choice = choice_of_tile(HopperTile::new(2, 128, 1));
    let error_text = |gemm: Gemm, gpu| gemm.plan_with(gpu, choice).unwrap_err().to_string();
    let without_wgmma = GpuSpec { target: Target::SM_90, ..H200 };
    let text = error_text(Gemm::new(3, 5, 7, PtxType::F16), without_wgmma);
    assert!(
        text.contains("needs sm_90a; the target is sm_90; help: pass sm_90a as the target"),
        "{text}"
    );
    let text = error_text(Gemm::new(3, 5, 7, PtxType::F32), H200);
    assert!(text.contains("precision is full f32"), "{text}");
    let side = 1 << 27;
    let huge = Gemm {
        a: MatrixLayout { ld: 8, ..MatrixLayout::packed(Layout::RowMajor, side, 8) },
        ..Gemm::new(side, side, 8, PtxType::F16)
    };
    let wide_tile = Some(Choice { tile: HopperTile::new(3, 256, 1), splits: 1, transposed: false });
    let text =
        Gemm::new(512, 512, 512, PtxType::F16).plan_with(H200, wide_tile).unwrap_err().to_string();
    assert!(text.contains("choice is a tile with more columns than registers can hold"), "{text}");
    assert!(error_text(huge, H200).contains("too many"), "{}", error_text(huge, H200));
}

#[test]
fn rows_of_one_element_are_repacked() {
    let line =
        Gemm::new(1024, 1024, 1, PtxType::F32).with_layouts(Layout::RowMajor, Layout::ColMajor);
    let plan = Gemm { precision: Precision::Tf32, ..line }.plan(H200).unwrap();
    let maps = plan.steps.iter().flat_map(|step| step.kernel.interface().parameters);
    let strides = maps.filter_map(|parameter| match parameter {
        Parameter::TensorMap(_, map) => Some(map.strides),
        _ => None,
    });
    assert!(strides.flatten().all(|stride| stride.is_multiple_of(16)));
}
