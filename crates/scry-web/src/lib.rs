//! Functions for JavaScript: the conformance suite, and programs that show what a page may do.
//!
//! `cargo xtask wasm` builds the module and runs it in Node.js (`tests/node.js`). For other systems
//! than WebAssembly the crate is empty.

#![cfg(target_arch = "wasm32")]

use std::result::Result;

use scry_conformance::{Test, run_async, tests};
use scry_gpu::{Device, GpuError};
use serde_json::json;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

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

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Called when the module is loaded: prints panics, which end the module with a trap.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| console_error(&panic.to_string())));
}

/// Opens a device: the best one if the selector is empty.
async fn open(selector: &str) -> Result<Device, JsError> {
    match selector {
        "" => Device::auto_async().await,
        selector => Device::open_async(selector).await,
    }
    .map_err(js_error)
}

/// Returns the text of an error for JavaScript.
fn js_error(error: GpuError) -> JsError {
    JsError::new(&error.to_string())
}

/// Returns the description of a device as text. An empty selector opens the best device.
///
/// # Errors
/// If there is no such device.
#[wasm_bindgen]
pub async fn device(selector: String) -> Result<String, JsError> {
    Ok(open(&selector).await?.info().to_string())
}

/// Runs the conformance suite on a device. Returns JSON: the device, the number of tests and cases,
/// and lists of skipped and failed cases.
///
/// # Errors
/// If there is no such device.
#[wasm_bindgen]
pub async fn run_conformance(selector: String) -> Result<String, JsError> {
    let gpu = open(&selector).await?;
    let (mut test_count, mut case_count) = (0, 0);
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    for Test { topic, name, cases } in tests() {
        test_count += 1;
        for case in cases(gpu.info()) {
            case_count += 1;
            match run_async(&gpu, &case).await {
                Ok(report) => {
                    skipped.extend(report.skipped.iter().map(|it| format!("{topic}::{name}: {it}")))
                }
                Err(mismatch) => failed.push(format!("{topic}::{name}: {mismatch}")),
            }
        }
    }
    let report = json!({
        "device": gpu.info().to_string(),
        "tests": test_count,
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
