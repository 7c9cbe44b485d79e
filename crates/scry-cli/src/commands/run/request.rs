//! The parsed and checked command line of `scry run`.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::Path;

use super::slot::Slot;
use crate::args::{Counts, DataArgs};
use crate::data::{Dtype, Format, Loaded, Location, Shape, Source, file};
use crate::report::Failure;

/// The data and outputs that the user requested.
pub struct Request {
    /// `--in` and `--inout`; for `scry verify` also generated data.
    pub inputs: Vec<Input>,
    /// `--out`.
    pub outputs: Vec<Output>,
    /// `--cast`.
    pub casts: Vec<(String, Dtype)>,
    /// `--shape`.
    pub shapes: HashMap<String, Shape>,
    /// `--immediate`.
    pub immediates: Vec<(String, String)>,
    /// `-n`.
    pub invocations: Option<Counts>,
    /// Invocations if neither `-n` nor an output determines them; `None` makes that an error.
    pub default_invocations: Option<[u64; 3]>,
    /// Generated immediates, if none were set.
    pub generated_immediates: Option<Vec<u8>>,
    seed: u64,
}

/// Data for a buffer.
pub struct Input {
    /// Name of the buffer.
    pub name: String,
    /// The source of the data; `None` if it was generated because none was set.
    pub source: Option<Source>,
    /// What to call it in messages: the option, such as `--in x=x.npy`, or `generated data for x`.
    pub argument: String,
    /// True for `--inout`, and for generated data of a buffer that the kernel writes.
    pub inout: bool,
}

/// A buffer that is an output.
#[derive(Debug, Clone)]
pub struct Output {
    /// Name of the buffer.
    pub name: String,
    /// The file to write; without one, the first values are printed.
    pub file: Option<Location>,
    /// The element type of the file, if it is not the kernel's.
    pub cast: Option<Dtype>,
}

impl Request {
    /// Parses the command line; `shaders` are the kernels' files.
    pub fn new(
        args: &DataArgs,
        outputs: &[(String, Option<String>)],
        shaders: &[&Path],
    ) -> Result<Self, Failure> {
        let inputs = args.inputs.iter().map(|pair| (pair, "--in", false));
        let inouts = args.inouts.iter().map(|pair| (pair, "--inout", true));
        let inputs: Vec<Input> = inputs
            .chain(inouts)
            .map(|((name, text), flag, inout)| {
                let source = Source::parse(text).map_err(|f| with_flag(f, flag, name))?;
                let source = Some(source);
                let argument = format!("{flag} {name}={text}");
                let name = name.clone();
                Ok(Input { name, source, argument, inout })
            })
            .collect::<Result<_, Failure>>()?;
        let outputs = outputs
            .iter()
            .map(|(name, text)| {
                let file = text.as_deref().map(Location::parse).transpose();
                let mut file = file.map_err(|f| with_flag(f, "--out", name))?;
                if let Some(Location { format: Format::Npz, member, .. }) = &mut file {
                    member.get_or_insert_with(|| name.clone());
                }
                Ok(Output { name: name.clone(), file, cast: None })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let request = Self {
            inputs,
            outputs,
            casts: parse_casts(args)?,
            shapes: parse_shapes(args)?,
            immediates: args.immediates.clone(),
            invocations: args.invocations.clone(),
            default_invocations: None,
            generated_immediates: None,
            seed: args.seed,
        };
        request.reject_repetition()?;
        request.check_outputs(shaders)?;
        Ok(request)
    }

    /// Reads all inputs.
    pub fn load(&self) -> Result<Vec<(String, Loaded)>, Failure> {
        let load = |input: &Input| {
            let loaded = input.source.as_ref()?.load(self.seed, &input.name);
            Some(loaded.map(|loaded| (input.name.clone(), loaded)))
        };
        self.inputs.iter().filter_map(load).collect()
    }

    /// Returns the input of a buffer.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Returns the output of a buffer.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    /// Returns whether `--cast` converts to this type.
    pub fn casts_to(&self, name: &str, dtype: Dtype) -> bool {
        self.casts.iter().any(|(cast, to)| cast == name && *to == dtype)
    }

    /// Returns the type of an output's file by `--cast`, if it is not the kernel's.
    pub fn cast_of_output(&self, slot: &Slot) -> Option<Dtype> {
        let mut casts = self.casts.iter().filter(|(name, _)| *name == slot.name);
        casts.find(|(_, to)| Some(*to) != slot.dtype).map(|(_, to)| *to)
    }

    /// Rejects several inputs or outputs for a buffer, and several inputs from standard input.
    fn reject_repetition(&self) -> Result<(), Failure> {
        let inputs: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        if let Some(name) = first_repeated(&inputs) {
            return Err(Failure::usage(format!(
                "buffer `{name}` has two inputs; give one --in or --inout per buffer"
            )));
        }
        let outputs: Vec<&str> = self.outputs.iter().map(|output| output.name.as_str()).collect();
        if let Some(name) = first_repeated(&outputs) {
            return Err(Failure::usage(format!("--out {name} is repeated")));
        }
        let streams =
            self.inputs.iter().filter(|input| input.source.as_ref().is_some_and(Source::is_stdin));
        let streams: Vec<String> = streams.map(|input| format!("`{}`", input.name)).collect();
        if streams.len() > 1 {
            return Err(Failure::usage(format!(
                "{} would all be read from standard input, which can supply only one",
                streams.join(", ")
            )));
        }
        Ok(())
    }

    /// Returns whether an output goes to standard output. Nothing else may then be written there.
    pub fn uses_stdout(&self) -> bool {
        let mut files = self.outputs.iter().filter_map(|output| output.file.as_ref());
        files.any(|file| file.path.is_none())
    }

    /// Rejects outputs that cannot be written, or that would overwrite inputs or each other.
    fn check_outputs(&self, shaders: &[&Path]) -> Result<(), Failure> {
        let files: Vec<&Location> = self.outputs.iter().filter_map(|o| o.file.as_ref()).collect();
        for (i, file) in files.iter().enumerate() {
            if let Some(other) = files[..i].iter().find(|other| overwrites(file, other)) {
                return Err(Failure::usage(shared_destination(other, file)));
            }
            let Some(path) = &file.path else {
                if io::stdout().is_terminal() {
                    return Err(Failure::usage(format!(
                        "--out {file}: standard output is a terminal, and the data is binary; \
                         redirect it to a file or a pipe"
                    )));
                }
                continue;
            };
            let mut sources = self.inputs.iter().filter_map(|input| input.source.as_ref()?.path());
            let is_shader = shaders.iter().any(|shader| file::is_same(path, shader));
            if is_shader || sources.any(|source| file::is_same(path, source)) {
                return Err(Failure::usage(format!(
                    "--out {file}: this file is also an input; choose another output file"
                )));
            }
            file::check_writable(path)?;
        }
        Ok(())
    }
}

/// Returns whether one output would replace another.
fn overwrites(a: &Location, b: &Location) -> bool {
    let is_same_file = match (&a.path, &b.path) {
        (Some(a), Some(b)) => file::is_same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let are_archives = a.format == Format::Npz && b.format == Format::Npz;
    is_same_file && !(are_archives && a.member != b.member)
}

/// Returns the problem of two outputs of which one would replace the other.
fn shared_destination(first: &Location, second: &Location) -> String {
    if first.path.is_none() {
        return "only one output can go to standard output; write the others to files".to_owned();
    }
    match (first.format, second.format) {
        (Format::Npz, Format::Npz) => format!(
            "{second} is the destination of two outputs; give each its own array, as in \
             FILE.npz:NAME"
        ),
        _ => {
            format!(
                "{first} and {second} write to the same file; only an .npz holds several arrays"
            )
        }
    }
}

fn parse_casts(args: &DataArgs) -> Result<Vec<(String, Dtype)>, Failure> {
    let mut casts: Vec<(String, Dtype)> = Vec::new();
    for (name, text) in &args.casts {
        let dtype = Dtype::from_name(text).ok_or_else(|| {
            let names = Dtype::names();
            Failure::usage(format!("--cast {name}={text}: the type is one of {names}"))
        })?;
        if casts.contains(&(name.clone(), dtype)) {
            return Err(Failure::usage(format!("--cast {name}={text} is repeated")));
        }
        casts.push((name.clone(), dtype));
    }
    Ok(casts)
}

fn parse_shapes(args: &DataArgs) -> Result<HashMap<String, Shape>, Failure> {
    let mut shapes = HashMap::new();
    for (name, text) in &args.shapes {
        let shape = text.parse().map_err(|failure| with_flag(failure, "--shape", name))?;
        if shapes.insert(name.clone(), shape).is_some() {
            return Err(Failure::usage(format!("--shape {name} is repeated")));
        }
    }
    Ok(shapes)
}

fn first_repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|(_, name)| *name)
}

/// Prefixes a failure with the flag.
fn with_flag(failure: Failure, flag: &str, name: &str) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(format!("{flag} {name}: {text}")),
        other => other,
    }
}
