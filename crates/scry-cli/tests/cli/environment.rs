//! Tests of environment variables (`SCRY_DEVICE` and `RUST_LOG`), and of libraries that must not be
//! loaded.

use crate::support::Workplace;
use crate::transcript::Transcript;

const TWICE: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { x[id.x] *= 2u; }
}
";

const RUN: [&str; 6] = ["run", "twice.wgsl", "--inout", "x=zeros:u32:64", "--device", "cpu"];

#[test]
fn log_matches_transcript() {
    let mut transcript = Transcript::new("log");
    transcript.place.write("twice.wgsl", TWICE);
    transcript.place.set("RUST_LOG", "scry=debug");
    transcript.run(&RUN);
    transcript.place.set("RUST_LOG", "scry::kernel=debug");
    transcript.run(&RUN);
    transcript.compare();
}

#[test]
fn naga_is_quiet_unless_named() {
    let mut place = Workplace::without_driver();
    place.write("twice.wgsl", TWICE);
    let stderr = |place: &Workplace| place.scry(&["check", "twice.wgsl"]).exits_with(0).stderr;
    assert_eq!(stderr(&place), "", "without RUST_LOG there are no lines");
    for filter in ["scry=debug", "trace"] {
        place.set("RUST_LOG", filter);
        let lines = stderr(&place);
        assert!(!lines.contains("naga"), "{filter}: {lines}");
    }
    place.set("RUST_LOG", "naga=trace");
    let lines = stderr(&place);
    assert!(lines.contains(" naga::"), "naga logs nothing: the test cannot fail: {lines}");
}

/// Returns the names of libraries that a command line searches, as glibc's loader lists them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn libraries(place: &Workplace, arguments: &[&str]) -> String {
    let mut command = place.command(arguments);
    let output = command.env("LD_DEBUG", "libs").output().expect("the program was built");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn cpu_loads_no_gpu_library() {
    let place = Workplace::new();
    place.write("twice.wgsl", TWICE);
    let is_gpu = |lines: &str| lines.contains("libvulkan") || lines.contains("libcuda");
    let lines = libraries(&place, &RUN);
    assert!(lines.contains("find library="), "LD_DEBUG shows nothing: {lines}");
    assert!(!is_gpu(&lines), "{lines}");
    assert!(is_gpu(&libraries(&place, &["devices"])), "all devices are listed without a search");
}

#[test]
fn doctor_shows_the_selected_device() {
    let mut transcript = Transcript::new("wrong_variable");
    transcript.place.set("SCRY_DEVICE", "cpu");
    transcript.place.set("SCRY_CACHE_DIR", "off");
    let selects = transcript.place.scry(&["doctor"]).exits_with(0);
    assert!(selects.stdout.contains("\nSCRY_DEVICE=cpu selects cpu:0 ("), "{selects:#?}");
    let document = transcript.place.scry(&["doctor", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["preferred"], "cpu:0");

    transcript.place.set("SCRY_DEVICE", "vulkan:77");
    let wrong = transcript.place.scry(&["doctor"]).exits_with(1);
    assert!(wrong.stdout.contains("\nSCRY_DEVICE=vulkan:77 matches no device"), "{wrong:#?}");
    let document = transcript.place.scry(&["doctor", "--json"]).exits_with(1).json();
    assert_eq!(document["result"]["preferred"], serde_json::Value::Null);
    let problem = document["result"]["preferred_problem"].as_str().expect("text");
    assert!(problem.starts_with("SCRY_DEVICE=vulkan:77 matches no device"), "{problem}");
    transcript.place.write("twice.wgsl", TWICE);
    transcript.place.set("SCRY_DEVICE", "cpu:9");
    transcript.run(&["run", "twice.wgsl", "--inout", "x=zeros:u32:64"]);
    transcript.compare();
}
