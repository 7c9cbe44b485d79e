//! The result of a command: report, failure, exit code, and panics as bugs.

use std::fmt;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use scry_gpu::{ErrorKind, GpuError};
use scry_ir::{ShaderError, ShaderErrorKind};
use serde_json::{Value, json};

use crate::style;

/// Version of the JSON documents. It is incremented when a field changes its meaning or is removed.
const JSON_VERSION: u32 = 1;

/// The result of a command.
#[derive(Debug)]
pub struct Report {
    /// The text output, in whole lines.
    pub text: String,
    /// The `result` of the JSON document.
    pub json: Value,
    /// False if the command ran, but found a problem.
    pub ok: bool,
}

impl Report {
    /// Creates a report of success.
    pub fn new(text: String, json: Value) -> Self {
        Self { text, json, ok: true }
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// A file, a device or a kernel failed: exit code 1.
    Runtime(String),
    /// A shader was rejected.
    Shader(Box<RejectedShader>),
    /// The reader of standard output has closed the pipe.
    BrokenPipe,
}

/// A rejected shader.
#[derive(Debug)]
pub struct RejectedShader {
    /// The message.
    text: String,
    /// True if other command-line options would help: exit code 2 instead of 1.
    is_usage: bool,
    file: String,
    /// The entry of this problem in `scry check --json`.
    problem: Value,
}

impl Failure {
    /// Returns the failure of a file, whose path is the start of the message.
    pub fn file(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Runtime(format!("{}: {problem}", path.display()))
    }

    /// Returns the failure of a rejected shader in a file.
    pub fn shader(path: &Path, error: &ShaderError) -> Self {
        Self::shader_with_hint(path, error, None)
    }

    /// Returns the failure of a rejected shader. With a hint at options that would help, it is a
    /// usage error.
    pub fn shader_with_hint(path: &Path, error: &ShaderError, hint: Option<String>) -> Self {
        let mut text = diagnosis(path, error).trim_end().to_owned();
        if let Some(hint) = &hint {
            text.push_str(&format!("\n  {hint}"));
        }
        let file = path.display().to_string();
        let is_usage = hint.is_some();
        let problem = problem_json(&error.clone().with_label(&file));
        Self::Shader(Box::new(RejectedShader { text, is_usage, file, problem }))
    }

    /// Returns the failure of an invalid command line.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self::Usage(problem.into())
    }

    /// Returns the message.
    pub fn into_text(self) -> String {
        match self {
            Self::Usage(text) | Self::Runtime(text) => text,
            Self::Shader(rejected) => rejected.text,
            Self::BrokenPipe => String::new(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Runtime(_) => 1,
            Self::Shader(rejected) => 1 + u8::from(rejected.is_usage),
            Self::BrokenPipe => 0,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Shader(rejected) if rejected.is_usage => "usage",
            Self::Runtime(_) | Self::Shader(_) | Self::BrokenPipe => "runtime",
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Runtime(text) => text,
            Self::Shader(rejected) => &rejected.text,
            Self::BrokenPipe => "",
        }
    }

    /// Returns the problems of a rejected shader, as in `scry check --json`.
    pub fn problems(&self) -> Vec<Value> {
        match self {
            Self::Shader(rejected) => vec![rejected.problem.clone()],
            Self::Usage(_) | Self::Runtime(_) | Self::BrokenPipe => Vec::new(),
        }
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        if let GpuError::Shader(error) = &error {
            // The rendered text already has the heading that is added to every message.
            let text = error.to_string();
            return Self::Runtime(text.strip_prefix("error: ").unwrap_or(&text).to_owned());
        }
        match error.kind() {
            // Exceeding a limit of the device is not an error of the command line.
            ErrorKind::Usage if !matches!(error, GpuError::TooLarge(_)) => {
                Self::Usage(error.to_string())
            }
            _ => Self::Runtime(error.to_string()),
        }
    }
}

/// Formats `file:line:col: message`, followed by the annotated source with the file's name.
pub fn diagnosis(path: &Path, error: &ShaderError) -> String {
    let path = path.display();
    let mut text = match error.location {
        Some(it) => format!("{path}:{}:{}: {}\n", it.line, it.column, error.message),
        None => format!("{path}: {}\n", error.message),
    };
    // The renderer's first line repeats the message.
    let labelled = error.clone().with_label(path.to_string());
    for line in labelled.rendered.lines().skip(1) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns an error of a shader as JSON. Its label must be the file.
pub fn problem_json(error: &ShaderError) -> Value {
    json!({
        "line": error.location.map(|at| at.line),
        "column": error.location.map(|at| at.column),
        "kind": kind_name(&error.kind),
        "message": error.message,
        "rendered": error.rendered,
    })
}

fn kind_name(kind: &ShaderErrorKind) -> &'static str {
    use ShaderErrorKind as Kind;
    match kind {
        Kind::Parse => "parse",
        Kind::Validation => "validation",
        Kind::EntryPoint => "entry-point",
        Kind::Override => "override",
        Kind::UnsupportedFeatures(_) => "unsupported-features",
        Kind::UnsupportedConstruct => "unsupported-construct",
        Kind::TooComplex => "too-complex",
        Kind::Compiler => "compiler",
        _ => "other",
    }
}

/// Prints the result of a command and returns its exit code.
pub fn finish(command: &str, as_json: bool, outcome: Result<Report, Failure>) -> ExitCode {
    let code = match &outcome {
        Ok(report) => u8::from(!report.ok),
        Err(failure) => failure.exit_code(),
    };
    let printed = if as_json {
        print_bytes(format!("{:#}\n", document(command, outcome)).as_bytes())
    } else {
        match outcome {
            Ok(report) => print(&report.text),
            Err(Failure::BrokenPipe) => Ok(()),
            Err(failure) => {
                print_error(failure.message());
                Ok(())
            }
        }
    };
    match printed {
        Ok(()) | Err(Failure::BrokenPipe) => ExitCode::from(code),
        Err(failure) => {
            print_error(failure.message());
            ExitCode::from(1)
        }
    }
}

fn document(command: &str, outcome: Result<Report, Failure>) -> Value {
    let mut document = json!({ "version": JSON_VERSION, "command": command });
    match outcome {
        Ok(report) => {
            document["ok"] = json!(report.ok);
            document["result"] = report.json;
        }
        Err(failure) => {
            document["ok"] = json!(false);
            document["error"] = json!({ "kind": failure.kind(), "message": failure.message() });
            if let Failure::Shader(rejected) = &failure {
                document["error"]["file"] = json!(rejected.file);
                document["error"]["problems"] = json!(failure.problems());
            }
        }
    }
    document
}

/// Writes text to standard output, with colours on a terminal.
pub fn print(text: &str) -> Result<(), Failure> {
    match style::has_colours(&io::stdout()) {
        true => write_to(anstream::stdout().lock(), style::paint(text).as_bytes()),
        false => print_bytes(text.as_bytes()),
    }
}

/// Writes bytes to standard output.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write_to(io::stdout().lock(), bytes)
}

fn write_to(mut out: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::BrokenPipe),
        Err(error) => Err(Failure::Runtime(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Makes text of a driver or of another process safe to print: escapes control characters except
/// newlines and tabs, and truncates to 2000 characters.
pub fn printable(text: &str) -> String {
    const MAX_CHARACTERS: usize = 2000;
    let mut printable = String::new();
    for (index, char) in text.chars().enumerate() {
        match char {
            _ if index == MAX_CHARACTERS => {
                printable.push('…');
                break;
            }
            '\n' | '\t' => printable.push(char),
            char if char.is_control() => printable.extend(char.escape_default()),
            char => printable.push(char),
        }
    }
    printable
}

/// Writes a line to standard error, with colours on a terminal. A failure is ignored, since it
/// could not be reported.
pub fn note(text: &str) {
    let _ = match style::has_colours(&io::stderr()) {
        true => writeln!(anstream::stderr().lock(), "{}", style::paint(text)),
        false => writeln!(io::stderr().lock(), "{text}"),
    };
}

fn print_error(message: &str) {
    note(&format!("error: {message}"));
}

/// The location and the message of the last panic.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program; a panic is reported as a bug, without the runtime's panic text.
pub fn report_panics(program: impl FnOnce() -> ExitCode + panic::UnwindSafe) -> ExitCode {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let location = info.location().map(ToString::to_string);
        if let Ok(mut last) = PANIC.lock() {
            *last = Some(format!(
                "{} ({})",
                text.unwrap_or("no message"),
                location.as_deref().unwrap_or("unknown place")
            ));
        }
    }));
    panic::catch_unwind(program).unwrap_or_else(|_| {
        let detail = PANIC.lock().ok().and_then(|mut last| last.take());
        print_error(&format!(
            "this is a bug in scry: {}\n  \
             please report it with the command line and the input files",
            detail.as_deref().unwrap_or("no message")
        ));
        ExitCode::from(1)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\0b\u{1b}[1m\n\tcafé"), "a\\u{0}b\\u{1b}[1m\n\tcafé");
        assert_eq!(printable(&"x".repeat(3000)).chars().count(), 2001);
    }

    /// A panic hook applies to all threads, so the panic happens in a child process, which runs
    /// this test with an environment variable.
    #[test]
    fn panics_are_reported_as_bugs() {
        const INSIDE: &str = "SCRY_TEST_PANIC";
        if std::env::var_os(INSIDE).is_some() {
            let code = report_panics(|| panic!("the cat is out"));
            let is_one = format!("{code:?}") == format!("{:?}", ExitCode::from(1));
            std::process::exit(if is_one { 1 } else { 3 });
        }
        let name = "report::tests::panics_are_reported_as_bugs";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("bug in scry: the cat is out"), "{said}");
        assert!(said.contains("report.rs:"), "the location is named: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
