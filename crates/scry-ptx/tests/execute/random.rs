//! Tests with random kernels: well-defined ones, and hostile ones.

use std::mem::discriminant;

use scry_fuzz::hostile::{self, Comparable, Rules};
use scry_fuzz::{Case, Features};
use scry_test_support::env_number;

use super::run::{Outcome, Problem, RunOptions, TestLaunch, run};

/// Default number of kernels of each kind.
const SEEDS: u64 = 100;

/// Maximum candidates that are executed to shrink a failing kernel.
const ATTEMPTS: usize = 3000;

/// Converts a random kernel with its data.
pub fn launch(case: Case) -> TestLaunch {
    let immediates = case.immediates.unwrap_or_default();
    TestLaunch { source: case.source, buffers: case.buffers, immediates, groups: case.groups }
}

/// Executes the kernels of many seeds, and reports every problem with a shrunk kernel that has it.
/// `draw` creates the kernel of a seed.
fn check_seeds<K>(
    draw: impl Fn(u64) -> K,
    run_kernel: impl Fn(u64, &K) -> RunResult,
    shrink: impl Fn(u64, &K) -> Case,
) {
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    let max_problems = env_number("SCRY_FUZZ_PROBLEMS").unwrap_or(1);
    let mut problems = Vec::new();
    let mut outcomes = [0; 3];
    for seed in first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(SEEDS) {
        let kernel = draw(seed);
        match run_kernel(seed, &kernel) {
            Ok(outcome) => outcomes[outcome as usize] += 1,
            Err(problem) => {
                // Immediately, since a run of many kernels may be interrupted.
                eprintln!("seed {seed}: {problem}");
                let case = shrink(seed, &kernel);
                eprintln!("seed {seed}, shrunk:\n{}\n{case:?}", case.source);
                problems.push(seed);
            }
        }
        if problems.len() as u64 >= max_problems {
            break;
        }
    }
    let [same, not_compared, cancelled] = outcomes;
    eprintln!("{same} computed the same, {not_compared} not compared, {cancelled} cancelled");
    assert!(problems.is_empty(), "problems with the seeds {problems:?}, described above");
}

type RunResult = Result<Outcome, Problem>;

/// Returns whether a smaller kernel has the same kind of problem.
fn has_same_problem(result: &RunResult, original: &RunResult) -> bool {
    match (result, original) {
        (Err(problem), Err(original)) => discriminant(problem) == discriminant(original),
        _ => false,
    }
}

#[test]
fn random_kernels_match_the_cpu() {
    let run_kernel = |seed, kernel: &scry_fuzz::RandomKernel| -> RunResult {
        let run_options = RunOptions { budget: [1 << 30, 1 << 20], ..RunOptions::from_seed(seed) };
        match run(&launch(kernel.case()), &run_options) {
            Ok(Outcome::Cancelled) => {
                Err(Problem::NotTerminating("cancellation was requested".to_owned()))
            }
            result => result,
        }
    };
    let shrink = |seed, kernel: &scry_fuzz::RandomKernel| {
        let original = run_kernel(seed, kernel);
        scry_fuzz::shrink(kernel, ATTEMPTS, |smaller| {
            has_same_problem(&run_kernel(seed, smaller), &original)
        })
        .case()
    };
    check_seeds(|seed| scry_fuzz::kernel(seed, Features::ALL.for_seed(seed)), run_kernel, shrink);
}

#[test]
fn hostile_kernels_stay_within_their_memory() {
    let run_kernel = |seed, kernel: &hostile::HostileKernel| -> RunResult {
        let is_compared = kernel.comparable() != Comparable::Nothing;
        let run_options = RunOptions { is_compared, ..RunOptions::from_seed(seed) };
        match run(&launch(kernel.case()), &run_options) {
            Ok(Outcome::Cancelled) if !kernel.may_not_terminate() => Err(Problem::NotTerminating(
                "cancellation was requested, but it should terminate".to_owned(),
            )),
            result => result,
        }
    };
    let shrink = |seed, kernel: &hostile::HostileKernel| {
        let original = run_kernel(seed, kernel);
        hostile::shrink(kernel, ATTEMPTS, |smaller| {
            has_same_problem(&run_kernel(seed, smaller), &original)
        })
        .case()
    };
    let draw = |seed| hostile::kernel(seed, Features::ALL.for_seed(seed), Rules::default());
    check_seeds(draw, run_kernel, shrink);
}
