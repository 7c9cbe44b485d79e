//! Build costs of scry-gpu compared with wgpu: a clean build of a hello program with each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{repo, size};

/// Maximum costs of scry-gpu as a fraction of those of wgpu.
const MAX_CRATES: f64 = 0.75;
const MAX_CPU_SECONDS: f64 = 0.90;

/// The costs of a program.
#[derive(Debug)]
struct Costs {
    /// Third-party crates of the library's default build.
    crates: usize,
    /// User and system time of cargo and all its children.
    cpu_seconds: f64,
    /// Size in bytes of the stripped program.
    bytes: u64,
    /// The outcome of a run of the program: `ok`, or how it failed.
    outcome: String,
}

/// Builds both programs, prints their costs, and fails above the limits.
pub(crate) fn compare(root: &Path) -> Result<()> {
    let gpu = root.join("crates/scry-gpu");
    let gpu = gpu.to_str().context("the repository's path is not UTF-8")?;
    let on_scry = format!("scry-gpu = {{ path = {gpu:?} }}");
    let ours = measure(root, "scry-gpu", &on_scry, include_str!("../peers/scry.rs"))?;
    let theirs = measure(root, "wgpu", "wgpu = \"30\"", include_str!("../peers/wgpu.rs"))?;
    let lines = table(&ours, &theirs);
    lines.iter().for_each(|line| println!("{line}"));
    let exceeded = lines.iter().filter(|line| line.ends_with("ABOVE")).count();
    ensure!(exceeded == 0, "scry-gpu exceeds a limit");
    Ok(())
}

fn table(ours: &Costs, theirs: &Costs) -> [String; 5] {
    let row = |what: &str, ours: f64, theirs: f64, precision: usize, limit: Option<f64>| {
        let ratio = ours / theirs;
        let verdict = match limit {
            Some(limit) if ratio > limit => format!("   {limit:.2} ABOVE"),
            Some(limit) => format!("   {limit:.2}"),
            None => "      -".to_owned(),
        };
        format!("{what:<22} {ours:>10.precision$} {theirs:>10.precision$} {ratio:>7.2}{verdict}")
    };
    let crates = (ours.crates as f64, theirs.crates as f64);
    let kib = |costs: &Costs| costs.bytes as f64 / 1024.0;
    [
        format!(
            "{:<22} {:>10} {:>10} {:>7}   limit",
            "hello, release", "scry-gpu", "wgpu", "ratio"
        ),
        row("third-party crates", crates.0, crates.1, 0, Some(MAX_CRATES)),
        row("build, CPU seconds", ours.cpu_seconds, theirs.cpu_seconds, 1, Some(MAX_CPU_SECONDS)),
        row("program, KiB", kib(ours), kib(theirs), 0, None),
        format!("{:<22} {:>10} {:>10}", "run", ours.outcome, theirs.outcome),
    ]
}

/// Builds a program that depends on one library only.
fn measure(root: &Path, library: &str, dependency: &str, program: &str) -> Result<Costs> {
    let folder = root.join("target/size-peers").join(library);
    write_package(&folder, dependency, program)?;
    repo::run(repo::cargo(&folder).arg("fetch"))?;
    let crates = size::third_party(&folder, library)?.len();
    let target = folder.join("target");
    if target.exists() {
        fs::remove_dir_all(&target).context("the earlier build cannot be removed")?;
    }
    let before = children_cpu_seconds()?;
    let mut build = repo::cargo(&folder);
    build.args(["build", "--release", "--offline"]).env("CARGO_TARGET_DIR", &target);
    // Compiler caches would falsify the measurement.
    for wrapper in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"] {
        build.env_remove(wrapper);
    }
    repo::run(&mut build)?;
    let cpu_seconds = children_cpu_seconds()? - before;
    let executable = target.join(format!("release/hello{}", std::env::consts::EXE_SUFFIX));
    let bytes = fs::metadata(&executable)?.len();
    Ok(Costs { crates, cpu_seconds, bytes, outcome: outcome(executable) })
}

fn write_package(folder: &Path, dependency: &str, program: &str) -> Result<()> {
    let manifest = format!(
        "[workspace]\n\n[package]\nname = \"hello\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependency}\n\n[profile.release]\nstrip = true\n"
    );
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), program)?;
    Ok(())
}

/// Runs a program, and returns the outcome. A failure is not an error, as there may be no device.
fn outcome(executable: PathBuf) -> String {
    match Command::new(executable).output() {
        Ok(output) if output.status.success() => "ok".to_owned(),
        Ok(output) => {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            "failed".to_owned()
        }
        Err(error) => error.to_string(),
    }
}

/// Returns user and system time of all terminated child processes, including their children.
#[cfg(unix)]
fn children_cpu_seconds() -> Result<f64> {
    use nix::sys::resource::{UsageWho, getrusage};

    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
}

#[cfg(not(unix))]
fn children_cpu_seconds() -> Result<f64> {
    anyhow::bail!("the time of child processes is measured on Unix alone; run it there")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(crates: usize, cpu_seconds: f64) -> Costs {
        Costs { crates, cpu_seconds, bytes: 2048, outcome: "ok".to_owned() }
    }

    #[test]
    fn exceeded_limits_are_reported() {
        let theirs = costs(100, 100.0);
        let above = |ours: Costs| table(&ours, &theirs).map(|line| line.ends_with("ABOVE"));
        assert_eq!(above(costs(75, 90.0)), [false; 5]);
        assert_eq!(above(costs(76, 90.0)), [false, true, false, false, false]);
        assert_eq!(above(costs(75, 91.0)), [false, false, true, false, false]);
    }

    #[cfg(unix)]
    #[test]
    fn child_time_counts_after_exit() {
        let before = children_cpu_seconds().unwrap();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", busy]).status().unwrap().success());
        assert!(children_cpu_seconds().unwrap() > before);
    }
}
