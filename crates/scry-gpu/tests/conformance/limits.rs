//! Driver limits without a specification: work beyond them succeeds, or fails with an error.

use scry_gpu::{Binding, Device, GpuError, Result};

use crate::harness::{assert_says, on_each_device, succeed};

fn has(gpu: &Device, workaround: &str) -> bool {
    gpu.info().workarounds.iter().any(|it| it.name == workaround)
}

/// Checks words, or the error of a kernel on a device whose driver aborts long loops.
#[track_caller]
fn right_or_cut(gpu: &Device, result: Result<Vec<u32>>, expected: &[u32], launch: &str) {
    match result {
        Ok(words) => assert_eq!(words, expected, "{}", gpu.name()),
        Err(error @ GpuError::Kernel(_)) if has(gpu, "report-cut-loops") => {
            let driver = &gpu.info().driver;
            assert_says(&error.to_string(), &["kernel `main`", driver, launch, "65535", "CPU"]);
        }
        Err(error) => panic!("{}: {error}", gpu.name()),
    }
}

/// A kernel of nested loops in four bind groups; `bounds` has their iteration counts.
const NESTED: &str = "
    @group(0) @binding(0) var<storage, read> bounds: array<u32>;
    @group(1) @binding(0) var<storage, read> one: array<u32>;
    @group(2) @binding(0) var<uniform> two: u32;
    @group(3) @binding(3) var<storage, read_write> sums: array<u32>;
    @compute @workgroup_size(8)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        var sum = 0u;
        for (var i = 0u; i < bounds[0]; i++) {
            for (var j = 0u; j < bounds[1]; j++) { sum += i * one[0] + j * two; }
        }
        if id.x < arrayLength(&sums) { sums[id.x] = sum; }
    }";

/// Runs nested loops with these bounds, and returns the sums and the expected sum.
fn nested(gpu: &Device, bounds: [u32; 2]) -> (Result<Vec<u32>>, u32) {
    let sum = (0..bounds[0]).flat_map(|i| (0..bounds[1]).map(move |j| i + 2 * j)).sum();
    let [bounds, one] = [succeed(gpu.upload(&bounds)), succeed(gpu.upload(&[1, 0]))];
    let [two, sums] = [succeed(gpu.upload(&[2u32])), succeed(gpu.alloc::<u32>(100))];
    let bindings: [&dyn Binding; 4] = [&bounds, &one, &two, &sums];
    let run = || -> Result<Vec<u32>> {
        gpu.dispatch(NESTED, &bindings, 100)?;
        sums.download()
    };
    (run(), sum)
}

#[test]
fn long_loops_end_or_fail() {
    on_each_device(|gpu| {
        let (sums, sum) = nested(gpu, [200, 300]);
        assert_eq!(succeed(sums), [sum; 100], "{}", gpu.name());
        let (sums, sum) = nested(gpu, [300, 300]);
        right_or_cut(gpu, sums, &[sum; 100], "the launch");
        // The device stays usable.
        let (sums, sum) = nested(gpu, [20, 30]);
        assert_eq!(succeed(sums), [sum; 100], "{}", gpu.name());
    });
}

#[test]
fn loops_of_neighbours_count_together() {
    let source = "
        @group(0) @binding(0) var<storage, read> bounds: array<u32>;
        @group(0) @binding(1) var<storage, read_write> turns: array<u32>;
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            var i = 0u;
            if (id.x & 1u) == 0u {
                loop { if i >= bounds[id.x] { break; } i++; }
            } else {
                loop { if i * 3u >= bounds[id.x] * 3u { break; } i++; if i > 9999999u { i = 1u; } }
            }
            turns[id.x] = i;
        }";
    on_each_device(|gpu| {
        for most in [30_000u32, 40_000] {
            let bounds = succeed(gpu.upload(&[most; 8]));
            let turns = succeed(gpu.alloc::<u32>(8));
            let result =
                gpu.dispatch(source, &[&bounds, &turns], 8).and_then(|()| turns.download());
            match most {
                30_000 => assert_eq!(succeed(result), [most; 8], "{}", gpu.name()),
                _ => right_or_cut(gpu, result, &[most; 8], "the launch"),
            }
        }
    });
}

#[test]
fn errors_name_the_truncated_launch() {
    let source = "
        var<workgroup> tile: array<u32, 64>;
        @group(0) @binding(0) var<storage, read> most: array<u32>;
        @group(0) @binding(1) var<storage, read_write> turns: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) at: u32) {
            var i = 0u;
            while i < most[0] { i++; tile[at] = i; }
            workgroupBarrier();
            turns[at] = tile[63u - at];
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let [few, many] = [60_000u32, 70_000].map(|most| succeed(gpu.upload(&[most])));
        let [first, second] = [0, 1].map(|_| succeed(gpu.alloc::<u32>(64)));
        let mut batch = gpu.batch();
        succeed(batch.run(&kernel, &[&few, &first], 64));
        succeed(batch.run(&kernel, &[&many, &second], 64));
        let recording = succeed(batch.record());
        for _ in 0..3 {
            let result = succeed(recording.replay()).wait().and_then(|()| second.download());
            right_or_cut(gpu, result, &[70_000; 64], "launch 2 of 2");
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
    let row = |n: u32, arm: &dyn Fn(u32) -> String| (0..n).map(arm).collect::<String>();
    let kernels = |n: u32| {
        let returns = row(n, &|k| format!("if x == {k}u {{ found[id.x] = {}u; return; }}", k + 1));
        let arms = row(n, &|k| format!("if x == {k}u {{ found[id.x] = {}u; }} else {{", k + 1));
        let ends = "}".repeat(n as usize);
        let cases = row(n, &|k| format!("case {k}u: {{ found[id.x] = {}u; }}", k + 1));
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
                    Err(error @ GpuError::Kernel(_)) if has(gpu, "refuse-deep-nesting") => {
                        assert!(n > 76, "{error}");
                        let driver = &gpu.info().driver;
                        let text = error.to_string();
                        let names = |depth: u32| text.contains(&format!("nests {depth} levels"));
                        assert!(names(n) || names(n + 1), "{error}");
                        assert_says(&error.to_string(), &["kernel `main`", driver, "80 levels"]);
                    }
                    Err(error) => panic!("{}: {n}: {error}", gpu.name()),
                }
            }
        }
    });
}
