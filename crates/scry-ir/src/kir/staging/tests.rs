//! Tests that staged kernels compute the same results as unstaged ones, and access memory in
//! bounds.

use super::stage;
use crate::Program;
use crate::kir::fragments::tests::FRAGMENTS;
use crate::kir::interpret::Interpreter;
use crate::kir::{AddressSpace, Inst, Kir, KirOptions, Stmt, Type, for_each_stmt, optimise};

fn lower(source: &str) -> Kir {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut kir = program.to_kir(&KirOptions { checked: true }).unwrap();
    optimise(&mut kir);
    kir
}

/// Stages a kernel for a device that cannot access matrices in binding 1.
fn staged(kir: &Kir) -> Kir {
    stage(kir, &|space| !matches!(space, AddressSpace::Binding(1)))
}

/// Two subgroups that each copy a matrix at `index` with `stride` from a storage buffer through
/// workgroup memory, and add a matrix of `table` to it.
fn copy(matrix: &str, load: &str, index: &str, stride: &str) -> Kir {
    // Where the stored matrices overlap, both store the same elements.
    let store = load.replace("Load", "Store");
    lower(&format!(
        "enable wgpu_cooperative_matrix; enable subgroups;
        struct Rows {{ rows: array<f32, 300> }}
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @group(0) @binding(1) var<storage> table: Rows;
        @group(0) @binding(2) var<storage, read_write> out: array<f32>;
        var<workgroup> scratch: array<f32, 600>;
        @compute @workgroup_size(64) fn main(@builtin(subgroup_id) s: u32) {{
            let m = {load}<{matrix}<f32, C>>(&data[{index}], {stride});
            {store}(m, &scratch[{index}], {stride});
            workgroupBarrier();
            let n = {load}<{matrix}<f32, C>>(&scratch[{index}], {stride});
            let t = {load}<{matrix}<f32, C>>(&table.rows[{index}], {stride});
            {store}(n + t, &out[{index}], {stride});
        }}"
    ))
}

fn run(kir: &Kir, words: usize) -> Vec<u8> {
    let kir = kir.with_fragments(&FRAGMENTS);
    let sequence = |count: usize, step: f32| -> Vec<u8> {
        (0..count).flat_map(|n| (n as f32 * step + 1.0).to_le_bytes()).collect()
    };
    let buffers = vec![sequence(words, 1.0), sequence(300, 1000.0), vec![0; 4 * words]];
    let mut interpreter = Interpreter::new(&kir, buffers);
    interpreter.subgroup_size = 32;
    interpreter.run([1, 1, 1]).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    interpreter.buffers.swap_remove(2)
}

fn count(kir: &Kir, is_counted: &dyn Fn(&Kir, &Stmt) -> bool) -> usize {
    let mut count = 0;
    for_each_stmt(&kir.body, &mut |stmt| count += usize::from(is_counted(kir, stmt)));
    count
}

fn matrix_accesses(kir: &Kir) -> usize {
    count(kir, &|kir, stmt| match stmt {
        Stmt::MatrixStore { .. } => true,
        Stmt::Let(value) => matches!(kir.inst(*value), Inst::MatrixLoad(_)),
        _ => false,
    })
}

#[test]
fn staged_copies_have_the_same_results() {
    for matrix in ["coop_mat8x8", "coop_mat16x16"] {
        for load in ["coopLoad", "coopLoadT"] {
            // Inside, misaligned, partly outside and overlapping, from the last element of `table`
            // for the second subgroup, and all outside.
            for index in ["s * 16u", "s * 16u + 3u", "s * 4u + 250u", "s * 299u", "s + 0xfffffff0u"]
            {
                for stride in ["16u", "17u", "s * 4u + 12u", "0xfffffffdu"] {
                    for words in [301, 400] {
                        let kir = copy(matrix, load, index, stride);
                        let (plain, staged) = (run(&kir, words), run(&staged(&kir), words));
                        assert!(plain == staged, "{matrix} {load} {index} {stride} {words}");
                    }
                }
            }
        }
    }
}

#[test]
fn matrices_in_bounds_need_no_tiles() {
    let kir = lower(
        "enable wgpu_cooperative_matrix; enable subgroups;
        @group(0) @binding(0) var<storage, read_write> data: array<f32, 4096>;
        var<workgroup> scratch: array<f32, 1024>;
        @compute @workgroup_size(64) fn main(@builtin(subgroup_id) s: u32) {
            let m = coopLoad<coop_mat16x16<f32, C>>(&data[(s & 1u) * 256u], 16u);
            coopStore(m, &scratch[(s & 1u) * 512u + 8u], 16u);
            data[s] = scratch[s];
        }",
    );
    let staged = staged(&kir);
    assert_eq!((staged.workgroup.len(), matrix_accesses(&staged)), (1, 2), "{staged}");
    assert_eq!(count(&staged, &|_, stmt| matches!(stmt, Stmt::If { .. })), 0, "{staged}");
}

#[test]
fn unsuitable_matrices_use_tiles_only() {
    let kir = lower(
        "enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> data: array<f32, 512>;
        @compute @workgroup_size(32) fn main() {
            let m = coopLoad<coop_mat16x16<f32, C>>(&data[300], 16u);
            coopStore(m, &data[2], 16u);
        }",
    );
    let staged = staged(&kir);
    assert_eq!((staged.workgroup.len(), matrix_accesses(&staged)), (1, 2), "{staged}");
    let is_barrier = |_: &Kir, stmt: &Stmt| matches!(stmt, Stmt::Barrier(..));
    assert_eq!(count(&staged, &is_barrier), 4, "{staged}");
}

#[test]
fn first_lane_decides_the_address() {
    let kir = lower(
        "enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            let ones = coopLoad<coop_mat8x8<f32, C>>(&data[100], 0u);
            coopStore(ones, &data[i * 4u], 8u);
        }",
    );
    let staged = staged(&kir).with_fragments(&FRAGMENTS);
    let numbers = (0..108).map(|n| if n < 100 { 0.0f32 } else { 1.0 });
    let data = numbers.flat_map(f32::to_le_bytes).collect();
    let mut interpreter = Interpreter::new(&staged, vec![data]);
    interpreter.subgroup_size = 32;
    interpreter.run([1, 1, 1]).unwrap();
    let ones = interpreter.buffers[0].chunks_exact(4).take_while(|word| word[3] != 0).count();
    assert_eq!(ones, 64, "one matrix at the index of the first lane");
}

#[test]
fn uniform_addresses_are_not_broadcast() {
    let source = |start: &str, end: &str| {
        format!(
            "enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage> data: array<f32, 4096>;
            @group(0) @binding(1) var<storage, read_write> out: array<f32, 4096>;
            @compute @workgroup_size(64) fn main(
                @builtin(subgroup_id) s: u32, @builtin(local_invocation_index) i: u32,
                @builtin(workgroup_id) g: vec3u,
            ) {{
                for (var k = {start}; k != {end}; k++) {{
                    let m = coopLoad<coop_mat8x8<f32, C>>(&data[(s & 1u) * 64u + g.x], 8u);
                    coopStore(m, &out[k * 64u], 8u);
                }}
            }}"
        )
    };
    let broadcasts = |start, end| {
        let staged = staged(&lower(&source(start, end)));
        staged.to_string().matches("subgroup shuffle").count()
    };
    assert_eq!(broadcasts("0u", "8u"), 0, "the subgroup's id is uniform in it");
    assert_eq!(broadcasts("g.y", "u32(data[0])"), 1, "lanes may exit the loop one by one");
}

#[test]
fn only_tiles_in_use_are_kept() {
    let kir = lower(
        "enable f16; enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        var<workgroup> half: array<f16, 1024>;
        @compute @workgroup_size(32) fn main(@builtin(subgroup_id) s: u32) {
            half[s] = f16(data[s]);
            let a = coopLoad<coop_mat16x16<f16, A>>(&half[(s & 3u) * 256u], 16u);
            let b = coopLoad<coop_mat16x16<f16, B>>(&half[(s & 3u) * 256u], 16u);
            coopStore(coopMultiplyAdd(a, b, coop_mat16x16<f32, C>()), &data[s], 16u);
        }",
    );
    let staged = staged(&kir);
    let types: Vec<Type> = staged.workgroup.iter().map(|array| array.ty).collect();
    assert_eq!(types, [Type::F16, Type::F32], "{staged}");
    assert!(staged.to_string().contains("matrix_store workgroup1"), "{staged}");
}
