//! Tests of the cancellation polls of loops: of their reads of host memory, which are serialised,
//! so that a device must not read often.

use scry_ptx::Target;

use super::run::{RunOptions, TestLaunch, polls};

/// Returns a launch of workgroups of one warp, with a loop that is not proven to terminate.
fn launch(iterations: u32, groups: [u32; 3]) -> TestLaunch {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: array<u32>;
        @group(0) @binding(1) var<storage, read> iterations: u32;
        @compute @workgroup_size(32)
        fn main(@builtin(local_invocation_index) local: u32) {
            var n = 0u;
            var x = local;
            loop {
                if n == iterations { break; }
                x = x * 1664525u + 1013904223u;
                n += 1u + (x & 0u);
            }
            found[local] = x;
        }";
    let buffers = vec![vec![0; 256], iterations.to_le_bytes().to_vec()];
    TestLaunch { source: source.to_owned(), buffers, immediates: Vec::new(), groups }
}

/// Returns options for a device whose clock advances by `ticks` per instruction of a thread.
fn with_ticks(ticks: u64) -> RunOptions<'static> {
    RunOptions { ticks, budget: [1 << 30, 0], ..RunOptions::for_target(Target::SM_90) }
}

/// A short loop ends before its first poll, except in the first warps of each multiprocessor; they
/// poll soon after each other, so that the first one reads host memory.
#[test]
fn short_loops_hardly_poll() {
    for groups in [[64, 1, 1], [1, 64, 1], [2, 4, 8]] {
        let polls = polls(&launch(100, groups), &with_ticks(1)).unwrap();
        assert!((1..=8).contains(&polls.len()), "64 workgroups poll {} times", polls.len());
        assert_eq!(polls[0].block, [0; 3]);
        assert!(polls[0].ticks < 100_000, "{polls:?}");
    }
}

/// Threads that diverged in an inner loop poll one by one, since each counts its own iterations.
#[test]
fn diverged_threads_share_reads_of_host_memory() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> found: array<u32>;
        @group(0) @binding(1) var<storage, read> step: u32;
        @compute @workgroup_size(512)
        fn main(@builtin(local_invocation_index) local: u32) {
            var x = local;
            for (var outer = 0u; outer < 300u; outer += step) {
                for (var n = x % 32u; n != 0u; n -= step) {
                    x = x * 1664525u + 1013904223u;
                }
            }
            found[local] = x;
        }";
    let buffers = vec![vec![0; 2048], vec![1, 0, 0, 0]];
    let launch = TestLaunch { source: source.to_owned(), buffers, ..launch(1, [1; 3]) };
    let polls = polls(&launch, &with_ticks(1 << 5)).unwrap();
    let ticks: Vec<u64> = polls.iter().map(|poll| poll.ticks).collect();
    assert!(ticks.len() >= 8, "{} polls", ticks.len());
    // 2^18 ns at 2 GHz.
    assert!(ticks.windows(2).all(|two| two[1] - two[0] >= 1 << 19), "{ticks:?}");
}

#[test]
fn warps_poll_staggered_and_periodically() {
    let polls = polls(&launch(8000, [16, 1, 1]), &with_ticks(16)).unwrap();
    for x in 0..16 {
        let of_block = polls.iter().filter(|poll| poll.block[0] == x);
        let ticks: Vec<u64> = of_block.map(|poll| poll.ticks).collect();
        assert!(ticks.len() >= 2, "workgroup {x} polls {} times", ticks.len());
        // There are 4 multiprocessors.
        let earliest = u64::from(x / 4) << 19;
        assert!((earliest..earliest + (1 << 20)).contains(&ticks[0]), "workgroup {x}: {ticks:?}");
        assert!(ticks.windows(2).all(|two| two[1] - two[0] >= 1 << 25), "workgroup {x}: {ticks:?}");
    }
}
