//! Tests of kernels for indirect launches: a few blocks loop over the workgroups.

use scry_ir::GridSource;
use scry_ptx::Target;

use super::run::{Outcome, RunOptions, TestLaunch, run};

/// Returns the options of an indirect launch.
fn options_for(target: Target) -> RunOptions<'static> {
    let mut run_options = RunOptions::for_target(target);
    run_options.ptx.grid = GridSource::Counts;
    run_options
}

fn launch(source: &str, groups: [u32; 3], words: usize) -> TestLaunch {
    let buffers = vec![vec![0; 4 * words]];
    TestLaunch { source: source.to_owned(), buffers, immediates: Vec::new(), groups }
}

#[track_caller]
fn assert_outcome(expected: Outcome, source: &str, groups: [u32; 3], words: usize) {
    for target in [Target::SM_75, Target::SM_90] {
        match run(&launch(source, groups, words), &options_for(target)) {
            Ok(outcome) => assert_eq!(outcome, expected, "{groups:?}"),
            Err(problem) => panic!("{groups:?}: {problem}\n{source}"),
        }
    }
}

/// Counts of no workgroups, of fewer workgroups than there are blocks (3), as many, and more.
const GROUPS: [[u32; 3]; 10] = [
    [1, 1, 1],
    [2, 1, 1],
    [3, 1, 1],
    [4, 1, 1],
    [7, 1, 1],
    [1, 5, 1],
    [1, 1, 8],
    [3, 2, 4],
    [0, 1, 1],
    [u32::MAX, 1, 0],
];

#[test]
fn every_workgroup_runs_once() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: array<atomic<u32>, 1024>;
        @compute @workgroup_size(4, 2, 1)
        fn main(
            @builtin(global_invocation_id) id: vec3u,
            @builtin(workgroup_id) group: vec3u,
            @builtin(num_workgroups) groups: vec3u,
            @builtin(local_invocation_index) local: u32,
        ) {
            let nth = (group.z * groups.y + group.y) * groups.x + group.x;
            let sum = id.x + 16u * id.y + 256u * id.z + 4096u * (groups.x + groups.y + groups.z);
            atomicAdd(&found[nth * 8u + local], sum + 1u);
        }";
    for groups in GROUPS {
        assert_outcome(Outcome::Same, source, groups, 1024);
    }
}

/// A block executes several workgroups in the same shared memory and registers.
#[test]
fn every_workgroup_starts_with_zeroed_memory() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: array<u32, 1024>;
        var<workgroup> sum: atomic<u32>;
        var<workgroup> words: array<u32, 40>;
        var<private> calls: u32;
        var<private> row: array<u32, 5>;
        fn call(n: u32) { calls += n; row[n % 5u] += calls; }

        @compute @workgroup_size(40)
        fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
            var times: u32;
            loop {
                if times > group.x % 3u { break; }
                call(local + times);
                times++;
            }
            words[local] += calls + row[1] + 7u;
            atomicAdd(&sum, words[local] & 1u);
            workgroupBarrier();
            if local == group.x { return; }
            let both = words[(local + 3u) % 40u] + atomicLoad(&sum);
            found[group.x * 40u + local] = both + times;
        }";
    for groups in GROUPS {
        assert_outcome(Outcome::Same, source, groups, 1024);
    }
}

#[test]
fn return_ends_only_the_workgroup() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: array<u32, 64>;
        fn early(n: u32) -> bool {
            for (var i = 0u; i < n; i++) { if i == 2u { return true; } }
            return false;
        }
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u) {
            if group.x % 2u == 0u { return; }
            if early(id.x) && id.x % 3u == 0u { return; }
            found[id.x] = id.x + 1u;
        }";
    for groups in GROUPS {
        assert_outcome(Outcome::Same, source, groups, 64);
    }
}

#[test]
fn workgroup_counts_beyond_u32_run_nothing() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: atomic<u32>;
        @compute @workgroup_size(4, 2, 1)
        fn main() { atomicAdd(&found, 1u); }";
    let max = u32::MAX;
    for groups in [
        [1 << 30, 1, 1],
        [1, 1 << 31, 1],
        [max, 1, 1],
        [1, max, 1],
        [2, 1, max],
        [1, 2, max],
        [65536, 65536, 1],
        [65536, 1, 65536],
        [1, 65536, 65536],
        [1 << 11, 1 << 11, 1 << 10],
        [max; 3],
        [0, max, max],
        [max, 0, max],
        [max, max, 0],
        [0; 3],
    ] {
        assert_outcome(Outcome::Same, source, groups, 1);
    }
}

#[test]
fn cancellation_stops_many_workgroups() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: atomic<u32>;
        var<workgroup> together: atomic<u32>;
        @compute @workgroup_size(40)
        fn main(@builtin(local_invocation_index) local: u32) {
            atomicAdd(&together, local);
            workgroupBarrier();
            if local < 39u { return; }
            atomicAdd(&found, atomicLoad(&together));
        }";
    assert_outcome(Outcome::Cancelled, source, [u32::MAX / 40, 1, 1], 1);
    assert_outcome(Outcome::Cancelled, source, [65535, 3, 21845], 1);
}

#[test]
fn cancellation_stops_an_endless_workgroup() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: atomic<u32>;
        @compute @workgroup_size(40)
        fn main(@builtin(workgroup_id) group: vec3u) {
            while atomicLoad(&found) < 1000u { if group.x < 5u { atomicAdd(&found, 1u); break; } }
        }";
    assert_outcome(Outcome::Cancelled, source, [9, 2, 1], 1);
}

/// A single-pass scan waits like this for earlier workgroups.
#[test]
fn workgroups_may_wait_for_earlier_ones() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> done: array<atomic<u32>, 64>;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) group: vec3u) {
            let nth = group.x;
            // Workgroup `nth - 3` is executed by the same block. Others may not have begun: the
            // interpreter executes one block after another.
            if nth >= 3u { while atomicLoad(&done[nth - 3u]) == 0u {} }
            atomicStore(&done[nth], nth + 1u);
        }";
    assert_outcome(Outcome::Same, source, [50, 1, 1], 64);
}
