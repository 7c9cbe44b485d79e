//! Runs a job of a web page on the CPU device of this machine, and compares the page's results with
//! those: `native_job FOLDER`, where the tests of the pages wrote `job.json` and the buffers.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use scry_gpu::verify::{Bytes, Contents, Tolerance, Workload, compare};
use scry_gpu::{CompileOptions, Device, Launch};
use serde_json::Value;

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

/// Returns the numbers of a list of the job.
fn numbers<'a>(job: &'a Value, name: &str) -> impl Iterator<Item = u64> + 'a {
    job[name].as_array().into_iter().flatten().filter_map(Value::as_u64)
}

/// Runs a job; returns whether all outputs agree.
fn run(folder: &Path) -> Result<bool, Error> {
    let job: Value = serde_json::from_str(&fs::read_to_string(folder.join("job.json"))?)?;
    let mut options = CompileOptions::new();
    if let Some(entry) = job["entry"].as_str() {
        options = options.entry(entry);
    }
    for (name, value) in job["overrides"].as_object().into_iter().flatten() {
        options = options.set(name, value.as_f64().unwrap_or_default());
    }
    let buffers = job["buffers"].as_u64().unwrap_or_default();
    let inputs = (0..buffers).map(|index| fs::read(folder.join(format!("input-{index}"))));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let contents: Vec<Bytes<'_>> = inputs.iter().map(|input| Bytes(input)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|it| it as &dyn Contents).collect();
    let size: Vec<u64> = numbers(&job, "invocations").collect();
    let axis = |nth: usize| size.get(nth).copied().unwrap_or(1);
    let launch = Launch::invocations([axis(0), axis(1), axis(2)]);
    let wgsl = job["wgsl"].as_str().unwrap_or_default();
    let workload = Workload { wgsl, options: &options, contents: &contents, launch: &launch };
    let expected = workload.run(&Device::open("cpu")?)?;
    let tolerance = job["tolerance"].as_f64().unwrap_or_default();
    let mut agrees = !expected.is_empty();
    for (output, index) in expected.iter().zip(numbers(&job, "outputs")) {
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
