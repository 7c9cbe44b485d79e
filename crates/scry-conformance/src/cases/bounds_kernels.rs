//! Out-of-bounds accesses to uniforms and immediates, in linearised and large launches.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::check::{ensure, ensure_eq};
use crate::guarded::{all_indices, guarded, launch_guarded, out_of_bounds_indices};

pub(crate) fn fault_21_uniform_arrays(gpu: &DeviceInfo) -> Vec<Case> {
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
    let case = |i: u32| {
        let case = guarded(gpu, format!("index {i}"), source, &[&table, &[i], &[7; 5]]);
        case.expect(move |after| {
            let out = after.words(2);
            ensure!([101, 105, 109, 0].contains(&out[0]), "{out:?}");
            ensure!((108..112).contains(&out[1]) || out[1] == 0, "{out:?}");
            ensure!([202, 206, 0].contains(&out[2]), "{out:?}");
            ensure!((204..208).contains(&out[3]) || out[3] == 0, "{out:?}");
            ensure!((100..112).contains(&out[4]) || out[4] == 0, "{out:?}");
            if i < 2 {
                ensure_eq!(out, [101 + 4 * i, 108 + i, 202 + 4 * i, 204 + i, 100 + 5 * i]);
            }
            Ok(())
        })
    };
    all_indices(2).into_iter().map(case).collect()
}

/// A binding may end within an element of a runtime-sized array: no index reaches the bytes of that
/// partial element.
pub(crate) fn fault_17_partial_elements_are_unchanged(_: &DeviceInfo) -> Vec<Case> {
    let kernel = |ty: &str, list: &str| {
        format!(
            "struct Data {{ head: vec4<u32>, list: array<vec4<u32>> }}
            @group(0) @binding(0) var<storage, read_write> data: {ty};
            @compute @workgroup_size(64)
            fn main(@builtin(local_invocation_index) i: u32) {{ {list}[i] = vec4(9u); }}"
        )
    };
    let case = |(ty, list): (&str, &str)| {
        Case::new(ty, kernel(ty, list))
            .buffer(Data::words(&[5; 11]).typed(DType::U32))
            .launch(Launch::invocations(64))
            .expect(|out| {
                ensure_eq!(out.words(0)[4..8], [9; 4], "the last whole element");
                ensure_eq!(out.words(0)[8..], [5; 3], "the partial element");
                Ok(())
            })
    };
    [("array<vec4<u32>>", "data"), ("Data", "data.list")].map(case).into()
}

/// Indices far past the end, different for each of many invocations.
pub(crate) fn fault_21_many_invocations_past_the_end(gpu: &DeviceInfo) -> Vec<Case> {
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
    let case = |index: u32| {
        let buffers: [&[u32]; 3] = [&[5; 16], &[index, 0x0101_0101], &[0; 16]];
        guarded(gpu, format!("index {index}"), source, &buffers).expect(|after| {
            let (data, out) = (after.words(0), after.words(2));
            ensure!(data.iter().all(|word| [5, 0xffff].contains(word)), "{data:?}");
            ensure!(out.iter().sum::<u32>() <= 256, "{out:?}");
            Ok(())
        })
    };
    out_of_bounds_indices(16).into_iter().map(case).collect()
}

pub(crate) fn fault_21_arrays_of_immediates(_: &DeviceInfo) -> Vec<Case> {
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
    let case = |index: u32| {
        Case::new(format!("index {index}"), source)
            .words(&[&[index], &[u32::MAX; 2]])
            .launch(Launch::workgroups([1, 1, 1]).immediate_bytes(block.clone()))
            .expect(move |out| {
                let got = out.words(1);
                ensure!((100..105).contains(&got[0]) || got[0] == 0, "{got:?}");
                ensure!([106, 107, 0].contains(&got[1]), "{got:?}");
                if index < 2 {
                    ensure_eq!(got, [100 + index, 106 + index]);
                }
                Ok(())
            })
    };
    all_indices(2).into_iter().map(case).collect()
}

/// The kernel of a linearised launch is compiled separately, so its bounds checks are tested, too.
pub(crate) fn fault_21_linearised_launches(gpu: &DeviceInfo) -> Case {
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
    let launch = Launch::workgroups([groups, 1, 1]);
    let bindings: [&[u32]; 3] = [&[5; 8], &[5; 4], &[0; 4]];
    launch_guarded(gpu, String::new(), source, &bindings, launch).expect(move |after| {
        let (data, counts) = (after.words(0), after.words(2));
        ensure_eq!(data[0], 9);
        ensure!(data.iter().all(|word| [5, 9].contains(word)), "{data:?}");
        ensure_eq!(after.words(1), [9; 4]);
        ensure!(counts[..3].iter().all(|count| *count >= 1), "{counts:?}");
        ensure!(counts.iter().sum::<u32>() <= groups, "{counts:?}");
        Ok(())
    })
}
