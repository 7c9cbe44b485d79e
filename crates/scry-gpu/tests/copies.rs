//! Tests of large copies on each device, by a kernel and by the driver: both must be exact.

use scry_gpu::{Device, testing};
use scry_test_support::devices;

const MIB: usize = 1 << 20;

/// A multiple of every device's binding alignment.
const ALIGNED: usize = 256;

/// Runs `test` twice on each device: with copies by a kernel, and with copies by the driver.
fn for_each_copy_method(test: impl Fn(&Device)) {
    for device in devices() {
        let info = device.info();
        let selector = format!("{}:{}", info.backend, info.index);
        for by_kernel in [true, false] {
            let device = Device::open(&selector).expect("a device that is listed opens");
            // If this failed, the library would fall back to the driver, and the test would not
            // notice.
            device
                .compile(include_str!("../src/backend/shared/copy.wgsl"))
                .expect("every device compiles it");
            testing::copy_with_kernel(&device, by_kernel);
            test(&device);
        }
    }
}

/// Returns bytes with no short period, which differ for different seeds.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let byte = |i: usize| ((i + seed).wrapping_mul(0x9e37_79b9) >> 13) as u8;
    (0..len).map(byte).collect()
}

/// Fails at the first byte that differs.
fn assert_same(actual: &[u8], expected: &[u8], what: &str) {
    if actual != expected {
        let at = actual.iter().zip(expected).position(|(a, b)| a != b);
        panic!("{what}: byte {at:?} of {} and {}", actual.len(), expected.len());
    }
}

#[test]
fn copies_of_any_size_are_exact() {
    for_each_copy_method(|gpu| {
        for size in [MIB - 1, MIB, MIB + 1, MIB + 15, MIB + 16, 3 * MIB + 4077] {
            let data = pattern(size, size);
            let (a, b) = (gpu.upload(&data).unwrap(), gpu.alloc(size).unwrap());
            a.copy_to(&b).unwrap();
            assert_same(&b.download().unwrap(), &data, &format!("{size} bytes"));
        }
    });
}

#[test]
fn slice_copies_change_nothing_else() {
    let len = 2 * MIB;
    for_each_copy_method(|gpu| {
        let data = pattern(0, len);
        for (from, to, size) in [
            (ALIGNED, 2 * ALIGNED, MIB + 3),
            (ALIGNED, 3 * ALIGNED, MIB + 16),
            (1, ALIGNED, MIB + 3),
            (ALIGNED, 7, MIB),
            (0, len - MIB, MIB),
        ] {
            let (a, b) = (gpu.upload(&data).unwrap(), gpu.upload(&vec![0xa5u8; len]).unwrap());
            let source = a.slice(from..from + size).unwrap();
            source.copy_to(b.slice(to..to + size).unwrap()).unwrap();
            let mut expected = vec![0xa5; len];
            expected[to..to + size].copy_from_slice(&data[from..from + size]);
            let what = format!("{size} bytes from {from} to {to}");
            assert_same(&b.download().unwrap(), &expected, &what);
        }
    });
}

#[test]
fn overlapping_range_copies_are_ordered() {
    for_each_copy_method(|gpu| {
        let mut expected = pattern(1, 4 * MIB);
        let buffer = gpu.upload(&expected).unwrap();
        let mut batch = gpu.batch();
        // Each copy reads the previous one's output; the third overwrites the second one's input.
        for (from, to, size) in
            [(0, MIB, MIB), (MIB, 2 * MIB + ALIGNED, MIB + 5), (3 * MIB, MIB, MIB)]
        {
            let source = buffer.slice(from..from + size).unwrap();
            batch.copy(source, buffer.slice(to..to + size).unwrap()).unwrap();
            expected.copy_within(from..from + size, to);
        }
        batch.submit().unwrap();
        assert_same(&buffer.download().unwrap(), &expected, "one buffer");
        let overlapping = buffer.slice(..2 * MIB).unwrap();
        assert!(overlapping.copy_to(buffer.slice(MIB..3 * MIB).unwrap()).is_err());
    });
}

#[test]
fn alternating_copies_and_kernels_are_ordered() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&x) {
                x[id.x] += 1u;
            }
        }
    ";
    let len = MIB / 4 + 3;
    for_each_copy_method(|gpu| {
        let kernel = gpu.compile(source).unwrap();
        let data: Vec<u32> = (0..len as u32).collect();
        let (a, b) = (gpu.upload(&data).unwrap(), gpu.alloc(len).unwrap());
        let mut batch = gpu.batch();
        for _ in 0..4 {
            batch.copy(&a, &b).unwrap().run(&kernel, &[&b], len).unwrap();
            batch.copy(&b, &a).unwrap().run(&kernel, &[&a], len).unwrap();
        }
        let recording = batch.record().unwrap();
        for _ in 0..2 {
            recording.replay().unwrap().wait().unwrap();
        }
        let expected: Vec<u32> = data.iter().map(|x| x + 16).collect();
        assert!(a.download().unwrap() == expected);
    });
}

#[test]
fn copies_exceed_the_binding_limit() {
    for_each_copy_method(|gpu| {
        let max = gpu.info().limits.max_storage_binding_size;
        if max > 256 << 20 {
            eprintln!("skipped on {gpu:?}: it binds {max} bytes, too many for a test");
            return;
        }
        // The period is prime, so that the parts into which the copy is split all differ.
        let len = max as usize + 1027;
        let mut data = pattern(2, 1_048_573).repeat(len / 1_048_573 + 1);
        data.truncate(len);
        let (a, b) = (gpu.upload(&data).unwrap(), gpu.alloc(data.len()).unwrap());
        a.copy_to(&b).unwrap();
        assert_same(&b.download().unwrap(), &data, "more than can be bound");
    });
}
