//! Tests that the PTX of every kernel directly in the folder of the corpus matches its golden file,
//! and that it assembles, as that of the kernels in `bounds/` and `fuzz/` does.
//!
//! `SCRY_BLESS=1` replaces the golden files. `SCRY_PTXAS` is the path of NVIDIA's assembler;
//! without it nothing is assembled.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests fail by panicking too")]

use std::path::{Path, PathBuf};
use std::process::Command;

use scry_ir::{GridSource, Program, kir::KirOptions};
use scry_ptx::{Ptx, PtxOptions, Target, translate};
use scry_test_support::golden;

fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Returns the names and sources of the kernels in a folder, sorted.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wgsl = files.filter(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let mut sources: Vec<_> = wgsl.map(read).collect();
    sources.sort();
    sources
}

fn translate_source(source: &str, checked: bool, options: &PtxOptions) -> Ptx {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let kir = program.to_kir(&KirOptions { checked }).unwrap_or_else(|error| panic!("{error}"));
    translate(&kir, options)
}

#[test]
fn text_of_kernels_matches_golden_files() {
    let options = PtxOptions { poll_cancellation: true, ..PtxOptions::new(Target::SM_80) };
    let text = |(name, source): (String, String)| {
        (format!("{name}.ptx"), translate_source(&source, true, &options).text)
    };
    let texts: Vec<_> = sources(&corpus_folder()).into_iter().map(text).collect();
    golden::compare_all(&corpus_folder().join("out"), "ptx", &texts);
}

/// Line info adds the directives `.file` and `.loc`, and changes nothing else.
#[test]
fn line_info_adds_only_directives() {
    let options = PtxOptions::new(Target::SM_90);
    for (name, source) in sources(&corpus_folder()) {
        let program = Program::parse(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut kir = program.to_kir(&KirOptions { checked: true }).unwrap();
        let plain = translate(&kir, &options).text;
        kir.source.line_info = true;
        kir.source.name = Some(format!("{name}.wgsl"));
        let text = translate(&kir, &options).text;
        let file = format!(".file 1 \"{name}.wgsl\"");
        let is_directive = |line: &&str| line.starts_with("\t.loc 1 ") || **line == file;
        let (added, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(is_directive);
        assert_eq!(rest, plain.lines().collect::<Vec<_>>(), "{name}");
        assert_eq!(added.first(), Some(&file.as_str()), "{name}");
        assert!(added.len() > 1, "{name} has no line");
    }
}

#[test]
fn every_kernel_assembles_for_every_target() {
    let Some(assembler) = std::env::var_os("SCRY_PTXAS") else {
        eprintln!("skipped: SCRY_PTXAS names no assembler");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folders = ["", "bounds", "fuzz"].map(|name| corpus_folder().join(name));
    for (name, source) in folders.iter().flat_map(|folder| sources(folder)) {
        for target in [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90, Target::SM_90A] {
            use GridSource::{Counts, Linearised, Native};
            for (checked, grid) in
                [(true, Native), (false, Native), (true, Linearised), (true, Counts)]
            {
                let options = PtxOptions {
                    target,
                    grid,
                    poll_cancellation: checked,
                    limit_registers: checked,
                    pdl: checked,
                };
                let ptx = translate_source(&source, checked, &options);
                let file = folder.path().join("kernel.ptx");
                std::fs::write(&file, &ptx.text).unwrap();
                let mut command = Command::new(&assembler);
                command.arg(format!("-arch={target}")).arg(&file);
                let output = command.arg("-o").arg(folder.path().join("cubin")).output().unwrap();
                let messages = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{name} for {target}: {messages}\n{}", ptx.text);
            }
        }
    }
}
