//! Buffers of more than 4 GiB: indices fit into 32 bits, byte offsets do not.

use scry_gpu::{Buffer, Device};

use crate::harness::{Word, as_words, on_each_device, succeed};

/// The first word that a byte offset of 32 bits does not reach.
const BOUNDARY: usize = 1 << 30;
/// Words of the buffer: 4 MiB and an odd number of words more.
const LEN: usize = BOUNDARY + (1 << 20) + 3;
/// Words that are written on the near side of the boundary.
const MARGIN: usize = 4096;
/// The first word that is written.
const FIRST: usize = BOUNDARY - MARGIN;

/// Runs a test on every device that binds such a buffer and has room for those of all tests here at
/// once; names the others.
fn on_each_large_device(test: impl Fn(&Device)) {
    const SIZE: u64 = 4 * LEN as u64;
    on_each_device(|gpu| {
        let limit = gpu.info().limits.max_storage_binding_size;
        let free = gpu.info().memory_budget.unwrap_or(0);
        if limit < SIZE {
            eprintln!("skipped on {gpu:?}: it binds at most {limit} bytes, fewer than {SIZE}");
        } else if free < 4 * SIZE {
            eprintln!("skipped on {gpu:?}: it had {free} bytes free, fewer than four times {SIZE}");
        } else {
            test(gpu);
        }
    });
}

fn words(slice: scry_gpu::Slice<'_, Word>) -> Vec<u32> {
    succeed(slice.download()).into_iter().map(|word| word.0).collect()
}

/// Words from `first` on are their own indices, and those where a shorter offset would have ended
/// up are still zero.
fn check_indices(buffer: &Buffer<Word>, end: usize) {
    let written = words(succeed(buffer.slice(FIRST..end)));
    let wrong = written.iter().zip(FIRST..).find(|(word, index)| **word as usize != *index);
    assert_eq!(wrong, None, "word and index");
    for untouched in [0..end - BOUNDARY + MARGIN, FIRST - MARGIN..FIRST] {
        let start = untouched.start;
        let some = words(succeed(buffer.slice(untouched)));
        let wrong = some.iter().position(|word| *word != 0).map(|at| start + at);
        assert_eq!(wrong, None, "a word that no invocation writes");
    }
}

/// The words that a kernel reads at, before and after `at`.
fn read_around(
    gpu: &Device,
    source: &str,
    buffer: scry_gpu::Slice<'_, Word>,
    at: &[u32],
) -> Vec<u32> {
    let seen = succeed(gpu.alloc::<u32>(3 * at.len()));
    let indices = succeed(gpu.upload(at));
    succeed(gpu.dispatch(source, &[&buffer, &indices, &seen], at.len()));
    succeed(seen.download())
}

fn write_and_measure(gpu: &Device, source: &str, buffer: scry_gpu::Slice<'_, Word>) -> u32 {
    let length = succeed(gpu.alloc::<u32>(1));
    let invocations = buffer.len() - FIRST;
    succeed(gpu.dispatch(source, &[&buffer, &length], invocations));
    succeed(length.download())[0]
}

const READ_WORDS: &str = "
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read> at: array<u32>;
    @group(0) @binding(2) var<storage, read_write> seen: array<u32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&at) {
            let i = at[id.x];
            seen[3u * id.x] = x[i - 1u];
            seen[3u * id.x + 1u] = x[i];
            seen[3u * id.x + 2u] = x[i + 1u];
        }
    }";

#[test]
fn words_beyond_4_gib_are_written_and_read() {
    let write = format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> length: array<u32>;

        @compute @workgroup_size(256)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let i = {FIRST}u + id.x;
            if i < arrayLength(&x) {{ x[i] = i; }}
            if id.x == 0u {{ length[0] = arrayLength(&x); }}
        }}"
    );
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<Word>(LEN));
        let whole = || succeed(buffer.slice(..));
        assert_eq!(write_and_measure(gpu, &write, whole()) as usize, LEN);
        check_indices(&buffer, LEN);

        let near = (BOUNDARY - 2..BOUNDARY + 3).chain([FIRST + 1, LEN - 2]);
        let near: Vec<u32> = near.map(|index| index as u32).collect();
        let expected: Vec<u32> = near.iter().flat_map(|i| [i - 1, *i, i + 1]).collect();
        assert_eq!(read_around(gpu, READ_WORDS, whole(), &near), expected);
        // Beyond the end there is nothing to read but this variable, or zero.
        let beyond = [LEN as u32 + 1, 3 << 29, u32::MAX - 1];
        let seen = read_around(gpu, READ_WORDS, whole(), &beyond);
        let is_own = |word: &u32| *word == 0 || (FIRST..LEN).contains(&(*word as usize));
        assert!(seen.iter().all(is_own), "{seen:?}");
    });
}

#[test]
fn vectors_beyond_4_gib_are_written_and_read() {
    const VECTORS: usize = LEN / 4;
    let write = format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<vec4<u32>>;
        @group(0) @binding(1) var<storage, read_write> length: array<u32>;

        @compute @workgroup_size(256)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let i = {}u + id.x;
            if i < arrayLength(&x) {{ x[i] = 4u * i + vec4(0u, 1u, 2u, 3u); }}
            if id.x == 0u {{ length[0] = arrayLength(&x); }}
        }}",
        FIRST / 4
    );
    // The last component before, all of a vector together, and the first one after.
    let read = READ_WORDS
        .replace("x: array<u32>", "x: array<vec4<u32>>")
        .replace("x[i - 1u]", "x[i - 1u].w")
        .replace("= x[i];", "= dot(x[i], vec4(0u, 1u, 0u, 0u));")
        .replace("x[i + 1u]", "x[i + 1u].x");
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<Word>(LEN));
        let vectors = || succeed(buffer.slice(..4 * VECTORS));
        assert_eq!(write_and_measure(gpu, &write, vectors()) as usize, VECTORS);
        check_indices(&buffer, 4 * VECTORS);
        assert_eq!(words(succeed(buffer.slice(4 * VECTORS..))), [0; LEN % 4]);

        let near = (BOUNDARY / 4 - 2..BOUNDARY / 4 + 3).chain([VECTORS - 2]);
        let near: Vec<u32> = near.map(|index| index as u32).collect();
        let around = |i: &u32| [4 * i - 1, 4 * i + 1, 4 * i + 4];
        let expected: Vec<u32> = near.iter().flat_map(around).collect();
        assert_eq!(read_around(gpu, &read, vectors(), &near), expected);
    });
}

#[test]
fn fills_copies_and_transfers_reach_beyond_4_gib() {
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<Word>(LEN));
        succeed(buffer.fill(Word(7)));
        let across = BOUNDARY - 2..BOUNDARY + 2;
        assert_eq!(words(succeed(buffer.slice(across.clone()))), [7; 4]);
        assert_eq!(words(succeed(buffer.slice(LEN - 3..))), [7; 3]);
        succeed(succeed(buffer.slice(across.clone())).write(&as_words([1, 2, 3, 4])));
        let copied = succeed(gpu.alloc::<Word>(4));
        let from = succeed(buffer.slice(across.clone()));
        succeed(from.copy_to(&succeed(copied.slice(..))));
        assert_eq!(words(succeed(copied.slice(..))), [1, 2, 3, 4]);
        // From the near side to the far one, and back to where a shorter offset would have led.
        let far = succeed(buffer.slice(LEN - 4..));
        succeed(from.copy_to(&far));
        assert_eq!(words(succeed(buffer.slice(LEN - 5..))), [7, 1, 2, 3, 4]);
        let wrapped = LEN - 5 - BOUNDARY..LEN - BOUNDARY;
        assert_eq!(words(succeed(buffer.slice(wrapped))), [7; 5]);
        assert_eq!(words(succeed(buffer.slice(..4))), [7; 4]);
        assert_eq!(words(succeed(buffer.slice(across))), [1, 2, 3, 4]);
    });
}
