//! The programs that cargo built, read from its JSON messages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The kind of a program of the bundle; also the name of its folder there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Tests,
    Examples,
    Benches,
    /// The programs of the comparison with other libraries.
    Peers,
    /// Commands, such as `scry`, which the other programs run.
    Bin,
}

impl Group {
    pub(crate) const ALL: [Self; 5] =
        [Self::Tests, Self::Examples, Self::Benches, Self::Peers, Self::Bin];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Examples => "examples",
            Self::Benches => "benches",
            Self::Peers => "peers",
            Self::Bin => "bin",
        }
    }
}

/// A program that was built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Artifact {
    pub(crate) group: Group,
    /// Unique in its group.
    pub(crate) name: String,
    /// The package's folder, relative to the root, in which the program runs, as cargo runs tests.
    pub(crate) folder: String,
    pub(crate) executable: PathBuf,
    /// What the program needs that a machine without cargo lacks; `None` if it can run there.
    pub(crate) needs: Option<&'static str>,
}

/// Parses the output of cargo with `--message-format=json`; returns the programs.
pub(crate) fn parse(messages: &str, root: &Path) -> Result<Vec<Artifact>> {
    let mut artifacts = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message =
            serde_json::from_str(line).context("cargo printed a line that is not JSON")?;
        artifacts.extend(artifact(&message, root));
    }
    Ok(artifacts)
}

/// Returns the program that a message reports; `None` for other messages, and for programs of other
/// kinds.
fn artifact(message: &Value, root: &Path) -> Option<Artifact> {
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let folder = folder.strip_prefix(root).ok()?.to_str()?.to_owned();
    let target = &message["target"];
    let (kind, target_name) = (target["kind"][0].as_str()?, target["name"].as_str()?);
    let group = match kind {
        "bench" => Group::Benches,
        _ if message["profile"]["test"] == true => Group::Tests,
        "example" => Group::Examples,
        "bin" => Group::Bin,
        _ => return None,
    };
    let package = folder.rsplit('/').next()?;
    let name = match (group, kind) {
        (Group::Tests, "test") => format!("{package}-{target_name}"),
        (Group::Tests, _) => format!("{package}-{kind}"),
        _ => target_name.to_owned(),
    };
    let source = target["src_path"].as_str().and_then(|path| fs::read_to_string(path).ok());
    let needs = needs(kind, &folder, &source.unwrap_or_default());
    Some(Artifact { group, name, folder, executable, needs })
}

/// Returns what a program needs that a machine without cargo lacks.
fn needs(kind: &str, folder: &str, source: &str) -> Option<&'static str> {
    if kind == "proc-macro" {
        Some("the compiler's libraries")
    } else if source.contains("trybuild::") {
        Some("the compiler")
    } else {
        (folder == "xtask").then_some("cargo and git")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_one(folder: &str, kind: &str, test: bool) -> Option<Artifact> {
        let message = json!({
            "reason": "compiler-artifact",
            "manifest_path": format!("/r/{folder}/Cargo.toml"),
            "target": { "kind": [kind], "name": "hello", "src_path": "/r/none.rs" },
            "profile": { "test": test },
            "executable": "/t/hello-0123",
        });
        parse(&format!("note\n{message}\n"), Path::new("/r")).unwrap().pop()
    }

    #[test]
    fn programs_have_group_and_name() {
        let found = |kind, test| {
            let artifact = parse_one("crates/scry-gpu", kind, test).unwrap();
            (artifact.group, artifact.name)
        };
        assert_eq!(found("lib", true), (Group::Tests, "scry-gpu-lib".to_owned()));
        assert_eq!(found("test", true), (Group::Tests, "scry-gpu-hello".to_owned()));
        assert_eq!(found("example", false), (Group::Examples, "hello".to_owned()));
        assert_eq!(found("bin", false), (Group::Bin, "hello".to_owned()));
        assert_eq!(found("bench", true), (Group::Benches, "hello".to_owned()));
    }

    #[test]
    fn missing_requirements_are_reported() {
        assert_eq!(parse_one("crates/scry-gpu", "lib", true).unwrap().needs, None);
        assert!(parse_one("crates/scry-gpu-derive", "proc-macro", true).unwrap().needs.is_some());
        assert!(parse_one("xtask", "bin", true).unwrap().needs.is_some());
        assert!(needs("test", "crates/a", "trybuild::TestCases::new()").is_some());
    }

    #[test]
    fn messages_without_executable_are_skipped() {
        let message = json!({ "reason": "build-finished", "success": true, "executable": null });
        assert_eq!(parse(&message.to_string(), Path::new("/r")).unwrap(), []);
    }
}
