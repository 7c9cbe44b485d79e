//! Every kernel of the corpus is valid.

use crate::support::{corpus, every_option, have_validator, parse, sources, validate};

#[test]
fn naga_output_validates_under_every_option() {
    if !have_validator("naga_output_validates_under_every_option") {
        return;
    }
    for folder in ["", "bounds"] {
        for (name, source) in sources(&corpus(folder)) {
            let program = parse(&name, &source);
            for options in every_option() {
                let words = program
                    .to_spirv_with_naga(&options)
                    .unwrap_or_else(|e| panic!("{name} {options:?}: {e}"));
                if let Err(message) = validate(&words) {
                    panic!("{name} {options:?}: {message}");
                }
            }
        }
    }
}
