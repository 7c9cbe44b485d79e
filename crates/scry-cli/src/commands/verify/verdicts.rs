//! The results of `scry verify`, as text and as JSON.

use std::path::{Path, PathBuf};

use scry_gpu::Device;
use scry_gpu::verify::{Comparison, Difference, UNDEFINED_ULPS, Verdict};
use serde_json::{Value, json};

use crate::commands::run::grid;
use crate::commands::table;
use crate::report::Failure;

/// The result of one kernel, or the problem of a kernel or file that could not be compared.
pub struct KernelResult {
    pub path: PathBuf,
    /// The entry point.
    pub kernel: String,
    /// Invocations along x, y and z.
    pub invocations: [u64; 3],
    /// The device that the others are compared with; `None` if nothing could be compared.
    pub reference: Option<Device>,
    /// The results of the other devices.
    pub device_results: Vec<DeviceResult>,
    /// The reason why nothing could be compared.
    pub problem: Option<Failure>,
}

/// The result of one device.
pub struct DeviceResult {
    pub device: Device,
    pub verdict: Verdict,
}

/// Formats selector and name of a device: `vulkan:0 llvmpipe`.
pub fn title(device: &Device) -> String {
    let info = device.info();
    format!("{}:{} {}", info.backend, info.index, info.name)
}

/// Returns a device as JSON.
pub fn device_json(device: &Device) -> Value {
    let info = device.info();
    json!({ "selector": format!("{}:{}", info.backend, info.index), "name": info.name })
}

impl KernelResult {
    /// Returns the result of a file for which nothing could be compared.
    pub fn failed(path: &Path, failure: Failure) -> Self {
        Self {
            path: path.to_owned(),
            kernel: String::new(),
            invocations: [0; 3],
            reference: None,
            device_results: Vec::new(),
            problem: Some(failure),
        }
    }

    /// Returns whether at least one device ran the kernel, and all devices that ran it agree with
    /// the reference.
    pub fn agrees(&self) -> bool {
        self.was_run() && self.device_results.iter().all(DeviceResult::agrees)
    }

    /// Returns whether at least one device ran the kernel.
    fn was_run(&self) -> bool {
        self.device_results.iter().any(|result| matches!(result.verdict, Verdict::Compared(_)))
    }

    /// Formats the result for people.
    pub fn text(&self) -> String {
        let path = self.path.display();
        let Some(reference) = &self.reference else {
            let problem = self.problem.as_ref().map(Failure::message).unwrap_or_default();
            // The message of a rejected shader already begins with the path.
            return match problem.starts_with(&path.to_string()) {
                true => format!("{problem}\n"),
                false => format!("{path}: {problem}\n"),
            };
        };
        let verdict = match (self.agrees(), self.was_run()) {
            (true, _) => "agrees",
            (false, true) => "DISAGREES",
            (false, false) => "NOT COMPARED: no device can run it",
        };
        let launch = grid::launch_text(self.invocations);
        let rows: Vec<Vec<String>> =
            self.device_results.iter().flat_map(DeviceResult::rows).collect();
        format!(
            "{path}: {verdict}: {}, {launch}, compared with {}\n{}",
            self.kernel,
            title(reference),
            table(&rows, "  ")
        )
    }

    /// Returns JSON for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.path.display().to_string(),
            "agrees": self.agrees(),
            "problem": self.problem.as_ref().map(Failure::message),
            "problems": self.problem.as_ref().map_or_else(Vec::new, Failure::problems),
            "kernel": self.kernel,
            "invocations": self.invocations,
            "devices": self.device_results.iter().map(DeviceResult::to_json).collect::<Vec<_>>(),
        })
    }
}

impl DeviceResult {
    fn agrees(&self) -> bool {
        match &self.verdict {
            Verdict::Compared(outputs) => outputs.iter().all(|(_, comparison)| comparison.agrees()),
            Verdict::Unsupported(_) => true,
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let title = title(&self.device);
        match &self.verdict {
            Verdict::Compared(outputs) => outputs
                .iter()
                .map(|(name, found)| vec![title.clone(), name.clone(), describe(name, found)])
                .collect(),
            Verdict::Unsupported(error) => {
                vec![vec![title, "cannot run it".to_owned(), error.to_string()]]
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut device = device_json(&self.device);
        let (unsupported, outputs) = match &self.verdict {
            Verdict::Compared(outputs) => (None, outputs.iter().map(output_json).collect()),
            Verdict::Unsupported(error) => (Some(error.to_string()), Vec::new()),
        };
        device["unsupported"] = json!(unsupported);
        device["outputs"] = Value::Array(outputs);
        device
    }
}

/// Describes the comparison of an output.
fn describe(name: &str, comparison: &Comparison) -> String {
    let Comparison { compared, mismatched, largest_ulps, largest_difference, first_difference } =
        comparison;
    // `UNDEFINED_ULPS` is the distance of unequal integers, and of a NaN and a number.
    let distance = match *largest_ulps {
        UNDEFINED_ULPS if *largest_difference == 0.0 => String::new(),
        UNDEFINED_ULPS => format!("at most {largest_difference:.2e} apart; "),
        ulps => format!("at most {ulps} ULP, {largest_difference:.2e} apart; "),
    };
    let Some(Difference { index, path, expected, found, .. }) = first_difference else {
        return match mismatched {
            0 => "equal".to_owned(),
            _ => format!("{distance}{mismatched} of {compared} numbers differ"),
        };
    };
    format!(
        "{distance}{mismatched} of {compared} numbers differ; first {name}{path} (number {index}) \
         is {found}, not {expected}"
    )
}

fn output_json((name, comparison): &(String, Comparison)) -> Value {
    let ulps = |ulps: u64| (ulps != UNDEFINED_ULPS).then_some(ulps);
    let first = comparison.first_difference.as_ref().map(|first| {
        json!({
            "index": first.index,
            "path": first.path,
            "expected": first.expected,
            "found": first.found,
            "ulps": ulps(first.ulps),
        })
    });
    json!({
        "name": name,
        "agrees": comparison.agrees(),
        "mismatched": comparison.mismatched,
        "compared": comparison.compared,
        "largest_ulps": ulps(comparison.largest_ulps),
        "largest_difference": comparison.largest_difference,
        "first_difference": first,
    })
}
