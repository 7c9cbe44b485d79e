//! A kernel, its WGSL, and what both compute.

use std::process::Command;

use scry_ir::kir::interpret::{InterpretError, Interpreter};
use scry_ir::kir::{Kir, KirOptions, verify};
use scry_ir::{Program, ShaderError};

/// A launch of a kernel.
pub struct Launch {
    pub source: String,
    pub buffers: Vec<Vec<u8>>,
    pub immediates: Vec<u8>,
    pub groups: [u32; 3],
    pub subgroup_size: u32,
}

pub fn parsed(source: &str) -> Program {
    Program::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

pub fn lowered(program: &Program, checked: bool) -> Kir {
    let kir = program.to_kir(&KirOptions { checked }).unwrap_or_else(|error| panic!("{error}"));
    verify(&kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    kir
}

/// The kernel as WGSL.
pub fn emitted(source: &str) -> Result<String, ShaderError> {
    let program = Program::parse(source)?;
    lowered(&program, true).to_wgsl(program.interface())
}

/// The kernel as WGSL, parsed again. Its interface is that of the kernel.
pub fn again(program: &Program, source: &str) -> (String, Program) {
    let text = lowered(program, true).to_wgsl(program.interface());
    let text = text.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let again = Program::parse(&text)
        .unwrap_or_else(|error| panic!("the emitted text: {error}\n{text}\n{source}"));
    check_with_tint(&text);
    let (old, new) = (program.interface(), again.interface());
    assert_eq!(old.workgroup_size, new.workgroup_size);
    let bindings = |program: &Program| -> Vec<_> {
        let all = program.interface().bindings.iter();
        all.map(|binding| (binding.group, binding.binding, binding.ty)).collect()
    };
    assert_eq!(bindings(program), bindings(&again), "{text}\n{source}");
    for (old, new) in old.bindings.iter().zip(&new.bindings) {
        let (size, least) = (new.layout.min_binding_size(), old.layout.min_binding_size());
        assert!(size <= least, "{}: {size} bytes, and {least}\n{text}\n{source}", old.name);
        let kept = new.name.starts_with(&old.name) || !old.name.is_ascii();
        assert!(kept, "{} became {}", old.name, new.name);
    }
    assert_eq!(old.immediates.is_some(), new.immediates.is_some(), "{text}\n{source}");
    (text, again)
}

/// Has Chromium's compiler check a text, if the environment variable `SCRY_TINT` names it.
pub fn check_with_tint(text: &str) {
    let Some(program) = std::env::var_os("SCRY_TINT") else { return };
    let name = format!("scry-{}-{:?}.wgsl", std::process::id(), std::thread::current().id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, text).unwrap();
    let result = Command::new(program).args(["--format", "wgsl"]).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(result.status.success(), "{}\n{text}", String::from_utf8_lossy(&result.stderr));
}

/// The buffers after a launch.
pub fn executed(kir: &Kir, launch: &Launch) -> Result<Vec<Vec<u8>>, InterpretError> {
    let mut interpreter = Interpreter::new(kir, launch.buffers.clone());
    if !launch.immediates.is_empty() {
        interpreter.immediates.clone_from(&launch.immediates);
    }
    interpreter.subgroup_size = launch.subgroup_size;
    interpreter.run(launch.groups)?;
    Ok(interpreter.buffers)
}

/// Requires that a kernel and its WGSL compute the same, the latter also without bounds checks of
/// its consumer. False if the kernel itself does not end.
pub fn computes_the_same(launch: &Launch) -> bool {
    let program = parsed(&launch.source);
    let (text, again) = again(&program, &launch.source);
    let Ok(expected) = executed(&lowered(&program, true), launch) else { return false };
    for checked in [true, false] {
        let found = executed(&lowered(&again, checked), launch).unwrap_or_else(|error| {
            panic!("checked: {checked}: {error}\n{text}\n{}", launch.source)
        });
        for (nth, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let differs = expected.iter().zip(found).position(|(a, b)| a != b);
            if let Some(byte) = differs {
                let source = &launch.source;
                panic!("checked: {checked}: byte {byte} of buffer {nth} differs\n{text}\n{source}");
            }
        }
    }
    true
}
