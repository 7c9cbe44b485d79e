//! Tests that lower kernels, inspect them and execute them.

mod control;
mod cooperative;
mod functions;
mod hostile;
mod pointers;
mod rejections;
mod shapes;
mod values;

use super::{KirOptions, lower};
use crate::Program;
use crate::kir::interpret::Interpreter;
use crate::kir::{BinaryOp, Block, Inst, Kir, Stmt, optimise, verify};
use crate::program::Content;
use crate::wgsl::naga::guard;

/// Lowers a kernel with bounds checks and without optimisation.
fn lower_checked(source: &str) -> Kir {
    lower_source(source, true)
}

/// Lowers a kernel without bounds checks and without optimisation.
fn lower_unchecked(source: &str) -> Kir {
    lower_source(source, false)
}

fn lower_source(source: &str, checked: bool) -> Kir {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let Content::Wgsl(inner) = program.content() else { unreachable!("it is WGSL") };
    let kir = guard::run(|| lower(inner, &KirOptions { checked }));
    kir.unwrap_or_else(|error| panic!("{error}"))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Returns the source of a kernel of one invocation, with an input `data` and an output `out`. Both
/// are always used, so that the interface has them.
fn kernel(declarations: &str, body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @group(0) @binding(1) var<storage> data: array<u32>;
        {declarations}
        @compute @workgroup_size(1) fn main() {{ out[0] += data[0] * 0u; {body} }}"
    )
}

/// Executes a kernel with and without bounds checks, and optimised; asserts equal
/// results. Returns the content of `out`, which has `N` elements.
fn run<const N: usize>(declarations: &str, body: &str, data: &[u32]) -> [u32; N] {
    let source = kernel(declarations, body);
    let execute = |kir: &Kir| {
        let mut interpreter = Interpreter::new(kir, vec![bytes(&[0; N]), bytes(data)]);
        interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
        <[u32; N]>::try_from(words(&interpreter.buffers[0])).unwrap()
    };
    let (checked, unchecked) = (lower_checked(&source), lower_unchecked(&source));
    let result = execute(&checked);
    assert_eq!(result, execute(&unchecked), "without bounds checks");
    let mut optimised = checked;
    optimise(&mut optimised);
    verify(&optimised).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result, execute(&optimised), "optimised");
    result
}

/// Counts the statements of a block and of nested blocks that satisfy a condition.
fn count_statements(block: &Block, predicate: &dyn Fn(&Stmt) -> bool) -> usize {
    let mut count = 0;
    crate::kir::for_each_stmt(block, &mut |stmt| count += usize::from(predicate(stmt)));
    count
}

/// Counts the instructions of a kernel that satisfy a condition.
fn count_insts(kir: &Kir, predicate: impl Fn(&Inst) -> bool) -> usize {
    kir.values.iter().filter(|value| predicate(&value.inst)).count()
}

/// Counts the clamped indices of a kernel.
fn count_clamps(kir: &Kir) -> usize {
    count_insts(kir, |inst| matches!(inst, Inst::Binary(BinaryOp::Min, ..)))
}
