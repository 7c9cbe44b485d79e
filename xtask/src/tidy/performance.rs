//! The performance log: its numbers are lines of JSON, which its entries reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

const LOG: &str = "docs/performance-log.md";
const NUMBERS: &str = "docs/performance-log.jsonl";

/// Finds invalid measurements, and dangling references between the two files.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let read = |path| fs::read_to_string(root.join(path)).context(path);
    compare(&read(LOG)?, &read(NUMBERS)?, findings);
    Ok(())
}

fn compare(log: &str, numbers: &str, findings: &mut Vec<Finding>) {
    let mut measured = BTreeMap::new();
    for (line, text) in (1..).zip(numbers.lines()) {
        match parse_entry(text) {
            Ok(entry) => _ = measured.entry(entry).or_insert(line),
            Err(problem) => findings.push(Finding::new(NUMBERS, line, "performance", problem)),
        }
    }
    let mut referenced = BTreeSet::new();
    for (line, entry) in references(log) {
        if !measured.contains_key(entry) {
            let what = format!("no line of {NUMBERS} has the entry `{entry}`");
            findings.push(Finding::new(LOG, line, "performance", what));
        }
        referenced.insert(entry);
    }
    for (entry, line) in measured.iter().filter(|(entry, _)| !referenced.contains(&***entry)) {
        let what = format!("{LOG} does not name the entry `{entry}`");
        findings.push(Finding::new(NUMBERS, *line, "performance", what));
    }
}

/// Returns the entry that a line of JSON belongs to; an error if the line is not a valid
/// measurement.
fn parse_entry(text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    for key in ["entry", "date", "row", "device", "unit"] {
        if value[key].as_str().is_none_or(str::is_empty) {
            return Err(format!("`{key}` must be a text"));
        }
    }
    let number = |key: &str| value[key].as_f64().ok_or(format!("`{key}` must be a number"));
    let (before, after, ratio) = (number("before")?, number("after")?, number("ratio")?);
    let computed = if after > before { after / before } else { before / after };
    let stated = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    if (computed - stated).abs() > 0.01 * computed {
        return Err(format!("`ratio` is {ratio}, but {before} to {after} is {computed:.3}"));
    }
    if !value["peer"].is_null() && !value["peer"].is_number() {
        return Err("`peer` must be a number, if there is one".to_owned());
    }
    Ok(value["entry"].as_str().unwrap_or_default().to_owned())
}

/// Returns the entries that the log references, with their lines.
fn references(log: &str) -> impl Iterator<Item = (usize, &str)> {
    let target = "`](performance-log.jsonl)";
    (1..).zip(log.lines()).filter_map(move |(line, text)| {
        let (before, _) = text.split_once(target)?;
        Some((line, before.rsplit("[`").next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# Log\n\nNumbers: [`a`](performance-log.jsonl).\n";

    fn line(entry: &str, ratio: f64, rest: &str) -> String {
        let start = format!("{{\"entry\":\"{entry}\",\"date\":\"2026-11-22\",\"row\":\"saxpy\"");
        let values =
            format!("\"unit\":\"ms\",\"before\":2.0,\"after\":1.0,\"ratio\":{ratio}{rest}");
        format!("{start},\"device\":\"cpu\",{values}}}\n")
    }

    fn found(numbers: &str) -> Vec<(String, usize)> {
        let mut findings = Vec::new();
        compare(LOG, numbers, &mut findings);
        findings.into_iter().map(|finding| (finding.what, finding.line)).collect()
    }

    #[test]
    fn measurements_pass() {
        assert!(found(&line("a", 2.0, "")).is_empty());
        assert!(found(&line("a", 0.5, ",\"peer\":1.5")).is_empty(), "where more is better");
    }

    #[test]
    fn invalid_measurement_lines_are_found() {
        let good = line("a", 2.0, "");
        for (wrong, problem) in [
            ("{\n".to_owned(), "not JSON"),
            (good.replace("\"ms\"", "3"), "`unit` must be a text"),
            (good.replace("1.0", "\"1\""), "`after` must be a number"),
            (line("a", 1.5, ""), "`ratio` is 1.5, but 2 to 1 is 2.000"),
            (line("a", 2.0, ",\"peer\":\"x\""), "`peer` must be a number"),
        ] {
            let found = found(&format!("{good}{wrong}"));
            assert!(found[0].0.contains(problem) && found[0].1 == 2, "{found:?}");
        }
    }

    #[test]
    fn references_lead_both_ways() {
        let unreferenced = found(&(line("a", 2.0, "") + &line("b", 2.0, "")));
        assert_eq!(
            unreferenced,
            [("docs/performance-log.md does not name the entry `b`".into(), 2)]
        );
        let missing = "no line of docs/performance-log.jsonl has the entry `a`";
        assert_eq!(found(""), [(missing.to_owned(), 3)]);
    }
}
