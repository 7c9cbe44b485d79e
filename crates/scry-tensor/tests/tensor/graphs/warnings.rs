//! Warnings in the log.

use std::sync::{Mutex, Once};

use scry_tensor::{Device, Graph};

use crate::support::{cpu, ok};

/// The warnings of this file.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        if text.contains("graphs/warnings.rs") {
            WARNINGS.lock().expect("no panic").push(text);
        }
    }

    fn flush(&self) {}
}

fn compile(gpu: &Device, count: usize, len: impl Fn(usize) -> usize) -> Vec<String> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        log::set_logger(&Logger).expect("no other logger");
        log::set_max_level(log::LevelFilter::Warn);
    });
    WARNINGS.lock().expect("no panic").clear();
    for n in 0..count {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", [2, len(n)]));
        drop(ok(g.compile(&[ok(x.exp())])));
    }
    WARNINGS.lock().expect("no panic").clone()
}

#[test]
fn ninth_compilation_warns_once() {
    let gpu = cpu();
    let _keeps_runtime = ok(Graph::new(&gpu));
    assert_eq!(compile(&gpu, 8, |n| n), Vec::<String>::new());
    let warnings = compile(&gpu, 12, |n| n);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let text = "): this line has compiled 9 graphs, with sizes from 0 to 7 of axis 1 of input `x`; \
                help: name the size, so that one plan serves all: `g.dim(\"x1\", 0..=7)`";
    assert!(
        warnings[0].starts_with("Graph::compile (") && warnings[0].ends_with(text),
        "{warnings:?}"
    );
}
