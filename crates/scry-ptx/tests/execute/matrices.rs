//! Tests of cooperative matrices in workgroup memory: `ldmatrix` loads them if they are aligned and
//! in bounds, and a whole warp does.

use scry_ptx::{Target, translate};

use super::run::{Outcome, RunOptions, TestLaunch, compile, run};

/// A product of two matrices in workgroup memory, `a` and `b`, which `{load}` declares.
const PRODUCT: &str = "enable f16; enable wgpu_cooperative_matrix;
    @group(0) @binding(0) var<storage, read_write> results: array<f32>;
    @group(0) @binding(1) var<storage, read_write> flag: array<u32>;
    var<workgroup> tile: array<f16, 1024>;
    @compute @workgroup_size({size}) fn main(@builtin(local_invocation_index) i: u32) {
        for (var e = i; e < 1024u; e += {size}u) { tile[e] = f16(e * 7u % 61u) / 8.0h; }
        workgroupBarrier();
        {load}
        let product = coopMultiplyAdd(a, b, coop_mat{n}x{n}<f32, C>());
        coopStoreT(product, &results[0], {n}u);
    }";

/// Returns a kernel with these loads, whose matrices have `n` rows.
fn product(n: u32, size: u32, load: &str) -> String {
    let source = PRODUCT.replace("{load}", load).replace("{size}", &size.to_string());
    source
        .replace("{a}", &format!("coop_mat{n}x{n}<f16, A>"))
        .replace("{b}", &format!("coop_mat{n}x{n}<f16, B>"))
        .replace("{n}", &n.to_string())
}

/// Executes a kernel; returns its PTX.
#[track_caller]
fn execute(source: &str, target: Target) -> String {
    let mut buffers = vec![vec![0; 1024]];
    if source.contains("flag[") {
        buffers.push(vec![0; 64]);
    }
    let launch = TestLaunch {
        source: source.to_owned(),
        buffers,
        immediates: Vec::new(),
        groups: [1, 1, 1],
    };
    let options = RunOptions { ulps: 4, ..RunOptions::for_target(target) };
    let outcome = run(&launch, &options).unwrap_or_else(|problem| panic!("{problem}\n{source}"));
    assert_eq!(outcome, Outcome::Same);
    let (_, kir) = compile(source).unwrap();
    translate(&kir, &options.ptx).text
}

/// Executes a kernel and requires this many `ldmatrix` without and with `.trans`.
#[track_caller]
fn assert_loads(source: &str, plain: usize, transposed: usize) {
    let text = execute(source, Target::SM_90);
    let trans = text.lines().filter(|line| line.contains("ldmatrix") && line.contains(".trans"));
    let trans = trans.count();
    let counts = (text.matches("ldmatrix").count() - trans, trans);
    assert_eq!(counts, (plain, transposed), "{source}\n{text}");
}

#[test]
fn aligned_matrices_use_ldmatrix() {
    for (n, stride) in [(16, 16), (16, 24), (8, 8), (8, 40)] {
        for (a, b, plain) in [("T", "T", 1), ("T", "", 2), ("", "T", 0), ("", "", 1)] {
            let load = format!(
                "let a = coopLoad{a}<{{a}}>(&tile[0], {stride}u);
                 let b = coopLoad{b}<{{b}}>(&tile[424], {stride}u);"
            );
            assert_loads(&product(n, 32, &load), plain, 2 - plain);
        }
    }
}

#[test]
fn all_targets_have_ldmatrix() {
    let load = "let a = coopLoadT<{a}>(&tile[0], 16u); let b = coopLoadT<{b}>(&tile[256], 16u);";
    for target in [Target::SM_75, Target::SM_80] {
        let text = execute(&product(16, 32, load), target);
        assert_eq!(text.matches("ldmatrix").count(), 2, "{target}");
    }
}

#[test]
fn dynamic_aligned_indices_use_ldmatrix() {
    let load = "let at = (flag[0] & 1u) * 8u; let stride = 16u + (flag[1] & 1u) * 8u;
        let a = coopLoadT<{a}>(&tile[at], stride);
        let b = coopLoadT<{b}>(&tile[at + 512u], stride);";
    assert_loads(&product(16, 64, load), 1, 1);
}

#[test]
fn misaligned_matrices_are_loaded_by_lanes() {
    for (index, stride) in [("4u", "16u"), ("0u", "20u"), ("(flag[0] & 1u) * 4u", "16u")] {
        let load = format!(
            "let a = coopLoadT<{{a}}>(&tile[{index}], {stride});
             let b = coopLoad<{{b}}>(&tile[512u + {index}], {stride});"
        );
        assert_loads(&product(16, 32, &load), 0, 0);
    }
}

#[test]
fn partial_matrices_are_loaded_by_lanes() {
    // Half of the last row is outside; and all but half of the first one.
    for index in [776, 1016] {
        let load = format!(
            "let a = coopLoadT<{{a}}>(&tile[{index}], 16u);
             let b = coopLoadT<{{b}}>(&tile[0], 16u);"
        );
        assert_loads(&product(16, 32, &load), 0, 1);
    }
}

#[test]
fn partial_warps_load_by_lanes() {
    let load = "let a = coopLoad<{a}>(&tile[0], 16u); let b = coopLoadT<{b}>(&tile[256], 16u);";
    for size in [20, 48] {
        assert_loads(&product(16, size, load), 0, 0);
        assert_loads(&product(8, size, load), 0, 0);
    }
    let load = "let a = coopLoadT<{a}>(&tile[0], 16u); let b = coopLoad<{b}>(&tile[256], 16u);";
    assert_loads(&product(16, 48, load), 0, 0);
}

#[test]
fn stores_between_loads_are_visible() {
    let load = "let first = coopLoadT<{a}>(&tile[0], 16u);
        workgroupBarrier();
        tile[i] = 2.0h; tile[i + 128u] = 3.0h;
        workgroupBarrier();
        let a = first + coopLoadT<{a}>(&tile[0], 16u);
        let b = coopLoadT<{b}>(&tile[0], 16u) + coopLoadT<{b}>(&tile[0], 16u);";
    assert_loads(&product(16, 32, load), 2, 1);
}
