//! Runs a job of a web page on the CPU device of this machine, and compares the page's results with
//! those: `native_job FOLDER`, where the tests of the pages wrote `job.json` and the buffers.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use scry_gpu::verify::{Bytes, Contents, Tolerance, Workload, compare};
use scry_gpu::{CompileOptions, Device, Launch};
use serde_json::Value;

#[path = "../src/request.rs"]
mod request;

use request::{Request, counts};

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let folder = std::env::args_os().nth(1).unwrap_or_default();
    match run(Path::new(&folder)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a job; returns whether all outputs agree.
fn run(folder: &Path) -> Result<bool, Error> {
    let job: Value = serde_json::from_str(&fs::read_to_string(folder.join("job.json"))?)?;
    let request = Request::read(&job)?;
    let outputs: Vec<usize> = counts(&job, "outputs")?;
    let mut options = CompileOptions::new();
    if let Some(entry) = &request.entry {
        options = options.entry(entry);
    }
    for (name, value) in &request.overrides {
        options = options.set(name, *value);
    }
    let buffers = 0..request.buffers.len();
    let inputs = buffers.map(|index| fs::read(folder.join(format!("input-{index}"))));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let contents: Vec<Bytes<'_>> = inputs.iter().map(|input| Bytes(input)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|it| it as &dyn Contents).collect();
    let mut launch = Launch::invocations(request.invocations);
    if !request.immediates.is_empty() {
        launch = launch.immediate_bytes(request.immediates);
    }
    let wgsl = request.wgsl.as_str();
    let workload = Workload { wgsl, options: &options, contents: &contents, launch: &launch };
    let expected = workload.run(&Device::open("cpu")?)?;
    // A zip of lists of different lengths would leave outputs out.
    if expected.len() != outputs.len() {
        let (native, page) = (expected.len(), outputs.len());
        return Err(format!("the kernel writes {native} buffers, the page has {page}").into());
    }
    let tolerance = job["tolerance"].as_f64().ok_or("the job has no `tolerance`")?;
    let mut agrees = !expected.is_empty();
    for (output, index) in expected.iter().zip(outputs) {
        let found = fs::read(folder.join(format!("output-{index}")))?;
        let tolerance = Tolerance::close(tolerance, tolerance);
        let comparison = compare(&output.layout, &output.bytes, &found, tolerance);
        println!(
            "{}: {} values, {} differ, largest error {:e}",
            output.name, comparison.compared, comparison.mismatched, comparison.largest_difference
        );
        agrees &= comparison.agrees() && comparison.compared > 0;
    }
    Ok(agrees)
}
