//! Tests of cooperative matrices.

use super::{count_clamps, count_insts, lower_checked, lower_unchecked};
use crate::kir::fragments::tests::FRAGMENTS;
use crate::kir::{BinaryOp, Inst, Kir, Stmt, for_each_stmt, optimise, verify};

/// Lowers a kernel that copies a matrix from workgroup memory to a buffer of unknown length, with
/// bounds checks.
fn checked_copy(matrix: &str, elements: u32, index: &str) -> Kir {
    split_into_fragments(lower_checked(&copy_source(matrix, elements, index)))
}

/// Lowers the kernel of [`checked_copy`] without bounds checks.
fn unchecked_copy(matrix: &str, elements: u32, index: &str) -> Kir {
    split_into_fragments(lower_unchecked(&copy_source(matrix, elements, index)))
}

fn split_into_fragments(mut kir: Kir) -> Kir {
    optimise(&mut kir);
    kir.with_fragments(&FRAGMENTS)
}

fn copy_source(matrix: &str, elements: u32, index: &str) -> String {
    format!(
        "enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, read_write> out: array<f32>;
            var<workgroup> shared_array: array<f32, {elements}>;
            @compute @workgroup_size(64) fn main(@builtin(subgroup_id) s: u32) {{
                shared_array[s] = 1.0;
                let m = coopLoadT<{matrix}<f32, C>>(&shared_array[{index}], 16u);
                coopStore(m, &out[s * 3u + 1u], s + 2u);
            }}"
    )
}

/// Counts the statements of a kind, those in nested blocks included.
fn count_statements(kir: &Kir, is_counted: fn(&Stmt) -> bool) -> usize {
    let mut count = 0;
    for_each_stmt(&kir.body, &mut |stmt| count += usize::from(is_counted(stmt)));
    count
}

fn count_branches(kir: &Kir) -> usize {
    count_statements(kir, |stmt| matches!(stmt, Stmt::If { .. }))
}

fn count_stores(kir: &Kir) -> usize {
    count_statements(kir, |stmt| matches!(stmt, Stmt::Store { .. }))
}

#[test]
fn in_bounds_elements_are_not_clamped() {
    let both = count_clamps(&checked_copy("coop_mat16x16", 256, "1u"));
    let stores = count_clamps(&checked_copy("coop_mat16x16", 256, "0u"));
    assert!(both > stores, "{both} and {stores}");
    assert_eq!(stores, 8, "a clamp for each element that is stored");
    assert_eq!(count_clamps(&checked_copy("coop_mat8x8", 120, "0u")), 2);
    assert_eq!(count_clamps(&checked_copy("coop_mat8x8", 119, "0u")), 2 + 1);
    assert_eq!(count_clamps(&unchecked_copy("coop_mat16x16", 16, "1u")), 0);
}

#[test]
fn bounds_are_checked_once_per_matrix() {
    // A check of the store's matrix, whose position is unknown, and if it is not wholly in bounds,
    // one of each of the two elements of a lane.
    assert_eq!(count_branches(&checked_copy("coop_mat8x8", 120, "0u")), 1 + 2);
    assert_eq!(
        count_branches(&checked_copy("coop_mat8x8", 120, "1u")),
        1 + 2,
        "the load is never wholly in bounds: no branch"
    );
    assert_eq!(
        count_branches(&checked_copy("coop_mat8x8", 256, "u32(out[0])")),
        2 + 2,
        "a check of the load too"
    );
    assert_eq!(
        count_branches(&checked_copy("coop_mat8x8", 256, "s & 15")),
        1 + 2,
        "the load is always in bounds: no branch"
    );
    assert_eq!(count_branches(&unchecked_copy("coop_mat8x8", 120, "1u")), 0);
}

#[test]
fn lanes_store_their_fragments() {
    assert_eq!(count_stores(&unchecked_copy("coop_mat8x8", 256, "0u")), 1 + 2);
    assert_eq!(count_stores(&unchecked_copy("coop_mat16x16", 256, "0u")), 1 + 8);
    assert_eq!(
        count_stores(&checked_copy("coop_mat16x16", 256, "0u")),
        1 + 2 * 8,
        "with and without checks"
    );
}

#[test]
fn products_are_split_into_fragments() {
    let products = |n: u32| {
        let kir = lower_checked(&format!(
            "enable f16; enable wgpu_cooperative_matrix;
                @group(0) @binding(0) var<storage, read_write> out: array<f32>;
                @group(0) @binding(1) var<storage, read_write> h: array<f16>;
                @compute @workgroup_size(32) fn main() {{
                    let a = coopLoad<coop_mat{n}x{n}<f16, A>>(&h[0]);
                    let b = coopLoad<coop_mat{n}x{n}<f16, B>>(&h[0]);
                    coopStore(coopMultiplyAdd(a, b, coop_mat{n}x{n}<f32, C>()), &out[0]);
                }}"
        ));
        let kir = kir.with_fragments(&FRAGMENTS);
        count_insts(&kir, |inst| matches!(inst, Inst::MultiplyFragments { .. }))
    };
    assert_eq!([products(8), products(16)], [1, 4]);
}

/// Returns an optimised kernel that stores a matrix, an expression of `m` or a variable `v`.
fn stored_matrix(matrix: &str) -> Kir {
    let mut kir = lower_checked(&format!(
        "enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, read_write> data: array<f32>;
            @compute @workgroup_size(32) fn main() {{
                var v: coop_mat8x8<f32, C>;
                let m = coopLoad<coop_mat8x8<f32, C>>(&data[0], 8u);
                coopStore({matrix}, &data[64], 8u);
            }}"
    ));
    optimise(&mut kir);
    kir
}

#[test]
fn differences_of_equal_matrices_are_computed() {
    // Not zero: elements may be NaN or infinite.
    let kir = stored_matrix("m - m");
    assert_eq!(verify(&kir), Ok(()), "{kir}");
    let is_difference = |inst: &Inst| matches!(inst, Inst::Binary(BinaryOp::Sub, a, b) if a == b);
    assert_eq!(count_insts(&kir, is_difference), 1, "{kir}");
}

#[test]
fn unassigned_matrix_variables_are_read() {
    let kir = stored_matrix("v");
    assert_eq!(verify(&kir), Ok(()), "{kir}");
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::Get(_))), 1, "{kir}");
}
