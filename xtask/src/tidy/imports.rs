//! The import graph of a crate's files, from their `use` declarations.
//!
//! Each declaration outside of tests is an edge to the file that defines the imported item. Names
//! that a module imports or re-exports individually are resolved to the defining file; a glob, and
//! a name that is not found, resolves to the file of its module. A re-export is an edge only if its
//! file also uses the name. Modules are expected at their default paths.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenTree};

use super::Source;
use super::source::{braces, is_punct, is_word, line};

/// Maximum number of re-exports that are followed from one import.
const MAX_DEPTH: usize = 8;

/// A path in a crate: the components of `a::b::C`, those of a module from the root of the crate.
type Path = Vec<String>;

/// A name that a `use` declaration introduces.
struct Import {
    /// The module with the declaration.
    module: Path,
    /// The path after `use`.
    path: Path,
    /// The name in that module; `*` for all.
    name: String,
    is_reexport: bool,
}

/// The imports of a file, and the identifiers in its code outside of `use` declarations.
#[derive(Default)]
struct Scan {
    imports: Vec<Import>,
    identifiers: BTreeSet<String>,
}

/// The modules of a crate.
struct Modules {
    /// Files by their modules.
    files: BTreeMap<Path, usize>,
    scans: Vec<Scan>,
}

/// Returns, for each file of a crate, the indices of the other files that it imports from.
pub(super) fn edges(sources: &[&Source]) -> Vec<BTreeSet<usize>> {
    let modules = Modules::scan(sources);
    let of_file = |(file, scan): (usize, &Scan)| {
        let is_used =
            |import: &&Import| !import.is_reexport || scan.identifiers.contains(&import.name);
        let imported = scan.imports.iter().filter(is_used);
        let targets = imported.filter_map(|import| modules.definition(import, MAX_DEPTH));
        targets.filter(|target| *target != file).collect()
    };
    modules.scans.iter().enumerate().map(of_file).collect()
}

impl Modules {
    fn scan(sources: &[&Source]) -> Self {
        let paths = sources.iter().map(|source| module(&source.path));
        let files: BTreeMap<Path, usize> = paths.zip(0..).collect();
        let scan = |source: &&Source| {
            let mut scan = Scan::default();
            let level: Vec<TokenTree> = source.tokens().into_iter().collect();
            scan.scan_level(source, &level, &module(&source.path));
            scan
        };
        Self { files, scans: sources.iter().map(scan).collect() }
    }

    /// Returns the file that defines an imported item; `None` if it is in another crate.
    fn definition(&self, import: &Import, depth: usize) -> Option<usize> {
        let path = self.absolute(&import.module, &import.path)?;
        let ends = (0..=path.len()).rev();
        let (end, file) =
            ends.filter_map(|end| Some((end, *self.files.get(&path[..end])?))).next()?;
        let Some(name) = path.get(end).filter(|_| depth > 0) else {
            return Some(file);
        };
        let mut imports = self.scans[file].imports.iter();
        let reexport = imports.find(|other| other.module == path[..end] && other.name == *name);
        let found = reexport.and_then(|reexport| self.definition(reexport, depth - 1));
        Some(found.unwrap_or(file))
    }

    /// Returns a path from the root of the crate; `None` if it starts in another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let mut base = match &**first {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => {
                let (_, parent) = module.split_last()?;
                if rest.first().is_some_and(|next| next == "super") {
                    return self.absolute(parent, rest);
                }
                parent.to_vec()
            }
            child => {
                let path = [module, &[child.to_owned()]].concat();
                self.files.contains_key(&path).then_some(path)?
            }
        };
        base.extend(rest.iter().filter(|part| *part != "self").cloned());
        Some(base)
    }
}

impl Scan {
    /// Scans a level of tokens, and nested levels.
    fn scan_level(&mut self, source: &Source, mut tokens: &[TokenTree], module: &[String]) {
        let mut is_reexport = false;
        while let Some((first, rest)) = tokens.split_first() {
            tokens = rest;
            if source.is_test(line(first)) {
                continue;
            }
            match (first, rest) {
                (_, [next, ..]) if is_word(first, "use") && !is_punct(next, '<') => {
                    let end = rest.iter().position(|tree| is_punct(tree, ';'));
                    let (tree, after) = rest.split_at(end.unwrap_or(rest.len()));
                    self.scan_use_tree(tree, &[], module, is_reexport);
                    tokens = after;
                }
                (_, [TokenTree::Ident(name), body, after @ ..])
                    if is_word(first, "mod") && braces(body).is_some() =>
                {
                    let inner = [module, &[name.to_string()]].concat();
                    self.scan_group(source, body, &inner);
                    tokens = after;
                }
                (TokenTree::Ident(word), _) => _ = self.identifiers.insert(word.to_string()),
                _ => self.scan_group(source, first, module),
            }
            is_reexport = is_word(first, "pub") || (is_reexport && is_parenthesised(first));
        }
    }

    fn scan_group(&mut self, source: &Source, tree: &TokenTree, module: &[String]) {
        if let TokenTree::Group(group) = tree {
            let level: Vec<TokenTree> = group.stream().into_iter().collect();
            self.scan_level(source, &level, module);
        }
    }

    /// Adds the imports of a tree of a `use` declaration.
    fn scan_use_tree(
        &mut self,
        tokens: &[TokenTree],
        prefix: &[String],
        module: &[String],
        is_reexport: bool,
    ) {
        let (mut path, mut name) = (prefix.to_vec(), None);
        let mut tokens = tokens.iter();
        while let Some(tree) = tokens.next() {
            match tree {
                TokenTree::Ident(word) if word == "as" => {
                    name = tokens.next().map(ToString::to_string)
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let trees = inner.split(|tree| is_punct(tree, ','));
                    return trees
                        .for_each(|tree| self.scan_use_tree(tree, &path, module, is_reexport));
                }
                _ => {}
            }
        }
        let last = path.iter().rfind(|part| *part != "self").cloned();
        if let Some(name) = name.or(last).filter(|_| path.len() > prefix.len()) {
            self.imports.push(Import { module: module.to_vec(), path, name, is_reexport });
        }
    }
}

fn is_parenthesised(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
}

/// Returns the module of a file below `src/`.
fn module(path: &str) -> Path {
    let (_, inner) = path.split_once("/src/").unwrap_or(("", path));
    let inner = inner.trim_end_matches(".rs");
    let mut parts: Path = inner.split('/').map(str::to_owned).collect();
    let is_root = |last: &String| matches!(&**last, "mod" | "lib" | "main");
    parts.pop_if(|last| is_root(last));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the files that `src/a.rs` imports from, in a crate with the given files.
    fn imported(text: &str, others: &[(&str, &str)]) -> Vec<String> {
        let parse = |(path, text): &(&str, &str)| {
            Source::parse(&format!("c/src/{path}"), (*text).to_owned()).unwrap()
        };
        let sources: Vec<Source> = [("a.rs", text)].iter().chain(others).map(parse).collect();
        let edges = edges(&sources.iter().collect::<Vec<_>>());
        let name = |file: &usize| sources[*file].path["c/src/".len()..].to_owned();
        edges[0].iter().map(name).collect()
    }

    const FILES: [(&str, &str); 4] =
        [("lib.rs", ""), ("b.rs", ""), ("a/c.rs", ""), ("d/mod.rs", "pub use crate::b::B;")];

    #[test]
    fn all_kinds_of_paths_are_followed() {
        for (text, file) in [
            ("use crate::b::B;", "b.rs"),
            ("use super::b;", "b.rs"),
            ("use super::{b::{self, B}, e};", "b.rs lib.rs"),
            ("use self::c::C;", "a/c.rs"),
            ("use c::*;", "a/c.rs"),
            ("use crate::E as F;", "lib.rs"),
            ("mod inner { use super::super::b::B; }", "b.rs"),
            ("fn f() { use crate::b::B; }", "b.rs"),
        ] {
            let mut expected: Vec<&str> = file.split(' ').collect();
            let mut found = imported(text, &FILES);
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn other_crates_and_tests_are_skipped() {
        let other = "use std::fmt; use super_b::b; impl X { fn f() -> impl Y + use<'a> {} }";
        assert!(imported(other, &FILES).is_empty());
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        assert!(imported(tests, &FILES).is_empty());
    }

    #[test]
    fn reexports_resolve_to_defining_file() {
        assert_eq!(imported("use crate::d::B;", &FILES), ["b.rs"]);
        assert_eq!(imported("use crate::d::Other;", &FILES), ["d/mod.rs"]);
        let glob = [("lib.rs", ""), ("b.rs", ""), ("d/mod.rs", "pub use crate::b::*;")];
        assert_eq!(imported("use crate::d::B;", &glob), ["d/mod.rs"]);
    }

    #[test]
    fn used_reexports_are_edges() {
        assert!(imported("pub(crate) use crate::b::B;", &FILES).is_empty());
        assert_eq!(imported("pub(crate) use crate::b::B; struct C(B);", &FILES), ["b.rs"]);
    }
}
