//! The command line of `scry run`, understood and free of contradictions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::args::{Counts, Data};
use crate::data::{Format, Loaded, Shape, Source, file};
use crate::report::Failure;

/// What the user asks for.
pub struct Request {
    /// `--in` and `--inout`.
    pub inputs: Vec<Input>,
    /// `--out`.
    pub outputs: Vec<Output>,
    /// `--shape`.
    pub shapes: HashMap<String, Shape>,
    /// `--push`.
    pub pushes: Vec<(String, String)>,
    /// `-n`.
    pub invocations: Option<Counts>,
    /// Invocations where neither `-n` nor an output tells how many; without it that is refused.
    pub fallback: Option<[u64; 3]>,
    /// Immediates that were made up because none were given.
    pub immediates: Option<Vec<u8>>,
    seed: u64,
}

/// Data for a buffer.
pub struct Input {
    /// Name of the buffer.
    pub name: String,
    /// Where the data is from; nothing if it was made up because none was given.
    pub source: Option<Source>,
    /// What was typed, for messages.
    pub typed: String,
    /// True for `--inout`.
    pub inout: bool,
}

/// A buffer whose content is wanted afterwards.
#[derive(Debug, Clone)]
pub struct Output {
    /// Name of the buffer.
    pub name: String,
    /// Where it is written; without, it is shown.
    pub file: Option<(PathBuf, Format)>,
}

impl Request {
    /// Understands the command line; `shaders` are the kernels' files.
    pub fn new(
        args: &Data,
        outputs: &[(String, Option<PathBuf>)],
        shaders: &[&Path],
    ) -> Result<Self, Failure> {
        let inputs = args.inputs.iter().map(|pair| (pair, "--in", false));
        let inouts = args.inouts.iter().map(|pair| (pair, "--inout", true));
        let inputs: Vec<Input> = inputs
            .chain(inouts)
            .map(|((name, text), flag, inout)| {
                let source = Source::parse(text).map_err(|f| about(f, flag, name))?;
                let source = Some(source);
                let typed = format!("{flag} {name}={text}");
                let name = name.clone();
                Ok(Input { name, source, typed, inout })
            })
            .collect::<Result<_, Failure>>()?;
        let outputs = outputs
            .iter()
            .map(|(name, path)| {
                let file = path.clone().map(|path| Format::of(&path).map(|format| (path, format)));
                let file = file.transpose().map_err(|f| about(f, "--out", name))?;
                let name = name.clone();
                Ok(Output { name, file })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let request = Self {
            inputs,
            outputs,
            shapes: shapes(args)?,
            pushes: args.pushes.clone(),
            invocations: args.invocations.clone(),
            fallback: None,
            immediates: None,
            seed: args.seed,
        };
        request.refuse_repetition()?;
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

    /// The input of a buffer.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// The output of a buffer.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    fn refuse_repetition(&self) -> Result<(), Failure> {
        let inputs: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        if let Some(name) = repeated(&inputs) {
            return Err(Failure::usage(format!(
                "`{name}` is given data twice; --in and --inout take each buffer once"
            )));
        }
        let outputs: Vec<&str> = self.outputs.iter().map(|output| output.name.as_str()).collect();
        if let Some(name) = repeated(&outputs) {
            return Err(Failure::usage(format!("--out {name} is given twice")));
        }
        Ok(())
    }

    /// Refuses outputs that cannot be written, or that would overwrite what is read.
    fn check_outputs(&self, shaders: &[&Path]) -> Result<(), Failure> {
        let paths: Vec<&Path> =
            self.outputs.iter().filter_map(|o| Some(o.file.as_ref()?.0.as_path())).collect();
        for (i, path) in paths.iter().enumerate() {
            let shown = path.display();
            if let Some(other) = paths[..i].iter().find(|other| file::same(other, path)) {
                return Err(Failure::usage(format!(
                    "two outputs go to one file: {} and {shown}",
                    other.display()
                )));
            }
            let mut read = self.inputs.iter().filter_map(|input| input.source.as_ref()?.path());
            let is_shader = shaders.iter().any(|shader| file::same(path, shader));
            if is_shader || read.any(|read| file::same(path, read)) {
                return Err(Failure::usage(format!(
                    "--out {shown}: this file is also read; give the output a name of its own"
                )));
            }
            file::check_writable(path)?;
        }
        Ok(())
    }
}

fn shapes(args: &Data) -> Result<HashMap<String, Shape>, Failure> {
    let mut shapes = HashMap::new();
    for (name, text) in &args.shapes {
        let shape = text.parse().map_err(|failure| about(failure, "--shape", name))?;
        if shapes.insert(name.clone(), shape).is_some() {
            return Err(Failure::usage(format!("--shape {name} is given twice")));
        }
    }
    Ok(shapes)
}

fn repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|(_, name)| *name)
}

/// Puts the flag before what is said about its value.
fn about(failure: Failure, flag: &str, name: &str) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(format!("{flag} {name}: {text}")),
        other => other,
    }
}
