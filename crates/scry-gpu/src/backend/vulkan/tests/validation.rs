//! Tests that the validation layer, enabled by the environment, reports errors. A child process
//! causes them, so that their messages are not counted in this process.

use super::*;
use crate::backend::vulkan::ffi::validation::{is_requested, message_count};

/// Not a test of its own: the body of the child process.
#[test]
fn race() {
    if !is_child() {
        return;
    }
    for driver in drivers() {
        let before = message_count();
        let memory = driver.device_memory(64);
        let fill = |pattern| {
            let dst = range(memory, 64);
            run(Command::Fill { dst, pattern })
        };
        let kernel = driver.compile_source(DOUBLE, GridSource::Native);
        let src = driver.upload(&[1; 16]);
        let bindings = [(range(src, 64), false), (range(memory, 64), true)];
        let double = dispatch(kernel, &bindings, [1, 1, 1]);
        let between = barrier(Stages::TRANSFER, Stages::COMPUTE);
        driver.run_steps(&[fill(1), between, double.clone()]);
        println!("with a barrier: {}", message_count() - before);
        driver.run_steps(&[full_barrier(), fill(1), fill(2)]);
        println!("between fills: {}", message_count() - before);
        driver.run_steps(&[full_barrier(), fill(1), double]);
        println!("before a kernel: {}", message_count() - before);
    }
}

#[test]
fn missing_barriers_are_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let variables = [("SCRY_VALIDATE", "1"), ("SCRY_VALIDATE_LOG", path)];
    let output = run_in_child("validation::race", &variables);
    if !output.contains("with a barrier") {
        assert!(!is_requested(), "validation is requested, but the child printed: {output}");
        eprintln!("SKIPPED, no Vulkan validation layer or no device: {output}");
        return;
    }
    for line in ["with a barrier: 0", "between fills: 1", "before a kernel: 2"] {
        // Once for each driver that `drivers` opens.
        assert_eq!(output.matches(line).count(), 2, "`{line}` in: {output}");
    }
    let logged = std::fs::read_to_string(path).unwrap();
    let hazards = logged.matches("ERROR SYNC-HAZARD-").count();
    assert_eq!(hazards, 4, "{logged}");
}
