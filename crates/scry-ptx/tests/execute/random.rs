//! Random kernels: well-defined ones, and hostile ones.

use std::mem::discriminant;

use scry_fuzz::hostile::{self, Comparable, Rules};
use scry_fuzz::{Case, Features};

use super::run::{How, Outcome, Problem, Work, run};

/// Default number of kernels of each kind.
const SEEDS: u64 = 100;

/// Candidates that are executed to make a failing kernel smaller.
const ATTEMPTS: usize = 3000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// A random kernel.
pub fn work(case: Case) -> Work {
    let immediates = case.immediates.unwrap_or_default();
    Work { source: case.source, buffers: case.buffers, immediates, groups: case.groups }
}

/// Executes the kernels of many seeds, and reports every problem with a small kernel that has it.
fn all<K>(draw: impl Fn(u64) -> K, ran: impl Fn(u64, &K) -> Ran, small: impl Fn(u64, &K) -> Case) {
    let first = number("SCRY_FUZZ_FIRST").unwrap_or(0);
    let most = number("SCRY_FUZZ_PROBLEMS").unwrap_or(1);
    let mut problems = Vec::new();
    let mut outcomes = [0; 3];
    for seed in first..first + number("SCRY_FUZZ_SEEDS").unwrap_or(SEEDS) {
        let kernel = draw(seed);
        match ran(seed, &kernel) {
            Ok(outcome) => outcomes[outcome as usize] += 1,
            Err(problem) => {
                // At once, since a run of many kernels may be cut off.
                eprintln!("seed {seed}: {problem}");
                let case = small(seed, &kernel);
                eprintln!("seed {seed}, made small:\n{}\n{case:?}", case.source);
                problems.push(seed);
            }
        }
        if problems.len() as u64 >= most {
            break;
        }
    }
    let [same, within, stopped] = outcomes;
    eprintln!("{same} computed the same, {within} not compared, {stopped} stopped when asked to");
    assert!(problems.is_empty(), "problems, each described above, with the seeds {problems:?}");
}

type Ran = Result<Outcome, Problem>;

/// Whether a smaller kernel has the same problem.
fn is_like(ran: &Ran, wanted: &Ran) -> bool {
    match (ran, wanted) {
        (Err(ran), Err(wanted)) => discriminant(ran) == discriminant(wanted),
        _ => false,
    }
}

#[test]
fn random_kernels_match_the_cpu() {
    let ran = |seed, kernel: &scry_fuzz::RandomKernel| -> Ran {
        let how = How { budget: [1 << 30, 1 << 20], ..How::drawn(seed) };
        match run(&work(kernel.case()), &how) {
            Ok(Outcome::Stopped) => Err(Problem::Endless("it was asked to end".to_owned())),
            ran => ran,
        }
    };
    let small = |seed, kernel: &scry_fuzz::RandomKernel| {
        let wanted = ran(seed, kernel);
        scry_fuzz::shrink(kernel, ATTEMPTS, |smaller| is_like(&ran(seed, smaller), &wanted)).case()
    };
    all(|seed| scry_fuzz::kernel(seed, Features::ALL.for_seed(seed)), ran, small);
}

#[test]
fn hostile_kernels_stay_within_their_memory() {
    let ran = |seed, kernel: &hostile::HostileKernel| -> Ran {
        let compared = kernel.comparable() != Comparable::Nothing;
        let how = How { compared, ..How::drawn(seed) };
        match run(&work(kernel.case()), &how) {
            Ok(Outcome::Stopped) if !kernel.may_not_terminate() => {
                Err(Problem::Endless("it was asked to end, but should end by itself".to_owned()))
            }
            ran => ran,
        }
    };
    let small = |seed, kernel: &hostile::HostileKernel| {
        let wanted = ran(seed, kernel);
        hostile::shrink(kernel, ATTEMPTS, |smaller| is_like(&ran(seed, smaller), &wanted)).case()
    };
    let draw = |seed| hostile::kernel(seed, Features::ALL.for_seed(seed), Rules::default());
    all(draw, ran, small);
}
