//! Mutation tests of the interpreter: it must detect each kind of error that is injected into the
//! PTX of hostile kernels.

use scry_fuzz::Features;
use scry_fuzz::hostile::{self, Comparable, Rules};

use super::random::launch;
use super::run::{Outcome, Problem, RunOptions, run};

/// Number of kernels; each kind of error must be detected in one of them.
const SEEDS: u64 = 100;

/// A mutation of an instruction; returns `None` if it does not apply.
type Rule = fn(&str) -> Option<String>;

/// Changes one instruction that a rule applies to, after skipping some of them. Returns `None` if
/// there are not enough.
fn apply_rule(text: &str, rule: Rule, mut skipped: u64) -> Option<String> {
    let mut changed = None;
    let mut edit = |line: &str| {
        let edited = rule(line.trim_start()).filter(|_| changed.is_none())?;
        if skipped > 0 {
            skipped -= 1;
            return None;
        }
        changed = Some(());
        Some(edited)
    };
    let lines: Vec<_> = text.lines().map(|line| edit(line).unwrap_or(line.to_owned())).collect();
    changed.map(|()| lines.join("\n"))
}

/// Asserts that a rule causes a problem in one of the kernels; returns the first one.
#[track_caller]
fn assert_detected(rule: Rule) -> Problem {
    for seed in 0..SEEDS {
        let kernel = hostile::kernel(seed, Features::default(), Rules { endless: false });
        if kernel.comparable() == Comparable::Nothing {
            continue;
        }
        let edit_text =
            |text: &str| apply_rule(text, rule, seed % 3).unwrap_or_else(|| text.to_owned());
        let run_options = RunOptions { edit: Some(&edit_text), ..RunOptions::from_seed(seed) };
        match run(&launch(kernel.case()), &run_options) {
            Err(problem) => return problem,
            Ok(Outcome::Cancelled) => {
                return Problem::NotTerminating("cancellation was requested".to_owned());
            }
            Ok(_) => {}
        }
    }
    panic!("no problem is detected in {SEEDS} kernels");
}

/// Replaces the opcode, or the start of it, if it is `from`.
fn rename_opcode(line: &str, from: &str, to: &str) -> Option<String> {
    line.starts_with(from).then(|| line.replacen(from, to, 1))
}

/// Returns the operands of an instruction with this opcode and three operands.
fn operands<'l>(line: &'l str, opcode: &str) -> Option<[&'l str; 3]> {
    let operands = line.strip_prefix(opcode)?.trim().trim_end_matches(';');
    operands.split(", ").collect::<Vec<_>>().try_into().ok()
}

#[test]
fn missing_clamps_are_detected() {
    let problem = assert_detected(|line| {
        let [to, from, _] = operands(line, "min.u32")?;
        Some(format!("mov.b32 {to}, {from};"))
    });
    assert!(matches!(problem, Problem::Fault(_)), "{problem}");
}

#[test]
fn off_by_one_clamps_are_detected() {
    assert_detected(|line| {
        let [to, from, limit] = operands(line, "min.u32")?;
        let limit: u32 = limit.parse().ok()?;
        Some(format!("min.u32 {to}, {from}, {};", limit + 1))
    });
}

#[test]
fn off_by_one_comparisons_are_detected() {
    assert_detected(|line| rename_opcode(line, "setp.ge.u32", "setp.gt.u32"));
    assert_detected(|line| rename_opcode(line, "setp.gt.u32", "setp.ge.u32"));
}

#[test]
fn inverted_guards_are_detected() {
    assert_detected(|line| rename_opcode(line, "@%", "@!%"));
}

/// Removes an instruction with this opcode.
fn drop_instruction(line: &str, opcode: &str) -> Option<String> {
    line.starts_with(opcode).then(String::new)
}

#[test]
fn missing_instructions_are_detected() {
    assert_detected(|line| drop_instruction(line, "st.global"));
    assert_detected(|line| drop_instruction(line, "mov.b32 %r"));
    assert_detected(|line| drop_instruction(line, "bra "));
    assert_detected(|line| drop_instruction(line, "@%"));
}

#[test]
fn wrong_constants_are_detected() {
    assert_detected(|line| {
        let [to, from, one] = operands(line, "add.u32")?;
        (one == "1").then(|| format!("add.u32 {to}, {from}, 2;"))
    });
    assert_detected(|line| {
        let address = line.strip_prefix("st.global.b32 [")?;
        let (address, value) = address.split_once(']')?;
        (!address.contains('+')).then(|| format!("st.global.b32 [{address}+4]{value}"))
    });
}
