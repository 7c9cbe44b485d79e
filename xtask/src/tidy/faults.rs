//! Numbered faults: sources cite exactly those that `docs/faults.md` lists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Finding, Source};

/// The list of faults.
const LIST: &str = "docs/faults.md";
/// This file, whose tests contain numbers that are not citations.
const OWN_PATH: &str = "xtask/src/tidy/faults.rs";

/// Finds citations without a row in the list, and rows without a citation.
pub(super) fn check(root: &Path, sources: &[Source], findings: &mut Vec<Finding>) -> Result<()> {
    let list = fs::read_to_string(root.join(LIST)).context(LIST)?;
    compare(&list, sources, findings);
    Ok(())
}

fn compare(list: &str, sources: &[Source], findings: &mut Vec<Finding>) {
    let listed: BTreeMap<u32, usize> = (1..).zip(list.lines()).filter_map(parse_row).collect();
    let mut cited = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path != OWN_PATH) {
        for (line, text) in (1..).zip(source.text.lines()) {
            for number in citations(text) {
                cited.entry(number).or_insert((&source.path, line));
            }
        }
    }
    for (number, (path, line)) in &cited {
        if !listed.contains_key(number) {
            let what = format!("fault {number} is not listed in {LIST}");
            findings.push(Finding::new(path, *line, "faults", what));
        }
    }
    for (number, line) in listed {
        if !cited.contains_key(&number) {
            let what = format!("nothing cites fault {number}");
            findings.push(Finding::new(LIST, line, "faults", what));
        }
    }
}

/// Returns the number in the first column of a table's row, and its line.
fn parse_row((line, text): (usize, &str)) -> Option<(u32, usize)> {
    let first = text.strip_prefix("| ")?.split(" |").next()?;
    Some((first.parse().ok()?, line))
}

/// Returns the numbers after "fault " or "fault_" in a line.
fn citations(line: &str) -> Vec<u32> {
    let line = line.to_ascii_lowercase();
    let is_word = |at: usize| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
    let words = line.match_indices("fault").filter(|(at, _)| is_word(*at));
    let after = words.map(|(at, word)| &line[at + word.len()..]);
    let numbers = after.filter_map(|rest| rest.strip_prefix([' ', '_']));
    numbers
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Faults\n\n| fault | what |\n| --- | --- |\n| 3 | full |\n| 12 | no |\n";

    fn found(text: &str) -> Vec<(String, usize)> {
        let source = Source::parse("a.rs", text.to_owned()).unwrap();
        let mut findings = Vec::new();
        compare(TABLE, &[source], &mut findings);
        findings.into_iter().map(|finding| (finding.what, finding.line)).collect()
    }

    #[test]
    fn every_citation_is_listed() {
        assert_eq!(found("fn fault_03_a() {}\n/// Faults, as fault 12.\nfn b() {}"), []);
        let unknown = found("/// Fault 12, fault 3.\nfn fault_7() {}");
        assert_eq!(unknown, [("fault 7 is not listed in docs/faults.md".to_owned(), 2)]);
    }

    #[test]
    fn every_row_is_cited() {
        let unused = found("/// Fault 3; a default 12 is none, nor page faults 12.\nfn f() {}");
        assert_eq!(unused, [("nothing cites fault 12".to_owned(), 6)]);
    }
}
