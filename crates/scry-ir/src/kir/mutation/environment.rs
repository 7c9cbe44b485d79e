//! Mutation by environment variable, for a test suite that runs unchanged.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::Thread;

use super::{mutate, operators, operators_of};
use crate::kir::Kir;

/// What the environment variables request.
struct Request {
    /// `SCRY_MUTATION`: the operator to mutate.
    operator: Option<String>,
    /// `SCRY_MUTATION_LOG`: the log of operators compiled by each thread.
    log: Option<String>,
}

/// Mutates a kernel as the environment variables `SCRY_MUTATION` and `SCRY_MUTATION_LOG` request;
/// does nothing if they are not set. Backends call it with each kernel that they compile. `caller`
/// is the thread that requested the compilation.
pub fn mutate_as_requested(kir: &mut Kir, caller: &Thread) {
    let request = Request::shared();
    if let Some(log) = &request.log {
        append(log.as_ref(), caller.name().unwrap_or("?"), operators_of(kir));
    }
    if let Some(operator) = &request.operator {
        mutate(kir, operator);
    }
}

/// Returns whether a mutation or the log is requested: then kernels must not be read from or
/// written to caches.
#[must_use]
pub fn is_requested() -> bool {
    let request = Request::shared();
    request.operator.is_some() || request.log.is_some()
}

impl Request {
    fn shared() -> &'static Self {
        static REQUEST: OnceLock<Request> = OnceLock::new();
        REQUEST.get_or_init(Self::read)
    }

    fn read() -> Self {
        let value = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let request = Self { operator: value("SCRY_MUTATION"), log: value("SCRY_MUTATION_LOG") };
        if let Some(operator) = &request.operator {
            eprintln!("SCRY_MUTATION is set: every `{operator}` returns a wrong result");
        }
        if let Some(log) = &request.log {
            // The list of all operators, which belong to no thread.
            append(log.as_ref(), "", operators());
        }
        request
    }
}

/// Appends a line `thread<TAB>operator` for each operator. A failure to write the log is only
/// reported on stderr: it does not fail the test that is running.
fn append(log: &Path, thread: &str, operators: impl IntoIterator<Item = String>) {
    let lines: String = operators.into_iter().map(|name| format!("{thread}\t{name}\n")).collect();
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        // A single write, so that lines of several threads do not mix.
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("{}, of SCRY_MUTATION_LOG, cannot be written: {error}", log.display());
    }
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn lines_name_thread_and_operator() {
        let name = format!("scry-mutation-{}.log", std::process::id());
        let log = std::env::temp_dir().join(name);
        append(&log, "a::test", ["add.f32", "lt.u32"].map(str::to_owned));
        append(&log, "", ["sub.f32".to_owned()]);
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        assert_eq!(text, "a::test\tadd.f32\na::test\tlt.u32\n\tsub.f32\n");
    }
}
