//! Tests with the kernels of the corpus, on small numbers and on wild ones (random bits).

use std::cell::RefCell;
use std::path::Path;

use scry_ir::{GridSource, Program, Scalar, ScalarKind, TypeLayout};

use super::compare::visit;
use super::run::{Outcome, Problem, RunOptions, TestLaunch, run};
use scry_ptx::Target;

/// Returns the initial bytes of a buffer, whose runtime-sized array has `elements` elements.
/// Integers are small, or wild: pseudo-random bits.
fn buffer_contents(layout: &TypeLayout, elements: u64, wild: bool) -> Vec<u8> {
    let tail = layout.runtime_array().map_or(0, |(_, stride)| stride * elements);
    let size = (layout.fixed_size() + tail).max(layout.min_binding_size());
    let bytes = RefCell::new(vec![0; size as usize]);
    let fill = |at: usize, scalar: Scalar| {
        let index = at / usize::from(scalar.width);
        let float = (index % 13) as f32 * 0.25 + 0.5;
        let bits = match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 2) => half::f16::from_f32(float).to_bits().into(),
            (ScalarKind::Float, 4) => float.to_bits().into(),
            (ScalarKind::Float, _) => f64::from(float).to_bits(),
            _ if wild => (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | index as u64 & 1,
            _ => index as u64 % 7,
        };
        if let Some(slot) = bytes.borrow_mut().get_mut(at..at + usize::from(scalar.width)) {
            slot.copy_from_slice(&bits.to_le_bytes()[..usize::from(scalar.width)]);
        }
        None
    };
    visit(layout, 0, size as usize, &fill);
    bytes.into_inner()
}

fn launch(source: &str, elements: u64, wild: bool) -> TestLaunch {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let interface = program.interface();
    let buffers = interface.bindings.iter();
    let buffers = buffers.map(|binding| buffer_contents(&binding.layout, elements, wild)).collect();
    let immediates = interface.immediates.as_ref();
    let immediates =
        immediates.map(|block| buffer_contents(&block.layout, 0, wild)).unwrap_or_default();
    TestLaunch { source: source.to_owned(), buffers, immediates, groups: [1, 1, 1] }
}

/// Returns the paths and sources of the kernels in a folder of the corpus.
fn sources(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wgsl = files.filter(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    let named = |path: std::path::PathBuf| {
        (path.display().to_string(), std::fs::read_to_string(path).unwrap())
    };
    wgsl.map(named).collect()
}

#[test]
fn corpus_kernels_match_the_cpu() {
    let (mut compared, mut not_terminated) = (0, 0);
    for (name, source) in ["", "bounds", "fuzz", "drivers"].into_iter().flat_map(sources) {
        use GridSource::{Counts, Native};
        for (target, grid) in
            [(Target::SM_75, Native), (Target::SM_90, Native), (Target::SM_80, Counts)]
        {
            for (elements, wild) in [(300, false), (300, true), (1, true), (70, true)] {
                let mut run_options = RunOptions::for_target(target);
                run_options.ptx.grid = grid;
                let budget = if wild { [1 << 19; 2] } else { run_options.budget };
                // In small buffers many indices are clamped to the same element, and invocations
                // race.
                let run_options =
                    RunOptions { ulps: 16, is_compared: elements == 300, budget, ..run_options };
                match run(&launch(&source, elements, wild), &run_options) {
                    Ok(Outcome::Same) => compared += 1,
                    Ok(Outcome::NotCompared) => {}
                    // Loops with a wild trip count may be proven to terminate, and then do not
                    // poll.
                    Err(Problem::NotTerminating(_)) if wild => not_terminated += 1,
                    Ok(outcome) => eprintln!("{name}, {elements} elements: {outcome:?}"),
                    Err(problem) => panic!("{name} for {target}, {elements} elements: {problem}"),
                }
            }
        }
    }
    eprintln!("{compared} launches compared, {not_terminated} with too many iterations");
    assert!(compared > 140, "{compared} launches were compared");
    assert!(not_terminated < 10, "{not_terminated} launches did not end");
}
