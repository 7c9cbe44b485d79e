//! `scry emit`: a kernel in another language.

use std::path::Path;

use scry_ir::{Outline, Program, SpirvOptions};
use serde_json::json;

use super::{options, read_source, refused};
use crate::args::{Emit, Target};
use crate::data::file;
use crate::report::{self, Failure, Report};

/// Translates a kernel and writes it.
pub fn run(args: &Emit, json: bool) -> Result<Report, Failure> {
    let to_stdout = args.output == Path::new("-");
    if to_stdout && json {
        return Err(Failure::usage(
            "-o - and --json both want standard output; give -o the name of a file",
        ));
    }
    let source = read_source(&args.file)?;
    if !to_stdout {
        if file::same(&args.output, &args.file) {
            return Err(Failure::usage(format!(
                "-o {}: this is the source; it would be overwritten",
                args.output.display()
            )));
        }
        file::check_writable(&args.output)?;
    }
    let failed = |error| Failure::shader(&args.file, &error);
    let outline = Outline::read(&source).map_err(failed)?;
    let program = Program::with_options(&source, &options(&args.selection, []))
        .map_err(|error| refused(&args.file, &outline, &error))?;
    let Target::Spirv = args.target;
    let spirv = SpirvOptions {
        version: (1, 3),
        checked: !args.unchecked,
        native_workgroup_zeroing: false,
        folded: false,
    };
    let words = program.to_spirv(&spirv).map_err(failed)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();

    let entry = &program.interface().entry_point;
    if to_stdout {
        report::print_bytes(&bytes)?;
        return Ok(Report::new(String::new(), json!(null)));
    }
    file::write(&args.output, |out| out.write_all(&bytes))?;
    let output = args.output.display().to_string();
    Ok(Report::new(
        format!("{entry} -> {output}, {} bytes of SPIR-V 1.3\n", bytes.len()),
        json!({ "entry_point": entry, "target": "spirv", "file": output, "bytes": bytes.len() }),
    ))
}
