//! `cargo xtask mutation`: checks that the conformance suite detects a wrong result of each
//! operator.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{artifact, repo};

/// Minimum timeout after which a mutated kernel whose loop no longer terminates counts as detected.
const MIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of tests to run first; the others that use the operator follow if none of these fails.
const FIRST_TESTS: usize = 6;

/// The tests that compile each operator.
type TestsByOperator = BTreeMap<String, BTreeSet<String>>;

/// Mutates the named operators, or all, one at a time, and runs the tests that use it on the
/// CPU device. Fails if a mutation is not detected.
pub(crate) fn run(only: &[&str]) -> Result<()> {
    let suite = Suite::build(&repo::root())?;
    let (tests_by_operator, unmutated) = suite.tests_by_operator()?;
    let timeout = timeout(unmutated);
    if let Some(unknown) = only.iter().find(|name| !tests_by_operator.contains_key(**name)) {
        let names: Vec<&str> = tests_by_operator.keys().map(String::as_str).collect();
        bail!("there is no operator `{unknown}`, only {}", names.join(", "));
    }
    let is_selected = |name: &str| only.is_empty() || only.contains(&name);
    let selected: Vec<_> = tests_by_operator.iter().filter(|(name, _)| is_selected(name)).collect();
    let mut undetected = Vec::new();
    for (index, (operator, tests)) in selected.iter().enumerate() {
        let verdict = suite.verdict(operator, tests, timeout)?;
        println!("{:>4}/{} {operator:<40} {verdict}", index + 1, selected.len());
        if !matches!(verdict, Verdict::Detected(_)) {
            undetected.push(operator.as_str());
        }
    }
    println!("{} of {} operators detected", selected.len() - undetected.len(), selected.len());
    ensure!(undetected.is_empty(), "wrong results went undetected: {}", undetected.join(", "));
    Ok(())
}

/// Returns the timeout of mutated tests, from the time of all tests without a mutation.
fn timeout(unmutated: Duration) -> Duration {
    MIN_TIMEOUT.max(4 * unmutated)
}

/// The result of a mutation.
enum Verdict {
    /// A test failed, or the time was up; the number of tests run.
    Detected(usize),
    /// All tests passed; their number.
    Undetected(usize),
    /// No test uses the operator.
    Unreached,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Detected(tests) => write!(f, "detected ({tests} tests run)"),
            Self::Undetected(tests) => write!(f, "NOT DETECTED by {tests} tests"),
            Self::Unreached => f.write_str("NOT DETECTED: no kernel of a test contains it"),
        }
    }
}

/// The compiled conformance suite.
struct Suite {
    program: PathBuf,
    folder: PathBuf,
}

impl Suite {
    fn build(root: &Path) -> Result<Self> {
        let mut cargo = repo::cargo(root);
        // As `cargo test --workspace` builds it: the tests of scry-ir enable the feature.
        cargo.args(["test", "--workspace", "--features", "scry-ir/mutation"]);
        cargo.args(["--test", "conformance", "--no-run"]);
        cargo.arg("--message-format=json-render-diagnostics");
        let built = artifact::parse(&repo::output(&mut cargo)?, root)?;
        let suite = built.into_iter().find(|one| one.name == "scry-gpu-conformance");
        let suite = suite.context("cargo built no program of the name `conformance`")?;
        Ok(Self { program: suite.executable, folder: root.join(suite.folder) })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // With one thread the harness runs tests on the main thread, which does not have the test's
        // name.
        command.current_dir(&self.folder).arg("--test-threads=2").env("SCRY_DEVICE", "cpu");
        // The output of failing tests is not read.
        command.env("RUST_BACKTRACE", "0").stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs all tests without a mutation, and reads the operators that each compiles. Also returns
    /// the duration.
    fn tests_by_operator(&self) -> Result<(TestsByOperator, Duration)> {
        let log = env::temp_dir().join(format!("scry-mutation-{}.log", std::process::id()));
        let mut command = self.command();
        command.env("SCRY_MUTATION_LOG", &log).stdout(Stdio::inherit());
        let start = Instant::now();
        let status = command.status().context("the conformance suite could not be started")?;
        let duration = start.elapsed();
        let text = fs::read_to_string(&log).unwrap_or_default();
        // A leftover log file is harmless.
        let _ = fs::remove_file(&log);
        ensure!(status.success(), "the conformance suite fails without a mutation");
        ensure!(!text.is_empty(), "no test compiled a kernel for the CPU device");
        Ok((parse(&text), duration))
    }

    /// Mutates an operator, and runs the tests that use it.
    fn verdict(
        &self,
        operator: &str,
        tests: &BTreeSet<String>,
        timeout: Duration,
    ) -> Result<Verdict> {
        if tests.is_empty() {
            return Ok(Verdict::Unreached);
        }
        let tests: Vec<&String> = tests.iter().collect();
        let (first, others) = tests.split_at(tests.len().min(FIRST_TESTS));
        let mut run = 0;
        for tests in [first, others].into_iter().filter(|tests| !tests.is_empty()) {
            run += tests.len();
            let mut command = self.command();
            command.env("SCRY_MUTATION", operator).arg("--exact").args(tests);
            if !passes(&mut command, timeout)? {
                return Ok(Verdict::Detected(run));
            }
        }
        Ok(Verdict::Undetected(run))
    }
}

/// Parses lines of a test's name, a tab and an operator.
fn parse(log: &str) -> TestsByOperator {
    let mut tests_by_operator = TestsByOperator::new();
    for (test, operator) in log.lines().filter_map(|line| line.split_once('\t')) {
        let tests = tests_by_operator.entry(operator.to_owned()).or_default();
        // Threads that a test started do not have its name.
        if test.contains("::") {
            tests.insert(test.to_owned());
        }
    }
    tests_by_operator
}

/// Returns whether a program succeeds within the timeout.
fn passes(command: &mut Command, timeout: Duration) -> Result<bool> {
    let mut child = command.spawn().context("the conformance suite could not be started")?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() > timeout {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_without_a_test_are_kept() {
        let tests_by_operator =
            parse("\tadd.f32\n\tsub.f32\na::b\tadd.f32\na::c\tadd.f32\n?\tsub.f32\n");
        let tests: Vec<&String> = tests_by_operator["add.f32"].iter().collect();
        assert_eq!(tests, ["a::b", "a::c"]);
        assert!(tests_by_operator["sub.f32"].is_empty());
    }

    #[test]
    fn exit_status_decides() {
        let passes = |program| passes(Command::new(program).stdout(Stdio::null()), MIN_TIMEOUT);
        assert!(passes("true").unwrap());
        assert!(!passes("false").unwrap());
    }

    #[test]
    fn slow_suites_get_more_time() {
        assert_eq!(timeout(Duration::from_secs(1)), MIN_TIMEOUT);
        assert_eq!(timeout(Duration::from_secs(60)), Duration::from_secs(240));
        let hangs = passes(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(!hangs.unwrap());
    }
}
