//! The kernels of the corpus, on ordinary and on wild data.

use std::cell::RefCell;
use std::path::Path;

use scry_ir::{GridSource, Program, Scalar, ScalarKind, TypeLayout};

use super::compare::visit;
use super::run::{How, Outcome, Problem, Work, run};
use scry_ptx::Target;

/// Bytes of a layout whose numbers are small, or wild: a number for each scalar.
fn content(layout: &TypeLayout, elements: u64, wild: bool) -> Vec<u8> {
    let tail = layout.runtime_array().map_or(0, |(_, stride)| stride * elements);
    let size = (layout.fixed_size() + tail).max(layout.min_binding_size());
    let bytes = RefCell::new(vec![0; size as usize]);
    let fill = |at: usize, scalar: Scalar| {
        let n = at / usize::from(scalar.width);
        let float = (n % 13) as f32 * 0.25 + 0.5;
        let bits = match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 2) => half::f16::from_f32(float).to_bits().into(),
            (ScalarKind::Float, 4) => float.to_bits().into(),
            (ScalarKind::Float, _) => f64::from(float).to_bits(),
            _ if wild => (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | n as u64 & 1,
            _ => n as u64 % 7,
        };
        if let Some(place) = bytes.borrow_mut().get_mut(at..at + usize::from(scalar.width)) {
            place.copy_from_slice(&bits.to_le_bytes()[..usize::from(scalar.width)]);
        }
        None
    };
    visit(layout, 0, size as usize, &fill);
    bytes.into_inner()
}

fn work(source: &str, elements: u64, wild: bool) -> Work {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let interface = program.interface();
    let buffers = interface.bindings.iter();
    let buffers = buffers.map(|binding| content(&binding.layout, elements, wild)).collect();
    let immediates = interface.immediates.as_ref();
    let immediates = immediates.map(|block| content(&block.layout, 0, wild)).unwrap_or_default();
    Work { source: source.to_owned(), buffers, immediates, groups: [1, 1, 1] }
}

/// Names and sources of the kernels in a folder.
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
    let (mut compared, mut long) = (0, 0);
    for (name, source) in ["", "bounds", "fuzz", "drivers"].into_iter().flat_map(sources) {
        use GridSource::{Counts, Native};
        for (target, grid) in
            [(Target::SM_75, Native), (Target::SM_90, Native), (Target::SM_80, Counts)]
        {
            for (elements, wild) in [(300, false), (300, true), (1, true), (70, true)] {
                let mut how = How::on(target);
                how.options.grid = grid;
                let budget = if wild { [1 << 19; 2] } else { how.budget };
                // In small buffers clamped indices meet, and invocations race.
                let how = How { ulps: 16, compared: elements == 300, budget, ..how };
                match run(&work(&source, elements, wild), &how) {
                    Ok(Outcome::Same) => compared += 1,
                    Ok(Outcome::WithinBounds) => {}
                    // Loops of a wild number of iterations are proven to end, and do not poll.
                    Err(Problem::Endless(_)) if wild => long += 1,
                    Ok(outcome) => eprintln!("{name}, {elements} elements: {outcome:?}"),
                    Err(problem) => panic!("{name} for {target}, {elements} elements: {problem}"),
                }
            }
        }
    }
    eprintln!("{compared} launches compared, {long} with too many iterations");
    assert!(compared > 140, "{compared} launches were compared");
    assert!(long < 10, "{long} launches did not end");
}
