//! Mutation testing of the interpreter: each kind of error, injected into the PTX of hostile
//! kernels, is detected.

use scry_fuzz::Features;
use scry_fuzz::hostile::{self, Comparable, Rules};

use super::random::work;
use super::run::{How, Outcome, Problem, run};

/// Kernels among which each kind of error must be detected.
const SEEDS: u64 = 100;

/// Changes an instruction; returns `None` if the rule does not apply.
type Rule = fn(&str) -> Option<String>;

/// Changes the instruction that a rule applies to, after skipping some.
fn planted(text: &str, rule: Rule, mut skipped: u64) -> Option<String> {
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

/// Returns the first problem that a rule causes.
#[track_caller]
fn is_found(rule: Rule) -> Problem {
    for seed in 0..SEEDS {
        let kernel = hostile::kernel(seed, Features::default(), Rules { endless: false });
        if kernel.comparable() == Comparable::Nothing {
            continue;
        }
        let plant = |text: &str| planted(text, rule, seed % 3).unwrap_or_else(|| text.to_owned());
        let how = How { edit: Some(&plant), ..How::drawn(seed) };
        match run(&work(kernel.case()), &how) {
            Err(problem) => return problem,
            Ok(Outcome::Stopped) => return Problem::Endless("it was asked to end".to_owned()),
            Ok(_) => {}
        }
    }
    panic!("nothing is noticed in {SEEDS} kernels");
}

/// An instruction with another opcode.
fn renamed(line: &str, from: &str, to: &str) -> Option<String> {
    line.starts_with(from).then(|| line.replacen(from, to, 1))
}

/// The operands of an instruction of three.
fn operands<'l>(line: &'l str, opcode: &str) -> Option<[&'l str; 3]> {
    let operands = line.strip_prefix(opcode)?.trim().trim_end_matches(';');
    operands.split(", ").collect::<Vec<_>>().try_into().ok()
}

#[test]
fn missing_clamps_are_detected() {
    let problem = is_found(|line| {
        let [to, from, _] = operands(line, "min.u32")?;
        Some(format!("mov.b32 {to}, {from};"))
    });
    assert!(matches!(problem, Problem::Fault(_)), "{problem}");
}

#[test]
fn off_by_one_clamps_are_detected() {
    is_found(|line| {
        let [to, from, limit] = operands(line, "min.u32")?;
        let limit: u32 = limit.parse().ok()?;
        Some(format!("min.u32 {to}, {from}, {};", limit + 1))
    });
}

#[test]
fn off_by_one_comparisons_are_detected() {
    is_found(|line| renamed(line, "setp.ge.u32", "setp.gt.u32"));
    is_found(|line| renamed(line, "setp.gt.u32", "setp.ge.u32"));
}

#[test]
fn inverted_guards_are_detected() {
    is_found(|line| renamed(line, "@%", "@!%"));
}

/// Nothing in place of an instruction.
fn dropped(line: &str, opcode: &str) -> Option<String> {
    line.starts_with(opcode).then(String::new)
}

#[test]
fn missing_instructions_are_detected() {
    is_found(|line| dropped(line, "st.global"));
    is_found(|line| dropped(line, "mov.b32 %r"));
    is_found(|line| dropped(line, "bra "));
    is_found(|line| dropped(line, "@%"));
}

#[test]
fn wrong_numbers_are_found() {
    is_found(|line| {
        let [to, from, one] = operands(line, "add.u32")?;
        (one == "1").then(|| format!("add.u32 {to}, {from}, 2;"))
    });
    is_found(|line| {
        let address = line.strip_prefix("st.global.b32 [")?;
        let (address, value) = address.split_once(']')?;
        (!address.contains('+')).then(|| format!("st.global.b32 [{address}+4]{value}"))
    });
}
