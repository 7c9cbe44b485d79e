//! Tests of the sanitising pass: kernels that lie are made safe or refused.

mod bounds;
mod control;
mod limits;
mod matrices;
mod random;

use crate::kir::interpret::Interpreter;
use crate::kir::{Builder, Kir, KirOptions, Type, Value};
use crate::{Program, ShaderErrorKind};

/// Returns the optimised kernel that runs instead of this one.
fn safe(kir: &Kir) -> Kir {
    let program = Program::from_kir(kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    program.to_kir(&KirOptions { checked: true }).unwrap()
}

/// Returns the message of the error.
fn refused(kir: &Kir) -> (ShaderErrorKind, String) {
    let error = Program::from_kir(kir).err().unwrap_or_else(|| panic!("it is accepted\n{kir}"));
    (error.kind, error.message)
}

/// Runs one workgroup, and returns the buffers as words. Accesses out of bounds are errors.
fn run(kir: &Kir, buffers: &[&[u32]]) -> Vec<Vec<u32>> {
    let bytes = |words: &&[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut interpreter = Interpreter::new(kir, buffers.iter().map(bytes).collect());
    interpreter.run([1, 1, 1]).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    let words = |bytes: &Vec<u8>| {
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    interpreter.buffers.iter().map(words).collect()
}

/// Begins a kernel of four invocations with a buffer `data`; returns the local position too.
fn begin() -> (Builder, u32, Value) {
    let mut b = Builder::new("test", [4, 1, 1]);
    let data = b.named_buffer("data", Type::U32, true);
    let local = b.builtin(crate::kir::Builtin::LocalId(0));
    (b, data, local)
}
