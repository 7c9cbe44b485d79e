//! Runs NVIDIA's assembler in tests, if `SCRY_PTXAS` names it.

use std::process::Command;

use crate::target::Target;

/// Assembles a module with `ptxas`, if the environment variable `SCRY_PTXAS` names that program.
pub(crate) fn assemble(text: &str, target: Target) {
    let Some(program) = std::env::var_os("SCRY_PTXAS") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (input, output) = (folder.path().join("x.ptx"), folder.path().join("x.cubin"));
    std::fs::write(&input, text).expect("the temporary folder can be written to");
    let mut command = Command::new(program);
    command.arg(format!("-arch={target}")).arg("-o").arg(output).arg(input);
    let result = command.output().expect("SCRY_PTXAS names a program");
    let messages = [result.stdout, result.stderr].concat();
    assert!(result.status.success(), "{}\n{text}", String::from_utf8_lossy(&messages));
}
