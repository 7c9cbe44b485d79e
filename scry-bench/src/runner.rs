//! What the programs have in common: their parts, their arguments, and their exit status.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};

/// A part of a benchmark, by the name that `--only` has for it.
pub type Part<B> = (&'static str, fn(&mut B) -> Result<()>);

/// Returns the exit status of a program: 0 if all goals are reached, 1 if one is missed, and 2,
/// after the error was printed, if something could not be measured.
#[must_use]
pub fn exit_status(program: &str, result: Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Checks the number of measurements.
///
/// # Errors
/// If there are none.
pub fn check_samples(samples: usize) -> Result<()> {
    ensure!(samples > 0, "--samples must be at least 1");
    Ok(())
}

/// Checks the names given with `--only` against those that exist; errors call them `what`.
///
/// # Errors
/// If one does not exist.
pub fn check_only<'a>(
    what: &str,
    only: &[String],
    names: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("there is no {what} `{unknown}`, only {}", names.join(", "));
    }
    Ok(())
}

/// Returns whether `--only` selects a name: without it, all are.
#[must_use]
pub fn is_selected(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|only| only == name)
}

/// Returns whether `--only` selects a name by a part of it: without it, all are.
#[must_use]
pub fn is_matched(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|only| name.contains(only.as_str()))
}

/// Checks the names given with `--only` against those of the parts, which are then run by
/// [`run_parts`].
///
/// # Errors
/// As [`check_only`].
pub fn check_parts<B>(only: &[String], parts: &[Part<B>]) -> Result<()> {
    check_only("part", only, parts.iter().map(|(name, _)| *name))
}

/// Runs the parts that `--only` selects, in their order.
///
/// # Errors
/// Those of a part, with its name.
pub fn run_parts<B>(bench: &mut B, only: &[String], parts: &[Part<B>]) -> Result<()> {
    for (name, part) in parts.iter().filter(|(name, _)| is_selected(only, name)) {
        part(bench).with_context(|| format!("part `{name}`"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    const PARTS: [Part<Vec<u32>>; 3] = [
        ("first", |bench| push(bench, 1)),
        ("second", |bench| push(bench, 2)),
        ("failing", |_| bail!("it fails")),
    ];

    fn push(bench: &mut Vec<u32>, number: u32) -> Result<()> {
        bench.push(number);
        Ok(())
    }

    #[test]
    fn parts_are_selected_and_named() {
        let mut bench = Vec::new();
        assert!(run_parts(&mut bench, &only(&["second", "first"]), &PARTS).is_ok());
        assert_eq!(bench, [1, 2]);
        let error = run_parts(&mut bench, &[], &PARTS).expect_err("the last one fails");
        assert_eq!(format!("{error:#}"), "part `failing`: it fails");
        assert_eq!(bench, [1, 2, 1, 2]);
    }

    #[test]
    fn unknown_names_are_rejected() {
        assert!(check_parts(&only(&["first"]), &PARTS).is_ok());
        let error = check_parts(&only(&["firs"]), &PARTS).expect_err("it does not exist");
        assert_eq!(error.to_string(), "there is no part `firs`, only first, second, failing");
        assert!(check_samples(0).is_err());
    }

    #[test]
    fn names_are_matched_by_parts_if_asked_for() {
        assert!(is_matched(&only(&["ir"]), "first") && !is_selected(&only(&["ir"]), "first"));
        assert!(is_matched(&[], "first") && is_selected(&[], "first"));
    }
}
