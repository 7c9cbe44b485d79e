//! Tests of `scry devices`, `scry doctor`, `scry ops`, `scry cache`, and the command line itself.

use std::io::Read;
use std::process::Stdio;

use crate::support::Workplace;
use crate::transcript::Transcript;

#[test]
fn absent_backends_show_reason_and_help() {
    let place = Workplace::without_driver();
    let document = place.scry(&["doctor", "--json"]).exits_with(0).json();
    let absent = document["result"]["absent"].as_array().unwrap();
    let vulkan = absent.iter().find(|absent| absent["backend"] == "vulkan").unwrap();
    let [reason, help] = ["reason", "help"].map(|field| vulkan[field].as_str().unwrap());
    // With a loader only the driver is missing, and the variables name the folders that were
    // searched.
    if reason.contains("loader could not be opened") {
        assert!(help.starts_with("install the Vulkan loader"), "{help}");
    } else {
        assert!(help.contains("VK_DRIVER_FILES=/nonexistent"), "{help}");
    }
    let words = ["vulkan", "help: ", help];
    place.scry(&["doctor"]).exits_with(0).prints(&words).prints(&["cpu:0", "works"]);
    place.scry(&["devices"]).exits_with(0).prints(&["cpu:0", "software", "scry-cpu"]);
    place.write(
        "k.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(1) fn main() { x[0] = 1u; }",
    );
    let run = ["run", "k.wgsl", "--out", "x=x.bin", "--shape", "x=4"];
    place.scry(&run).exits_with(0);
    assert_eq!(place.read("x.bin")[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    place.scry(&[&run[..], &["--device", "vulkan"]].concat()).exits_with(1).prints(&words);
    place.scry(&["devices", "--device", "vulkan"]).exits_with(1).prints(&words);

    assert_eq!(document["result"]["preferred"], "cpu:0");
    assert_eq!(document["result"]["libraries"], serde_json::json!([]), "CUDA alone needs them");
    assert_eq!(document["result"]["environment"]["VK_ICD_FILENAMES"], "/nonexistent");
    let document = place.scry(&["devices", "--json"]).exits_with(0).json();
    let devices = document["result"]["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["backend"], "cpu");
    for field in ["compute_capability", "multiprocessors", "shared_memory"] {
        assert_eq!(devices[0].get(field), Some(&serde_json::Value::Null), "{field}");
    }
}

#[test]
fn operations_are_listed_with_their_kernels() {
    let place = Workplace::without_driver();
    let listed = place.scry(&["ops"]).exits_with(0);
    for name in ["gelu", "conv2d", "attention", "scatter_add", "einsum"] {
        assert!(listed.stdout.contains(&format!("\n{name}  ")), "{name} in {listed:#?}");
    }
    place.scry(&["ops", "relu"]).exits_with(0).prints(&["leaky_relu", "kernels generated"]);
    let document = place.scry(&["ops", "log_softmax", "--json"]).exits_with(0).json();
    let operation = &document["result"]["operations"][0];
    assert_eq!(operation["types"], serde_json::json!(["f32", "f16", "bf16"]));
    assert_eq!(operation["kernels"]["cuda"][0], "ptx");
    assert_eq!(operation["kernels"]["cpu"], operation["kernels"]["vulkan"]);
    place.scry(&["ops", "no such"]).exits_with(2).prints(&["`scry ops` lists all"]);
}

#[test]
fn listed_names_select_devices() {
    let place = Workplace::new();
    let document = place.scry(&["devices", "--json"]).exits_with(0).json();
    let device = &document["result"]["devices"][0];
    let listed = place.scry(&["devices"]).exits_with(0);
    for field in ["selector", "name", "uuid"] {
        let Some(value) = device[field].as_str() else {
            continue;
        };
        assert!(listed.stdout.contains(value), "{field} {value} in {listed:#?}");
        let selected = place.scry(&["devices", "--device", value, "--json"]).exits_with(0).json();
        assert_eq!(selected["result"]["devices"][0]["name"], device["name"], "by {field}");
    }
    let unknown = place.scry(&["devices", "--device", "no such device"]).exits_with(1);
    unknown.prints(&["no such device", device["name"].as_str().unwrap()]);
}

#[test]
fn workarounds_are_shown_with_their_reason() {
    let place = Workplace::new();
    for command in ["devices", "doctor"] {
        let listed = place.scry(&[command]).exits_with(0);
        let document = place.scry(&[command, "--json"]).exits_with(0).json();
        for device in document["result"]["devices"].as_array().unwrap() {
            let device = device.get("device").unwrap_or(device);
            let workarounds = device["workarounds"].as_array().unwrap();
            let driver = device["driver"].as_str().unwrap();
            if driver.contains("llvmpipe") {
                assert!(
                    workarounds.iter().any(|it| it["name"] == "report-aborted-loops"),
                    "{driver}"
                );
            }
            assert!(device["backend"] == "vulkan" || workarounds.is_empty(), "{driver}");
            for workaround in workarounds {
                for field in ["name", "reason", "tested_versions"] {
                    let text = workaround[field].as_str().unwrap();
                    assert!(listed.stdout.contains(text), "{text} in {listed:#?}");
                }
            }
        }
    }
}

#[test]
fn doctor_tests_each_device() {
    let name = "doctor_tests_each_device";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    let expected = ["vulkan:0", "cpu:0", "works", "default device: ", "SCRY_CACHE_DIR="];
    place.scry(&["doctor"]).exits_with(0).prints(&expected);
    let document = place.scry(&["doctor", "--device", "vulkan", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["devices"][0]["works"], true);
    // The null device accepts kernels and computes nothing: its results are wrong.
    place.scry(&["doctor", "--device", "null"]).exits_with(1).prints(&["wrong results"]);
}

#[test]
fn doctor_shows_cuda_versions_and_libraries() {
    let name = "doctor_shows_cuda_versions_and_libraries";
    let Some(place) = Workplace::with_backend("cuda", name) else { return };
    let expected = ["cuda:0", "CUDA 1", "compute capability ", "NVRTC", "cuBLAS", "needed by"];
    place.scry(&["doctor"]).exits_with(0).prints(&expected);
    let document = place.scry(&["doctor", "--device", "cuda", "--json"]).exits_with(0).json();
    let device = &document["result"]["devices"][0]["device"];
    let capability = device["compute_capability"].as_str().unwrap();
    let (major, minor) = capability.split_once('.').unwrap();
    assert!(major.parse::<u32>().unwrap() >= 7 && minor.parse::<u32>().is_ok(), "{capability}");
    let bytes = |name: &str| device["shared_memory"][name].as_u64().unwrap();
    assert!(bytes("per_block") >= 48 << 10);
    assert!(bytes("per_block") <= bytes("per_block_opt_in"));
    assert!(bytes("per_block_opt_in") <= bytes("per_multiprocessor"));
    assert_eq!(device["limits"]["max_workgroup_memory"], bytes("per_block_opt_in"));
    assert!(device["multiprocessors"].as_u64().unwrap() > 0);
    let libraries = document["result"]["libraries"].as_array().unwrap();
    let names: Vec<_> = libraries.iter().map(|library| &library["name"]).collect();
    assert_eq!(names, ["NVRTC", "cuBLAS", "NCCL"]);
    for library in libraries {
        let expected =
            if library["found"] == true { ["file", "version"] } else { ["reason", "help"] };
        assert!(expected.iter().all(|field| library[field].is_string()), "{library}");
    }
}

#[test]
fn cache_is_listed_and_cleared() {
    let place = Workplace::without_driver();
    let cache = place.path("cache");
    place
        .scry(&["cache", "ls"])
        .exits_with(0)
        .prints(&[cache.to_str().unwrap(), "0 compiled kernels"]);
    let empty_because = |folder: &str| {
        let mut command = place.command(&["cache", "ls", "--json"]);
        let output = command.env("SCRY_CACHE_DIR", folder).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["result"]["empty_because"].as_str().unwrap().to_owned()
    };
    std::fs::create_dir_all(place.path("made/scry-gpu")).unwrap();
    place.write("file", "");
    assert_eq!(empty_because("off"), "disabled");
    assert_eq!(empty_because("none"), "no-folder");
    assert_eq!(empty_because("made"), "no-kernels");
    assert_eq!(empty_because("file"), "unreadable");
    place.scry(&["cache", "clear"]).exits_with(0).prints(&["removed 0"]);
    let document = place.scry(&["cache", "ls", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["entries"], serde_json::json!([]));
    let off = place.command(&["cache", "ls"]).env("SCRY_CACHE_DIR", "off").output().unwrap();
    assert!(off.status.success());
    assert!(String::from_utf8(off.stdout).unwrap().contains("off"));
}

#[test]
fn empty_cache_shows_reason() {
    let mut transcript = Transcript::new("cache");
    transcript.run(&["cache", "ls"]);
    std::fs::create_dir_all(transcript.place.path("cache/scry-gpu")).unwrap();
    transcript.run(&["cache", "ls"]);
    transcript.run(&["cache", "clear"]);
    for value in ["off", ""] {
        transcript.place.set("SCRY_CACHE_DIR", value);
        transcript.run(&["cache", "ls"]);
    }
    transcript.compare();
}

#[test]
fn missing_home_folder_is_reported() {
    let mut transcript = Transcript::new("cache_without_home");
    for arguments in [&["cache", "ls"][..], &["cache", "ls", "--json"], &["cache", "clear"]] {
        let mut command = transcript.place.command(arguments);
        for variable in ["SCRY_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"] {
            command.env_remove(variable);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.stderr.is_empty(), "{:?}", output.stderr);
        transcript.add(arguments, &text, output.status.code().unwrap());
    }
    transcript.compare();
}

#[cfg(unix)]
#[test]
fn missing_current_folder_is_reported() {
    let place = Workplace::without_driver();
    let mut shell = std::process::Command::new("sh");
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" cache ls";
    shell.args(["-c", script, crate::SCRY]).current_dir(place.path(""));
    let output = shell.env("SCRY_CACHE_DIR", "kernels").output().expect("there is a shell");
    let text = String::from_utf8(output.stdout).unwrap();
    let cause = "SCRY_CACHE_DIR=kernels is a relative path, and the current folder does not exist";
    assert!(text.contains(cause) && text.contains("help: set "), "{text}");
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let place = Workplace::without_driver();
    let wrong: [&[&str]; 9] = [
        &[],
        &["unknown"],
        &["run"],
        &["check"],
        &["cache"],
        &["run", "k.wgsl", "--in", "x"],
        &["run", "k.wgsl", "-n", "1x"],
        &["run", "k.wgsl", "--set", "N=many"],
        &["run", "k.wgsl", "--seed", "-1"],
    ];
    for arguments in wrong {
        let outcome = place.scry(arguments).exits_with(2);
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");
    }
    place.scry(&["--help"]).exits_with(0).prints(&["doctor", "Exit codes"]);
    place.scry(&["--version"]).exits_with(0).prints(&[env!("CARGO_PKG_VERSION")]);
    place.scry(&["run", "--help"]).exits_with(0).prints(&["zeros:u32:1000x10", "NAME_width"]);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let place = Workplace::without_driver();
    // More than the capacity of a pipe, so that the program is still writing when its reader exits.
    let many: String =
        (0..400).map(|i| format!("@compute @workgroup_size(1) fn kernel_{i}() {{}}\n")).collect();
    place.write("many.wgsl", many);
    let mut child = place
        .command(&["reflect", "many.wgsl", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}
