//! Import cycles: at most three files of a crate may import from each other.
//!
//! A cycle is a strongly connected component of the graph whose edges [`imports`] finds.

use std::collections::{BTreeMap, BTreeSet};

use super::imports;
use super::{Finding, Source};

/// Maximum files of a cycle.
const MAX_FILES: usize = 3;

/// Finds cycles that are too large.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test(1)) {
        if let Some((name, _)) = source.path.split_once("/src/") {
            crates.entry(name).or_default().push(source);
        }
    }
    for sources in crates.values() {
        for cycle in cycles(&imports::edges(sources)) {
            let paths: Vec<&str> = cycle.iter().map(|file| &*sources[*file].path).collect();
            let count = paths.len();
            if count > MAX_FILES {
                let what = format!(
                    "{count} files import from each other, at most {MAX_FILES} may: {}",
                    paths.join(", ")
                );
                findings.push(Finding::new(paths[0], 1, "cycles", what));
            }
        }
    }
}

/// Returns the strongly connected components of more than one file, as indices of files.
fn cycles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> =
        (0..edges.len()).map(|file| reachable(edges, file)).collect();
    let component = |file: usize| -> Vec<usize> {
        reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect()
    };
    let is_first = |(file, component): &(usize, Vec<usize>)| component.first() == Some(file);
    let components = (0..edges.len()).map(|file| (file, component(file))).filter(is_first);
    components.map(|(_, component)| component).filter(|component| component.len() > 1).collect()
}

/// Returns the files that a file imports from, transitively.
fn reachable(edges: &[BTreeSet<usize>], file: usize) -> BTreeSet<usize> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(file) = next.pop() {
        next.extend(edges[file].iter().filter(|other| reached.insert(**other)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns files that each import from the next one, the last from the first.
    fn ring(files: u32) -> Vec<Source> {
        let file = |index| {
            let text = format!("use crate::f{}::T;", (index + 1) % files);
            Source::parse(&format!("c/src/f{index}.rs"), text).unwrap()
        };
        let root = Source::parse("c/src/lib.rs", "use crate::f0::T;".to_owned()).unwrap();
        (0..files).map(file).chain([root]).collect()
    }

    fn found(sources: &[Source]) -> Vec<String> {
        let mut findings = Vec::new();
        check(sources, &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn four_file_cycle_is_found() {
        let files = "c/src/f0.rs, c/src/f1.rs, c/src/f2.rs, c/src/f3.rs";
        let expected = format!("4 files import from each other, at most 3 may: {files}");
        assert_eq!(found(&ring(4)), [expected]);
    }

    #[test]
    fn a_cycle_of_three_files_passes() {
        assert!(found(&ring(3)).is_empty());
    }
}
