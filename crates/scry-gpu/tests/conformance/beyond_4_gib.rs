//! Tests of buffers of more than 4 GiB. WGSL kernels can bind slices below 4 GiB, at any offset;
//! native kernels can bind the whole buffer.

use scry_gpu::{
    BackendKind, Buffer, Device, DeviceKind, GpuError, Launch, NativeBinding, NativeInterface,
    Scalar,
};
use scry_test_support::{on_each_device, succeed};

/// The first word that a 32-bit byte offset does not reach.
const BOUNDARY: usize = 1 << 30;
/// Words of the buffer: 4 GiB, 4 MiB and three words.
const LEN: usize = BOUNDARY + (1 << 20) + 3;
/// Written words below the boundary.
const MARGIN: usize = 4096;
/// The first written word.
const FIRST: usize = BOUNDARY - MARGIN;

/// Runs a test on every GPU that supports such a buffer and has memory for those of all tests here
/// at once; prints the others.
fn on_each_large_device(test: impl Fn(&Device)) {
    const SIZE: u64 = 4 * LEN as u64;
    on_each_device(|gpu| {
        let limit = gpu.info().limits.max_buffer_size;
        let free = gpu.info().memory_budget.unwrap_or(0);
        if gpu.info().kind == DeviceKind::Software {
            eprintln!("skipped on {gpu:?}: a software device is slow and uses host memory");
        } else if limit < SIZE {
            eprintln!("skipped on {gpu:?}: its buffers have at most {limit} bytes, not {SIZE}");
        } else if free < 5 * SIZE {
            eprintln!("skipped on {gpu:?}: it had {free} bytes free, fewer than five times {SIZE}");
        } else {
            test(gpu);
        }
    });
}

fn download(slice: scry_gpu::Slice<'_, u32>) -> Vec<u32> {
    succeed(slice.download())
}

/// Checks that the words from [`FIRST`] on contain their own indices, and that the words at which
/// wrapped 32-bit offsets would end are zero.
fn check_indices(buffer: &Buffer<u32>, end: usize) {
    let written = download(succeed(buffer.slice(FIRST..end)));
    let wrong = written.iter().zip(FIRST..).find(|(word, index)| **word as usize != *index);
    assert_eq!(wrong, None, "word and index");
    for untouched in [0..end - BOUNDARY + MARGIN, FIRST - MARGIN..FIRST] {
        let start = untouched.start;
        let data = download(succeed(buffer.slice(untouched)));
        let wrong = data.iter().position(|word| *word != 0).map(|at| start + at);
        assert_eq!(wrong, None, "a word that no invocation writes");
    }
}

/// Writes indices, and the array length that the kernel sees.
const WRITE: &str = "
    var<immediate> first: u32;
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> length: array<u32>;

    @compute @workgroup_size(256)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.x;
        if i < arrayLength(&x) { x[i] = first + i; }
        if id.x == 0u { length[0] = arrayLength(&x); }
    }";

/// Reads the words before, at and after each index in `at`.
const READ: &str = "
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read> at: array<u32>;
    @group(0) @binding(2) var<storage, read_write> out: array<u32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&at) {
            let i = at[id.x];
            out[3u * id.x] = x[i - 1u];
            out[3u * id.x + 1u] = x[i];
            out[3u * id.x + 2u] = x[i + 1u];
        }
    }";

#[test]
fn slices_beyond_4_gib_round_trip() {
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<u32>(LEN));
        let (write, read) = (succeed(gpu.compile(WRITE)), succeed(gpu.compile(READ)));
        let length = succeed(gpu.alloc::<u32>(1));
        // Once across the boundary, and once from it on.
        for start in [FIRST, BOUNDARY] {
            let part = succeed(buffer.slice(start..));
            let launch = Launch::invocations(LEN - start).immediates(&(start as u32));
            succeed(gpu.run(&write, &[&part, &length], launch));
            assert_eq!(succeed(length.download()), [(LEN - start) as u32]);
            check_indices(&buffer, LEN);
        }
        let part = succeed(buffer.slice(FIRST..));
        let near = (MARGIN - 2..MARGIN + 3).chain([1, LEN - FIRST - 2]);
        let near: Vec<u32> = near.map(|index| index as u32).collect();
        let first = FIRST as u32;
        let expected = near.iter().flat_map(|i| [first + i - 1, first + i, first + i + 1]);
        let out = succeed(gpu.alloc::<u32>(3 * near.len()));
        let at = succeed(gpu.upload(&near));
        succeed(gpu.run(&read, &[&part, &at, &out], near.len()));
        assert_eq!(succeed(out.download()), expected.collect::<Vec<u32>>());
        // Out-of-bounds reads return an element of the slice, or zero.
        let at = succeed(gpu.upload(&[(LEN - FIRST) as u32 + 1, 3 << 29, u32::MAX - 1]));
        let out = succeed(gpu.alloc::<u32>(9));
        succeed(gpu.run(&read, &[&part, &at, &out], 3));
        let is_of_slice = |word: &u32| *word == 0 || (FIRST..LEN).contains(&(*word as usize));
        let out = succeed(out.download());
        assert!(out.iter().all(is_of_slice), "{out:?}");
    });
}

/// Bindings of 4 GiB or more are rejected on every device; those of 4 bytes less are accepted where
/// the device supports them.
#[test]
fn bindings_end_below_4_gib() {
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<u32>(LEN));
        let write = succeed(gpu.compile(WRITE));
        let length = succeed(gpu.alloc::<u32>(1));
        let launch = || Launch::invocations(1).immediates(&0u32);
        let limit = gpu.info().limits.max_storage_binding_size;
        assert!(limit < 4 << 30, "{limit}");
        for end in [BOUNDARY, LEN] {
            let all = succeed(buffer.slice(..end));
            let error = gpu.run(&write, &[&all, &length], launch()).unwrap_err();
            let GpuError::TooLarge(too_large) = &error else { panic!("{error}") };
            assert_eq!(too_large.limit_name(), "max_storage_binding_size");
            assert!(error.to_string().contains("launch on slices"), "{error}");
        }
        if limit < 4 * BOUNDARY as u64 - 4 {
            eprintln!("skipped on {gpu:?}: the largest binding, {limit} bytes");
            return;
        }
        check_largest_binding(gpu, &buffer);
    });
}

/// Checks the largest binding: its length, its last elements, and loops whose counter approaches
/// 2^32.
fn check_largest_binding(gpu: &Device, buffer: &Buffer<u32>) {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {
            let n = arrayLength(&x);
            x[n - 1u] = 7u;
            for (var i = n - 1u; i < n; i += 0xc0000000u) { out[0] += 1u; }
            for (var i = 3u; i < n; i += 0x30000000u) { out[1] += 1u; }
            out[2] = n;
        }";
    let rows = "
        @group(0) @binding(0) var<storage, read_write> x: array<array<u32, 3>>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {
            let n = arrayLength(&x);
            x[n - 1u][2] = 9u;
            x[n][0] = 9u;
            out[2] = n;
        }";
    let out = succeed(gpu.alloc::<u32>(3));
    let words_of = |at: usize| download(succeed(buffer.slice(at..at + 2)));
    let below = succeed(buffer.slice(..BOUNDARY - 1));
    succeed(gpu.dispatch(source, &[&below, &out], 1));
    assert_eq!(succeed(out.download()), [1, 2, BOUNDARY as u32 - 1]);
    assert_eq!(words_of(BOUNDARY - 2), [7, 0]);
    // A multiple of the rows: 2^30 - 1 is divisible by 3.
    succeed(gpu.dispatch(rows, &[&below, &out], 1));
    assert_eq!(succeed(out.download())[2], (BOUNDARY as u32 - 1) / 3);
    assert_eq!(words_of(BOUNDARY - 2), [9, 0]);
    let wrapped = download(succeed(buffer.slice(..4)));
    assert_eq!(wrapped, [0; 4], "an index wrapped");
}

/// Writes one word at an offset that requires 64 bits.
const PTX: &str = "
    .version 7.0
    .target sm_75
    .address_size 64
    .visible .entry last(.param .u64 x, .param .u64 n)
    {
        .reg .b64 %x, %n;
        .reg .b32 %v;
        ld.param.u64 %x, [x];
        ld.param.u64 %n, [n];
        cvta.to.global.u64 %x, %x;
        shl.b64 %n, %n, 2;
        add.u64 %x, %x, %n;
        mov.u32 %v, 5;
        st.global.u32 [%x + -4], %v;
        ret;
    }";

#[test]
fn native_kernels_access_beyond_4_gib() {
    on_each_large_device(|gpu| {
        if gpu.backend_kind() != BackendKind::Cuda {
            eprintln!("skipped on {gpu:?}: kernels in PTX are for CUDA");
            return;
        }
        let buffer = succeed(gpu.alloc::<u32>(LEN));
        let x = NativeBinding::read_write("x", Scalar::U32).with_length();
        let interface = NativeInterface::new([x], [1; 3]);
        // SAFETY: the kernel writes only the last element of its buffer.
        let kernel = succeed(unsafe { gpu.compile_ptx(PTX, "last", &interface) });
        succeed(gpu.run(&kernel, &[&buffer], 1));
        assert_eq!(download(succeed(buffer.slice(LEN - 2..))), [0, 5]);
        assert_eq!(download(succeed(buffer.slice(LEN - BOUNDARY - 2..LEN - BOUNDARY))), [0; 2]);
    });
}

#[test]
fn transfers_reach_beyond_4_gib() {
    on_each_large_device(|gpu| {
        let buffer = succeed(gpu.alloc::<u32>(LEN));
        succeed(buffer.fill(7));
        let across = BOUNDARY - 2..BOUNDARY + 2;
        assert_eq!(download(succeed(buffer.slice(across.clone()))), [7; 4]);
        assert_eq!(download(succeed(buffer.slice(LEN - 3..))), [7; 3]);
        succeed(succeed(buffer.slice(across.clone())).write(&[1, 2, 3, 4]));
        let copied = succeed(gpu.alloc::<u32>(4));
        let from = succeed(buffer.slice(across.clone()));
        succeed(from.copy_to(succeed(copied.slice(..))));
        assert_eq!(download(succeed(copied.slice(..))), [1, 2, 3, 4]);
        // A copy from the boundary to the end must not reach the wrapped offsets.
        let far = succeed(buffer.slice(LEN - 4..));
        succeed(from.copy_to(far));
        assert_eq!(download(succeed(buffer.slice(LEN - 5..))), [7, 1, 2, 3, 4]);
        let wrapped = LEN - 5 - BOUNDARY..LEN - BOUNDARY;
        assert_eq!(download(succeed(buffer.slice(wrapped))), [7; 5]);
        assert_eq!(download(succeed(buffer.slice(..4))), [7; 4]);
        assert_eq!(download(succeed(buffer.slice(across))), [1, 2, 3, 4]);
    });
}
