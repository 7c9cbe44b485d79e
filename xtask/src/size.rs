//! `cargo xtask size`: sizes of the project and of its dependencies.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::{peers, repo, tidy};

/// Prints the project's sizes; with `peers`, compares builds with wgpu, and fails above the limits.
pub(crate) fn run(peers: bool) -> Result<()> {
    let root = repo::root();
    let sources = tidy::project_sources(&root)?;
    let files = tidy::file_spread(&sources);
    let (functions, lengths) = tidy::function_spread(&sources);
    let lines: usize = sources.iter().map(|source| source.text.lines().count()).sum();
    let packages = third_party(&root, "scry-gpu")?;
    println!("Rust files           {:>7}   lines: {lines} in all, {files}", sources.len());
    println!("functions            {functions:>7}   lines: {}", lengths);
    println!("third-party crates   {:>7}   of scry-gpu's default build", packages.len());
    if peers { peers::compare(&root) } else { Ok(()) }
}

/// Returns names and versions of all crates that a build of `package`, with default features,
/// compiles for this machine, except those of its own project: path dependencies, and names that
/// extend its name.
pub(crate) fn third_party(directory: &Path, package: &str) -> Result<BTreeSet<String>> {
    let arguments = ["tree", "-p", package, "-e", "normal,build", "--prefix", "none"];
    let tree = repo::output(repo::cargo(directory).args(arguments))?;
    Ok(packages(&tree).filter(|name| !is_own(name, package)).collect())
}

/// Returns whether a crate is `package` itself or a part of the same project, as `wgpu-core` of
/// wgpu.
fn is_own(name: &str, package: &str) -> bool {
    name.strip_prefix(package).is_some_and(|rest| rest.starts_with([' ', '-']))
}

/// Returns the packages that `cargo tree` lists, without path dependencies.
fn packages(tree: &str) -> impl Iterator<Item = String> + '_ {
    tree.lines().filter(|line| !line.is_empty() && !line.contains(" (/")).map(|line| {
        let words: Vec<&str> = line.split(' ').take(2).collect();
        words.join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_packages_are_recognised() {
        assert!(is_own("wgpu v30.0.1", "wgpu"));
        assert!(is_own("wgpu-core v30.0.1", "wgpu"));
        assert!(!is_own("wgpus v1.0.0", "wgpu"));
        assert!(!is_own("naga v30.0.1", "wgpu"));
    }

    #[test]
    fn third_party_packages_are_counted_once() {
        let tree = "scry-gpu v0.2.0 (/x/crates/scry-gpu)\nlog v0.4.27\nsyn v2.0.1 (proc-macro)\n\
                    scry-ir v0.2.0 (/x/crates/scry-ir)\nlog v0.4.27 (*)\nlog v0.3.0\n";
        let found: BTreeSet<String> = packages(tree).collect();
        let expected = ["log v0.3.0", "log v0.4.27", "syn v2.0.1"];
        assert_eq!(found, expected.map(str::to_owned).into());
    }
}
