//! Tests of undocumented driver limits: work beyond them succeeds, or fails with an error.

use scry_gpu::{Device, GpuError, Result};
use scry_test_support::{on_each_device, succeed};

use crate::harness::assert_contains;

fn has_workaround(gpu: &Device, workaround: &str) -> bool {
    gpu.info().workarounds.iter().any(|it| it.name == workaround)
}

/// Checks the words of a launch, or, on a device whose driver aborts long loops, its error.
#[track_caller]
fn assert_words_or_abort_error(
    gpu: &Device,
    result: Result<Vec<u32>>,
    expected: &[u32],
    launch: &str,
) {
    match result {
        Ok(words) => assert_eq!(words, expected, "{}", gpu.name()),
        Err(error @ GpuError::Kernel(_)) if has_workaround(gpu, "report-aborted-loops") => {
            let driver = &gpu.info().driver;
            assert_contains(&error.to_string(), &["kernel `main`", driver, launch, "65535", "CPU"]);
        }
        Err(error) => panic!("{}: {error}", gpu.name()),
    }
}

#[test]
fn error_names_the_aborted_launch() {
    let source = "
        var<workgroup> tile: array<u32, 64>;
        @group(0) @binding(0) var<storage, read> count: array<u32>;
        @group(0) @binding(1) var<storage, read_write> iterations: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) at: u32) {
            var i = 0u;
            while i < count[0] { i++; tile[at] = i; }
            workgroupBarrier();
            iterations[at] = tile[63u - at];
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let [few, many] = [60_000u32, 70_000].map(|count| succeed(gpu.upload(&[count])));
        let [first, second] = [0, 1].map(|_| succeed(gpu.alloc::<u32>(64)));
        let mut batch = gpu.batch();
        succeed(batch.run(&kernel, &[&few, &first], 64));
        succeed(batch.run(&kernel, &[&many, &second], 64));
        let recording = succeed(batch.record());
        for _ in 0..3 {
            let result = succeed(recording.replay()).wait().and_then(|()| second.download());
            assert_words_or_abort_error(gpu, result, &[70_000; 64], "launch 2 of 2");
        }
        succeed(many.write(&[50_000]));
        succeed(succeed(recording.replay()).wait());
        assert_eq!(succeed(first.download()), [60_000; 64], "{}", gpu.name());
        assert_eq!(succeed(second.download()), [50_000; 64], "{}", gpu.name());
    });
}

#[test]
fn deep_nesting_works_or_is_rejected() {
    const HEAD: &str = "
        @group(0) @binding(0) var<storage, read> numbers: array<u32>;
        @group(0) @binding(1) var<storage, read_write> found: array<u32>;
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = numbers[id.x];";
    const NUMBERS: [u32; 8] = [0, 1, 20, 70, 77, 78, 85, 99];
    let repeat = |n: u32, arm: &dyn Fn(u32) -> String| (0..n).map(arm).collect::<String>();
    let kernels = |n: u32| {
        let returns =
            repeat(n, &|k| format!("if x == {k}u {{ found[id.x] = {}u; return; }}", k + 1));
        let arms = repeat(n, &|k| format!("if x == {k}u {{ found[id.x] = {}u; }} else {{", k + 1));
        let ends = "}".repeat(n as usize);
        let cases = repeat(n, &|k| format!("case {k}u: {{ found[id.x] = {}u; }}", k + 1));
        [
            format!("{HEAD} {returns} }}"),
            format!("{HEAD} {arms} {ends} }}"),
            format!("{HEAD} switch x {{ {cases} default: {{}} }} }}"),
        ]
    };
    on_each_device(|gpu| {
        for n in [24, 77, 78, 79, 80, 81, 100] {
            for source in kernels(n) {
                let numbers = succeed(gpu.upload(&NUMBERS));
                let found = succeed(gpu.alloc::<u32>(8));
                let expected = NUMBERS.map(|x| if x < n { x + 1 } else { 0 });
                match gpu.dispatch(&source, &[&numbers, &found], 8) {
                    Ok(()) => {
                        let found = succeed(found.download());
                        assert_eq!(found, expected, "{}: {n}\n{source}", gpu.name());
                    }
                    Err(error @ GpuError::Kernel(_))
                        if has_workaround(gpu, "reject-deep-nesting") =>
                    {
                        // The limit is 80, less a margin of 2 for the driver, and the measured
                        // depth may be `n + 1`: up to 77 levels must compile.
                        assert!(n > 77, "{error}");
                        let driver = &gpu.info().driver;
                        let text = error.to_string();
                        let names_depth =
                            |depth: u32| text.contains(&format!("nests {depth} levels"));
                        assert!(names_depth(n) || names_depth(n + 1), "{error}");
                        assert_contains(
                            &error.to_string(),
                            &["kernel `main`", driver, "80 levels"],
                        );
                    }
                    Err(error) => panic!("{}: {n}: {error}", gpu.name()),
                }
            }
        }
    });
}
