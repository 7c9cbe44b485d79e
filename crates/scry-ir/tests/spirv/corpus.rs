//! Every kernel of the corpus as SPIR-V: accepted by the validator, and the same as last time.

use std::fs;
use std::path::Path;

use crate::support::{
    CHECKED, corpus, every_option, have_validator, load, parse, sources, validate,
};
use rspirv::binary::Disassemble;
use scry_ir::SpirvOptions;

#[test]
fn every_kernel_is_valid_under_every_option() {
    if !have_validator("every_kernel_is_valid_under_every_option") {
        return;
    }
    for folder in ["", "bounds"] {
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

/// The golden files: each kernel checked, and three folded. `SCRY_BLESS=1` writes them anew.
#[test]
fn the_text_of_every_kernel_is_as_blessed() {
    let folder = corpus("out");
    let bless = std::env::var_os("SCRY_BLESS").is_some_and(|v| v == "1");
    let mut expected = Vec::new();
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        let mut versions = vec![(format!("{name}.spvasm"), CHECKED)];
        if ["gaps", "nothing", "reduce"].contains(&name.as_str()) {
            let folded = SpirvOptions { folded: true, native_workgroup_zeroing: false, ..CHECKED };
            versions.push((format!("{name}.folded.spvasm"), folded));
        }
        for (file, options) in versions {
            let words = program.to_spirv(&options).unwrap();
            compare(&folder.join(&file), &text(&words), bless);
            expected.push(file);
        }
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let known = !file.ends_with(".spvasm") || expected.contains(&file);
        assert!(known, "corpus/out/{file} belongs to no kernel: remove it");
    }
}

/// The disassembly without the generator's version, which says nothing of the kernel.
fn text(words: &[u32]) -> String {
    let mut module = load(words);
    if let Some(header) = &mut module.header {
        header.generator = 0;
    }
    let mut text = module.disassemble();
    text.push('\n');
    text
}

fn compare(path: &Path, text: &str, bless: bool) {
    if bless {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
    let blessed = fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("{}: {e}; SCRY_BLESS=1 writes it", path.display()));
    if let Some((line, (old, new))) =
        blessed.lines().zip(text.lines()).enumerate().find(|(_, (old, new))| old != new)
    {
        panic!(
            "{}:{}: was `{old}`, is `{new}`; SCRY_BLESS=1 accepts the change",
            path.display(),
            line + 1
        );
    }
    assert_eq!(blessed.len(), text.len(), "{} ends early", path.display());
}
