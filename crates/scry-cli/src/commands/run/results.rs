//! The results of a run: files and a report.

use std::time::Duration;

use scry_gpu::{BackendKind, Device};
use serde_json::{Value, json};

use super::plan::PlannedBuffer;
use super::repeat::RunTimes;
use super::{grid, output, values};
use crate::commands::table;
use crate::data::array::preview;
use crate::data::{Bytes, Dtype, Location};
use crate::report::{self, Failure, Report};

/// A finished run.
pub struct Results {
    /// The kernel's entry point.
    pub entry_point: String,
    /// Invocations along x, y and z.
    pub invocations: [u64; 3],
    /// The outputs.
    pub outputs: Vec<FinishedOutput>,
    /// The times of the phases.
    pub times: Times,
    /// The times of the runs, with `--repeat`.
    pub run_times: Option<RunTimes>,
}

/// An output: a buffer and its content after the run.
pub struct FinishedOutput {
    /// The planned buffer.
    pub planned: PlannedBuffer,
    /// The content after the run.
    pub bytes: Bytes,
}

/// The times of a run's phases, which do not overlap.
pub struct Times {
    /// Compilation from WGSL to a kernel of the device.
    pub compile: Duration,
    /// Allocation of the buffers and upload of the inputs.
    pub upload: Duration,
    /// The kernel; with `--repeat` the median.
    pub gpu: Duration,
    /// True if the device measured `gpu`; false if it is the wall-clock time from submission to
    /// completion.
    pub on_device: bool,
    /// Download of the outputs.
    pub download: Duration,
}

impl Results {
    /// Writes the outputs.
    pub fn save(&self) -> Result<(), Failure> {
        output::note_non_finite(&self.outputs);
        output::save(&self.outputs)
    }

    /// Returns the report; the times are printed to standard error if `with_times`.
    pub fn report(&self, device: &Device, with_times: bool) -> Report {
        if with_times {
            report::note(self.times.text().trim_end());
        }
        let info = device.info();
        if info.backend == BackendKind::Null {
            report::note(
                "note: the null device runs no kernels: outputs are not the kernel's results",
            );
        }
        let selector = format!("{}:{}", info.backend, info.index);
        let launch = grid::launch_text(self.invocations);
        let rows: Vec<Vec<String>> = self.outputs.iter().map(FinishedOutput::row).collect();
        let outputs: Vec<Value> = self.outputs.iter().map(FinishedOutput::to_json).collect();
        Report::new(
            format!(
                "{}: {launch} on {selector} {}\n{}{}",
                self.entry_point,
                info.name,
                self.run_times.as_ref().map(RunTimes::text).unwrap_or_default(),
                table(&rows, "  ")
            ),
            json!({
                "kernel": self.entry_point,
                "invocations": self.invocations,
                "device": { "selector": selector, "name": info.name },
                "outputs": outputs,
                "seconds": self.times.to_json(),
                "repeat": self.run_times.as_ref().map(RunTimes::to_json),
            }),
        )
    }
}

impl FinishedOutput {
    /// Returns the file to write, if any.
    pub fn location(&self) -> Option<&Location> {
        self.planned.output.as_ref()?.file.as_ref()
    }

    /// Returns the element type of the file, if it is not the kernel's.
    pub fn cast(&self) -> Option<Dtype> {
        self.planned.output.as_ref()?.cast
    }

    /// Formats where the output goes: the file's name, or its first values.
    fn destination(&self) -> String {
        match (self.location(), self.cast()) {
            (Some(file), Some(cast)) => format!("-> {file} as {cast}"),
            (Some(file), None) => format!("-> {file}"),
            (None, _) => match self.planned.slot.dtype {
                Some(dtype) => format!("= {}", preview(dtype, &self.bytes)),
                None => "to be written to a .bin file with --out".to_owned(),
            },
        }
    }

    fn row(&self) -> Vec<String> {
        let PlannedBuffer { slot, data, .. } = &self.planned;
        vec![slot.name.clone(), slot.type_text.clone(), data.shape.to_string(), self.destination()]
    }

    fn to_json(&self) -> Value {
        let PlannedBuffer { slot, data, .. } = &self.planned;
        let non_finite = output::count_non_finite(self);
        let values = slot.dtype.map(|dtype| values::values(dtype, &self.bytes));
        let (values, truncated) = values.unwrap_or_default();
        json!({
            "name": slot.name,
            "type": slot.type_text,
            "dtype": slot.dtype.map(|dtype| dtype.name()),
            "shape": data.shape.0,
            "bytes": self.bytes.len(),
            "values": values,
            "values_truncated": truncated,
            "file": self.location().map(ToString::to_string),
            "written_as": self.cast().map(Dtype::name),
            "not_finite": non_finite
                .map(|it| json!({ "count": it.count, "first": it.index })),
        })
    }
}

impl Times {
    fn text(&self) -> String {
        let source = if self.on_device { "device timestamps" } else { "wall clock" };
        let row = |name: &str, time: Duration, note: &str| {
            let milliseconds = format!("{:10.3} ms", time.as_secs_f64() * 1e3);
            vec![name.to_owned(), milliseconds, note.to_owned()]
        };
        let rows = [
            row("compile", self.compile, ""),
            row("upload", self.upload, ""),
            row("gpu", self.gpu, source),
            row("download", self.download, ""),
        ];
        table(&rows, "")
    }

    fn to_json(&self) -> Value {
        json!({
            "compile": self.compile.as_secs_f64(),
            "upload": self.upload.as_secs_f64(),
            "gpu": self.gpu.as_secs_f64(),
            "gpu_by_device_timestamps": self.on_device,
            "download": self.download.as_secs_f64(),
        })
    }
}
