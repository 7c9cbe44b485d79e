//! Tests that every kernel's name follows the legend in `docs/kernels.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A field of a pattern, or several fields that are optional together.
#[derive(Debug)]
struct Field {
    /// Each field, with its alternatives.
    parts: Vec<Vec<String>>,
    is_optional: bool,
}

/// The patterns of the legend, by their text.
fn legend() -> Vec<(String, Vec<Field>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
    let text = fs::read_to_string(file).expect("the legend can be read");
    let block = text.split("```").nth(1).expect("the legend is the first block of code");
    let lines: Vec<&str> = block.lines().skip(1).filter(|line| !line.is_empty()).collect();
    let classes: Vec<(&str, &str)> = lines.iter().filter_map(|line| line.split_once('=')).collect();
    let expand = |mut field: String| {
        for (class, alternatives) in &classes {
            // A class may follow a prefix, as in `biasTYPE`.
            let Some((prefix, _)) = field.split_once(class.trim()) else {
                continue;
            };
            let last = prefix.rsplit('|').next().unwrap_or_default().to_owned();
            let expanded: Vec<_> =
                alternatives.trim().split('|').map(|one| format!("{last}{one}")).collect();
            field = field.replace(&format!("{last}{}", class.trim()), &expanded.join("|"));
        }
        field.split('|').map(str::to_owned).collect()
    };
    let fields = |line: &str| {
        let marked = line.replace('[', "\0[").replace(']', "\0");
        let groups = marked.split('\0').filter(|group| !group.trim().is_empty());
        let of_group = |group: &str| {
            let is_optional = group.starts_with('[');
            let words = group.trim_start_matches('[').split_whitespace();
            // The first word of a line is several fields of a name.
            let words = words.flat_map(|word| word.split('_')).map(str::to_owned);
            let parts: Vec<Vec<String>> = words.map(expand).collect();
            match is_optional {
                true => vec![Field { parts, is_optional }],
                false => {
                    parts.into_iter().map(|part| Field { parts: vec![part], is_optional }).collect()
                }
            }
        };
        groups.flat_map(of_group).collect()
    };
    let patterns = lines.iter().filter(|line| !line.contains('='));
    patterns.map(|line| ((*line).to_owned(), fields(line))).collect()
}

/// Whether a part of a name matches an alternative, in which `N` stands for digits.
fn is_part(part: &str, alternative: &str) -> bool {
    let mut rest = part;
    for (nth, literal) in alternative.split('N').enumerate() {
        if nth > 0 {
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            if digits.len() == rest.len() {
                return false;
            }
            rest = digits;
        }
        match rest.strip_prefix(literal) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Whether the parts of a name match a pattern.
fn follows(parts: &[&str], pattern: &[Field]) -> bool {
    let Some((field, others)) = pattern.split_first() else {
        return parts.is_empty();
    };
    let fits = |(part, alternatives): (&&str, &Vec<String>)| {
        alternatives.iter().any(|alternative| is_part(part, alternative))
    };
    let count = field.parts.len();
    let has = parts.len() >= count && parts.iter().zip(&field.parts).all(fits);
    (has && follows(&parts[count..], others)) || (field.is_optional && follows(parts, others))
}

/// The names of all kernels in the resource snapshots.
fn names() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/out/kernels");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let text = fs::read_to_string(entry.expect("it has files").path()).expect("it is text");
        let mut lines = text.lines();
        let is_snapshot = lines.next().is_some_and(|line| line.starts_with("kernel, "));
        let of_line = |line: &str| line.split(',').next().map(str::to_owned);
        names.extend(lines.filter(|_| is_snapshot).filter_map(of_line));
    }
    names
}

#[test]
fn every_name_follows_the_legend() {
    let legend = legend();
    let names = names();
    assert!(names.len() > 500, "{}", names.len());
    for name in names {
        let parts: Vec<&str> = name.split('_').collect();
        let found: Vec<_> = legend.iter().filter(|(_, fields)| follows(&parts, fields)).collect();
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
    }
}

#[test]
fn every_legend_entry_has_a_kernel() {
    let names = names();
    for (line, fields) in legend() {
        let follows = |name: &String| follows(&name.split('_').collect::<Vec<_>>(), &fields);
        assert!(names.iter().any(follows), "{line}");
    }
}

#[test]
fn names_outside_the_legend_are_detected() {
    let legend = legend();
    let is_name = |name: &str| {
        let parts: Vec<&str> = name.split('_').collect();
        legend.iter().any(|(_, fields)| follows(&parts, fields))
    };
    assert!(is_name("gemm_sm90_bf16_tn_64x16_splitk2_col_evicta_pdla"));
    for wrong in [
        "gemm_sm90_bf16_bf16_i1i_64x16_team2_columns_early_a",
        "gemm_sm90_bf16_tn_64x16_splitk2",
        "gemm_sm90_bf16_tn_64x",
        "gemm_sm90_bf16_tn_64x16_pdla_evicta",
        "attention_naive_f16_d64_biasi32",
        "quantize",
    ] {
        assert!(!is_name(wrong), "{wrong}");
    }
}
