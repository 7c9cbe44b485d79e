//! The conformance suite, and programs that show what a page may do.

use std::result::Result;

use scry_conformance::{Test, run_async, tests};
use serde_json::json;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::engine::{js_error, open};

/// Doubles each element of `data` a number of times, by sums that processors can vectorise.
const BENCHMARK: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    var<immediate> steps: u32;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        var x = data[id.x];
        for (var step = 0u; step < steps; step++) { x = x * 0.5 + 1.0; }
        data[id.x] = x;
    }";

/// Returns the description of a device as text. An empty selector opens the best device.
///
/// # Errors
/// If there is no such device.
#[wasm_bindgen]
pub async fn device(selector: String) -> Result<String, JsError> {
    Ok(open(&selector).await?.info().to_string())
}

/// Runs the conformance suite on a device. Returns JSON: the device, the tests with their numbers
/// of cases, the number of all cases, and lists of skipped and failed cases.
///
/// # Errors
/// If there is no such device.
#[wasm_bindgen]
pub async fn run_conformance(selector: String) -> Result<String, JsError> {
    let gpu = open(&selector).await?;
    let (mut tested, mut case_count) = (Vec::new(), 0);
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    for Test { topic, name, cases } in tests() {
        let before = case_count;
        for case in cases(gpu.info()) {
            case_count += 1;
            match run_async(&gpu, &case).await {
                Ok(report) => {
                    skipped.extend(report.skipped.iter().map(|it| format!("{topic}::{name}: {it}")))
                }
                Err(mismatch) => failed.push(format!("{topic}::{name}: {mismatch}")),
            }
        }
        tested.push((format!("{topic}::{name}"), case_count - before));
    }
    let report = json!({
        "device": gpu.info().to_string(),
        "tests": tested,
        "cases": case_count,
        "skipped": skipped,
        "failed": failed,
    });
    Ok(report.to_string())
}

/// Compiles a WGSL kernel for a device; returns the name of its entry point.
///
/// # Errors
/// If there is no such device, or the kernel is rejected.
#[wasm_bindgen]
pub async fn compile(selector: String, wgsl: String) -> Result<String, JsError> {
    let gpu = open(&selector).await?;
    let kernel = gpu.compile_async(&wgsl).await.map_err(js_error)?;
    Ok(kernel.entry_point().to_owned())
}

/// Reads a result with a call that blocks; returns its value as text.
///
/// # Errors
/// If there is no such device, or its work is unfinished and the call would have to block.
#[wasm_bindgen]
pub async fn download_blocking(selector: String) -> Result<String, JsError> {
    let gpu = open(&selector).await?;
    let value = || gpu.upload(&[7u32])?.download();
    value().map(|value| format!("{value:?}")).map_err(js_error)
}

/// Runs a kernel of multiplications and additions; returns a value of its result, so that a caller
/// can measure it.
///
/// # Errors
/// If there is no such device, or the kernel fails.
#[wasm_bindgen]
pub async fn multiply_add(selector: String, elements: u32, steps: u32) -> Result<f32, JsError> {
    let gpu = open(&selector).await?;
    let run = async {
        let data = gpu.upload_async(&vec![1.0f32; elements as usize]).await?;
        let kernel = gpu.compile_async(BENCHMARK).await?;
        let launch = scry_gpu::Launch::invocations(elements).immediates(&steps);
        let mut batch = gpu.batch();
        batch.run(&kernel, &[&data], launch)?;
        batch.submit_async()?.await?;
        data.download_async().await
    };
    Ok(run.await.map_err(js_error)?.last().copied().unwrap_or_default())
}

/// Writes the index of the last invocation of a launch.
const LAST: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    var<immediate> last: u32;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        if id.x == last { data[arrayLength(&data) - 1] = 1; }
    }";

/// Requests what is as large as WebGPU guarantees, and more. Returns JSON: the last word of a
/// `binding` of 128 MiB, written by a kernel; a word written by the last of more than 65,535
/// workgroups (`groups`); the error for a `buffer` of 2 GiB.
///
/// # Errors
/// If there is no such device, or one of the first two fails.
#[wasm_bindgen]
pub async fn large_requests(selector: String) -> Result<String, JsError> {
    let gpu = open(&selector).await?;
    let run = async |words: usize, invocations: u32| {
        let data = gpu.alloc::<u32>(words)?;
        let kernel = gpu.compile_async(LAST).await?;
        let launch = scry_gpu::Launch::invocations(invocations).immediates(&(invocations - 1));
        gpu.batch().run(&kernel, &[&data], launch)?.submit_async()?.await?;
        data.slice(words - 1..)?.download_async().await
    };
    let binding = run(32 << 20, 64).await.map_err(js_error)?;
    let groups = run(16, 70_000 * 64).await.map_err(js_error)?;
    let buffer = match gpu.alloc::<u32>(1 << 29) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    Ok(json!({ "binding": binding[0], "groups": groups[0], "buffer": buffer }).to_string())
}
