//! Mutation by environment variable, for a test suite that runs unchanged.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::Thread;

use super::{mutate, operators, operators_of};
use crate::kir::Kir;

/// What the environment asks for.
struct Plan {
    /// `SCRY_MUTATION`: the operator whose results are to be wrong.
    operator: Option<String>,
    /// `SCRY_MUTATION_LOG`: the file that says which thread compiled which operators.
    log: Option<String>,
}

/// Does to a kernel what the environment variables `SCRY_MUTATION` and `SCRY_MUTATION_LOG` ask for,
/// nothing if they are not set. To be called by a backend with the kernel that it will compile.
/// `caller` is the thread that wants the kernel compiled.
pub fn mutate_as_requested(kir: &mut Kir, caller: &Thread) {
    let plan = Plan::shared();
    if let Some(log) = &plan.log {
        append(log.as_ref(), caller.name().unwrap_or("?"), operators_of(kir));
    }
    if let Some(operator) = &plan.operator {
        mutate(kir, operator);
    }
}

/// Whether [`mutate_as_requested`] does anything: then kernels are to be compiled anew, and not
/// kept.
#[must_use]
pub fn is_requested() -> bool {
    let plan = Plan::shared();
    plan.operator.is_some() || plan.log.is_some()
}

impl Plan {
    fn shared() -> &'static Self {
        static PLAN: OnceLock<Plan> = OnceLock::new();
        PLAN.get_or_init(Self::read)
    }

    fn read() -> Self {
        let value = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let plan = Self { operator: value("SCRY_MUTATION"), log: value("SCRY_MUTATION_LOG") };
        if let Some(operator) = &plan.operator {
            eprintln!("SCRY_MUTATION is set: every `{operator}` gives a wrong result");
        }
        if let Some(log) = &plan.log {
            append(log.as_ref(), "", operators());
        }
        plan
    }
}

/// Adds a line `who<TAB>operator` for each operator. A log that cannot be written is no reason to
/// fail: whoever reads it finds it incomplete.
fn append(log: &Path, who: &str, operators: impl IntoIterator<Item = String>) {
    let lines: String = operators.into_iter().map(|name| format!("{who}\t{name}\n")).collect();
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        // At once, so that lines of several threads do not mix.
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("{}, of SCRY_MUTATION_LOG, cannot be written: {error}", log.display());
    }
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn lines_name_who_and_what() {
        let name = format!("scry-mutation-{}.log", std::process::id());
        let log = std::env::temp_dir().join(name);
        append(&log, "a::test", ["add.f32", "lt.u32"].map(str::to_owned));
        append(&log, "", ["sub.f32".to_owned()]);
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        assert_eq!(text, "a::test\tadd.f32\na::test\tlt.u32\n\tsub.f32\n");
    }
}
