//! `scry verify`. The null device takes kernels and computes nothing: with it there
//! is a device that disagrees.

use crate::support::{Workplace, repository};

const DOUBLED: &str = "
    struct P { n: u32, scale: f32 }
    @group(0) @binding(0) var<uniform> p: P;
    @group(0) @binding(1) var<storage, read> x: array<vec2f>;
    @group(0) @binding(2) var<storage, read_write> y: array<vec2f>;
    @compute @workgroup_size(64) fn doubled(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = 2.0 * x[id.x] + 1.0; }
        if id.x >= p.n { y[id.x].y = 0.5 * p.scale; }
    }";

#[test]
fn a_kernel_needs_no_data_to_be_verified() {
    let place = Workplace::new();
    place.write("k.wgsl", DOUBLED);
    let agreed = place.scry(&["verify", "k.wgsl", "--device", "cpu"]).ends(0);
    agreed.says(&["k.wgsl: agrees: doubled, 4096 invocations", "cpu:0", "y", "equal"]);
}

#[test]
fn a_device_that_disagrees_is_shown_with_the_first_difference() {
    let place = Workplace::new();
    place.write("k.wgsl", DOUBLED);
    place.write("x.bin", [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
    place.write("y.bin", [3.0f32, 0.0, 7.0, 9.0].map(f32::to_le_bytes).concat());
    place.write("p.bin", [99, 0, 0, 0, 0, 0, 0, 0]);
    let arguments = [
        ["verify", "k.wgsl", "--device", "null"],
        ["--in", "x=x.bin", "--inout", "y=y.bin"],
        ["--in", "p=p.bin", "-n", "2"],
    ]
    .concat();
    place.scry(&arguments).ends(1).says(&["DISAGREES", "first y[0].y (number 1) is 0.0, not 5.0"]);
    let document = place.scry(&[&arguments[..], &["--json"]].concat()).ends(1).json();
    let output = &document["result"]["files"][0]["devices"][0]["outputs"][0];
    assert_eq!((&output["name"], &output["different"]), (&"y".into(), &1.into()));
    assert_eq!(output["first_difference"]["index"], 1);
    assert_eq!(output["largest_ulps"], 5.0f32.to_bits());
    let tolerant = [&arguments[..], &["--tolerance", "2000000000"]].concat();
    place.scry(&tolerant).ends(0).says(&["agrees", "1084227584 ULP at most"]);
}

#[test]
fn one_of_several_files_that_fails_does_not_hide_the_others() {
    let place = Workplace::new();
    place.write("good.wgsl", DOUBLED);
    place.write("bad.wgsl", "@compute @workgroup_size(1) fn main() { let x = y; }");
    let arguments = ["verify", "bad.wgsl", "missing.wgsl", "good.wgsl", "--device", "cpu"];
    let words = ["bad.wgsl:1:", "missing.wgsl: ", "good.wgsl: agrees"];
    place.scry(&arguments).ends(1).says(&words);
}

#[test]
fn every_kernel_of_the_project_is_verified_without_data() {
    let place = Workplace::new();
    let mut arguments = vec!["verify".to_owned(), "--device".to_owned(), "cpu".to_owned()];
    for entry in std::fs::read_dir(repository("corpus")).unwrap() {
        let path = entry.unwrap().path();
        // In-place scans of one array by several workgroups are a race.
        let racy = path.ends_with("scan.wgsl");
        if path.extension().is_some_and(|extension| extension == "wgsl") && !racy {
            arguments.push(path.to_str().unwrap().to_owned());
        }
    }
    assert!(arguments.len() > 10);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    place.scry(&arguments).ends(0);
}
