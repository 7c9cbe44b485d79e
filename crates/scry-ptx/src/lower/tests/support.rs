//! What tests of the translation share: the assembler, where there is one.

use std::process::Command;

use scry_ir::kir::{Kir, verify};

use crate::lower::{PtxOptions, translate};
use crate::target::Target;

/// Every target that code is made for.
pub(crate) const TARGETS: [Target; 4] =
    [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90];

/// The text of a kernel for a target.
pub(crate) fn text(kir: &Kir, target: Target) -> String {
    assert_eq!(verify(kir), Ok(()), "{kir}");
    translate(kir, &PtxOptions::new(target)).expect("every target has what this takes").text
}

/// Translates a kernel for every target, and assembles it where there is an assembler.
pub(crate) fn assembles(kir: &Kir) {
    TARGETS.into_iter().for_each(|target| assemble(&text(kir, target), target));
}

/// Has `ptxas` check a module, if the environment variable `SCRY_PTXAS` names that program.
pub(crate) fn assemble(text: &str, target: Target) {
    let Some(program) = std::env::var_os("SCRY_PTXAS") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (input, output) = (folder.path().join("x.ptx"), folder.path().join("x.cubin"));
    std::fs::write(&input, text).expect("the temporary folder can be written to");
    let mut command = Command::new(program);
    command.arg(format!("-arch={target}")).arg("-o").arg(output).arg(input);
    let result = command.output().expect("SCRY_PTXAS names a program");
    let said = [result.stdout, result.stderr].concat();
    assert!(result.status.success(), "{}\n{text}", String::from_utf8_lossy(&said));
}
