//! Tests of error texts against golden files: `tests/errors/NAME.wgsl` must be rejected with
//! exactly the text in `tests/errors/NAME.txt`. `SCRY_BLESS=1` rewrites the golden files.
//!
//! Lines at the top of a source set the options: `// entry: NAME`, `// override: NAME=VALUE`,
//! `// features: none`.

use std::fs;
use std::path::{Path, PathBuf};

use scry_ir::{Features, Options, Program, ShaderError};

fn options(source: &str) -> Options {
    let mut options = Options::default();
    for line in source.lines().map_while(|line| line.strip_prefix("// ")) {
        match line.split_once(": ") {
            Some(("entry", name)) => options.entry = Some(name.to_owned()),
            Some(("override", setting)) => {
                let (name, value) = setting.split_once('=').expect("NAME=VALUE");
                let value = match value {
                    "true" => true.into(),
                    _ => value.parse::<f64>().expect("a number").into(),
                };
                options.overrides.push((name.to_owned(), value));
            }
            Some(("features", "none")) => options.features = Features::empty(),
            _ => panic!("unknown option: {line}"),
        }
    }
    options
}

fn describe(error: &ShaderError) -> String {
    let position =
        error.location.map_or("nowhere".to_owned(), |l| format!("{}:{}", l.line, l.column));
    format!("{:?} at {position}\n{}\n\n{error}\n", error.kind, error.message)
}

fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "wgsl"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn error_texts_match_golden_files() {
    let bless = std::env::var_os("SCRY_BLESS").is_some_and(|v| v == "1");
    let sources = sources();
    assert!(sources.len() >= 15, "the sources are missing");
    let mut wrong = Vec::new();
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        let actual = match Program::with_options(&source, &options(&source)) {
            Err(error) => describe(&error),
            Ok(_) => "accepted\n".to_owned(),
        };
        let golden = path.with_extension("txt");
        if bless {
            fs::write(&golden, &actual).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if actual != expected || actual == "accepted\n" {
            wrong.push(format!("{}\n--- expected\n{expected}--- actual\n{actual}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_without_a_position_begin_with_the_label() {
    let error = Program::parse("").err().expect("no entry point").with_label("a.wgsl");
    assert!(error.to_string().starts_with("a.wgsl: error: the source has no entry"), "{error}");
    let error = Program::parse("fn f() { x }").err().expect("not WGSL").with_label("a.wgsl");
    assert_eq!(error.to_string().matches("a.wgsl").count(), 1, "{error}");
}

#[test]
fn nested_types_without_aliases_have_no_alias_label() {
    let deep = format!("{}f32{}", "array<".repeat(110), ", 1>".repeat(110));
    let source = format!(
        "struct S {{ a: f32 }} var<private> x: {deep};
        @compute @workgroup_size(1) fn main() {{}}"
    );
    let error = Program::parse(&source).err().expect("too deep").to_string();
    assert!(error.contains("a type is nested more than"), "{error}");
    assert!(!error.contains("alias"), "{error}");
}
