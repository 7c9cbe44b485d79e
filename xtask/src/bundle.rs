//! `cargo xtask gpu-bundle`: all tests, examples, commands and benchmarks in one folder, for a
//! machine without cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::artifact::{self, Artifact, Group};
use crate::repo;

/// Maximum size of a bundle in bytes.
const MAX_BYTES: u64 = 45 << 20;

/// The workspace of the comparison with other libraries.
const PEERS: &str = "scry-bench";

const RUN_SCRIPT: &str = include_str!("../bundle/run.sh");

/// Builds all programs and copies them to the folder `out`, replacing an earlier bundle there.
pub(crate) fn run(out: &Path) -> Result<()> {
    let root = repo::root();
    let out = std::path::absolute(out)?;
    create_or_empty(&out)?;
    let artifacts = build(&root)?;
    fill(&root, &out, &artifacts)?;
    let mut sizes = sizes(&out)?;
    let total: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    if total > MAX_BYTES {
        for (bytes, path) in &sizes {
            eprintln!("{:>10.1} KiB  {}", *bytes as f64 / 1024.0, path.display());
        }
        bail!("the bundle has {}, at most {} are allowed", mib(total), mib(MAX_BYTES));
    }
    println!("{} files, {} of {} in {}", sizes.len(), mib(total), mib(MAX_BYTES), out.display());
    Ok(())
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Creates or empties the folder. Fails if it contains anything but an earlier bundle.
fn create_or_empty(out: &Path) -> Result<()> {
    let is_bundle = out.join("run.sh").is_file() && out.join("list").is_file();
    let is_empty = !out.exists() || fs::read_dir(out)?.next().is_none();
    ensure!(
        is_bundle || is_empty,
        "{} is neither empty nor an earlier bundle; name another folder",
        out.display()
    );
    if is_bundle {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out).with_context(|| format!("{} cannot be made", out.display()))
}

/// Builds tests, examples, commands and benchmarks, stripped, and the comparison with all its peers
/// if that workspace exists.
fn build(root: &Path) -> Result<Vec<Artifact>> {
    let mut artifacts = programs(root, root, &[])?;
    let peers = root.join(PEERS);
    if peers.join("Cargo.toml").is_file() {
        let built = programs(&peers, root, &["--all-features"])?.into_iter();
        let to_peer = |one: Artifact| Artifact { group: Group::Peers, ..one };
        artifacts.extend(built.filter(|one| one.group != Group::Tests).map(to_peer));
    }
    artifacts.sort();
    artifacts.dedup();
    Ok(artifacts)
}

/// Builds all targets of a workspace, in one command: several would unify features differently and
/// rebuild dependencies.
fn programs(workspace: &Path, root: &Path, options: &[&str]) -> Result<Vec<Artifact>> {
    let mut cargo = repo::cargo(workspace);
    cargo.args(["build", "--workspace", "--all-targets", "--release"]);
    cargo.args(options);
    cargo.args(["--message-format=json-render-diagnostics", "--config"]);
    cargo.arg("profile.release.strip=true");
    artifact::parse(&repo::output(&mut cargo)?, root)
}

/// Copies programs and data, and writes the files that `run.sh` reads: `list` has the programs to
/// run, `left-out` those that cannot run, with the reason, and `links` the absolute paths that are
/// compiled into programs, each with its replacement in the bundle.
fn fill(root: &Path, out: &Path, artifacts: &[Artifact]) -> Result<()> {
    let (mut list, mut left_out, mut links) = (String::new(), String::new(), String::new());
    for Artifact { group, name, folder, executable, needs } in artifacts {
        let group_name = group.name();
        if let Some(needs) = needs {
            left_out += &format!("{group_name}/{name} needs {needs}\n");
            continue;
        }
        if *group == Group::Bin {
            links += &format!("{}\t{group_name}/{name}\n", executable.display());
        } else {
            list += &format!("{group_name}\t{name}\t{folder}\n");
        }
        copy(executable, &out.join(group_name).join(name))?;
        fs::create_dir_all(out.join("root").join(folder))?;
    }
    links += &format!("{}\troot\n", root.display());
    for path in repo::files(root)?.iter().filter(|path| !path.ends_with(".rs")) {
        copy(&root.join(path), &out.join("root").join(path))?;
    }
    pack(out, &Group::ALL.map(Group::name))?;
    for (name, text) in [("list", &list), ("left-out", &left_out), ("links", &links)] {
        fs::write(out.join(name), text)?;
    }
    write_program(&out.join("run.sh"), RUN_SCRIPT)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().expect("the bundle's folder is above every copy");
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
    Ok(())
}

/// Writes an executable file.
fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The archive of all programs, which `run.sh` unpacks.
const PROGRAMS: &str = "programs.tar.xz";

/// Packs folders of programs into one archive. The programs are similar, so that a common
/// dictionary reduces the size to a quarter.
fn pack(out: &Path, folders: &[&str]) -> Result<()> {
    let existing = folders.iter().filter(|folder| out.join(folder).is_dir());
    let mut tar = Command::new("tar");
    tar.arg("--directory").arg(out).args(["--remove-files", "--create"]).args(existing);
    let mut tar = tar.stdout(Stdio::piped()).spawn().context("gpu-bundle needs `tar`")?;
    let archive = fs::File::create(out.join(PROGRAMS))?;
    let mut xz = Command::new("xz");
    xz.args(["--stdout", "--lzma2=preset=1,dict=256MiB"]).stdout(archive);
    xz.stdin(tar.stdout.take().expect("stdout is piped"));
    let compressed = xz.status().context("gpu-bundle needs `xz` (Debian's xz-utils)")?;
    ensure!(tar.wait()?.success() && compressed.success(), "the programs could not be packed");
    Ok(())
}

/// Returns size and path of each file below a folder.
fn sizes(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut sizes = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sizes.extend(self::sizes(&entry.path())?),
            false => sizes.push((entry.metadata()?.len(), entry.path())),
        }
    }
    Ok(sizes)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::process::Output;

    use super::*;

    /// A bundle of two shell scripts, one of which fails.
    fn bundle() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let program = |name: &str, text: &str| {
            fs::create_dir_all(out.join("tests")).unwrap();
            write_program(&out.join("tests").join(name), &format!("#!/bin/sh\n{text}\n")).unwrap();
        };
        program("good", "echo in $(basename $PWD) with $*; test -d \"$SCRY_ROOT\"");
        program("bad", "exit 3");
        pack(out, &["tests", "peers"]).unwrap();
        assert!(!out.join("tests").exists(), "programs are in the archive alone");
        fs::create_dir_all(out.join("root/crates/a")).unwrap();
        fs::write(out.join("list"), "tests\tgood\tcrates/a\ntests\tbad\tcrates/a\n").unwrap();
        fs::write(out.join("left-out"), "tests/ui needs the compiler\n").unwrap();
        fs::write(out.join("links"), format!("{}\troot\n", out.join("link").display())).unwrap();
        write_program(&out.join("run.sh"), RUN_SCRIPT).unwrap();
        folder
    }

    fn run(bundle: &Path, arguments: &[&str]) -> Output {
        let mut bash = Command::new("bash");
        bash.arg(bundle.join("run.sh")).args(arguments).env_remove("OUT").output().unwrap()
    }

    #[test]
    fn script_runs_all_and_reports_failures() {
        let bundle = bundle();
        let output = run(bundle.path(), &[]);
        let summary = fs::read_to_string(bundle.path().join("out/summary.txt")).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(summary.contains("tests/good: ok"), "{summary}");
        assert!(summary.contains("tests/bad: FAILED: status 3"), "{summary}");
        assert!(summary.contains("left out: tests/ui needs the compiler"), "{summary}");
        assert!(summary.contains("2 run, 1 failed"), "{summary}");
        assert!(!bundle.path().join("link").exists(), "links are removed when the script ends");
    }

    #[test]
    fn script_runs_one_program() {
        let bundle = bundle();
        assert!(run(bundle.path(), &["tests/good", "--", "--nocapture"]).status.success());
        let log = fs::read_to_string(bundle.path().join("out/tests.log")).unwrap();
        assert!(log.contains("in a with --nocapture"), "{log}");
        assert_eq!(run(bundle.path(), &["tests/gone"]).status.code(), Some(2));
    }

    #[test]
    fn foreign_folders_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "all of it").unwrap();
        assert!(create_or_empty(folder.path()).is_err());
        assert!(folder.path().join("thesis.txt").exists());
        let bundle = bundle();
        create_or_empty(bundle.path()).unwrap();
        assert_eq!(fs::read_dir(bundle.path()).unwrap().count(), 0);
    }

    #[test]
    fn sizes_include_files_in_folders() {
        let bundle = bundle();
        fs::write(bundle.path().join("root/crates/a/b"), "").unwrap();
        let sizes = sizes(bundle.path()).unwrap();
        assert!(sizes.iter().any(|(_, path)| path.ends_with(PROGRAMS)));
        assert!(sizes.iter().any(|(_, path)| path.ends_with("root/crates/a/b")));
        assert_eq!(sizes.len(), 6);
    }
}
