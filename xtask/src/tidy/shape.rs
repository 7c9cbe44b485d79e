//! Lengths of files, functions and lines.

use std::fmt;

use super::Finding;
use super::source::{Function, Source};

const MAX_FILE_LINES: usize = 600;
const MAX_FILE_LINES_P95: usize = 450;
const MAX_FUNCTION_LINES: usize = 80;
const MAX_FUNCTION_LINES_P95: usize = 40;
/// For functions outside tests.
const MAX_FUNCTION_LINES_MEDIAN: usize = 8;
const MAX_WIDTH: usize = 100;

/// Median, 95th percentile and maximum of lengths; zeros if there are none.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: usize,
    pub(crate) p95: usize,
    pub(crate) max: usize,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, p95, max } = self;
        write!(f, "median {median}, p95 {p95}, max {max}")
    }
}

impl Spread {
    /// Computes percentiles by the nearest-rank method.
    pub(crate) fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut sorted: Vec<usize> = lengths.into_iter().collect();
        sorted.sort_unstable();
        let rank = |percent: usize| (sorted.len() * percent).div_ceil(100).max(1) - 1;
        let at = |percent| sorted.get(rank(percent)).copied().unwrap_or(0);
        Self { median: at(50), p95: at(95), max: at(100) }
    }
}

/// Returns the spread of the lengths of all files.
pub(crate) fn file_spread(sources: &[Source]) -> Spread {
    Spread::from_lengths(sources.iter().map(|source| source.text.lines().count()))
}

/// Returns the number of functions, and the spread of their lengths.
pub(crate) fn function_spread(sources: &[Source]) -> (usize, Spread) {
    let lengths: Vec<usize> =
        sources.iter().flat_map(Source::functions).map(|function| function.length).collect();
    (lengths.len(), Spread::from_lengths(lengths))
}

/// Returns a one-line summary of all sources.
pub(super) fn summary(sources: &[Source]) -> String {
    let files = file_spread(sources);
    let (count, functions) = function_spread(sources);
    let is_code = |source: &Source, function: &Function| !source.is_test(function.line);
    let code = sources.iter().flat_map(|source| {
        let functions = source.functions().into_iter();
        functions.filter_map(|one| is_code(source, &one).then_some(one.length))
    });
    let code = Spread::from_lengths(code).median;
    format!(
        "{} files, lines: {files}; {count} functions, lines: {functions}, median outside tests \
         {code}",
        sources.len(),
    )
}

/// Finds files and functions that are too long, and lines that are too wide.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let (mut files, mut functions, mut code) = (Vec::new(), Vec::new(), Vec::new());
    for source in sources {
        let lines = source.text.lines().count();
        files.push((lines, (source.path.as_str(), 1)));
        if lines > MAX_FILE_LINES {
            let what = format!("{lines} lines, at most {MAX_FILE_LINES} a file");
            findings.push(Finding::new(&source.path, 1, "file-length", what));
        }
        check_width(source, findings);
        for function in source.functions() {
            functions.push((function.length, (source.path.as_str(), function.line)));
            if !source.is_test(function.line) {
                code.extend(functions.last().copied());
            }
            check_function(&source.path, &function, findings);
        }
    }
    let (file, function) = ("file-length", "function-length");
    check_percentile(files, file, 95, MAX_FILE_LINES_P95, findings);
    check_percentile(functions, function, 95, MAX_FUNCTION_LINES_P95, findings);
    check_percentile(code, function, 50, MAX_FUNCTION_LINES_MEDIAN, findings);
}

fn check_width(source: &Source, findings: &mut Vec<Finding>) {
    for (i, line) in source.text.lines().enumerate() {
        let width = line.chars().count();
        if width > MAX_WIDTH {
            let what = format!("{width} characters, at most {MAX_WIDTH} a line");
            findings.push(Finding::new(&source.path, i + 1, "width", what));
        }
    }
}

fn check_function(path: &str, function: &Function, findings: &mut Vec<Finding>) {
    let Function { name, line, length } = function;
    if *length > MAX_FUNCTION_LINES {
        let what = format!("`{name}` has {length} lines, at most {MAX_FUNCTION_LINES} a function");
        findings.push(Finding::new(path, *line, "function-length", what));
    }
}

/// Reports a violation for the longest file or function if fewer than `percent` of them are at most
/// `limit` lines long.
fn check_percentile(
    mut lengths: Vec<(usize, (&str, usize))>,
    rule: &'static str,
    percent: usize,
    limit: usize,
    findings: &mut Vec<Finding>,
) {
    let within = lengths.iter().filter(|(length, _)| *length <= limit).count();
    if within * 100 >= lengths.len() * percent {
        return;
    }
    lengths.sort_unstable();
    let (length, (path, line)) = lengths[lengths.len() - 1];
    let above = lengths.len() - within;
    let what = format!(
        "{above} of {} are longer than {limit} lines, at most {} % may be; the longest, here, has \
         {length}",
        lengths.len(),
        100 - percent,
    );
    findings.push(Finding::new(path, line, rule, what));
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, usize)> {
        violations(check, "src/a.rs", text)
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(found(&"// Text.\n".repeat(450)), []);
        // A single file is also the 95th percentile.
        assert_eq!(found(&"// Text.\n".repeat(451)), [("file-length", 1)]);
        assert_eq!(found(&"// Text.\n".repeat(601)).len(), 2);
    }

    #[test]
    fn a_long_function_is_found() {
        let short = function(4).repeat(40);
        assert_eq!(found(&(short.clone() + &function(80))), []);
        assert_eq!(found(&(short + &function(81))), [("function-length", 161)]);
    }

    #[test]
    fn too_many_long_functions_are_found() {
        assert_eq!(found(&(function(8).repeat(19) + &function(41))), []);
        assert_eq!(found(&(function(8).repeat(18) + &function(41).repeat(2))).len(), 1);
        assert_eq!(found(&(function(8).repeat(9) + &function(9).repeat(10))).len(), 1);
    }

    #[test]
    fn tests_do_not_count_for_median() {
        let tests = format!("#[test]\n{}", function(9)).repeat(10);
        assert_eq!(found(&(function(8) + &tests)), []);
    }

    #[test]
    fn line_width_counts_characters() {
        assert_eq!(found(&format!("//{}\n", "µ".repeat(98))), []);
        assert_eq!(found(&format!("\n//{}\n", "µ".repeat(99))), [("width", 2)]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let spread = Spread::from_lengths(1..=20);
        assert_eq!(spread, Spread { median: 10, p95: 19, max: 20 });
        assert_eq!(Spread::from_lengths([]), Spread { median: 0, p95: 0, max: 0 });
    }
}
