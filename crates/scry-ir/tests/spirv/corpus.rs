//! Tests that the SPIR-V of every kernel of the corpus is valid, and that those in its top folder
//! match their golden files.

use rspirv::binary::Disassemble;
use scry_ir::SpirvOptions;
use scry_ir::kir::KirOptions;
use scry_test_support::golden;

use crate::support::{
    CHECKED, WORKED_AROUND, corpus, every_option, have_validator, load, parse, sources, validate,
};

#[test]
fn every_kernel_validates_under_every_option() {
    if !have_validator("every_kernel_validates_under_every_option") {
        return;
    }
    for folder in ["", "bounds", "drivers", "fuzz"] {
        for (name, source) in sources(&corpus(folder)) {
            let program = parse(&name, &source);
            for options in every_option() {
                let words = program
                    .to_spirv(&options)
                    .unwrap_or_else(|e| panic!("{name} {options:?}: {e}"));
                if let Err(message) = validate(&words) {
                    panic!("{name} {options:?}: {message}");
                }
            }
        }
    }
}

#[test]
fn line_info_keeps_modules_valid() {
    if !have_validator("line_info_keeps_modules_valid") {
        return;
    }
    for folder in ["", "bounds", "drivers", "fuzz"] {
        for (name, source) in sources(&corpus(folder)) {
            let program = parse(&name, &source);
            let mut kir = program.to_kir(&KirOptions { checked: true }).unwrap();
            kir.source.line_info = true;
            for options in [CHECKED, WORKED_AROUND] {
                let words = kir.to_spirv(program.interface(), &options).unwrap();
                validate(&words).unwrap_or_else(|message| panic!("{name}: {message}"));
            }
        }
    }
}

/// Compares kernels with their golden files: each with bounds checks, and three linearised too.
#[test]
fn kernel_text_matches_golden_files() {
    let mut texts = Vec::new();
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        let mut versions = vec![(format!("{name}.spvasm"), CHECKED)];
        if ["atomic_counter", "reduce", "sparse_bindings"].contains(&name.as_str()) {
            let linearised =
                SpirvOptions { linearised: true, native_workgroup_zeroing: false, ..CHECKED };
            versions.push((format!("{name}.linearised.spvasm"), linearised));
        }
        for (file, options) in versions {
            texts.push((file, disassemble(&program.to_spirv(&options).unwrap())));
        }
    }
    golden::compare_all(&corpus("out"), "spvasm", &texts);
}

/// Returns the disassembly without the generator's version.
fn disassemble(words: &[u32]) -> String {
    let mut module = load(words);
    if let Some(header) = &mut module.header {
        header.generator = 0;
    }
    let mut text = module.disassemble();
    text.push('\n');
    text
}
