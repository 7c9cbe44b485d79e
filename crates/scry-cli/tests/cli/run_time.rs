//! Tests of `scry run`: time limits, repeated runs, and the JSON document.

use serde_json::{Value, json};

use crate::support::{ENDLESS, Workplace};
use crate::transcript::Transcript;

/// Increments in place, so that a run on the result of a previous one is detected.
const COUNTER: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> hits: array<atomic<u32>>;
@compute @workgroup_size(4) fn count(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) {
        x[id.x] += 1u;
        atomicAdd(&hits[id.x], 2u);
    }
}
";

/// Arguments that run the kernel above.
const COUNT: [&str; 8] =
    ["run", "k.wgsl", "--inout", "x=x.bin", "--out", "hits", "--shape", "hits=3"];

fn write_counter(place: &Workplace) {
    place.write("k.wgsl", COUNTER);
    place.write("x.bin", [7u32, 8, 9].map(u32::to_le_bytes).concat());
}

#[test]
fn expired_time_limits_name_the_option() {
    let mut transcript = Transcript::new("run_limits");
    transcript.place.write("endless.wgsl", ENDLESS);
    let run = ["run", "endless.wgsl", "--out", "x", "--shape", "x=2", "-n", "1"];
    transcript.run(&[&run[..], &["--time-limit", "300ms"]].concat());
    transcript.run(&[&run[..], &["--time-limit", "300ms", "--repeat", "3"]].concat());
    transcript.run(&[&run[..], &["--time-limit", "1"]].concat());
    transcript.run(&[&run[..], &["--time-limit", "soon"]].concat());
    transcript.run(&[&run[..], &["--repeat", "0"]].concat());
    transcript.run(&[&run[..], &["--repeat", "2.5"]].concat());
    write_counter(&transcript.place);
    transcript.run(&[&COUNT[..], &["--time-limit", "1m 30s"]].concat());
    transcript.compare();
}

#[test]
fn repeated_runs_restore_the_data() {
    Workplace::on_each_device(|place| {
        write_counter(place);
        let once = place.scry(&[&COUNT[..], &["--json"]].concat()).exits_with(0).json();
        assert!(once["result"]["repeat"].is_null());
        let arguments = [&COUNT[..], &["--repeat", "5"]].concat();
        let outcome = place.scry(&arguments).exits_with(0);
        outcome.prints(&["5 runs: median ", "quartiles ", "[8, 9, 10]", "[2, 2, 2]"]);
        let document = place.scry(&[&arguments[..], &["--json"]].concat()).exits_with(0).json();
        let result = &document["result"];
        assert_eq!(result["outputs"][0]["values"], json!([8, 9, 10]));
        assert_eq!(result["outputs"], once["result"]["outputs"]);
        let repeat = &result["repeat"];
        assert_eq!((&repeat["runs"], &repeat["median"]), (&5.into(), &result["seconds"]["gpu"]));
        assert_eq!(repeat["by_device_timestamps"], result["seconds"]["gpu_by_device_timestamps"]);
        let time = |value: &Value| value.as_f64().unwrap();
        let ordered = [
            time(&repeat["min"]),
            time(&repeat["quartiles"][0]),
            time(&repeat["median"]),
            time(&repeat["quartiles"][1]),
            time(&repeat["max"]),
        ];
        assert!(ordered.is_sorted() && ordered[0] > 0.0, "{ordered:?}");
    });
}

#[test]
fn json_has_values_up_to_limit() {
    Workplace::on_each_device(|place| {
        place.write(
            "k.wgsl",
            "struct Mixed { a: u32, b: f32 }
             @group(0) @binding(0) var<storage, read_write> f: array<f32, 5>;
             @group(0) @binding(1) var<storage, read_write> i: array<vec2i>;
             @group(0) @binding(2) var<storage, read_write> m: array<Mixed>;
             @compute @workgroup_size(1) fn main() {
                 f[0] = 0.1; f[1] = bitcast<f32>(0x7fc00000u + u32(i[0].x));
                 f[2] = bitcast<f32>(0xff800000u + u32(i[0].x)); f[3] = 16777216.0;
                 i[1] = vec2i(-7, 8); m[0].a = 1u;
             }",
        );
        let arguments =
            ["run", "k.wgsl", "-n", "1", "--out", "f", "--out", "i", "--out", "m=m.bin"];
        let shapes = ["--shape", "i=513x2", "--shape", "m=1", "--json"];
        let document = place.scry(&[&arguments[..], &shapes].concat()).exits_with(0).json();
        let [f, i, m] = [0, 1, 2].map(|at| &document["result"]["outputs"][at]);
        assert_eq!(f["values"], json!([0.1, "NaN", "-inf", 16_777_216.0, 0.0]));
        assert_eq!(f["values_truncated"], false);
        assert_eq!(i["values"].as_array().map(Vec::len), Some(1024));
        assert_eq!((&i["values"][2], &i["values_truncated"]), (&(-7).into(), &true.into()));
        assert!(m["values"].is_null(), "{m}");
    });
}

#[test]
fn json_has_problems_of_rejected_shaders() {
    let place = Workplace::without_driver();
    place.write("bad.wgsl", "@compute @workgroup_size(1)\nfn main() { let a = b; }\n");
    place.write(
        "two.wgsl",
        "@compute @workgroup_size(1) fn a() {}\n@compute @workgroup_size(1) fn b() {}",
    );
    let checked = place.scry(&["check", "bad.wgsl", "--json"]).exits_with(1).json();
    let problems = &checked["result"]["files"][0]["problems"];
    assert_eq!((&problems[0]["line"], &problems[0]["column"]), (&2.into(), &21.into()));
    for command in ["run", "reflect", "verify"] {
        let mut arguments = vec![command, "bad.wgsl", "--json"];
        if command == "verify" {
            arguments.extend(["--device", "null"]);
        }
        let error = &place.scry(&arguments).exits_with(1).json()["error"];
        assert_eq!(
            (&error["file"], &error["problems"]),
            (&"bad.wgsl".into(), problems),
            "{command}"
        );
        assert_eq!(error["kind"], "runtime");
    }
    let error =
        &place.scry(&["run", "two.wgsl", "--entry", "c", "--json"]).exits_with(2).json()["error"];
    assert_eq!(
        (&error["kind"], &error["problems"][0]["kind"]),
        (&"usage".into(), &"entry-point".into())
    );
    let several = ["verify", "bad.wgsl", "bad.wgsl", "--device", "null", "--json"];
    let document = place.scry(&several).exits_with(1).json();
    assert_eq!(&document["result"]["files"][1]["problems"], problems);
}

/// Messages on standard error while [`ENDLESS`] runs.
#[cfg(unix)]
mod terminal {
    use std::io::Read as _;
    use std::process::Stdio;

    use super::*;
    use crate::support::terminal;

    #[test]
    fn long_kernels_are_noted_on_terminals() {
        let place = Workplace::without_driver();
        place.write("endless.wgsl", ENDLESS);
        let run = ["run", "endless.wgsl", "--out", "x", "--shape", "x=2", "-n", "1"];
        let run = [&run[..], &["--time-limit", "6s"]].concat();
        let (program, mut user) = terminal();
        let mut command = place.command(&run);
        let mut shown = command.stdout(Stdio::null()).stderr(program).spawn().unwrap();
        drop(command);
        // The same without a terminal, at the same time.
        let silent = place.scry(&run).exits_with(1);
        assert_eq!(shown.wait().unwrap().code(), Some(1));
        let mut text = [0; 4096];
        let count = user.read(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text[..count]).into_owned();
        assert!(text.contains("still running after 5 s: kernel `endless` on "), "{text}");
        assert!(text.contains("(--time-limit 6s)"), "{text}");
        assert!(!silent.stderr.contains("still running"), "{silent:#?}");
    }
}
