//! Indirect launches: workgroup counts from a buffer, which may have any value.

use scry_gpu::{DType, DeviceInfo};

use super::launches::counting_case;
use crate::case::{BufferBinding, Case, CaseLaunch, Data};

/// Adds a launch with its counts in a separate buffer.
fn launch_indirect(mut case: Case, counts: [u32; 3]) -> Case {
    let buffer = case.buffers.len();
    case.buffers.push(Data::words(&counts).typed(DType::U32));
    case.launches.push(CaseLaunch::Indirect(BufferBinding::whole(buffer), None));
    case
}

pub(crate) fn every_invocation_runs_exactly_once(_: &DeviceInfo) -> Vec<Case> {
    let cases: [([u32; 3], [u32; 3]); 9] = [
        ([1, 1, 1], [1, 1, 1]),
        ([4, 2, 1], [1, 1, 1]),
        ([8, 4, 2], [40, 12, 6]),
        ([64, 1, 1], [64 * 300, 2, 3]),
        // More workgroups along an axis than some devices can launch.
        ([1, 1, 1], [70_000, 1, 1]),
        ([1, 1, 1], [1, 70_000, 1]),
        ([1, 1, 1], [1, 1, 70_000]),
        ([2, 1, 1], [131_076, 3, 1]),
        ([1, 2, 2], [2, 131_074, 4]),
    ];
    let case = |(workgroup, size): ([u32; 3], [u32; 3])| {
        let groups = [0, 1, 2].map(|axis| size[axis].div_ceil(workgroup[axis]));
        launch_indirect(counting_case(workgroup, size), groups)
    };
    cases.map(case).into()
}

pub(crate) fn invalid_counts_run_nothing(_: &DeviceInfo) -> Case {
    const MAX: u32 = u32::MAX;
    let counts = [
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
        [0; 3],
        [0, MAX, MAX],
        [MAX, MAX, 0],
        // With four invocations each, more invocations along x than u32 can count.
        [1 << 30, 1, 1],
        [MAX, 1, 1],
        [MAX, MAX, MAX],
        // More workgroups in total than u32 can count.
        [1, MAX, 2],
        [1, 2, MAX],
        [65536, 65536, 1],
        [1, 65536, 65536],
        [65536, 1, 65536],
        [1 << 11, 1 << 11, 1 << 10],
        // The only counts that run anything: 30 workgroups.
        [5, 2, 3],
    ];
    let source = "
        @group(0) @binding(0) var<storage, read_write> runs: atomic<u32>;
        @compute @workgroup_size(4)
        fn count() { atomicAdd(&runs, 1u); }";
    let case = Case::new("", source).buffer(Data::zeros(DType::U32, 1));
    counts.into_iter().fold(case, launch_indirect).expect_words(0, vec![4 * 30])
}

/// A workgroup does not see workgroup memory of another one that ran on the same multiprocessor
/// before, and an early return ends only invocations of its own workgroup.
pub(crate) fn workgroup_memory_with_early_returns(_: &DeviceInfo) -> Vec<Case> {
    let source = "
        @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
        @group(0) @binding(1) var<storage, read_write> runs: atomic<u32>;
        var<workgroup> words: array<atomic<u32>, 2>;
        var<workgroup> row: array<u32, 300>;
        var<private> calls: u32;

        fn count(id: vec3<u32>) { calls++; atomicAdd(&words[id.x % 2u], id.x / 2u); }

        @compute @workgroup_size(2)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(local_invocation_index) local: u32,
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {
            if group.x % 5u == 3u { return; }
            count(id);
            row[local * 100u + group.x % 100u] += 1u;
            atomicAdd(&runs, calls);
            workgroupBarrier();
            if local == 1u { return; }
            var cells = 0u;
            for (var i = 0u; i < 300u; i++) { cells += row[i]; }
            let sum = atomicLoad(&words[0]) + atomicLoad(&words[1]);
            sums[group.x] = sum * 2u + cells + groups.x;
        }";
    let returns = |group: u32| group % 5 == 3;
    let case = |groups: u32| {
        let sum = |group: u32| if returns(group) { 0 } else { 4 * group + 2 + groups };
        let ran = (0..groups).filter(|group| !returns(*group)).count() as u32;
        let case = Case::new(format!("{groups} workgroups"), source)
            .buffer(Data::zeros(DType::U32, groups as usize))
            .buffer(Data::zeros(DType::U32, 1))
            .expect_words(0, (0..groups).map(sum).collect())
            .expect_words(1, vec![ran * 2]);
        launch_indirect(case, [groups, 1, 1])
    };
    [1, 5, 700, 66_000].map(case).into()
}

pub(crate) fn counts_may_share_a_read_buffer(_: &DeviceInfo) -> Vec<Case> {
    let source = "
        @group(0) @binding(0) var<storage, read> all: array<u32>;
        @group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
        @compute @workgroup_size(1)
        fn main() { atomicAdd(&sum, all[5] * 100u + all[6] * 10u + all[7]); }";
    let case = |start: usize| {
        let mut words = vec![u32::MAX; 300];
        words[5..8].copy_from_slice(&[2, 1, 3]);
        words[start..start + 3].copy_from_slice(&[2, 1, 3]);
        let read = words[5].wrapping_mul(100).wrapping_add(words[6].wrapping_mul(10));
        let sum = read.wrapping_add(words[7]).wrapping_mul(6);
        let mut case = Case::new(format!("at word {start}"), source)
            .buffer(Data::words(&words).typed(DType::U32))
            .buffer(Data::zeros(DType::U32, 1))
            .expect_words(1, vec![sum]);
        let counts = BufferBinding::part(0, 4 * start..4 * (start + 3));
        case.launches.push(CaseLaunch::Indirect(counts, None));
        case
    };
    [0, 1, 5, 63, 130, 297].map(case).into()
}

pub(crate) fn immediates_and_uniforms_with_counts(_: &DeviceInfo) -> Case {
    let source = "
        struct Params { a: u32, b: u32 }
        @group(0) @binding(0) var<uniform> scale: u32;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<immediate> params: Params;
        @compute @workgroup_size(2)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            out[id.x] = scale * id.x + params.a - params.b;
        }";
    let mut case = Case::new("", source)
        .words(&[&[3]])
        .buffer(Data::zeros(DType::U32, 10))
        .expect_words(1, (0..10).map(|n| if n < 8 { 3 * n + 50 } else { 0 }).collect());
    case.buffers.push(Data::words(&[4, 1, 1]).typed(DType::U32));
    let immediates = [70u32, 20].iter().flat_map(|word| word.to_ne_bytes()).collect();
    case.launches.push(CaseLaunch::Indirect(BufferBinding::whole(2), Some(immediates)));
    case
}
