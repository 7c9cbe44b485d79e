//! Helpers for tests of the translation: the assembler, if installed, and small kernels.

use scry_ir::kir::{
    Access, AddressSpace, Builder, Const, Kir, Place, Stmt, Type, Value, optimise, verify,
};

use super::machine::Machine;
use crate::asm::Line;
use crate::assembler::assemble;
use crate::lower::{Lowering, PtxOptions, translate};
use crate::target::Target;

/// The targets that kernels are translated for in tests.
pub(crate) const TARGETS: [Target; 4] =
    [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90];

/// Returns the PTX of a kernel.
pub(crate) fn text(kir: &Kir, target: Target) -> String {
    assert_eq!(verify(kir), Ok(()), "{kir}");
    translate(kir, &PtxOptions::new(target)).text
}

/// Asserts that a kernel assembles for every target, if there is an assembler.
pub(crate) fn assert_assembles(kir: &Kir) {
    TARGETS.into_iter().for_each(|target| assemble(&text(kir, target), target));
}

/// An operand of a kernel made by [`kernel`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A value loaded from memory.
    Loaded(Type),
    /// A constant.
    Constant(Const),
}

/// Byte offset of the result.
pub(crate) const RESULT_OFFSET: u32 = 64;

/// Returns a kernel that computes one value. Operand `n` is at byte `8 * n` of its buffer, the
/// result at [`RESULT_OFFSET`]. Bools are stored as `u32`.
pub(crate) fn kernel(sources: &[Source], make: &dyn Fn(&mut Builder, &[Value]) -> Value) -> Kir {
    let mut b = Builder::new("one", [32, 1, 1]);
    b.buffer(Access::ReadWrite);
    let place = |offset| Place::new(AddressSpace::Binding(0), None, 0, offset);
    let operands: Vec<Value> = (0..)
        .zip(sources)
        .map(|(nth, source)| match *source {
            Source::Constant(constant) => b.constant(constant),
            Source::Loaded(Type::Bool) => {
                let word = b.load(Type::U32, place(8 * nth), 1)[0];
                b.convert(Type::Bool, word)
            }
            Source::Loaded(ty) => b.load(ty, place(8 * nth), 1)[0],
        })
        .collect();
    let result = make(&mut b, &operands);
    let result = if b.ty(result) == Type::Bool { b.convert(Type::U32, result) } else { result };
    b.store(place(RESULT_OFFSET), vec![result]);
    b.finish()
}

/// Returns the result of such a kernel for constants by the IR's constant folding, if it folds.
pub(crate) fn folded(
    operands: &[Const],
    make: &dyn Fn(&mut Builder, &[Value]) -> Value,
) -> Option<u64> {
    let sources: Vec<Source> = operands.iter().map(|number| Source::Constant(*number)).collect();
    let mut kir = kernel(&sources, make);
    optimise(&mut kir);
    let stored = kir.body.iter().find_map(|stmt| match stmt {
        Stmt::Store { values, .. } => Some(values[0]),
        _ => None,
    });
    kir.constant(stored.expect("the result is stored")).map(|constant| constant.bits)
}

/// Returns the instructions and labels of a kernel.
pub(crate) fn lines(kir: &Kir, target: Target) -> Vec<Line> {
    assert_eq!(verify(kir), Ok(()), "{kir}");
    let options = PtxOptions::new(target);
    let mut lowering = Lowering::new(kir, &options);
    lowering.entry();
    lowering.block(&kir.body);
    lowering.b.ret();
    lowering.b.lines().to_vec()
}

/// Executes the instructions of a kernel made by [`kernel`]; returns its result.
pub(crate) fn run(lines: &[Line], operands: &[u64]) -> u64 {
    let mut memory = vec![0; RESULT_OFFSET as usize + 8];
    for (bytes, operand) in memory.chunks_exact_mut(8).zip(operands) {
        bytes.copy_from_slice(&operand.to_le_bytes());
    }
    Machine::new(&mut memory).run(lines);
    u64::from_le_bytes(memory[RESULT_OFFSET as usize..].try_into().expect("the result has 8 bytes"))
}
