//! Tests of kernels: bindings of every kind, immediates, linearised grids, optional features.

use super::*;
use scry_ir::{Features, LinearisedGrid};

#[test]
fn a_kernel_doubles_its_input() {
    for driver in drivers() {
        let words: Vec<u32> = (0..1000).collect();
        let (src, dst) = (driver.upload(&words), driver.device_memory(4000));
        let kernel = driver.compile_source(DOUBLE, GridSource::Native);
        let bindings = [(range(src, 4000), false), (range(dst, 4000), true)];
        driver.run_steps(&[dispatch(kernel, &bindings, [16, 1, 1])]);
        let doubled: Vec<u32> = words.iter().map(|word| 2 * word).collect();
        assert_eq!(driver.words(range(dst, 4000)), doubled);
        driver.free_kernel(kernel);
    }
}

#[test]
fn generators_share_no_kernels() {
    for driver in drivers() {
        crate::backend::tests::generators_share_no_kernels(&driver);
    }
}

#[test]
fn bound_range_appears_as_whole_buffer() {
    for driver in drivers() {
        let alignment = driver.info().binding_alignment;
        let words = vec![3; 1024];
        let (src, dst) = (driver.upload(&words), driver.device_memory(4096));
        let kernel = driver.compile_source(DOUBLE, GridSource::Native);
        let fill = Command::Fill { dst: range(dst, 4096), pattern: 9 };
        let part = BufferRange { memory: dst, offset: alignment, size: 20 };
        let bindings = [(range(src, 4096), false), (part, true)];
        driver.run_steps(&[run(fill), full_barrier(), dispatch(kernel, &bindings, [16, 1, 1])]);
        let first = alignment as usize / 4;
        let actual = driver.words(range(dst, 4096));
        for (at, word) in actual.into_iter().enumerate() {
            let inside = (first..first + 5).contains(&at);
            assert_eq!(word, if inside { 6 } else { 9 }, "word {at}");
        }
    }
}

#[test]
fn kernels_read_uniforms_and_immediates() {
    for driver in drivers() {
        let source = "
        struct Scale { by: u32, add: u32 }
        @group(3) @binding(7) var<uniform> scale: Scale;
        @group(1) @binding(2) var<storage, read_write> data: array<u32>;
        var<immediate> offset: vec3<u32>;
        var<workgroup> seen: array<u32, 64>;
        @compute @workgroup_size(32)
        fn main(@builtin(local_invocation_index) i: u32) {
            let zeroed = seen[i] + seen[63 - i];
            data[i] = data[i] * scale.by + scale.add + offset.z + zeroed;
        }";
        let kernel = driver.compile_source(source, GridSource::Native);
        let data = driver.upload(&(0..32).collect::<Vec<u32>>());
        let scale = driver.upload(&[10, 1]);
        // In the order of the interface: group 1 before group 3.
        let bindings = [(range(data, 128), true), (range(scale, 8), false)];
        let step = dispatch_with(kernel, &bindings, [1, 1, 1], &bytes(&[0, 0, 500]));
        driver.run_steps(&[step]);
        let expected: Vec<u32> = (0..32).map(|i| i * 10 + 501).collect();
        assert_eq!(driver.words(range(data, 128)), expected);
    }
}

#[test]
fn linearised_kernels_see_the_requested_grid() {
    for driver in drivers() {
        let kernel = driver.compile_source(DOUBLE, GridSource::Linearised);
        // 10 workgroups as rows of 4: two full rows, and 2 in the last.
        let params = LinearisedGrid {
            groups: [10, 1, 1],
            width: 4,
            height: 3,
            rows: 3,
            last_row_len: 2,
            padding: 0,
        };
        let LinearisedGrid { groups, .. } = params;
        let params = driver.upload(&[groups[0], groups[1], groups[2], 4, 3, 3, 2, 0]);
        let words: Vec<u32> = (0..640).collect();
        let (src, dst) = (driver.upload(&words), driver.device_memory(2560));
        let bindings =
            [(range(src, 2560), false), (range(dst, 2560), true), (range(params, 32), false)];
        driver.run_steps(&[dispatch(kernel, &bindings, [4, 3, 1])]);
        let doubled: Vec<u32> = words.iter().map(|word| 2 * word).collect();
        assert_eq!(driver.words(range(dst, 2560)), doubled);
    }
}

/// Returns a kernel that adds up `count` buffers.
fn sum_of(count: usize) -> String {
    let mut source = String::new();
    let mut sum = String::from("0u");
    for i in 0..count {
        let declaration = format!("@group(0) @binding({i}) var<storage> in{i}: array<u32>;\n");
        source.push_str(&declaration);
        sum.push_str(&format!(" + in{i}[i]"));
    }
    source.push_str("@group(1) @binding(0) var<storage, read_write> out: array<u32>;\n");
    source.push_str("@compute @workgroup_size(4) fn main(\n");
    source.push_str("@builtin(local_invocation_index) i: u32) { out[i] = ");
    source.push_str(&sum);
    source.push_str("; }");
    source
}

/// Checks the results of [`sum_of`], with more launches than a descriptor pool has sets.
fn check_sum_of(driver: &VulkanDriver, count: usize) {
    const REPEATS: usize = 300;
    let kernel = driver.compile_source(&sum_of(count), GridSource::Native);
    let ins: Vec<MemoryId> =
        (0..count as u32).map(|i| driver.upload(&[i, 10 * i, 100 * i, 1000 * i])).collect();
    let stride = driver.info().binding_alignment.max(16);
    let out = driver.device_memory(stride * REPEATS as u64);
    let part = |i: usize| BufferRange { memory: out, offset: i as u64 * stride, size: 16 };
    let step = |i: usize| {
        let mut bindings: Vec<_> = ins.iter().map(|memory| (range(*memory, 16), false)).collect();
        bindings.push((part(i), true));
        dispatch(kernel, &bindings, [1, 1, 1])
    };
    let steps: Vec<Step> = (0..REPEATS).map(step).collect();
    for _ in 0..2 {
        driver.run_steps(&steps);
        driver.run_steps(&[run(Command::Fill { dst: range(out, 16), pattern: 0 })]);
    }
    driver.run_steps(&steps);
    let sum: u32 = (0..count as u32).sum();
    for i in [0, 1, REPEATS / 2, REPEATS - 1] {
        let expected = [sum, 10 * sum, 100 * sum, 1000 * sum];
        assert_eq!(driver.words(part(i)), expected, "{i}");
    }
    driver.free_kernel(kernel);
}

#[test]
fn push_descriptors_and_sets_agree() {
    for driver in drivers() {
        let max = driver.info().limits.max_storage_bindings as usize - 1;
        check_sum_of(&driver, 5.min(max));
        // More than 32, the usual limit of push descriptors, if the device has that many bindings.
        check_sum_of(&driver, 40.min(max));
    }
}

#[test]
fn repeated_bindings_use_the_right_buffers() {
    for driver in drivers() {
        let count = 12u32;
        let kernel = driver.compile_source(DOUBLE, GridSource::Native);
        let all: Vec<_> = (0..count).map(|i| driver.upload(&[i + 1; 16])).collect();
        let double = |from: u32, to: u32| {
            let [from, to] = [from, to].map(|i| range(all[i as usize], 64));
            dispatch(kernel, &[(from, false), (to, true)], [1; 3])
        };
        // Around a ring of buffers, with a growing number of them, forwards and backwards.
        let mut expected: Vec<u32> = (1..=count).collect();
        let mut steps = Vec::new();
        for len in 2..=count {
            for i in 0..2 * len {
                let (from, to) = (i % len, (i + 1) % len);
                let (from, to) = if i < len { (from, to) } else { (to, from) };
                expected[to as usize] = expected[from as usize].wrapping_mul(2);
                steps.extend([double(from, to), compute_barrier()]);
            }
        }
        driver.run_steps(&steps);
        for (memory, word) in all.iter().zip(expected) {
            assert_eq!(driver.words(range(*memory, 64)), [word; 16]);
        }
    }
}

#[test]
fn dispatch_must_match_its_kernel() {
    drivers().iter().for_each(|driver| bodies::dispatch_must_match_its_kernel(driver));
}

/// Kernels that need a feature, and their results for the words 1, 2, 3, 4.
const FEATURES: [(Features, &str, [u32; 4]); 7] = [
    (
        Features::F16,
        "enable f16;
        @group(0) @binding(0) var<storage, read_write> data: array<vec2<f16>>;
        @compute @workgroup_size(1) fn main() {
            for (var i = 0u; i < 4u; i++) { data[i] = vec2<f16>(f16(i), 1.0h) * 2.0h; }
        }",
        [0x4000_0000, 0x4000_4000, 0x4000_4400, 0x4000_4600],
    ),
    (
        Features::F64,
        "@group(0) @binding(0) var<storage, read_write> data: array<f64>;
        @compute @workgroup_size(1) fn main() { data[0] = 0.5lf; data[1] = data[0] * 3.0lf; }",
        [0, 0x3fe0_0000, 0, 0x3ff8_0000],
    ),
    (
        Features::I64,
        "@group(0) @binding(0) var<storage, read_write> data: array<u64>;
        @compute @workgroup_size(1) fn main() { data[0] = data[0] * 2lu + data[1]; }",
        [5, 8, 3, 4],
    ),
    (
        Features::I16,
        "enable wgpu_int16;
        @group(0) @binding(0) var<storage, read_write> data: array<u16>;
        @compute @workgroup_size(1) fn main() { data[1] = data[0] - u16(3); data[7] = u16(7); }",
        [0xfffe_0001, 2, 3, 0x0007_0004],
    ),
    (
        Features::SUBGROUPS,
        "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            let sum = subgroupAdd(data[i]);
            data[i] = subgroupShuffleXor(sum + i, 1u);
        }",
        [11, 10, 13, 12],
    ),
    (
        Features::F32_ATOMICS,
        "@group(0) @binding(0) var<storage, read_write> data: array<atomic<f32>, 4>;
        @compute @workgroup_size(8) fn main() {
            atomicStore(&data[0], 0.0);
            storageBarrier();
            atomicAdd(&data[0], 0.5);
        }",
        [0x4080_0000, 2, 3, 4],
    ),
    (
        Features::I64_ATOMICS,
        "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u64>, 2>;
        var<workgroup> sum: atomic<u64>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
            atomicMax(&data[1], 0x700000000lu + u64(i));
            atomicAdd(&sum, 0x100000000lu);
            workgroupBarrier();
            if i == 0u { atomicAdd(&data[0], atomicLoad(&sum)); }
        }",
        [1, 10, 7, 7],
    ),
];

#[test]
fn every_reported_feature_works() {
    let Some(driver) = driver() else { return };
    for (feature, source, expected) in FEATURES {
        if !driver.info().features.contains(feature) {
            eprintln!("SKIPPED, {} has no {feature}", driver.info().name);
            continue;
        }
        let kernel = driver.compile_source(source, GridSource::Native);
        let data = driver.upload(&[1, 2, 3, 4]);
        driver.run_steps(&[dispatch(kernel, &[(range(data, 16), true)], [1, 1, 1])]);
        assert_eq!(driver.words(range(data, 16)), expected, "{feature}");
    }
}
