//! The repository: its root, its files, and commands in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Returns the root of the repository that contains this task.
pub(crate) fn root() -> PathBuf {
    // Cargo sets it at run time. The compile-time value may be that of another checkout with the
    // same target folder.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = manifest.parent();
    root.expect("xtask is a folder of the repository").to_path_buf()
}

/// Returns the paths of all files that are tracked, or untracked and not ignored, relative to
/// `root`, sorted.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = output(Command::new("git").args(arguments).current_dir(root))?;
    let present = |path: &&str| !path.is_empty() && root.join(path).is_file();
    let mut files: Vec<String> = listed.split('\0').filter(present).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns a command that runs, in `directory`, the cargo that runs this task.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(directory);
    cargo
}

/// Runs a command with inherited output; fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    ensure!(status.success(), "`{line}` failed with {status}");
    Ok(())
}

/// Runs a command and returns its standard output; fails if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{line}` could not be started"))?;
    ensure!(output.status.success(), "`{line}` failed with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

/// Returns the command line for messages, without the program's folder.
fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_excludes_ignored_files() {
        let files = files(&root()).unwrap();
        assert!(files.iter().any(|path| path == "xtask/src/repo.rs"));
        assert!(files.iter().all(|path| !path.starts_with("target/")));
    }

    #[test]
    fn a_failing_command_is_named() {
        let error = output(Command::new("git").arg("no-such-subcommand")).unwrap_err();
        assert!(error.to_string().contains("git no-such-subcommand"), "{error}");
    }
}
