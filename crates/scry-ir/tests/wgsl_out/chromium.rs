//! Tests that headless Chromium accepts emitted WGSL: it creates a pipeline from each kernel.

use std::io::Write;
use std::process::{Command, Stdio};

use scry_fuzz::hostile::{self, Rules};
use scry_ir::Features;
use serde_json::{Value, json};

use crate::corpus::{SHADERS, shader, sources};
use crate::support::{emit, parse};

/// Minimum number of kernels with barriers that must compile.
const MIN_WITH_BARRIERS: usize = 15;

/// Number of random kernels of each kind.
const SEEDS: u64 = 100;

/// The features of random kernels: none that an adapter may lack.
const WEBGPU: scry_fuzz::Features =
    scry_fuzz::Features { f16: false, f64: false, i64: false, i16: false };

/// Invocations of a workgroup that every WebGPU device supports.
const MAX_INVOCATIONS: u32 = 256;

/// Returns a kernel in the form that the script reads; `None` if WGSL cannot express it or its
/// workgroups are too large.
fn script_input(name: &str, source: &str) -> Option<Value> {
    let text = emit(source).ok()?;
    let program = parse(source);
    let features = program.interface().features;
    if program.interface().workgroup_size.iter().product::<u32>() > MAX_INVOCATIONS {
        return None;
    }
    let names = [(Features::F16, "shader-f16"), (Features::SUBGROUPS, "subgroups")];
    let needed = names.iter().filter(|(feature, _)| features.contains(*feature));
    let needed: Vec<_> = needed.map(|(_, name)| name).collect();
    Some(json!({ "name": name, "text": text, "features": needed }))
}

/// Compiles kernels in the browser; returns the script's result for each.
fn compile(chromium: &std::ffi::OsStr, kernels: &[Value]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wgsl_out/chromium.cjs");
    let mut node = Command::new("node")
        .arg(script)
        .arg(chromium)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("SCRY_CHROMIUM is set, but `node` cannot be started");
    let text = serde_json::to_string(kernels).unwrap();
    node.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed: {}", output.status);
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn kernels_compile_in_chromium() {
    let Some(chromium) = std::env::var_os("SCRY_CHROMIUM") else {
        println!("kernels_compile_in_chromium: skipped, because SCRY_CHROMIUM is not set");
        return;
    };
    let mut kernels = Vec::new();
    for path in sources("corpus") {
        let source = std::fs::read_to_string(&path).unwrap();
        kernels.extend(script_input(&path.display().to_string(), &source));
    }
    for parts in SHADERS {
        kernels.extend(script_input(&parts.join("+"), &shader(parts)));
    }
    for seed in 0..SEEDS {
        let random = scry_fuzz::kernel(seed, WEBGPU).case().source;
        kernels.extend(script_input(&format!("random {seed}"), &random));
        let hostile = hostile::kernel(seed, WEBGPU, Rules { endless: true }).case().source;
        kernels.extend(script_input(&format!("hostile {seed}"), &hostile));
    }
    kernels.push(json!({ "name": "invalid", "text": "fn main() { x = 1; }", "features": [] }));
    let mut results = compile(&chromium, &kernels);
    let invalid = results.pop().expect("there is at least one kernel");
    assert_ne!(invalid["errors"], json!([]), "the browser accepts an invalid kernel");
    kernels.pop();
    assert_eq!(results.len(), kernels.len());
    let (mut compiled, mut with_barriers, mut problems) = (0, 0, String::new());
    for (kernel, result) in kernels.iter().zip(&results) {
        let (name, text) = (kernel["name"].as_str().unwrap(), kernel["text"].as_str().unwrap());
        if result["lacks"] != json!([]) {
            println!("{name}: skipped, because the adapter lacks {}", result["lacks"]);
        } else if result["errors"] != json!([]) {
            problems += &format!("{name}: {}\n{text}\n", result["errors"]);
        } else {
            compiled += 1;
            with_barriers += usize::from(text.contains("Barrier()"));
        }
    }
    assert!(problems.is_empty(), "{problems}");
    println!("{compiled} kernels, {with_barriers} of them with barriers, compiled");
    assert!(with_barriers >= MIN_WITH_BARRIERS, "{with_barriers}");
}
