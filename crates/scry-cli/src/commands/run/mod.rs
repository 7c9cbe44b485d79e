//! `scry run`: runs a kernel on files and generated data.
//!
//! The order is: parse the command line, read the files, reflect the kernel, determine every
//! buffer, parameter and the size of the launch, and only then open a device.

mod execute;
mod fit;
pub(super) mod grid;
mod immediates;
mod output;
pub(super) mod plan;
mod repeat;
pub(super) mod request;
mod results;
pub(super) mod slot;
mod values;

use scry_ir::{Options, Outline, OverrideValue, Program};

use self::request::Request;
use super::{compile_options, open, options, read_source, shader_failure};
use crate::args::{Run, Selection};
use crate::data::Loaded;
use crate::report::{self, Failure, Report};

/// Runs the kernel, writes its outputs and returns the report.
pub fn run(args: &Run, json: bool) -> Result<Report, Failure> {
    let request = Request::new(&args.data, &args.outputs, &[&args.file])?;
    if json && request.uses_stdout() {
        return Err(Failure::usage(
            "an output to - and --json both write to standard output; give the output a file",
        ));
    }
    let source = read_source(&args.file)?;
    let failure = |error| Failure::shader(&args.file, &error);
    let outline = Outline::read(&source).map_err(failure)?;
    let loaded = request.load()?;
    let sizes = image_sizes(&outline, &loaded, &args.selection);
    let options = options(&args.selection, sizes);
    let program = Program::with_options(&source, &options).map_err(|error| {
        misspelt_buffer(&request, &source, &outline, &args.selection)
            .unwrap_or_else(|| shader_failure(&args.file, &outline, &error))
    })?;
    let plan = plan::make(&request, loaded, program.interface())?;

    let device = open(args.device.device.as_deref())?;
    plan.reject_too_large(&device)?;
    let options = compile_options(&args.file, options);
    let results = execute::execute(&device, args, &source, &options, plan)?;
    results.save()?;
    let mut report = results.report(&device, args.time);
    if request.uses_stdout() {
        report::note(std::mem::take(&mut report.text).trim_end());
    }
    Ok(report)
}

/// Checks whether compilation failed because of a misspelt buffer name, and returns that error:
/// with `--in scr=photo.png`, `src_width` is never set.
pub(super) fn misspelt_buffer(
    request: &Request,
    source: &str,
    outline: &Outline,
    selection: &Selection,
) -> Option<Failure> {
    let overrides = outline.assume(&selection.set).values;
    let entry = selection.entry.clone();
    let options = Options { entry, overrides, ..Options::default() };
    let program = Program::with_options(source, &options).ok()?;
    plan::reject_unknown(request, program.interface()).err()
}

/// Returns the overrides `NAME_width` and `NAME_height` of image inputs, if they are declared and
/// not set explicitly.
pub(super) fn image_sizes(
    outline: &Outline,
    loaded: &[(String, Loaded)],
    selection: &Selection,
) -> Vec<(String, OverrideValue)> {
    let sizes = loaded.iter().filter_map(|(name, loaded)| match loaded {
        Loaded::Image(image) => Some([
            (format!("{name}_width"), image.width.into()),
            (format!("{name}_height"), image.height.into()),
        ]),
        _ => None,
    });
    let is_needed = |(name, _): &(String, OverrideValue)| {
        let declared = outline.overrides.iter().find(|declared| declared.name == *name);
        declared.is_some_and(|d| !selection.set.iter().any(|(key, _)| d.matches_key(key)))
    };
    sizes.flatten().filter(is_needed).collect()
}
