//! Memory of compiled plans: alignment, arenas of one kernel, live ranges, and the sum of arenas.

use std::collections::HashMap;

use scry_gpu::Device;
use scry_tensor::{Attention, DType, Graph, Plan, Tensor};
use scry_test_support::on_each_device;

use crate::support::{cpu, ok};

/// Offsets of results are multiples of this many bytes.
const ALIGNMENT: u64 = 256;

/// A range of an arena: its position, its offset and its bytes.
type Range = (usize, u64, u64);

/// Checks the memory of a plan for its largest sizes: see [`check_dot`].
pub fn check_memory(plan: &Plan, what: &str) {
    let (report, dot) = (ok(plan.explain()), ok(plan.to_dot()));
    let in_place: Vec<bool> = report.kernels.iter().map(|it| it.is_in_place).collect();
    if let Err(error) = check_dot(&dot, &in_place, &report.arenas) {
        panic!("{what}: {error}\n{report}\n{dot}");
    }
}

/// Checks the arenas of a plan in the language of Graphviz: offsets are aligned and ranges within
/// their arena, no kernel reads and writes one arena unless its result replaces an operand, and no
/// result is overwritten before its last use.
fn check_dot(dot: &str, in_place: &[bool], arenas: &[u64]) -> Result<(), String> {
    let ranges = ranges(dot)?;
    for (buffer, (arena, offset, bytes)) in &ranges {
        let size = arenas.get(*arena).ok_or(format!("{buffer} is in arena {arena}"))?;
        if offset % ALIGNMENT != 0 || offset + bytes > *size {
            return Err(format!("{buffer} has {bytes} bytes at {offset} of {size}"));
        }
    }
    // The results that memory contains.
    let mut contents: Vec<&str> = Vec::new();
    for (n, may_replace) in in_place.iter().enumerate() {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for line in dot.lines() {
            let Some((from, to)) = line.trim().trim_end_matches(';').split_once(" -> ") else {
                continue;
            };
            let kernel = format!("k{n}");
            read.extend((to == kernel).then_some(from).filter(|it| ranges.contains_key(it)));
            written.extend((from == kernel).then_some(to).filter(|it| ranges.contains_key(it)));
        }
        if let Some(lost) = read.iter().find(|it| !contents.contains(it)) {
            return Err(format!("k{n} reads {lost}, which was overwritten or never written"));
        }
        let mut replaced = 0;
        for (from, to) in read.iter().flat_map(|from| written.iter().map(move |to| (from, to))) {
            let (from, to) = (ranges[from], ranges[to]);
            match from.0 == to.0 {
                true if *may_replace && from.1 == to.1 && replaced == 0 => replaced += 1,
                true => return Err(format!("k{n} reads and writes arena {}", from.0)),
                false => {}
            }
        }
        for result in written {
            let own = ranges[result];
            contents.retain(|other| !overlap(ranges[other], own));
            contents.push(result);
        }
    }
    Ok(())
}

/// Returns the ranges of results in arenas, by the name of the buffer.
fn ranges(dot: &str) -> Result<HashMap<&str, Range>, String> {
    let mut ranges = HashMap::new();
    for line in dot.lines().map(str::trim) {
        let Some((name, label)) = line.split_once(" [shape=ellipse, label=\"") else { continue };
        let Some(place) = label.strip_prefix("arena ") else { continue };
        let numbers: Vec<u64> = place.split([' ', ',']).filter_map(|it| it.parse().ok()).collect();
        let [arena, offset, bytes] = numbers[..] else { return Err(format!("{line} is no range")) };
        ranges.insert(name, (arena as usize, offset, bytes));
    }
    Ok(ranges)
}

fn overlap(a: Range, b: Range) -> bool {
    a.0 == b.0 && a.1 < b.1 + b.2 && b.1 < a.1 + a.2
}

/// Returns the text of a plan of two kernels and their results, which are at these places.
fn chain(first: &str, second: &str) -> String {
    format!(
        "b0 [shape=ellipse, label=\"{first}, 8 bytes\"];\n\
         b1 [shape=ellipse, label=\"{second}, 8 bytes\"];\n\
         k0 -> b0;\nb0 -> k1;\nk1 -> b1;\nb0 -> k2;\n"
    )
}

#[test]
fn wrong_places_are_found() {
    let check = |dot: &str, in_place: &[bool], arenas: &[u64]| {
        check_dot(dot, in_place, arenas).err().unwrap_or_default()
    };
    let apart = chain("arena 0 at 0", "arena 1 at 256");
    assert_eq!(check(&apart, &[false; 3], &[256, 512]), "");
    assert_eq!(check(&apart, &[false; 3], &[256, 256]), "b1 has 8 bytes at 256 of 256");
    assert_eq!(check(&apart, &[false; 3], &[256]), "b1 is in arena 1");
    let odd = chain("arena 0 at 128", "output");
    assert_eq!(check(&odd, &[false; 3], &[256]), "b0 has 8 bytes at 128 of 256");
    let one = chain("arena 0 at 0", "arena 0 at 256");
    for in_place in [false, true] {
        let found = check(&one, &[false, in_place, false], &[512]);
        assert_eq!(found, "k1 reads and writes arena 0");
    }
    let same = chain("arena 0 at 0", "arena 0 at 0");
    let found = check(&same, &[false, true, false], &[256]);
    assert_eq!(found, "k2 reads b0, which was overwritten or never written");
    assert_eq!(check(&same, &[false, true], &[256]), "");
}

/// Returns a linear layer with random weights.
fn linear(x: &Tensor, [inputs, outputs]: [usize; 2], seed: u64, gpu: &Device) -> Tensor {
    let weights = ok(Tensor::randn([outputs, inputs], seed, DType::F32, gpu));
    let bias = ok(Tensor::randn([outputs], seed + 1, DType::F32, gpu));
    ok(x.linear(&ok(weights.mul(0.1)), Some(&bias)))
}

/// Compiles an encoder: layers of attention and of a feed-forward network, each with a residual
/// and a layer norm.
fn encoder(gpu: &Device, layers: u64) -> Plan {
    const BATCH: usize = 2;
    const TOKENS: usize = 16;
    const HEADS: usize = 4;
    const WIDTH: usize = 64;
    let g = ok(Graph::new(gpu));
    let one = ok(Tensor::ones([WIDTH], DType::F32, gpu));
    let zero = ok(Tensor::zeros([WIDTH], DType::F32, gpu));
    let mut x = ok(g.input("x", [BATCH, TOKENS, WIDTH]));
    for seed in (0..layers).map(|n| 100 * n) {
        let _scope = g.scope(&format!("layer{}", seed / 100));
        let heads = |n: u64| {
            let projected = linear(&x, [WIDTH, WIDTH], seed + 10 * n, gpu);
            ok(projected.reshape([BATCH as i64, TOKENS as i64, HEADS as i64, -1]))
        };
        let attended = ok(heads(0).attention(&heads(1), &heads(2), &Attention::default()));
        let attended = ok(attended.reshape([BATCH as i64, TOKENS as i64, -1]));
        let residual = ok(x.add(linear(&attended, [WIDTH, WIDTH], seed + 30, gpu)));
        let normed = ok(residual.layer_norm(Some(&one), Some(&zero), 1e-5));
        let hidden = ok(linear(&normed, [WIDTH, 4 * WIDTH], seed + 40, gpu).gelu());
        let residual = ok(normed.add(linear(&hidden, [4 * WIDTH, WIDTH], seed + 50, gpu)));
        x = ok(residual.layer_norm(Some(&one), Some(&zero), 1e-5));
    }
    ok(g.compile(&[x]))
}

#[test]
fn encoder_shares_memory() {
    on_each_device(|gpu| check_memory(&encoder(gpu, 6), gpu.name()));
    let report = ok(encoder(&cpu(), 6).explain());
    let total: u64 = report.arenas.iter().sum();
    // The hidden layer and the operand of the residual, of 32 and 8 KiB, are needed at one time.
    assert_eq!(report.peak, 40 << 10, "{report}");
    // Attention writes another arena than that of its three operands, which is another one than
    // that of the layer's input: no plan has less than 48 KiB, 1.2 times the results in use.
    assert_eq!(total, 48 << 10, "{report}");
}

#[test]
fn encoder_computes_results_of_its_kernels() {
    let gpu = cpu();
    let x = ok(Tensor::randn([2, 16, 64], 7, DType::F32, &gpu));
    assert!(ok(encoder(&gpu, 2).check(&[("x", &x)])) >= 2 * 7);
}
