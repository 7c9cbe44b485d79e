//! Tests of kernels that are compiled without checks.

use scry_gpu::{CompileOptions, Launch};
use scry_test_support::{on_each_device, succeed};

/// A kernel whose indices are in bounds computes the same without checks. Division by zero keeps
/// WGSL's result, `x / 0 = x`.
#[test]
fn unchecked_kernels_within_bounds_match() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;
        var<workgroup> words: array<u32, 64>;
        @compute @workgroup_size(64)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(local_invocation_index) local: u32,
        ) {
            var local_array = array(1u, 2u, 3u, 4u);
            words[local] = id.x;
            workgroupBarrier();
            let mirrored = words[63u - local];
            for (var i = 0u; i < 4u; i++) {
                data[id.x][i] = local_array[(i + id.x) % 4u] * 1000u + mirrored / (i * (id.x % 2u));
            }
        }";
    let groups = 3u32;
    let mut expected = Vec::new();
    for id in 0..groups * 64 {
        let mirrored = id / 64 * 64 + 63 - id % 64;
        for i in 0..4 {
            let divisor = i * (id % 2);
            expected.push(
                (1 + (i + id) % 4) * 1000 + mirrored.checked_div(divisor).unwrap_or(mirrored),
            );
        }
    }
    on_each_device(|gpu| {
        // SAFETY: every index in `source` is in bounds, because `data` has one element for each
        // invocation, and the loop ends after four iterations.
        let kernel = unsafe { gpu.compile_unchecked(source, &CompileOptions::new()) };
        let data = succeed(gpu.alloc::<[u32; 4]>(groups as usize * 64));
        let launch = Launch::workgroups([groups, 1, 1]);
        succeed(gpu.run(&succeed(kernel), &[&data], launch));
        assert_eq!(succeed(data.download()).as_flattened(), expected);
    });
}
