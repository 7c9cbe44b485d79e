//! Cooperative matrices.

use super::lowered;
use super::{clamps, count};
use crate::kir::{
    FragmentLayout, Inst, Kir, LaneBits, MatrixFragments, Stmt, for_each_stmt, optimise,
};

/// Lanes in groups of four hold pairs in a row, or in a column of right factors.
const FRAGMENTS: MatrixFragments = {
    let (group, pair) = (LaneBits { shift: 2, scale: 1 }, LaneBits { shift: 0, scale: 2 });
    let rows = FragmentLayout { row: group, column: pair, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns = FragmentLayout { row: pair, column: group, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows }
};

/// A kernel that copies a matrix from workgroup memory to a buffer of unknown length.
fn copy(matrix: &str, elements: u32, index: &str, checked: bool) -> Kir {
    let mut kir = lowered(
        &format!(
            "enable wgpu_cooperative_matrix;
            @group(0) @binding(0) var<storage, read_write> out: array<f32>;
            var<workgroup> shelf: array<f32, {elements}>;
            @compute @workgroup_size(64) fn main(@builtin(subgroup_id) s: u32) {{
                shelf[s] = 1.0;
                let m = coopLoadT<{matrix}<f32, C>>(&shelf[{index}], 16u);
                coopStore(m, &out[s * 3u + 1u], s + 2u);
            }}"
        ),
        checked,
    );
    optimise(&mut kir);
    kir.with_fragments(&FRAGMENTS)
}

/// Counts statements of a kind, also those in branches.
fn statements(kir: &Kir, is_counted: fn(&Stmt) -> bool) -> usize {
    let mut count = 0;
    for_each_stmt(&kir.body, &mut |stmt| count += usize::from(is_counted(stmt)));
    count
}

fn branches(kir: &Kir) -> usize {
    statements(kir, |stmt| matches!(stmt, Stmt::If { .. }))
}

fn stores(kir: &Kir) -> usize {
    statements(kir, |stmt| matches!(stmt, Stmt::Store { .. }))
}

#[test]
fn in_bounds_elements_are_not_clamped() {
    let both = clamps(&copy("coop_mat16x16", 256, "1u", true));
    let stores = clamps(&copy("coop_mat16x16", 256, "0u", true));
    assert!(both > stores, "{both} and {stores}");
    assert_eq!(stores, 8, "a clamp for each element of unknown place");
    assert_eq!(clamps(&copy("coop_mat8x8", 120, "0u", true)), 2);
    assert_eq!(clamps(&copy("coop_mat8x8", 119, "0u", true)), 2 + 1);
    assert_eq!(clamps(&copy("coop_mat16x16", 16, "1u", false)), 0);
}

#[test]
fn matrices_are_tested_once() {
    // The store, of unknown place, and its two elements if it is not inside.
    assert_eq!(branches(&copy("coop_mat8x8", 120, "0u", true)), 1 + 2);
    assert_eq!(branches(&copy("coop_mat8x8", 120, "1u", true)), 1 + 2, "never inside");
    assert_eq!(branches(&copy("coop_mat8x8", 256, "u32(out[0])", true)), 2 + 2, "the load as well");
    assert_eq!(branches(&copy("coop_mat8x8", 256, "s & 15", true)), 1 + 2, "always inside");
    assert_eq!(branches(&copy("coop_mat8x8", 120, "1u", false)), 0);
}

#[test]
fn lanes_hold_parts_of_matrices() {
    assert_eq!(stores(&copy("coop_mat8x8", 256, "0u", false)), 1 + 2);
    assert_eq!(stores(&copy("coop_mat16x16", 256, "0u", false)), 1 + 8);
    assert_eq!(stores(&copy("coop_mat16x16", 256, "0u", true)), 1 + 2 * 8, "with tests, without");
}

#[test]
fn products_have_eight_by_eight_steps() {
    let products = |n: u32| {
        let kir = lowered(
            &format!(
                "enable f16; enable wgpu_cooperative_matrix;
                @group(0) @binding(0) var<storage, read_write> out: array<f32>;
                @group(0) @binding(1) var<storage, read_write> h: array<f16>;
                @compute @workgroup_size(32) fn main() {{
                    let a = coopLoad<coop_mat{n}x{n}<f16, A>>(&h[0]);
                    let b = coopLoad<coop_mat{n}x{n}<f16, B>>(&h[0]);
                    coopStore(coopMultiplyAdd(a, b, coop_mat{n}x{n}<f32, C>()), &out[0]);
                }}"
            ),
            true,
        );
        let kir = kir.with_fragments(&FRAGMENTS);
        count(&kir, |inst| matches!(inst, Inst::MultiplyFragments { .. }))
    };
    assert_eq!([products(8), products(16)], [1, 4]);
}
