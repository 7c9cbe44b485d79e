//! `scry check`: checks every kernel of every file.

use std::path::Path;

use scry_gpu::{Device, GpuError};
use scry_ir::{AssumedOverrides, Options, Outline, OverrideValue, Program, ShaderError};
use serde_json::{Value, json};

use super::{compile_options, open, read_source};
use crate::args::{Check, Selection};
use crate::report::{Failure, Report, diagnosis, problem_json};

/// The result for one file.
struct FileResult {
    /// The valid kernels.
    kernels: Vec<String>,
    /// Overrides whose value was assumed, since they have no default.
    assumed: Vec<String>,
    problems: Vec<Problem>,
}

/// A problem of a file or of a kernel in it.
enum Problem {
    Shader(ShaderError),
    /// The file could not be read, or the device could not compile the kernel.
    Other(String),
}

/// Checks the files. The report is not `ok` if one of them has a problem.
///
/// # Errors
/// [`Failure::Usage`] if no file declares an override of `--set`; that of [`open`] with `--device`.
pub fn run(args: &Check) -> Result<Report, Failure> {
    let device = match args.device.as_deref() {
        Some(selector) => Some(open(Some(selector))?),
        None => None,
    };
    // For each --set, whether a file declares that override.
    let mut used = vec![false; args.selection.set.len()];
    let mut report = Report::new(String::new(), Value::Null);
    let mut files = Vec::new();
    for path in &args.files {
        let result = check_file(path, &args.selection, device.as_ref(), &mut used);
        report.ok &= result.problems.is_empty();
        report.text.push_str(&text(path, &result));
        files.push(to_json(path, &result));
    }
    // An unreadable file may be the one that declares the override.
    if report.ok
        && let Some(unused) = used.iter().position(|used| !used)
    {
        let (name, _) = &args.selection.set[unused];
        return Err(Failure::usage(format!("--set {name}: no file declares this override")));
    }
    report.json = json!({ "files": files });
    Ok(report)
}

fn check_file(
    path: &Path,
    selection: &Selection,
    device: Option<&Device>,
    used: &mut [bool],
) -> FileResult {
    let mut result = FileResult { kernels: Vec::new(), assumed: Vec::new(), problems: Vec::new() };
    let source = match read_source(path) {
        Ok(source) => source,
        Err(failure) => {
            result.problems.push(Problem::Other(failure.message().to_owned()));
            return result;
        }
    };
    let outline = match Outline::read(&source) {
        Ok(outline) => outline,
        Err(error) => {
            result.problems.push(shader_problem(path, error));
            return result;
        }
    };
    let AssumedOverrides { values: overrides, assumed } = outline.assume(&selection.set);
    for ((key, _), used) in selection.set.iter().zip(used) {
        *used |= outline.overrides.iter().any(|declared| declared.matches_key(key));
    }
    result.assumed = assumed;
    let entries: Vec<Option<String>> = match &selection.entry {
        Some(entry) => vec![Some(entry.clone())],
        // Compiling without an entry point reports that there is none.
        None if outline.entry_points.is_empty() => vec![None],
        None => outline.entry_points.iter().cloned().map(Some).collect(),
    };
    for entry in entries {
        match check_kernel(path, &source, entry, &overrides, device) {
            Ok(kernel) => result.kernels.push(kernel),
            Err(problem) => result.add(problem),
        }
    }
    result
}

impl FileResult {
    /// Adds a problem, unless another kernel of the file has it too.
    fn add(&mut self, problem: Problem) {
        let is_known = self.problems.iter().any(|other| match (other, &problem) {
            (Problem::Shader(a), Problem::Shader(b)) => a == b,
            (Problem::Other(a), Problem::Other(b)) => a == b,
            _ => false,
        });
        if !is_known {
            self.problems.push(problem);
        }
    }
}

/// Returns the problem of a rejected shader; the path is its label.
fn shader_problem(path: &Path, error: ShaderError) -> Problem {
    Problem::Shader(error.with_label(path.display().to_string()))
}

/// Prefixes a text with the file's name, unless it starts with it, as errors about kernels do.
fn with_file_prefix(path: &Path, text: String) -> String {
    let file = format!("{}: ", path.display());
    if text.starts_with(&file) { text } else { file + &text }
}

fn check_kernel(
    path: &Path,
    source: &str,
    entry: Option<String>,
    overrides: &[(String, OverrideValue)],
    device: Option<&Device>,
) -> Result<String, Problem> {
    let options = Options { entry, overrides: overrides.to_vec(), ..Options::default() };
    let program = Program::with_options(source, &options).map_err(|it| shader_problem(path, it))?;
    if let Some(device) = device {
        let options = compile_options(path, options);
        device.compile_with(source, &options).map_err(|error| match error {
            GpuError::Shader(error) => Problem::Shader(*error),
            other => Problem::Other(with_file_prefix(path, other.to_string())),
        })?;
    }
    Ok(program.interface().entry_point.clone())
}

fn text(path: &Path, result: &FileResult) -> String {
    let FileResult { kernels, assumed, problems } = result;
    let mut text = String::new();
    for problem in problems {
        match problem {
            Problem::Shader(error) => {
                text.push_str(&diagnosis(path, error));
                text.push('\n');
            }
            Problem::Other(problem) => text.push_str(&format!("{problem}\n")),
        }
    }
    if problems.is_empty() {
        text.push_str(&format!("{}: ok: {}", path.display(), kernels.join(", ")));
        if !assumed.is_empty() {
            text.push_str(&format!(" (with {} = 1, see --set)", assumed.join(" = ")));
        }
        text.push('\n');
    }
    text
}

fn to_json(path: &Path, result: &FileResult) -> Value {
    let problems: Vec<Value> = result
        .problems
        .iter()
        .map(|problem| match problem {
            Problem::Shader(error) => problem_json(error),
            Problem::Other(problem) => json!({ "kind": "other", "message": problem }),
        })
        .collect();
    json!({
        "file": path.display().to_string(),
        "ok": result.problems.is_empty(),
        "kernels": result.kernels,
        "assumed": result.assumed,
        "problems": problems,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_prefix_is_added_once() {
        let path = Path::new("k.wgsl");
        let named = with_file_prefix(path, "k.wgsl: kernel `main` needs f64".to_owned());
        assert_eq!(named, "k.wgsl: kernel `main` needs f64");
        assert_eq!(
            with_file_prefix(path, "the device is lost".to_owned()),
            "k.wgsl: the device is lost"
        );
    }
}
