//! Zero initialisation: buffers, workgroup memory, private and function variables.

use scry_gpu::Launch;

use crate::harness::{on_each_device, run_words, succeed};

/// Fills workgroup memory, private variables and locals with non-zero data.
const JUNK: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, 1024>;
    var<private> own: array<u32, 64>;

    @compute @workgroup_size(64)
    fn main(
        @builtin(local_invocation_index) local: u32,
        @builtin(global_invocation_id) id: vec3<u32>,
    ) {
        var mine: array<u32, 64>;
        for (var i = 0u; i < 16u; i++) { words[local * 16u + i] = 0xdeadbeefu; }
        for (var i = 0u; i < 64u; i++) { own[i] = 0xdeadbeefu; mine[i] = 0xdeadbeefu; }
        workgroupBarrier();
        out[id.x] = words[(local * 17u) % 1024u] & own[local] & mine[63u - local];
    }";

/// Reads all three before any write; any non-zero bit changes the sum.
const LOOK: &str = "
    struct Cell { flag: u32, counter: atomic<u32>, v: vec3<u32> }
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, 1024>;
    var<workgroup> cells: array<Cell, 8>;
    var<workgroup> single: u32;
    var<private> own: array<u32, 64>;
    var<private> vector: vec4<f32>;

    @compute @workgroup_size(64)
    fn main(
        @builtin(local_invocation_index) local: u32,
        @builtin(global_invocation_id) id: vec3<u32>,
    ) {
        var mine: array<u32, 64>;
        var m: mat3x3<f32>;
        var bits = single | bitcast<u32>(vector[local % 4u]) | bitcast<u32>(m[local % 3u].y);
        for (var i = 0u; i < 16u; i++) { bits |= words[local * 16u + i]; }
        for (var i = 0u; i < 64u; i++) { bits |= own[i] | mine[i]; }
        let cell = local % 8u;
        bits |= cells[cell].flag | atomicLoad(&cells[cell].counter) | cells[cell].v[local % 3u];
        out[id.x] = bits;
    }";

#[test]
fn variables_are_zero_initialised() {
    let launch = || Launch::workgroups([40, 1, 1]);
    on_each_device(|gpu| {
        for _ in 0..3 {
            let junk = run_words(gpu, JUNK, &[], 40 * 64, launch());
            assert!(junk.iter().all(|word| *word == 0xdead_beef));
            let seen = run_words(gpu, LOOK, &[], 40 * 64, launch());
            assert_eq!(seen, [0; 40 * 64]);
        }
    });
}

/// A declaration in a loop initialises the variable in each iteration.
#[test]
fn loop_variables_are_reinitialised() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 4u; i++) {
                var n: u32;
                var list: array<u32, 2>;
                n += i;
                list[i % 2u] += i;
                out[i] = n * 100u + list[0] * 10u + list[1];
            }
        }";
    on_each_device(|gpu| {
        let got = run_words(gpu, source, &[], 4, Launch::workgroups([1, 1, 1]));
        assert_eq!(got, [0, 101, 220, 303]);
    });
}

#[test]
fn reused_memory_is_zeroed() {
    on_each_device(|gpu| {
        for words in [1, 63, 1024, 100_000, 3_000_000] {
            for _ in 0..3 {
                drop(succeed(gpu.upload(&vec![0xdead_beef_u32; words])));
                let buffer = succeed(gpu.alloc::<u32>(words));
                let seen = succeed(buffer.download());
                assert!(seen.iter().all(|word| *word == 0), "{words} words");
            }
        }
    });
}

/// The first use may be a kernel, a slice, a copy, or a partial write.
#[test]
fn zeroing_precedes_any_first_use() {
    let add = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&data) { data[id.x] += 1u; }
        }";
    on_each_device(|gpu| {
        let step = (gpu.info().binding_alignment as usize / 4).max(1);
        let len = step * 16;
        let fresh = || {
            drop(succeed(gpu.upload(&vec![0xdead_beef_u32; len])));
            succeed(gpu.alloc::<u32>(len))
        };
        let by_kernel = fresh();
        succeed(gpu.dispatch(add, &[&by_kernel], len));
        assert_eq!(succeed(by_kernel.download()), vec![1; len]);

        let by_slice = fresh();
        let part = succeed(by_slice.slice(step..step * 2));
        succeed(gpu.dispatch(add, &[&part], step));
        let mut want = vec![0; len];
        want[step..step * 2].fill(1);
        assert_eq!(succeed(by_slice.download()), want);

        let by_part = fresh();
        succeed(by_part.write_at(3, &[7, 8]));
        let mut want = vec![0; len];
        want[3..5].copy_from_slice(&[7, 8]);
        assert_eq!(succeed(by_part.download()), want);

        let by_copy = fresh();
        let source = fresh();
        let (from, to) = (succeed(source.slice(0..4)), succeed(by_copy.slice(8..12)));
        succeed(from.copy_to(to));
        assert_eq!(succeed(by_copy.download()), vec![0; len]);

        let by_part_read = fresh();
        assert_eq!(succeed(succeed(by_part_read.slice(5..9)).download()), [0; 4]);
        succeed(succeed(by_part_read.slice(2..4)).fill(6));
        assert_eq!(succeed(by_part_read.download())[..6], [0, 0, 6, 6, 0, 0]);
    });
}

/// Bytes past the end of small and odd buffers are never visible, nor those of a neighbour.
#[test]
fn every_element_size_round_trips() {
    on_each_device(|gpu| {
        for len in [1, 2, 3, 5, 7, 1001] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31) as u8).collect();
            assert_eq!(succeed(succeed(gpu.upload(&bytes)).download()), bytes);
            let shorts: Vec<i16> = (0..len).map(|i| -(i as i16)).collect();
            assert_eq!(succeed(succeed(gpu.upload(&shorts)).download()), shorts);
            let threes: Vec<[u8; 3]> = (0..len).map(|i| [i as u8, 1, 2]).collect();
            assert_eq!(succeed(succeed(gpu.upload(&threes)).download()), threes);
            let longs: Vec<u64> = (0..len).map(|i| u64::MAX - i as u64).collect();
            assert_eq!(succeed(succeed(gpu.upload(&longs)).download()), longs);
            let buffer = succeed(gpu.alloc::<u8>(len));
            assert_eq!(succeed(buffer.download()), vec![0; len]);
            succeed(buffer.fill(0xa5));
            assert_eq!(succeed(buffer.download()), vec![0xa5; len]);
            let buffer = succeed(gpu.alloc::<[u8; 3]>(len));
            succeed(buffer.fill([1, 2, 3]));
            assert_eq!(succeed(buffer.download()), vec![[1, 2, 3]; len]);
        }
        let empty = succeed(gpu.upload::<f32>(&[]));
        assert!(empty.is_empty());
        assert_eq!(succeed(empty.download()), []);
    });
}
