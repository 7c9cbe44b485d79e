//! Tests of `scry verify`. The null device accepts kernels and executes none, so it always
//! disagrees.

use crate::support::{ENDLESS, Workplace, repository};
use crate::transcript::Transcript;

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
fn verify_generates_missing_data() {
    let name = "verify_generates_missing_data";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    place.write("k.wgsl", DOUBLED);
    let agreed = place.scry(&["verify", "k.wgsl", "--device", "vulkan"]).exits_with(0);
    agreed.prints(&["k.wgsl: agrees: doubled, 4096 invocations", "cpu:0", "y", "equal"]);
}

#[test]
fn first_difference_is_shown() {
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
    place
        .scry(&arguments)
        .exits_with(1)
        .prints(&["DISAGREES", "first y[0].y (number 1) is 0.0, not 5.0"]);
    let document = place.scry(&[&arguments[..], &["--json"]].concat()).exits_with(1).json();
    let output = &document["result"]["files"][0]["devices"][0]["outputs"][0];
    assert_eq!((&output["name"], &output["mismatched"]), (&"y".into(), &1.into()));
    assert_eq!(output["first_difference"]["index"], 1);
    assert_eq!(output["largest_ulps"], 5.0f32.to_bits());
    let tolerant = [&arguments[..], &["--tolerance", "2000000000"]].concat();
    place.scry(&tolerant).exits_with(0).prints(&["agrees", "at most 1084227584 ULP, 5.00e0 apart"]);
}

/// Expected are 3, 5, 7 and 9. The null device leaves the input, 3, 0, 7 and 9.
#[test]
fn tolerances_match_numpy() {
    let place = Workplace::new();
    place.write("k.wgsl", DOUBLED);
    place.write("x.bin", [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
    place.write("y.bin", [3.0f32, 0.0, 7.0, 9.0].map(f32::to_le_bytes).concat());
    place.write("p.bin", [99, 0, 0, 0, 0, 0, 0, 0]);
    let data = ["--in", "x=x.bin", "--inout", "y=y.bin", "--in", "p=p.bin", "-n", "2"];
    let verify = |tolerance: &[&str]| {
        let arguments = ["verify", "k.wgsl", "--device", "null"];
        place.scry(&[&arguments[..], &data, tolerance].concat())
    };
    verify(&["--atol", "5"]).exits_with(0).prints(&["agrees", "1 of 4 numbers differ"]);
    verify(&["--atol", "4.9"]).exits_with(1).prints(&["DISAGREES", "5.00e0 apart"]);
    verify(&["--rtol", "1"]).exits_with(0);
    verify(&["--rtol", "0.9"]).exits_with(1);
    verify(&["--rtol", "0.9", "--atol", "0.5"]).exits_with(0);
    verify(&["--ulps", "1084227583"]).exits_with(1);
    verify(&["--ulps", "1084227584"]).exits_with(0);
    let document = verify(&["--atol", "5", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["atol"], 5.0);
    let output = &document["result"]["files"][0]["devices"][0]["outputs"][0];
    assert_eq!((&output["compared"], &output["largest_difference"]), (&4.into(), &5.0.into()));
}

/// The kernel's sums have cancelling terms, so that no ULP tolerance suffices.
#[test]
fn edges_kernel_agrees_within_atol() {
    let name = "edges_kernel_agrees_within_atol";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    let [kernel, image] = ["kernels/edges.wgsl", "data/camera.png"]
        .map(|path| repository(&format!("examples/{path}")).display().to_string());
    let image = format!("src={image}");
    for radius in ["RADIUS=1", "RADIUS=5"] {
        let arguments = ["verify", &kernel, "--device", "vulkan", "--set", radius];
        let atol = ["--in", &image, "--atol", "1e-6"];
        place
            .scry(&[&arguments[..], &atol].concat())
            .exits_with(0)
            .prints(&["agrees", "512 wide × 512 high"]);
    }
}

#[test]
fn nothing_to_compare_is_an_error() {
    let mut transcript = Transcript::new("verify_nothing");
    transcript.place.write("k.wgsl", DOUBLED);
    transcript.place.write(
        "silent.wgsl",
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @compute @workgroup_size(1) fn silent() { _ = x[0]; }",
    );
    transcript.run(&["verify", "k.wgsl"]);
    transcript.run(&["verify", "k.wgsl", "--device", "cpu"]);
    transcript.run(&["fuzz", "--seeds", "1"]);
    transcript.run(&["fuzz", "--device", "cpu"]);
    transcript.run(&["verify", "silent.wgsl", "--device", "null"]);
    transcript.run(&["verify", "k.wgsl", "--device", "null", "-n", "0"]);
    transcript.run(&["verify", "silent.wgsl", "silent.wgsl", "--device", "null"]);
    transcript.compare();
}

#[test]
fn errors_match_transcript() {
    let mut transcript = Transcript::new("verify_limits");
    transcript.place.write("endless.wgsl", ENDLESS);
    let zeros = ["--inout", "x=zeros:u32:2", "-n", "1"];
    let limited = ["verify", "endless.wgsl", "--device", "null", "--time-limit", "200ms"];
    transcript.run(&[&limited[..], &zeros].concat());
    transcript.run(&["verify", "endless.wgsl", "--time-limit", "60"]);
    transcript.run(&["verify", "endless.wgsl", "--time-limit", "0s"]);
    transcript.run(&["verify", "endless.wgsl", "--atol", "-1"]);
    transcript.run(&["verify", "endless.wgsl", "--rtol", "small"]);
    transcript.run(&["verify", "endless.wgsl", "--ulps", "1.5"]);
    transcript.compare();
}

#[test]
fn failed_file_hides_no_others() {
    let name = "failed_file_hides_no_others";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    place.write("good.wgsl", DOUBLED);
    place.write("bad.wgsl", "@compute @workgroup_size(1) fn main() { let x = y; }");
    let arguments = ["verify", "bad.wgsl", "missing.wgsl", "good.wgsl", "--device", "vulkan"];
    let words = ["bad.wgsl:1:", "missing.wgsl: ", "good.wgsl: agrees"];
    place.scry(&arguments).exits_with(1).prints(&words);
}

/// A long loop on lavapipe only: the CPU device has subgroups of 32 invocations, lavapipe of fewer.
const SLOW_ON_LAVAPIPE: &str = "
    enable subgroups;
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64)
    fn slow(@builtin(subgroup_size) size: u32, @builtin(global_invocation_id) id: vec3u) {
        if size == 32u { return; }
        var a = id.x;
        for (var i = 0u; i < 60000u; i += 1u) { a = a * 1664525u + 1013904223u; }
        x[id.x] = a;
    }";

#[test]
fn lost_device_is_reported_once() {
    let name = "lost_device_is_reported_once";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    let vulkan = place.scry(&["devices", "--device", "vulkan"]).exits_with(0).stdout;
    if !vulkan.contains("llvmpipe") {
        eprintln!("skipped {name}: the device is not lavapipe: {vulkan}");
        return;
    }
    place.write("slow.wgsl", SLOW_ON_LAVAPIPE);
    place.write(
        "short.wgsl",
        SLOW_ON_LAVAPIPE.replace("60000u", "2u").replace("size == 32u", "size == 0u"),
    );
    let data = ["--inout", "x=zeros:u32:4000000", "--device", "vulkan", "--time-limit", "500ms"];
    let lost =
        place.scry(&[&["verify", "slow.wgsl", "short.wgsl", "short.wgsl"], &data[..]].concat());
    let lost = lost.exits_with(1).prints(&["slow.wgsl: kernel `slow` did not finish on llvmpipe"]);
    lost.prints(&["short.wgsl: not run: vulkan:0 llvmpipe", "was lost in slow.wgsl\n"]);
    place.scry(&[&["verify", "short.wgsl"], &data[..]].concat()).exits_with(0).prints(&["agrees"]);
}

#[test]
fn corpus_is_verified_without_data() {
    let name = "corpus_is_verified_without_data";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    let tolerance = ["--atol", "1e-5", "--rtol", "1e-5", "--device", "vulkan", "--json"];
    let mut arguments = vec!["verify".to_owned()];
    arguments.extend(tolerance.map(str::to_owned));
    for entry in std::fs::read_dir(repository("corpus")).unwrap() {
        let path = entry.unwrap().path();
        // With generated data, the workgroups of three of these kernels race for the same elements.
        // The results of the fourth depend on the device's subgroup size.
        let excluded = ["sparse_bindings.wgsl", "scan.wgsl", "overrides.wgsl", "subgroups.wgsl"];
        let is_excluded = excluded.iter().any(|name| path.ends_with(name));
        if path.extension().is_some_and(|extension| extension == "wgsl") && !is_excluded {
            arguments.push(path.to_str().unwrap().to_owned());
        }
    }
    assert!(arguments.len() > 15);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let document = place.scry(&arguments).json();
    for file in document["result"]["files"].as_array().unwrap() {
        let unsupported = &file["devices"][0]["unsupported"];
        assert!(file["agrees"] == true || unsupported.is_string(), "{file:#}");
    }
}
