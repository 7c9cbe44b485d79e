//! Tests of `scry check` and `scry reflect`.

use crate::support::{Workplace, repository};

const GOOD: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn first() { x[0] = 1.0; }
@compute @workgroup_size(8, 4) fn second() { x[1] = 2.0; }
";

#[test]
fn every_kernel_is_checked() {
    let place = Workplace::without_driver();
    place.write("a.wgsl", GOOD);
    place.write("b.wgsl", GOOD.replace("first", "third"));
    let outcome = place.scry(&["check", "a.wgsl", "b.wgsl"]).exits_with(0);
    assert_eq!(outcome.stdout, "a.wgsl: ok: first, second\nb.wgsl: ok: third, second\n");
    let document = place.scry(&["check", "a.wgsl", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["files"][0]["kernels"][1], "second");
}

#[test]
fn errors_have_locations() {
    let place = Workplace::without_driver();
    place.write("good.wgsl", GOOD);
    place
        .write("bad.wgsl", "// a comment\n@compute @workgroup_size(1)\nfn main() { let a = b; }\n");
    place.write("binary.wgsl", [0xff, 0xfe]);
    let outcome =
        place.scry(&["check", "bad.wgsl", "none.wgsl", "binary.wgsl", "good.wgsl"]).exits_with(1);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("bad.wgsl:3:21: "), "{outcome:#?}");
    assert!(outcome.stdout.contains("fn main() { let a = b; }"), "the line is shown");
    assert!(outcome.stdout.contains("┌─ bad.wgsl:3:21\n"), "{outcome:#?}");
    assert!(lines.iter().any(|line| line.starts_with("none.wgsl: ")));
    assert!(lines.iter().any(|line| line.starts_with("binary.wgsl: ") && line.contains("UTF-8")));
    assert!(lines.contains(&"good.wgsl: ok: first, second"));

    let document = place.scry(&["check", "bad.wgsl", "--json"]).exits_with(1).json();
    let problem = &document["result"]["files"][0]["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&3.into(), &21.into()));
    assert!(problem["rendered"].as_str().unwrap().contains("┌─ bad.wgsl:3:21\n"), "{problem}");
}

#[test]
fn kernels_are_checked_independently() {
    let place = Workplace::without_driver();
    let large = "@compute @workgroup_size(N) fn large() { x[2] = 1.0; }";
    place.write("k.wgsl", format!("override N: u32 = 1u;\n{GOOD}{large}"));
    place.scry(&["check", "k.wgsl"]).exits_with(0).prints(&["first, second, large"]);
    place.scry(&["check", "k.wgsl", "--set", "N=-1"]).exits_with(1).prints(&["k.wgsl:1:", "-1"]);
    let usage = place.scry(&["check", "k.wgsl", "--set", "M=1"]).exits_with(2);
    assert!(usage.stderr.contains("--set M"), "{usage:#?}");
    place.scry(&["check", "k.wgsl", "--entry", "first"]).exits_with(0).prints(&["ok: first\n"]);
    place.scry(&["check", "k.wgsl", "--entry", "none"]).exits_with(1).prints(&["`none`"]);
}

#[test]
fn check_assumes_missing_overrides() {
    let place = Workplace::without_driver();
    let edges = repository("examples/kernels/edges.wgsl");
    let edges = edges.to_str().unwrap();
    place.scry(&["check", edges]).exits_with(0).prints(&["src_width = src_height = 1"]);
    let reflected = place.scry(&["reflect", edges]).exits_with(0);
    let reflected = reflected.prints(&["src_width", "must be set", "16 x 16 x 1", "array<f32>"]);
    assert!(reflected.stdout.contains("= 1\n"), "RADIUS has a default: {reflected:#?}");
}

#[test]
fn files_without_a_kernel_fail() {
    let place = Workplace::without_driver();
    place.write("empty.wgsl", "");
    place.write("vertex.wgsl", "@vertex fn v() -> @builtin(position) vec4f { return vec4f(); }");
    place.scry(&["check", "empty.wgsl"]).exits_with(1).prints(&["empty.wgsl: ", "no entry point"]);
    place
        .scry(&["check", "vertex.wgsl"])
        .exits_with(1)
        .prints(&["vertex.wgsl:1:12: ", "`v` (vertex)"]);
    place.scry(&["reflect", "empty.wgsl"]).exits_with(1).prints(&["no entry point"]);
}

#[test]
fn deeply_nested_sources_are_rejected() {
    let place = Workplace::without_driver();
    place.write("deep.wgsl", format!("const a = {}1{};", "(".repeat(100_000), ")".repeat(100_000)));
    place.write("blocks.wgsl", format!("fn f() {} {}", "{".repeat(50_000), "}".repeat(50_000)));
    place
        .scry(&["check", "deep.wgsl", "blocks.wgsl"])
        .exits_with(1)
        .prints(&["deep.wgsl:", "blocks.wgsl:"]);
}

#[test]
fn reflect_shows_whole_interface() {
    let place = Workplace::without_driver();
    place.write(
        "k.wgsl",
        "struct Params { scale: f32, offset: vec2u }
         var<immediate> params: Params;
         var<workgroup> tile: array<u32, 64>;
         @id(7) override SIZE: u32 = 4u;
         override TWICE: u32 = SIZE * 2u;
         @group(1) @binding(3) var<uniform> table: array<vec4f, 4>;
         @group(2) @binding(0) var<storage, read_write> out: array<atomic<u32>>;
         @compute @workgroup_size(SIZE, TWICE) fn main() {
             tile[0] = u32(params.scale * table[0].x);
             atomicAdd(&out[0], tile[0]);
         }",
    );
    let words = ["@group(1) @binding(3)", "array<vec4<f32>, 4>", "uniform", "at least 64 bytes"];
    let outcome =
        place.scry(&["reflect", "k.wgsl", "--set", "SIZE=2"]).exits_with(0).prints(&words);
    outcome.prints(&["2 x 4 x 1", "256 bytes", "array<atomic<u32>>", "offset 8", "SIZE @id(7)"]);

    let document = place.scry(&["reflect", "k.wgsl", "--json"]).exits_with(0).json();
    let kernel = &document["result"]["kernels"][0];
    assert_eq!(kernel["workgroup_size"], serde_json::json!([4, 8, 1]));
    assert_eq!(kernel["bindings"][0]["space"], "uniform");
    assert_eq!(kernel["bindings"][1]["type"]["element"]["wgsl"], "atomic<u32>");
    assert_eq!(kernel["immediates"]["type"]["members"][1]["offset"], 8);
    assert_eq!(kernel["overrides"][0]["value"], 4.0);
    assert_eq!(kernel["overrides"][1]["has_default"], true);
}

#[test]
fn check_can_compile_for_a_device() {
    let Some(place) = Workplace::with_backend("vulkan", "check_can_compile_for_a_device") else {
        return;
    };
    place.write("good.wgsl", GOOD);
    place.write("large.wgsl", GOOD.replace("64", "4096"));
    place.scry(&["check", "large.wgsl"]).exits_with(0);
    place.scry(&["check", "--device", "vulkan", "good.wgsl"]).exits_with(0);
    place
        .scry(&["check", "--device", "vulkan", "large.wgsl"])
        .exits_with(1)
        .prints(&["4096", "first"]);
}

#[test]
fn floats_print_shortest_decimals() {
    let place = Workplace::without_driver();
    place.write(
        "k.wgsl",
        "override SCALE: f32 = 0.1;
         override TINY: f32 = 1e-9;
         override ONE: f32 = 1.0;
         @group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(1) fn main() { x[0] = SCALE + TINY + ONE; }",
    );
    let values = ["SCALE  f32  = 0.1\n", "TINY   f32  = 1e-9\n", "ONE    f32  = 1.0\n"];
    let reflected = place.scry(&["reflect", "k.wgsl"]).exits_with(0);
    assert!(values.iter().all(|value| reflected.stdout.contains(value)), "{reflected:#?}");
    let text = place.scry(&["reflect", "k.wgsl", "--json"]).exits_with(0).stdout;
    assert!(text.contains("\"value\": 0.1\n") && text.contains("\"value\": 1e-9\n"), "{text}");
}
