//! Out-of-bounds accesses to uniforms and immediates, in linearised and large launches; and kernels
//! compiled without checks.

use scry_gpu::{CompileOptions, Launch};

use crate::guarded::{all_indices, launch_guarded, run_guarded, wrong_indices};
use crate::harness::{on_each_device, succeed};

#[test]
fn fault_21_uniform_arrays() {
    let source = "
        struct Table { rows: array<vec4<u32>, 3>, m: mat2x4<f32> }
        @group(0) @binding(0) var<uniform> table: Table;
        @group(0) @binding(1) var<storage, read> indices: array<u32>;
        @group(0) @binding(2) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size(1)
        fn main() {
            let i = indices[0];
            out[0] = table.rows[i].y;
            out[1] = table.rows[2][i];
            out[2] = u32(table.m[i].z);
            out[3] = u32(table.m[1][i]);
            out[4] = table.rows[i][i];
        }";
    let mut table: Vec<u32> = (100..112).collect();
    table.extend((0..8u8).map(|i| f32::from(200 + i).to_bits()));
    on_each_device(|gpu| {
        for index in all_indices(2) {
            let after = run_guarded(gpu, source, &[&table, &[index], &[7; 5]]);
            let out = &after[2];
            assert!([101, 105, 109, 0].contains(&out[0]), "{index}: {out:?}");
            assert!((108..112).contains(&out[1]) || out[1] == 0, "{index}: {out:?}");
            assert!([202, 206, 0].contains(&out[2]), "{index}: {out:?}");
            assert!((204..208).contains(&out[3]) || out[3] == 0, "{index}: {out:?}");
            assert!((100..112).contains(&out[4]) || out[4] == 0, "{index}: {out:?}");
            if index < 2 {
                let i = index;
                assert_eq!(out[..], [101 + 4 * i, 108 + i, 202 + 4 * i, 204 + i, 100 + 5 * i]);
            }
        }
    });
}

/// A binding may end within an element: no index reaches the bytes of that partial element.
#[test]
fn fault_17_bytes_after_last_element_stay() {
    let kernel = |ty: &str, list: &str| {
        format!(
            "struct Data {{ head: vec4<u32>, list: array<vec4<u32>> }}
            @group(0) @binding(0) var<storage, read_write> data: {ty};
            @compute @workgroup_size(64)
            fn main(@builtin(local_invocation_index) i: u32) {{ {list}[i] = vec4(9u); }}"
        )
    };
    on_each_device(|gpu| {
        for (ty, list) in [("array<vec4<u32>>", "data"), ("Data", "data.list")] {
            let data = succeed(gpu.upload(&[5u32; 11]));
            succeed(gpu.dispatch(&kernel(ty, list), &[&data], 64));
            let after = succeed(data.download());
            assert_eq!(after[4..8], [9; 4], "{ty}: the last whole element");
            assert_eq!(after[8..], [5; 3], "{ty}: the part of one after it");
        }
    });
}

/// Invocations far past the data, as in launches rounded up to whole workgroups.
#[test]
fn fault_21_many_invocations_past_the_end() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @group(0) @binding(1) var<storage, read> indices: array<u32>;
        @group(0) @binding(2) var<storage, read_write> out: array<atomic<u32>>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) local: u32) {
            let far = local * indices[1] + indices[0];
            atomicAdd(&out[far], 1u);
            data[far] = 0xffffu;
        }";
    on_each_device(|gpu| {
        for index in wrong_indices(16) {
            let after = run_guarded(gpu, source, &[&[5; 16], &[index, 0x0101_0101], &[0; 16]]);
            assert!(after[0].iter().all(|word| [5, 0xffff].contains(word)), "{index}: {after:?}");
            assert!(after[2].iter().sum::<u32>() <= 256, "{index}: {after:?}");
        }
    });
}

#[test]
fn fault_21_arrays_of_immediates() {
    let source = "
        struct Block { list: array<u32, 5>, v: vec2<u32> }
        var<immediate> block: Block;
        @group(0) @binding(0) var<storage, read> indices: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {
            out[0] = block.list[indices[0]];
            out[1] = block.v[indices[0]];
        }";
    let block: Vec<u8> = (100..108u32).flat_map(u32::to_ne_bytes).collect();
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let out = succeed(gpu.alloc::<u32>(2));
        for index in all_indices(2) {
            let indices = succeed(gpu.upload(&[index]));
            let launch = Launch::workgroups([1, 1, 1]).immediate_bytes(block.clone());
            succeed(gpu.run(&kernel, &[&indices, &out], launch));
            let got = succeed(out.download());
            assert!((100..105).contains(&got[0]) || got[0] == 0, "{index}: {got:?}");
            assert!([106, 107, 0].contains(&got[1]), "{index}: {got:?}");
            if index < 2 {
                assert_eq!(got, [100 + index, 106 + index]);
            }
        }
    });
}

/// A linearised kernel is another program, whose checks are tested separately.
#[test]
fn fault_21_linearised_launches() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @group(0) @binding(1) var<storage, read_write> v: vec4<u32>;
        @group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>, 4>;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) group: vec3<u32>) {
            data[group.x * 65537u] = 9u;
            v[group.x] = 9u;
            atomicAdd(&counts[group.x], 1u);
        }";
    let groups = 65_600;
    on_each_device(|gpu| {
        let launch = Launch::workgroups([groups, 1, 1]);
        let bindings: [&[u32]; 3] = [&[5; 8], &[5; 4], &[0; 4]];
        let after = launch_guarded(gpu, source, &bindings, launch);
        assert_eq!(after[0][0], 9);
        assert!(after[0].iter().all(|word| [5, 9].contains(word)));
        assert_eq!(after[1], [9; 4]);
        assert!(after[2][..3].iter().all(|count| *count >= 1));
        assert!(after[2].iter().sum::<u32>() <= groups);
    });
}

/// A kernel that stays within its bounds computes the same without checks.
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
            var own = array(1u, 2u, 3u, 4u);
            words[local] = id.x;
            workgroupBarrier();
            let last = words[63u - local];
            for (var i = 0u; i < 4u; i++) {
                data[id.x][i] = own[(i + id.x) % 4u] * 1000u + last / (i * (id.x % 2u));
            }
        }";
    let groups = 3u32;
    let mut want = Vec::new();
    for id in 0..groups * 64 {
        let last = id / 64 * 64 + 63 - id % 64;
        for i in 0..4 {
            let divisor = i * (id % 2);
            want.push((1 + (i + id) % 4) * 1000 + last.checked_div(divisor).unwrap_or(last));
        }
    }
    on_each_device(|gpu| {
        // SAFETY: every index above is below its length for three whole workgroups on a buffer of
        // as many elements as there are invocations, and the loop has four iterations.
        let kernel = unsafe { gpu.compile_unchecked(source, &CompileOptions::new()) };
        let data = succeed(gpu.alloc::<[u32; 4]>(groups as usize * 64));
        let launch = Launch::workgroups([groups, 1, 1]);
        succeed(gpu.run(&succeed(kernel), &[&data], launch));
        assert_eq!(succeed(data.download()).as_flattened(), want);
    });
}
