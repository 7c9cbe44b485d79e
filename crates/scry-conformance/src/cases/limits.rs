//! Limits of drivers that their APIs do not report: kernels beyond them succeed, or fail with an
//! error.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{Case, Data, Failure};

/// Permits an error instead of the result on devices whose driver terminates long loops.
fn may_exceed_limit(gpu: &DeviceInfo, case: Case) -> Case {
    if !gpu.workarounds.iter().any(|it| it.name == "report-aborted-loops") {
        return case;
    }
    // The driver's limit is 65535 iterations; the error suggests the CPU.
    let parts = ["kernel `main`", &gpu.driver, "the launch", "65535", "CPU"];
    Case { failure: Failure::Limit(parts.map(str::to_owned).into()), ..case }
}

/// Nested loops; `bounds` has their iteration counts. The bindings are in four groups.
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

/// Creates a case of nested loops with these iteration counts.
fn nested_loops(bounds: [u32; 2]) -> Case {
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
    vec![
        nested_loops([200, 300]),
        may_exceed_limit(gpu, nested_loops([300, 300])),
        nested_loops([20, 30]),
    ]
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
    let case = |count: u32| {
        Case::new(format!("{count} iterations"), source)
            .buffer(Data::words(&[count; 8]).typed(DType::U32))
            .buffer(Data::zeros(DType::U32, 8))
            .launch(Launch::invocations(8))
            .expect_words(1, vec![count; 8])
    };
    vec![case(30_000), may_exceed_limit(gpu, case(40_000))]
}
