//! The engine of the pages: devices, and kernels with their buffers.

use std::result::Result;

use scry_gpu::verify::{self, Tolerance};
use scry_gpu::{
    Binding, CompileOptions, Device, GpuError, Kernel, Launch, Recording, Scalar, UntypedBuffer,
};
use serde_json::{Value, json};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;
use web_time::Instant;

use crate::reflect::scalars;
use crate::request::Request;

/// Opens a device: the best one if the selector is empty.
pub(crate) async fn open(selector: &str) -> Result<Device, JsError> {
    match selector {
        "" => Device::auto_async().await,
        selector => Device::open_async(selector).await,
    }
    .map_err(js_error)
}

/// Returns the text of an error for JavaScript.
pub(crate) fn js_error(error: GpuError) -> JsError {
    JsError::new(&error.to_string())
}

/// Returns milliseconds since a time.
fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// An open device.
#[wasm_bindgen]
pub struct Engine(Device);

#[wasm_bindgen]
impl Engine {
    /// Opens a device; with an empty selector, the best one.
    ///
    /// # Errors
    /// If there is no such device: what was searched, and what to do.
    pub async fn open(selector: String) -> Result<Self, JsError> {
        open(&selector).await.map(Self)
    }

    /// Returns JSON: the name of the device, its description, limits and launches so far.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn description(&self) -> String {
        let info = self.0.info();
        json!({
            "title": info.to_string(),
            "launches": self.0.launch_count(),
            "info": info,
        })
        .to_string()
    }

    /// Compiles the kernel of a job and uploads the contents of its buffers, one after the other in
    /// `contents`. The job is JSON, as [`Request::read`] expects it.
    ///
    /// # Errors
    /// If the job is not such JSON, the kernel is rejected, or the device fails.
    pub async fn prepare(&self, job: String, contents: Vec<u8>) -> Result<Job, JsError> {
        let job: Value = serde_json::from_str(&job)?;
        Job::prepare(&self.0, &job, &contents).await
    }
}

/// A kernel with its buffers, on one device.
#[wasm_bindgen]
pub struct Job {
    device: Device,
    kernel: Kernel,
    buffers: Vec<UntypedBuffer>,
    launch: Launch,
    compile_ms: f64,
    upload_ms: f64,
    recording: Option<Recording>,
}

#[wasm_bindgen]
impl Job {
    /// Runs the kernel once; returns the milliseconds until it was done.
    ///
    /// # Errors
    /// If the launch is rejected, or the device fails.
    pub async fn run(&self) -> Result<f64, JsError> {
        let start = Instant::now();
        let ticket = self.batch(1)?.submit_async().map_err(js_error)?;
        ticket.await.map_err(js_error)?;
        Ok(milliseconds(start))
    }

    /// Runs the kernel once; returns the milliseconds on the device, or NaN if it does not measure
    /// them.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub async fn device_time(&self) -> Result<f64, JsError> {
        let times = self.batch(1)?.submit_timed_async().await.map_err(js_error)?;
        Ok(times.first().map_or(f64::NAN, |time| time.as_secs_f64() * 1e3))
    }

    /// Writes bytes to a buffer.
    ///
    /// # Errors
    /// If there is no such buffer, its size differs, or the device fails.
    pub async fn write(&self, index: usize, bytes: Vec<u8>) -> Result<(), JsError> {
        self.buffer(index)?.write_bytes_async(&bytes).await.map_err(js_error)
    }

    /// Returns the bytes of a buffer.
    ///
    /// # Errors
    /// If there is no such buffer, or the device fails.
    pub async fn read(&self, index: usize) -> Result<Vec<u8>, JsError> {
        self.buffer(index)?.download_bytes_async().await.map_err(js_error)
    }

    /// Returns JSON: the kernel, and of each binding its name, type, access, elements and bytes;
    /// milliseconds of compilation and upload.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn description(&self) -> String {
        let interface = self.kernel.interface();
        let bindings = interface.bindings.iter().zip(&self.buffers).map(|(binding, buffer)| {
            let (scalar, components) = scalars(&binding.layout).unzip();
            json!({
                "name": binding.name,
                "type": binding.layout.to_string(),
                "writes": binding.access.writes(),
                "scalar": scalar.map(|scalar: Scalar| scalar.to_string()),
                "components": components,
                "bytes": buffer.byte_size(),
            })
        });
        json!({
            "kernel": interface.entry_point,
            "workgroup": interface.workgroup_size,
            "bindings": bindings.collect::<Vec<_>>(),
            "compile_ms": self.compile_ms,
            "upload_ms": self.upload_ms,
        })
        .to_string()
    }

    /// Compares two contents of a buffer as its type. Returns JSON: compared and different scalars,
    /// the largest difference and distance in ULPs, and the first difference beyond the tolerance.
    ///
    /// # Errors
    /// If there is no such buffer.
    pub fn compare(
        &self,
        index: usize,
        expected: &[u8],
        found: &[u8],
        tolerance: f64,
    ) -> Result<String, JsError> {
        self.buffer(index)?;
        let layout = &self.kernel.interface().bindings[index].layout;
        let tolerance = Tolerance::close(tolerance, tolerance);
        let comparison = verify::compare(layout, expected, found, tolerance);
        let first = comparison.first_difference.as_ref().map(
            |first| json!({ "path": first.path, "expected": first.expected, "found": first.found }),
        );
        Ok(json!({
            "compared": comparison.compared,
            "different": comparison.mismatched,
            "largest": comparison.largest_difference,
            "ulps": comparison.largest_ulps,
            "agrees": comparison.agrees(),
            "first": first,
        })
        .to_string())
    }

    /// Records `steps` launches for [`Job::replay`]. If the job has two buffers of one type, each
    /// launch reads what the previous one wrote: the first two bindings alternate.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn record(&mut self, steps: u32) -> Result<(), JsError> {
        self.recording = Some(self.batch(steps)?.record().map_err(js_error)?);
        Ok(())
    }

    /// Runs the recorded launches; returns once they are done.
    ///
    /// # Errors
    /// If nothing was recorded, or the device fails.
    pub async fn replay(&self) -> Result<(), JsError> {
        let recording = self.recording.as_ref();
        let recording = recording.ok_or_else(|| JsError::new("no launches were recorded"))?;
        recording.replay().map_err(js_error)?.await.map_err(js_error)
    }
}

impl Job {
    async fn prepare(device: &Device, job: &Value, contents: &[u8]) -> Result<Self, JsError> {
        let job = Request::read(job).map_err(|error| JsError::new(&error))?;
        let mut options = CompileOptions::new();
        if let Some(entry) = &job.entry {
            options = options.entry(entry);
        }
        for (name, value) in &job.overrides {
            options = options.set(name, *value);
        }
        let start = Instant::now();
        let kernel = device.compile_with_async(&job.wgsl, &options).await.map_err(js_error)?;
        let (compile_ms, start) = (milliseconds(start), Instant::now());
        let (mut buffers, mut rest) = (Vec::new(), contents);
        for size in job.buffers {
            let content = rest.split_off(..size);
            let content = content.ok_or_else(|| JsError::new("the contents end too early"))?;
            buffers.push(upload(device, content).await.map_err(js_error)?);
        }
        let mut launch = Launch::invocations(job.invocations);
        if !job.immediates.is_empty() {
            launch = launch.immediate_bytes(job.immediates);
        }
        let upload_ms = milliseconds(start);
        let device = device.clone();
        Ok(Self { device, kernel, buffers, launch, compile_ms, upload_ms, recording: None })
    }

    fn buffer(&self, index: usize) -> Result<&UntypedBuffer, JsError> {
        let missing = || JsError::new(&format!("the kernel has no buffer {index}"));
        self.buffers.get(index).ok_or_else(missing)
    }

    /// Returns a batch of launches. In odd ones the first two buffers are exchanged.
    fn batch(&self, steps: u32) -> Result<scry_gpu::Batch, JsError> {
        let mut batch = self.device.batch();
        for step in 0..steps {
            let mut bindings: Vec<&dyn Binding> =
                self.buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
            if step % 2 == 1 && bindings.len() > 1 {
                bindings.swap(0, 1);
            }
            batch.run(&self.kernel, &bindings, self.launch.clone()).map_err(js_error)?;
        }
        Ok(batch)
    }
}

/// Uploads bytes to an untyped buffer.
async fn upload(device: &Device, content: &[u8]) -> scry_gpu::Result<UntypedBuffer> {
    device.upload_async(content).await?.untyped().view_as(None)
}
