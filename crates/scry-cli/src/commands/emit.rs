//! `scry emit`: translates a kernel to another language.

use std::path::{Path, PathBuf};

use scry_ir::kir::{Kir, KirOptions};
use scry_ir::{Outline, Program, ShaderError, SpirvOptions};
use scry_ptx::PtxOptions;
use serde_json::json;

use super::{options, read_source, shader_failure};
use crate::args::{Emit, Target};
use crate::data::file;
use crate::report::{self, Failure, Report};

/// A translated kernel.
struct Translation {
    bytes: Vec<u8>,
    /// Language and version.
    language: String,
}

/// Translates a kernel and writes it.
pub fn run(args: &Emit, json: bool) -> Result<Report, Failure> {
    let output = output_path(args, json)?;
    let source = read_source(&args.file)?;
    if let Some(output) = &output {
        if file::is_same(output, &args.file) {
            return Err(Failure::usage(format!(
                "-o {}: the output would overwrite the source file",
                output.display()
            )));
        }
        file::check_writable(output)?;
    }
    let outline = Outline::read(&source).map_err(|error| Failure::shader(&args.file, &error))?;
    let program = Program::with_options(&source, &options(&args.selection, []))
        .map_err(|error| shader_failure(&args.file, &outline, &error))?;
    let Translation { bytes, language } = match args.target {
        Target::Spirv => spirv(&program, args)?,
        Target::Ptx => ptx(&program, args)?,
        Target::Wgsl => wgsl(&program, args)?,
        Target::Kir => kir(&program, args)?,
    };
    let Some(output) = output else {
        report::print_bytes(&bytes)?;
        return Ok(Report::new(String::new(), json!(null)));
    };
    file::write(&output, &mut |out| out.write_all(&bytes))?;
    let entry = &program.interface().entry_point;
    let (file, target) = (output.display().to_string(), args.target.name());
    Ok(Report::new(
        format!("{entry} -> {file}, {} bytes of {language}\n", bytes.len()),
        json!({ "entry_point": entry, "target": target, "file": file, "bytes": bytes.len() }),
    ))
}

/// Returns the file to write; `None` for standard output.
fn output_path(args: &Emit, json: bool) -> Result<Option<PathBuf>, Failure> {
    let output = match (&args.output, args.target) {
        (Some(output), _) => output.clone(),
        (None, Target::Ptx | Target::Wgsl | Target::Kir) => PathBuf::from("-"),
        (None, Target::Spirv) => {
            return Err(Failure::usage(
                "SPIR-V is binary; name a file with --output, or - for standard output",
            ));
        }
    };
    match (output == Path::new("-"), json) {
        (true, true) => {
            Err(Failure::usage("-o - and --json both write to standard output; give -o a file"))
        }
        (true, false) => Ok(None),
        (false, _) => Ok(Some(output)),
    }
}

fn spirv(program: &Program, args: &Emit) -> Result<Translation, Failure> {
    let options = SpirvOptions::portable(!args.unchecked);
    let words = program.to_spirv(&options).map_err(|error| failure_of(args, &error))?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(Translation { bytes, language: "SPIR-V 1.3".to_owned() })
}

fn ptx(program: &Program, args: &Emit) -> Result<Translation, Failure> {
    let options = KirOptions { checked: !args.unchecked };
    let translate = |kir| scry_ptx::translate(&kir, &PtxOptions::new(args.sm));
    let ptx = program.with_kir(&options, translate).map_err(|error| failure_of(args, &error))?;
    let language = format!("PTX {} for {}", ptx.version, args.sm);
    Ok(Translation { bytes: ptx.text.into_bytes(), language })
}

fn wgsl(program: &Program, args: &Emit) -> Result<Translation, Failure> {
    let options = KirOptions { checked: !args.unchecked };
    let text = program
        .with_kir(&options, |kir| kir.to_wgsl(program.interface()))
        .and_then(|text| text)
        .map_err(|error| failure_of(args, &error))?;
    Ok(Translation { bytes: text.into_bytes(), language: "WGSL".to_owned() })
}

fn kir(program: &Program, args: &Emit) -> Result<Translation, Failure> {
    let options = KirOptions { checked: !args.unchecked };
    let print = |mut kir: Kir| {
        kir.source.name = Some(args.file.display().to_string());
        kir.with_positions().to_string()
    };
    let text = program.with_kir(&options, print).map_err(|error| failure_of(args, &error))?;
    Ok(Translation { bytes: text.into_bytes(), language: "kernel IR".to_owned() })
}

fn failure_of(args: &Emit, error: &ShaderError) -> Failure {
    Failure::shader(&args.file, error)
}
