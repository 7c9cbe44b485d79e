//! Module style: the module of a folder is its `mod.rs`; `src/` and `tests/` have no `#[path]`.
//! In `src/`, this also applies to folders that contain only shaders. In `tests/`, the folder of a
//! test's data may have the test's name.

use std::collections::BTreeSet;

use super::{Finding, Source};

/// Finds modules that are not at these paths. `files` are all files of the repository.
pub(super) fn check(files: &[String], sources: &[Source], findings: &mut Vec<Finding>) {
    let in_src = files.iter().map(String::as_str).filter(|path| path.contains("/src/"));
    let folders: BTreeSet<&str> = in_src
        .chain(sources.iter().map(|source| &*source.path))
        .filter_map(|path| Some(path.rsplit_once('/')?.0))
        .collect();
    for source in sources {
        let path = &*source.path;
        if let Some(folder) = path.strip_suffix(".rs").filter(|folder| folders.contains(folder)) {
            let what =
                format!("the module of a folder is its mod.rs: move this to {folder}/mod.rs");
            findings.push(Finding::new(path, 1, "modules", what));
        }
        if path.contains("/src/") || path.contains("/tests/") {
            let lines = source.text.lines().zip(1..);
            for (_, line) in lines.filter(|(text, _)| text.trim_start().starts_with("#[path")) {
                let what = "a module must be at the path of its name, without #[path]; what tests \
                            share is in scry-test-support";
                findings.push(Finding::new(path, line, "modules", what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let parse = |(path, text): &(&str, &str)| Source::parse(path, (*text).to_owned()).unwrap();
        let sources: Vec<Source> = files.iter().map(parse).collect();
        let mut findings = Vec::new();
        check(&[], &sources, &mut findings);
        findings.into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn file_beside_folder_is_found() {
        let files = [("c/src/a.rs", "mod b;"), ("c/src/a/b.rs", ""), ("c/src/ab/mod.rs", "")];
        assert_eq!(found(&files), [("c/src/a.rs".to_owned(), 1)]);
    }

    #[test]
    fn file_beside_shader_folder_is_found() {
        let found = |source: &str, shader: &str| {
            let sources = [Source::parse(source, String::new()).unwrap()];
            let mut findings = Vec::new();
            check(&[source.to_owned(), shader.to_owned()], &sources, &mut findings);
            findings.len()
        };
        assert_eq!(found("c/src/sum.rs", "c/src/sum/one.wgsl"), 1);
        assert_eq!(found("c/src/sum/mod.rs", "c/src/sum/one.wgsl"), 0);
        assert_eq!(found("c/tests/errors.rs", "c/tests/errors/one.wgsl"), 0);
    }

    #[test]
    fn path_attribute_is_found() {
        let text = "//! Text.\n#[path = \"x.rs\"]\nmod y;";
        let files = [("c/src/a.rs", text), ("c/tests/a.rs", text), ("c/tests/b/main.rs", text)];
        assert_eq!(found(&files), files.map(|(path, _)| (path.to_owned(), 2)));
        let allowed = [("c/src/b/mod.rs", "mod c;"), ("c/examples/a.rs", text)];
        assert_eq!(found(&allowed), []);
    }
}
