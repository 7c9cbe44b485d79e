//! Tests of sanitising: kernels with false claims are made safe or rejected.

mod bounds;
mod control;
mod limits;
mod matrices;
mod random;

use crate::Access;
use crate::kir::interpret::Interpreter;
use crate::kir::{Builder, Kir, KirOptions, Type, Value};
use crate::{Program, ShaderErrorKind};

/// Returns the sanitised and optimised kernel.
fn sanitised(kir: &Kir) -> Kir {
    let program = Program::from_kir(kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    program.to_kir(&KirOptions { checked: true }).unwrap()
}

/// Returns the kind and the message of the error for an invalid kernel.
fn rejection(kir: &Kir) -> (ShaderErrorKind, String) {
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

/// Returns the builder of a kernel of four invocations, its buffer `data`, and the invocation's
/// position in the workgroup.
fn new_kernel() -> (Builder, u32, Value) {
    let mut b = Builder::new("test", [4, 1, 1]);
    let data = b.named_buffer("data", Type::U32, Access::ReadWrite);
    let local = b.builtin(crate::kir::Builtin::LocalId(0));
    (b, data, local)
}
