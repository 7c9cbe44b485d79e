//! Tests of `scry fuzz`. The null device accepts kernels and executes none, so it always disagrees.

use crate::support::Workplace;
use crate::transcript::Transcript;

#[test]
fn random_kernels_agree_with_the_reference() {
    let name = "random_kernels_agree_with_the_reference";
    let Some(place) = Workplace::with_backend("vulkan", name) else { return };
    let arguments = ["fuzz", "--seeds", "5", "--first", "3", "--device", "vulkan"];
    place.scry(&arguments).exits_with(0).prints(&["5 kernels: every device agrees with cpu:0"]);
    assert!(!place.path("scry-fuzz").exists(), "nothing was found, so nothing is written");
}

#[test]
fn differing_kernels_are_minimised() {
    let place = Workplace::new();
    let arguments = ["fuzz", "--seeds", "4", "--stop", "1", "--device", "null", "-o", "found"];
    place.scry(&arguments).exits_with(1).prints(&["seed 0: ", "disagree", "found"]);
    let source = String::from_utf8(place.read("found/0.wgsl")).unwrap();
    assert!(source.lines().count() < 30, "{source}");
    let command = source.lines().nth(1).unwrap().trim_start_matches("// scry ");
    let arguments: Vec<String> = command
        .replace("=0.", "=found/0.")
        .replace(" 0.w", " found/0.w")
        .split(' ')
        .map(str::to_owned)
        .collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.extend(["--device", "null"]);
    place.scry(&arguments).exits_with(1).prints(&["DISAGREES"]);
}

#[test]
fn hostile_run_prints_a_table() {
    let place = Workplace::new();
    let arguments = ["fuzz", "--hostile", "--seeds", "12", "--batch", "5", "--device", "cpu"];
    place.scry(&arguments).exits_with(0).prints(&["corruptions", "cancelled", "cpu:0"]);
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let document = place.scry(&arguments).exits_with(0).json();
    let row = &document["result"]["devices"][0];
    assert_eq!((row["kernels"].as_u64(), row["device"].as_str()), (Some(12), Some("cpu:0")));
    assert_eq!(row["problems"].as_array().map(Vec::len), Some(0));
    assert!(row["cancelled"].is_u64() && row["omits_endless_loops"] == false, "{row}");
}

/// The null device computes nothing, so its results differ from those of kernels in bounds.
#[test]
fn hostile_problems_are_saved() {
    let place = Workplace::new();
    let arguments = ["fuzz", "--hostile", "--seeds", "40", "--stop", "1", "--device", "null"];
    let document = place.scry(&[&arguments[..], &["--json"]].concat()).json();
    let problem = &document["result"]["devices"][0]["problems"][0];
    assert_eq!(problem["kind"], "difference", "{document}");
    let source = place.read(&format!("scry-fuzz/{}.wgsl", problem["seed"]));
    let source = String::from_utf8(source).unwrap();
    let again = source.lines().nth(1).unwrap().trim_start_matches("// scry ").to_owned();
    place.scry(&again.split(' ').collect::<Vec<_>>()).exits_with(1).prints(&["difference"]);
}

/// Arguments of a hostile run on the CPU; the number of kernels follows.
const HOSTILE_ON_CPU: [&str; 5] = ["fuzz", "--hostile", "--device", "cpu", "--seeds"];

#[test]
fn seeds_end_at_the_largest() {
    let place = Workplace::new();
    let last = ["--first", "18446744073709551615"];
    let ran = place
        .scry(&[&HOSTILE_ON_CPU[..], &["1"], &last, &["--json"]].concat())
        .exits_with(0)
        .json();
    assert_eq!(ran["result"]["devices"][0]["kernels"], 1);
    let null = ["fuzz", "--seeds", "1", "--device", "null"];
    place.scry(&[&null[..], &last].concat()).exits_with(1).prints(&["seed 18446744073709551615: "]);
    let beyond = ["--first 18446744073709551615 --seeds 2", "--seeds 1 at most"];
    place.scry(&[&HOSTILE_ON_CPU[..], &["2"], &last].concat()).exits_with(2).prints(&beyond);
    place.scry(&["fuzz", "--seeds", "2", last[0], last[1]]).exits_with(2).prints(&beyond);
}

#[test]
fn folder_is_checked_first() {
    let place = Workplace::new();
    place.write("file", "");
    // More kernels than could run in a test: the check of the folder must fail first.
    for hostile in [&[][..], &["--hostile"]] {
        let arguments = ["fuzz", "--seeds", "1000000000", "-o", "file/found", "--device", "null"];
        let rejected = place.scry(&[&arguments[..], hostile].concat()).exits_with(2);
        rejected.prints(&["--output file/found: file is not a folder", "help: "]);
    }
}

#[test]
fn timeout_ends_minimisation() {
    let place = Workplace::new();
    let arguments = ["fuzz", "--seeds", "1", "--device", "null", "--timeout"];
    place.scry(&[&arguments[..], &["1ms"]].concat()).exits_with(1);
    let large = place.read("scry-fuzz/0.wgsl").len();
    place.scry(&[&arguments[..], &["10m"]].concat()).exits_with(1);
    assert!(place.read("scry-fuzz/0.wgsl").len() < large, "with time it is minimised");
}

/// `ulimit -t 1` kills each process that has used a second of CPU time.
#[cfg(unix)]
#[test]
fn crashed_child_is_reported() {
    let place = Workplace::new();
    let scry = place.command(&["fuzz", "--hostile", "--device", "cpu", "--stop", "1", "--json"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -c 0; ulimit -S -t 1; exec \"$0\" \"$@\""]);
    shell.arg(scry.get_program()).args(scry.get_args());
    shell.args(["--seeds", "1000000", "--batch", "1000000"]);
    shell.current_dir(place.path("")).stdin(std::process::Stdio::null());
    let output = shell.output().expect("there is a shell");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(1), "{document}");
    let row = &document["result"]["devices"][0];
    let problem = &row["problems"][0];
    let message = problem["message"].as_str().expect("one problem was found");
    assert_eq!(problem["kind"], "crash", "{document}");
    let how = ["the process exited with signal", "XCPU"];
    assert!(how.iter().all(|part| message.contains(part)), "{message}");
    let seed = problem["seed"].as_u64().expect("the kernel's seed");
    assert_eq!(row["kernels"], seed + 1, "the seeds begin with 0: {document}");
    let source = String::from_utf8(place.read(&format!("scry-fuzz/{seed}.wgsl"))).unwrap();
    assert!(source.starts_with("// crash: ") && source.contains("@compute"), "{source}");
}

#[test]
fn errors_match_transcript() {
    let mut transcript = Transcript::new("fuzz");
    transcript.place.write("file", "");
    transcript.run(&["fuzz", "--seeds", "0"]);
    transcript.run(&["fuzz", "--stop", "0"]);
    transcript.run(&["fuzz", "--hostile", "--batch", "0"]);
    transcript.run(&["fuzz", "--timeout", "0"]);
    transcript.run(&["fuzz", "--timeout", "soon"]);
    transcript.run(&["fuzz", "--first", "18446744073709551000"]);
    transcript.run(&["fuzz", "--output", "file"]);
    transcript.run(&["fuzz", "--output", "file/found"]);
    transcript.compare();
}
