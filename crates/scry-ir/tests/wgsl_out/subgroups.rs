//! Tests of emitted subgroup operations.

use crate::support::{Launch, emitted_matches_source, parse, round_trip};

/// Returns a kernel of 16 invocations that stores the values of `u32` expressions of `x` and
/// `lane`.
fn kernel(expressions: &[&str]) -> String {
    let stores = expressions.iter().enumerate();
    let stores: String =
        stores.map(|(n, value)| format!("out[i * 64u + {n}u] = {value};\n")).collect();
    format!(
        "enable subgroups;
         @group(0) @binding(0) var<storage> input: array<u32>;
         @group(0) @binding(1) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(16) fn main(
             @builtin(local_invocation_index) i: u32,
             @builtin(subgroup_invocation_id) lane: u32,
             @builtin(subgroup_size) size: u32,
         ) {{
             let x = input[i];
             let odd = (x & 1u) == 1u;
             let f = f32(x);
             {stores}
         }}"
    )
}

fn launch_for(source: &str) -> Launch {
    let input = (0..16u32).flat_map(|n| (n * 7 % 11 + 1).to_le_bytes()).collect();
    Launch {
        source: source.to_owned(),
        buffers: vec![input, vec![0; 16 * 64 * 4]],
        immediates: Vec::new(),
        groups: [1, 1, 1],
        subgroup_size: 8,
    }
}

#[test]
fn subgroup_operations_round_trip() {
    let source = kernel(&[
        "subgroupAdd(x)",
        "subgroupMul(x)",
        "u32(subgroupMin(i32(x) - 5i))",
        "u32(subgroupMax(f))",
        "subgroupAnd(x)",
        "subgroupOr(x)",
        "subgroupXor(x)",
        "u32(subgroupAll(odd)) + 2u * u32(subgroupAny(odd))",
        "subgroupInclusiveAdd(x)",
        "u32(subgroupExclusiveAdd(f))",
        "subgroupInclusiveMul(x)",
        "subgroupExclusiveMul(x)",
        "subgroupBallot(odd).x",
        "subgroupBroadcastFirst(x)",
        "subgroupBroadcast(x, 3u)",
        "subgroupShuffle(x, (lane * 3u) % 8u)",
        "subgroupShuffleXor(x, 5u)",
        "subgroupShuffleUp(x, 1u)",
        "subgroupShuffleDown(x, 2u)",
        "quadBroadcast(x, 2u)",
        "quadSwapX(x) + 16u * quadSwapY(x) + 256u * quadSwapDiagonal(x)",
        "size",
    ]);
    assert!(emitted_matches_source(&launch_for(&source)));
}

#[test]
fn shuffle_deltas_above_127_become_lets() {
    let source = kernel(&["subgroupShuffleXor(x, 200u)", "subgroupShuffleUp(x, 128u)"]);
    let (text, _) = round_trip(&parse(&source), &source);
    assert!(text.contains("= 200u;") && text.contains("= 128u;"), "{text}");
    assert!(emitted_matches_source(&launch_for(&source)));
}

#[test]
fn subgroup_operations_may_diverge() {
    let source = kernel(&["1u"]).replace(
        "let f =",
        "if odd { out[i] = subgroupAdd(x); }
         let f =",
    );
    let (text, _) = round_trip(&parse(&source), &source);
    assert!(text.contains("diagnostic(off, subgroup_uniformity);"), "{text}");
}
