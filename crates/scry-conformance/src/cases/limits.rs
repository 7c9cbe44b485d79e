//! Driver limits without a specification: work beyond them succeeds, or fails with an error.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{Case, Data, Failure};

/// Accepts an error instead of the result on devices with a driver that terminates long loops.
fn finishes_or_fails(gpu: &DeviceInfo, case: Case) -> Case {
    if !gpu.workarounds.iter().any(|it| it.name == "report-aborted-loops") {
        return case;
    }
    let parts = ["kernel `main`", &gpu.driver, "the launch", "65535", "CPU"];
    Case { failure: Failure::Limit(parts.map(str::to_owned).into()), ..case }
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

/// Nested loops with these bounds.
fn nested(bounds: [u32; 2]) -> Case {
    let sum = (0..bounds[0]).flat_map(|i| (0..bounds[1]).map(move |j| i + 2 * j)).sum();
    let word = |words: &[u32]| Data::words(words).typed(DType::U32);
    Case::new(format!("{bounds:?}"), NESTED)
        .buffer(word(&bounds))
        .buffer(word(&[1, 0]))
        .buffer(word(&[2]))
        .buffer(Data::zeros(DType::U32, 100))
        .launch(Launch::invocations(100))
        .expect_words(3, vec![sum; 100])
}

pub(crate) fn long_loops_finish_or_fail(gpu: &DeviceInfo) -> Vec<Case> {
    // The last case checks that the device is still usable.
    vec![nested([200, 300]), finishes_or_fails(gpu, nested([300, 300])), nested([20, 30])]
}

pub(crate) fn divergent_loops_share_one_limit(gpu: &DeviceInfo) -> Vec<Case> {
    let source = "
        @group(0) @binding(0) var<storage, read> bounds: array<u32>;
        @group(0) @binding(1) var<storage, read_write> iterations: array<u32>;
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            var i = 0u;
            if (id.x & 1u) == 0u {
                loop { if i >= bounds[id.x] { break; } i++; }
            } else {
                loop { if i * 3u >= bounds[id.x] * 3u { break; } i++; if i > 9999999u { i = 1u; } }
            }
            iterations[id.x] = i;
        }";
    let case = |most: u32| {
        Case::new(format!("{most} iterations"), source)
            .buffer(Data::words(&[most; 8]).typed(DType::U32))
            .buffer(Data::zeros(DType::U32, 8))
            .launch(Launch::invocations(8))
            .expect_words(1, vec![most; 8])
    };
    vec![case(30_000), finishes_or_fails(gpu, case(40_000))]
}
