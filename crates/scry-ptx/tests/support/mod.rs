//! Helpers for tests of generated code.

use std::process::Command;

use scry_ir::kir::Kir;
use scry_ptx::{PtxOptions, Target, translate};

/// The targets that kernels are assembled for.
pub const TARGETS: [Target; 4] = [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90];

/// Returns the PTX of a kernel, which is assembled if the environment variable `SCRY_PTXAS` names
/// the assembler.
pub fn text(kir: &Kir, target: Target) -> String {
    scry_ir::kir::verify(kir).expect("the kernel is valid");
    let ptx = translate(kir, &PtxOptions::new(target));
    assemble(&ptx.text, target);
    ptx.text
}

fn assemble(text: &str, target: Target) {
    let Some(assembler) = std::env::var_os("SCRY_PTXAS") else { return };
    let folder = tempfile::tempdir().expect("there is room for files");
    let file = folder.path().join("kernel.ptx");
    std::fs::write(&file, text).expect("the folder can be written");
    let output = Command::new(assembler)
        .arg(format!("-arch={target}"))
        .arg("-o")
        .arg(folder.path().join("kernel.cubin"))
        .arg(&file)
        .output()
        .expect("the assembler starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}\n{text}");
}
