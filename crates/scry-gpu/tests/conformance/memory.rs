//! Tests of zero initialisation, and of transfers whose size is not a multiple of a word.

use scry_test_support::{on_each_device, succeed};

#[test]
fn reused_memory_is_zeroed() {
    on_each_device(|gpu| {
        for words in [1, 63, 1024, 100_000, 3_000_000] {
            for _ in 0..3 {
                drop(succeed(gpu.upload(&vec![0xdead_beef_u32; words])));
                let buffer = succeed(gpu.alloc::<u32>(words));
                let data = succeed(buffer.download());
                assert!(data.iter().all(|word| *word == 0), "{words} words");
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
        let aligned = (gpu.info().binding_alignment as usize / 4).max(1);
        let len = aligned * 16;
        // A new buffer, which may reuse the memory of the dropped one.
        let fresh = || {
            drop(succeed(gpu.upload(&vec![0xdead_beef_u32; len])));
            succeed(gpu.alloc::<u32>(len))
        };
        let by_kernel = fresh();
        succeed(gpu.dispatch(add, &[&by_kernel], len));
        assert_eq!(succeed(by_kernel.download()), vec![1; len]);

        let by_slice = fresh();
        let part = succeed(by_slice.slice(aligned..aligned * 2));
        succeed(gpu.dispatch(add, &[&part], aligned));
        let mut expected = vec![0; len];
        expected[aligned..aligned * 2].fill(1);
        assert_eq!(succeed(by_slice.download()), expected);

        let by_part = fresh();
        succeed(by_part.write_at(3, &[7, 8]));
        let mut expected = vec![0; len];
        expected[3..5].copy_from_slice(&[7, 8]);
        assert_eq!(succeed(by_part.download()), expected);

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

/// Transfers and fills are exact, also of partial words: they do not access bytes past the end.
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
