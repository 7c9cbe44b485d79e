//! Emits kernels as WGSL, and compares the results of both.

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

pub fn parse(source: &str) -> Program {
    Program::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

pub fn lower(program: &Program, checked: bool) -> Kir {
    let kir = program.to_kir(&KirOptions { checked }).unwrap_or_else(|error| panic!("{error}"));
    verify(&kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    kir
}

/// Compiles a kernel and emits it as WGSL.
pub fn emit(source: &str) -> Result<String, ShaderError> {
    let program = Program::parse(source)?;
    lower(&program, true).to_wgsl(program.interface())
}

/// Emits a program as WGSL, compiles the text, and checks that the interface is the same. Returns
/// the text and its program.
pub fn round_trip(program: &Program, source: &str) -> (String, Program) {
    let text = lower(program, true).to_wgsl(program.interface());
    let text = text.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let emitted = Program::parse(&text)
        .unwrap_or_else(|error| panic!("the emitted text: {error}\n{text}\n{source}"));
    check_with_tint(&text);
    let (old, new) = (program.interface(), emitted.interface());
    assert_eq!(old.workgroup_size, new.workgroup_size);
    let bindings = |program: &Program| -> Vec<_> {
        let all = program.interface().bindings.iter();
        all.map(|binding| (binding.group, binding.binding, binding.ty)).collect()
    };
    assert_eq!(bindings(program), bindings(&emitted), "{text}\n{source}");
    for (old, new) in old.bindings.iter().zip(&new.bindings) {
        // 16-bit elements become words.
        let max_size = old.layout.min_binding_size().next_multiple_of(4);
        let size = new.layout.min_binding_size();
        assert!(size <= max_size, "{}: {size} bytes, and {max_size}\n{text}\n{source}", old.name);
        let has_same_name = new.name.starts_with(&old.name) || !old.name.is_ascii();
        assert!(has_same_name, "{} became {}", old.name, new.name);
    }
    assert_eq!(old.immediates.is_some(), new.immediates.is_some(), "{text}\n{source}");
    (text, emitted)
}

/// Checks a text with Chromium's compiler, if the environment variable `SCRY_TINT` is its path.
pub fn check_with_tint(text: &str) {
    let Some(program) = std::env::var_os("SCRY_TINT") else { return };
    let name = format!("scry-{}-{:?}.wgsl", std::process::id(), std::thread::current().id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, text).unwrap();
    let result = Command::new(program).args(["--format", "wgsl"]).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(result.status.success(), "{}\n{text}", String::from_utf8_lossy(&result.stderr));
}

/// Interprets a launch; returns the buffers after it.
pub fn execute(kir: &Kir, launch: &Launch) -> Result<Vec<Vec<u8>>, InterpretError> {
    let mut interpreter = Interpreter::new(kir, launch.buffers.clone());
    if !launch.immediates.is_empty() {
        interpreter.immediates.clone_from(&launch.immediates);
    }
    interpreter.subgroup_size = launch.subgroup_size;
    interpreter.run(launch.groups)?;
    Ok(interpreter.buffers)
}

/// Asserts that the WGSL emitted for a kernel computes what its source computes, with and without
/// bounds checks added to the emitted WGSL. Returns false if the interpreter rejects the kernel,
/// such as one that does not end.
pub fn emitted_matches_source(launch: &Launch) -> bool {
    let program = parse(&launch.source);
    let (text, emitted) = round_trip(&program, &launch.source);
    let Ok(expected) = execute(&lower(&program, true), launch) else { return false };
    for checked in [true, false] {
        let found = execute(&lower(&emitted, checked), launch).unwrap_or_else(|error| {
            panic!("checked: {checked}: {error}\n{text}\n{}", launch.source)
        });
        for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let differs = expected.iter().zip(found).position(|(a, b)| a != b);
            if let Some(byte) = differs {
                let source = &launch.source;
                panic!("checked: {checked}: byte {byte} of buffer {i} differs\n{text}\n{source}");
            }
        }
    }
    true
}
