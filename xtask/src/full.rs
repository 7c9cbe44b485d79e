//! `cargo xtask full`: runs what takes too long for CI, such as complete soak tests and seed
//! ranges, of which CI runs a part, and prints a table of results.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::repo;

/// One long run.
struct Run {
    name: &'static str,
    /// What it tests.
    what: &'static str,
    /// Environment variables, explained in CONTRIBUTING.md.
    variables: &'static [(&'static str, &'static str)],
    /// Arguments for cargo.
    cargo: &'static str,
}

const RUNS: [Run; 12] = [
    Run {
        name: "soak",
        what: "fault tests, a minute of stress each",
        variables: &[("SCRY_SOAK", "1")],
        cargo: "test --release -p scry-gpu --test faults",
    },
    Run {
        name: "random",
        what: "10,000 well-defined random kernels on every device",
        variables: &[("SCRY_FUZZ_SEEDS", "10000")],
        cargo: "test --release -p scry-gpu --test random every_device_computes_the_same",
    },
    Run {
        name: "hostile",
        what: "10,000 hostile kernels on every device, each batch in a child process",
        variables: &[],
        cargo: "run --release -p scry-cli -- fuzz --hostile --seeds 10000 -o target/full/hostile",
    },
    Run {
        name: "hostile_ir",
        what: "10,000 hostile kernels of the kernel IR on every device, and as PTX",
        variables: &[("SCRY_FUZZ_SEEDS", "10000")],
        cargo: "test --release -p scry-gpu --test hostile ir::",
    },
    Run {
        name: "passes",
        what: "10,000 hostile kernels before and after the passes of the kernel IR",
        variables: &[("SCRY_FUZZ_SEEDS", "10000")],
        cargo: "test --release -p scry-ir --lib passes_keep_accesses_in_bounds",
    },
    Run {
        name: "execute",
        what: "2,000 kernels of each kind, their PTX executed by the interpreter",
        variables: &[("SCRY_FUZZ_SEEDS", "2000")],
        cargo: "test --release -p scry-ptx --test execute",
    },
    Run {
        name: "groups",
        what: "500 random sequences of collectives and launches, 10,000 steps on every device",
        variables: &[("SCRY_FUZZ_SEEDS", "500")],
        cargo: "test --release -p scry-gpu --test groups -- --include-ignored",
    },
    Run {
        name: "model_files",
        what: "200,000 damaged files of weights and tokenizers",
        variables: &[],
        cargo: "test --release -p scry-models --test models -- --ignored many_damaged_files",
    },
    Run {
        name: "tensors",
        what: "random graphs, also above the limit of a binding and with states; large layers; all \
               operations; positions above 2^31",
        variables: &[],
        cargo: "test --release -p scry-tensor --test tensor -- --ignored large_layers ten_thousand \
                a_thousand_split operations_agree_in_many_cases thousand_random_states \
                positions_above",
    },
    Run {
        name: "chromium",
        what: "generated WGSL in headless Chromium, if SCRY_CHROMIUM names it",
        variables: &[],
        cargo: "test --release -p scry-ir --test wgsl_out chromium -- --nocapture",
    },
    Run {
        name: "peers",
        what: "crates, build time and size beside wgpu",
        variables: &[],
        cargo: "xtask size --peers",
    },
    Run {
        name: "mutation",
        what: "a wrong result in every operator of the kernel IR",
        variables: &[],
        cargo: "xtask mutation",
    },
];

/// The result of a run.
struct Outcome {
    passed: bool,
    time: Duration,
    /// The last line of the output that [`summary`] recognises.
    summary: String,
}

/// Runs the named runs, or all, in order, with the output of each in a file. Fails if one failed.
pub(crate) fn run(only: &[&str]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !RUNS.iter().any(|run| run.name == **name)) {
        bail!("there is no run `{unknown}`, only {}", RUNS.map(|run| run.name).join(", "));
    }
    let root = repo::root();
    let logs = root.join("target/full");
    fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
    let selected = RUNS.iter().filter(|run| only.is_empty() || only.contains(&run.name));
    let mut rows = Vec::new();
    for run in selected {
        eprintln!("{}: {} …", run.name, run.what);
        rows.push((run, execute(&root, run, &logs.join(format!("{}.log", run.name)))?));
    }
    println!("{:<10} {:>7}  {:<6}  what", "run", "seconds", "result");
    for (run, outcome) in &rows {
        println!("{}", row(run, outcome));
    }
    let failed = rows.iter().filter(|(_, outcome)| !outcome.passed).count();
    ensure!(failed == 0, "{failed} of {} runs failed; see {}", rows.len(), logs.display());
    Ok(())
}

fn execute(root: &Path, run: &Run, log: &Path) -> Result<Outcome> {
    let file = File::create(log).with_context(|| format!("{} cannot be made", log.display()))?;
    let mut command = repo::cargo(root);
    command.args(run.cargo.split(' ')).envs(run.variables.iter().copied());
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let start = Instant::now();
    let passed = succeeds(&mut command, run)?;
    let text = fs::read_to_string(log)?;
    Ok(Outcome { passed, time: start.elapsed(), summary: summary(&text) })
}

fn succeeds(command: &mut Command, run: &Run) -> Result<bool> {
    let status = command.status().with_context(|| format!("cargo {} cannot start", run.cargo))?;
    Ok(status.success())
}

/// Returns the last line that counts tests, operators or kernels, or has the build times.
fn summary(log: &str) -> String {
    // The last two start a device's row in the table of `scry fuzz`.
    const MARKS: [&str; 5] =
        ["test result:", "operators detected", "build, CPU seconds", "cpu:0 ", "vulkan:0 "];
    let is_summary = |line: &&str| MARKS.iter().any(|mark| line.contains(mark));
    log.lines().rev().find(is_summary).unwrap_or("no summary line").to_owned()
}

fn row(run: &Run, outcome: &Outcome) -> String {
    let result = if outcome.passed { "ok" } else { "FAILED" };
    let (seconds, summary) = (outcome.time.as_secs(), &outcome.summary);
    format!("{:<10} {seconds:>7}  {result:<6}  {}: {summary}", run.name, run.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_summary_line_is_reported() {
        let log =
            "test result: ok. 1 passed\nrunning\ntest result: FAILED. 0 passed; 1 failed\nx\n";
        assert_eq!(summary(log), "test result: FAILED. 0 passed; 1 failed");
        assert_eq!(summary("error\n"), "no summary line");
    }

    /// Returns the name of each ignored test in a source file.
    fn ignored_tests(source: &str) -> Vec<&str> {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let ignored = (0..lines.len()).filter(|n| lines[*n].starts_with("#[ignore"));
        let function = |n: usize| lines[n..].iter().find_map(|line| line.strip_prefix("fn "));
        let name = |n| function(n).and_then(|line| line.split('(').next());
        ignored.map(|n| name(n).expect("the attribute is that of a test")).collect()
    }

    #[test]
    fn ignored_tests_of_tensors_are_run() {
        let run = RUNS.iter().find(|run| run.name == "tensors").expect("the run exists");
        let (command, filters) = run.cargo.split_once(" -- --ignored ").expect("it has filters");
        assert!(command.ends_with("-p scry-tensor --test tensor"), "{command}");
        let filters: Vec<&str> = filters.split_whitespace().collect();
        let mut unused = filters.clone();
        let root = repo::root();
        for file in repo::files(&root).expect("git lists files") {
            if !file.starts_with("crates/scry-tensor/") || !file.ends_with(".rs") {
                continue;
            }
            let source = fs::read_to_string(root.join(&file)).expect("it is tracked");
            for name in ignored_tests(&source) {
                // Started by another test.
                if name.ends_with("_for_child_process") {
                    continue;
                }
                let is_built = file.starts_with("crates/scry-tensor/tests/tensor/");
                let is_run = is_built && filters.iter().any(|filter| name.contains(filter));
                assert!(is_run, "no run of `cargo xtask full` executes {name} of {file}");
                unused.retain(|filter| !name.contains(filter));
            }
        }
        assert!(unused.is_empty(), "no ignored test has {unused:?} in its name");
    }

    #[test]
    fn failed_runs_are_marked() {
        let outcome =
            Outcome { passed: false, time: Duration::from_secs(61), summary: "none".to_owned() };
        let row = row(&RUNS[0], &outcome);
        assert!(row.contains("soak") && row.contains("61") && row.contains("FAILED"), "{row}");
    }

    #[test]
    fn unknown_runs_are_rejected() {
        let error = run(&["nothing"]).unwrap_err().to_string();
        assert!(error.contains("nothing") && error.contains("soak"), "{error}");
    }
}
