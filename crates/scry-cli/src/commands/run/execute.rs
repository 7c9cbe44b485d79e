//! Executes a plan on a device, and measures the time of each phase.

use std::path::Path;
use std::time::{Duration, Instant};

use scry_gpu::{Binding, CompileOptions, Device, GpuError, Kernel, Launch, UntypedBuffer};

use super::plan::{Plan, PlannedBuffer};
use super::repeat::RunTimes;
use super::results::{FinishedOutput, Results, Times};
use crate::args::Run;
use crate::commands::limit::Notice;
use crate::data::Bytes;
use crate::report::Failure;

/// Compiles, uploads, runs and downloads.
pub fn execute(
    device: &Device,
    args: &Run,
    source: &str,
    options: &CompileOptions,
    plan: Plan,
) -> Result<Results, Failure> {
    let start = Instant::now();
    let kernel = {
        let _notice = Notice::start(&format!("compiling {}", args.file.display()), None);
        device.compile_with(source, options).map_err(|error| compile_failure(&args.file, error))?
    };
    let compile = start.elapsed();

    let start = Instant::now();
    let buffers: Vec<UntypedBuffer> = plan
        .buffers
        .iter()
        .map(|planned| upload(device, planned))
        .collect::<Result<_, Failure>>()?;
    device.wait()?;
    let upload_time = start.elapsed();

    let mut launch = Launch::invocations(plan.invocations);
    if let Some(bytes) = &plan.immediates {
        launch = launch.immediate_bytes(bytes.clone());
    }
    let runs = Runs { device, kernel: &kernel, plan: &plan, buffers: &buffers, launch };
    let times = runs.run_all(args)?;

    let start = Instant::now();
    let invocations = plan.invocations;
    let mut outputs = Vec::new();
    for (planned, buffer) in plan.buffers.into_iter().zip(&buffers) {
        if planned.output.is_some() {
            let mut bytes = Bytes::zeroed(planned.data.len)?;
            buffer.download_bytes_into(bytes.as_mut_slice())?;
            outputs.push(FinishedOutput { planned, bytes });
        }
    }
    Ok(Results {
        entry_point: kernel.entry_point().to_owned(),
        invocations,
        outputs,
        times: Times {
            compile,
            upload: upload_time,
            gpu: times.median(),
            on_device: times.on_device,
            download: start.elapsed(),
        },
        run_times: args.repeat.map(|_| times),
    })
}

/// Returns the failure of the device's compiler. Shader errors name the file.
fn compile_failure(path: &Path, error: GpuError) -> Failure {
    match error {
        GpuError::Shader(error) => Failure::shader(path, &error),
        other => other.into(),
    }
}

/// A launch that is run once, or `--repeat` times.
struct Runs<'a> {
    device: &'a Device,
    kernel: &'a Kernel,
    plan: &'a Plan,
    buffers: &'a [UntypedBuffer],
    launch: Launch,
}

impl Runs<'_> {
    /// Runs the kernel `--repeat` times, each time on the original data.
    fn run_all(&self, args: &Run) -> Result<RunTimes, Failure> {
        let info = self.device.info();
        let what = format!("kernel `{}` on {}", self.kernel.entry_point(), info.name);
        let _notice = Notice::start(&what, Some(&args.limit));
        let mut times = Vec::new();
        for run in 0..args.repeat.unwrap_or(1) {
            if run > 0 {
                self.restore()?;
            }
            args.limit.apply_to(self.device);
            let time = self.run_once().map_err(|error| {
                args.limit.failure(error, self.kernel.entry_point(), self.device)
            })?;
            self.device.set_time_limit(None);
            times.push(time);
        }
        Ok(RunTimes::new(&times))
    }

    /// Runs the kernel; returns the time, and whether the device measured it.
    fn run_once(&self) -> Result<(Duration, bool), GpuError> {
        let bindings: Vec<&dyn Binding> =
            self.buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
        let mut batch = self.device.batch();
        batch.run(self.kernel, &bindings, self.launch.clone())?;
        let start = Instant::now();
        let timestamps = batch.submit_timed()?;
        Ok(match timestamps.as_slice() {
            [] => (start.elapsed(), false),
            times => (times.iter().sum::<Duration>(), true),
        })
    }

    /// Restores the buffers that a run has written.
    fn restore(&self) -> Result<(), Failure> {
        for (planned, buffer) in self.plan.buffers.iter().zip(self.buffers) {
            match &planned.data.bytes {
                _ if !planned.slot.is_written => {}
                Some(bytes) => buffer.write_bytes(bytes.as_slice())?,
                None => buffer.fill_zero()?,
            }
        }
        Ok(self.device.wait()?)
    }
}

/// Uploads the initial content. The buffer is untyped, since the plan has checked the types.
fn upload(device: &Device, planned: &PlannedBuffer) -> Result<UntypedBuffer, Failure> {
    let buffer = match &planned.data.bytes {
        Some(bytes) => device.upload_bytes(None, bytes.as_slice())?,
        None => device.alloc_untyped(None, planned.data.len)?,
    };
    Ok(buffer.with_label(&planned.slot.name))
}
