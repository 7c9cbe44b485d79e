//! Tests of the texts and colours of messages.

#[cfg(unix)]
use crate::support::terminal;
use crate::support::{Outcome, Workplace};
use crate::transcript::Transcript;

const BAD: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    x[id.x] = y;
}
";

const FILL: &str = "\
var<immediate> p: vec4f;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) { x[id.x] = p.y; }
}
";

#[test]
fn errors_match_transcript() {
    let mut transcript = Transcript::new("messages");
    transcript.place.write("bad.wgsl", BAD);
    transcript.place.write("fill.wgsl", FILL);
    transcript.run(&["check", "bad.wgsl", "fill.wgsl", "bad.wgsl"]);
    transcript.run(&["run", "bad.wgsl", "--inout", "x=zeros:f32:8"]);
    transcript.run(&["reflect", "bad.wgsl"]);
    transcript.run(&["emit", "bad.wgsl", "-o", "bad.spv"]);
    transcript.run(&["verify", "bad.wgsl"]);
    let fill = ["run", "fill.wgsl", "--inout", "x=zeros:f32:8"];
    for value in ["p=1", "p=1,2,3,1e999", "p=1,2,3,x", "q=1,2,3,4", "p=0.1,1e-9,3,4"] {
        transcript.run(&[&fill[..], &["--immediate", value]].concat());
    }
    transcript.run(&[&fill[..], &["--immediate", "p=1,2,3,4", "--set", "N=1e999"]].concat());
    transcript.compare();
}

/// Runs the program with additional environment variables.
fn run_with_variables(
    place: &Workplace,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Outcome {
    let output = place.command(arguments).envs(variables.iter().copied()).output();
    let output = output.expect("the program was built");
    Outcome {
        code: output.status.code().expect("ended by itself"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn only_terminals_have_colours() {
    const FORCED: (&str, &str) = ("CLICOLOR_FORCE", "1");
    const NONE: (&str, &str) = ("NO_COLOR", "1");
    let place = Workplace::without_driver();
    place.write("bad.wgsl", BAD);
    for arguments in [&["check", "bad.wgsl"][..], &["run", "bad.wgsl", "--out", "x"]] {
        let plain = place.scry(arguments).exits_with(1);
        let forced = run_with_variables(&place, arguments, &[FORCED]);
        let none = run_with_variables(&place, arguments, &[FORCED, NONE]);
        let text = |outcome: &Outcome| format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!text(&plain).contains('\u{1b}'), "{plain:?}");
        assert_eq!(text(&none), text(&plain));
        assert!(text(&forced).contains("\u{1b}[31m               ^ unknown"), "{forced:?}");
        assert_eq!(anstream::adapter::strip_str(&text(&forced)).to_string(), text(&plain));
    }
    let failed = run_with_variables(&place, &["run", "none.wgsl"], &[FORCED]);
    assert!(
        failed.stderr.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m none.wgsl"),
        "{failed:?}"
    );
    // JSON documents and data have no colours.
    let document = run_with_variables(&place, &["check", "bad.wgsl", "--json"], &[FORCED]);
    assert!(!document.stdout.contains('\u{1b}'), "{document:?}");
}

#[test]
fn oversized_buffers_are_rejected_with_size() {
    let place = Workplace::without_driver();
    place.write("fill.wgsl", FILL);
    let huge =
        ["run", "fill.wgsl", "--inout", "x=zeros:f32:99999999999", "--immediate", "p=1,2,3,4"];
    let rejected = place.scry(&huge).exits_with(1);
    rejected.prints(&[
        "`x` is 99999999999 of f32, 399999999996 bytes",
        "max_buffer_size",
        "help: ",
    ]);
}

/// All three standard streams are a terminal.
#[cfg(unix)]
#[test]
fn terminals_get_no_binary_data() {
    use std::io::Read;
    use std::process::Stdio;
    let place = Workplace::without_driver();
    place.write("bad.wgsl", BAD);
    place.write("fill.wgsl", FILL);
    let (program, mut user) = terminal();
    let end = || program.try_clone().expect("handles can be copied");
    let mut show = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command(arguments);
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
        command.stdin(Stdio::from(end())).stdout(Stdio::from(end())).stderr(Stdio::from(end()));
        let status = command.status().expect("the program was built");
        let mut text = [0; 4096];
        let count = user.read(&mut text).expect("the program printed something");
        (status.code(), String::from_utf8_lossy(&text[..count]).into_owned())
    };
    let bad = ["run", "bad.wgsl", "--out", "x", "--shape", "x=1"];
    let (code, text) = show(&bad, &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("\u{1b}[31merror:\u{1b}[0m bad.wgsl:4:15"), "{text}");
    let (_, text) = show(&bad, &[("NO_COLOR", "1")]);
    assert!(text.starts_with("error: bad.wgsl:4:15"), "{text}");
    let fill = ["run", "fill.wgsl", "--immediate", "p=1,2,3,4"];
    let out = ["--inout", "x=ones:f32:2", "--out", "x=-"];
    let (code, text) = show(&[&fill[..], &out].concat(), &[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("--out -: standard output is a terminal"), "{text}");
    let (code, text) = show(&[&fill[..], &["--inout", "x=-"]].concat(), &[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("standard input is a terminal"), "{text}");
}

#[test]
fn help_lists_environment_and_sources() {
    let place = Workplace::without_driver();
    let variables = ["SCRY_DEVICE", "SCRY_CACHE_DIR", "NO_COLOR", "RUST_LOG", "Environment:"];
    place.scry(&["--help"]).exits_with(0).prints(&variables);
    place.scry(&["help"]).exits_with(0).prints(&variables);
    let sources = ["ones:TYPE:SHAPE", "arange:TYPE:SHAPE", "FILE.npz:ARRAY", "--cast <NAME=TYPE>"];
    place.scry(&["run", "--help"]).exits_with(0).prints(&sources);
}
