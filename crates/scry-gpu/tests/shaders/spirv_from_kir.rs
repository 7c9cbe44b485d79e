//! Tests of kernels on a Vulkan device whose SPIR-V is written from the kernel IR, against the CPU
//! device.

use scry_gpu::testing::SpirvWriter;
use scry_gpu::{Binding, Device, Launch, Result, UntypedBuffer, shaders};
use scry_test_support::{random_f32, root, succeed};

use crate::harness::to_u32;

/// Returns the CPU device and the Vulkan device; `None` without Vulkan.
fn devices() -> Option<[Device; 2]> {
    let cpu = succeed(Device::open("cpu"));
    match SpirvWriter::Kir.while_opening(|| Device::open("vulkan")) {
        Ok(vulkan) => Some([cpu, vulkan]),
        Err(error) => {
            let required = std::env::var("SCRY_REQUIRE_VULKAN").is_ok_and(|value| value != "0");
            assert!(!required, "{error}");
            eprintln!("skipped: no Vulkan device: {error}");
            None
        }
    }
}

/// Runs a kernel on buffers with these words, and returns the bytes of the last one.
fn run(gpu: &Device, source: &str, buffers: &[Vec<u32>], launch: Launch) -> Vec<u8> {
    let launch = || {
        let kernel = gpu.compile(source)?;
        let buffers = buffers.iter().map(|data| {
            let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
            gpu.upload_bytes(None, &bytes)
        });
        let buffers = buffers.collect::<Result<Vec<UntypedBuffer>>>()?;
        let bindings: Vec<_> = buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
        gpu.run(&kernel, &bindings, launch)?;
        buffers[buffers.len() - 1].download_bytes()
    };
    succeed(launch())
}

/// Returns random integers from -64 to 64 as f32 bits: their products and sums are exact.
fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random_f32(seed, len).into_iter().map(|x| (x * 64.0).round().to_bits()).collect()
}

/// Checks that the last buffer has the same bytes on both devices.
fn check(what: &str, source: &str, buffers: &[Vec<u32>], launch: impl Fn() -> Launch) {
    let Some([cpu, vulkan]) = devices() else { return };
    let [expected, bytes] = [cpu, vulkan].map(|gpu| run(&gpu, source, buffers, launch()));
    let differing = expected.iter().zip(&bytes).position(|(a, b)| a != b);
    assert_eq!(differing, None, "{what}: the first differing byte");
    assert_eq!(expected.len(), bytes.len(), "{what}");
}

#[test]
fn products_agree() {
    for (source, edge) in [
        (shaders::matmul::COARSE_8X8_VEC4, 8),
        (shaders::matmul::COARSE_8X8, 8),
        (shaders::matmul::COARSE_64X64_VEC4, 4),
        (shaders::matmul::TILED_16X16, 1),
    ] {
        for [m, n, k] in [[128, 128, 64], [127, 132, 68], [5, 260, 36]] {
            let buffers = [numbers(1, m * k), numbers(2, k * n), vec![u32::MAX; m * n]];
            check(&format!("{m}×{n}×{k}"), source, &buffers, || {
                Launch::invocations([to_u32(n.div_ceil(edge)), to_u32(m.div_ceil(edge))])
                    .immediates(&[to_u32(m), to_u32(n), to_u32(k)])
            });
        }
    }
}

#[test]
fn saxpy_agrees() {
    for n in [1, 1023, 4096, 70_000] {
        let buffers = [numbers(1, n), numbers(2, n)];
        check("saxpy", shaders::saxpy::SAXPY, &buffers, || {
            Launch::invocations(n).immediates(&-1.5f32)
        });
    }
}

#[test]
fn sums_agree() {
    for n in [4, 2048, 100_004] {
        let buffers = [numbers(1, n), vec![u32::MAX; 3]];
        let launch = || Launch::workgroups([3, 1, 1]);
        check("sum", shaders::reduce::SUM, &buffers, launch);
        check("sum of vec4", shaders::reduce::SUM_VEC4, &buffers, launch);
    }
}

#[test]
fn blurs_agree() {
    let source = std::fs::read_to_string(root().join("corpus/blur.wgsl")).unwrap();
    for [width, height] in [[64, 64], [33, 17], [1, 1]] {
        let len = width * height;
        let pixels: Vec<u32> = random_f32(3, len).into_iter().map(f32::to_bits).collect();
        let buffers = [vec![to_u32(width), to_u32(height)], pixels, vec![0; len]];
        check("blur", &source, &buffers, || Launch::invocations([to_u32(width), to_u32(height)]));
    }
}

/// Returns a kernel that applies WGSL's bit functions to each number of type `ty`.
fn bit_functions(ty: &str) -> String {
    let functions = [
        "countOneBits",
        "countLeadingZeros",
        "countTrailingZeros",
        "reverseBits",
        "firstLeadingBit",
        "firstTrailingBit",
    ];
    let store = |(n, name)| format!("out[i * 6u + {n}u] = {name}(src[i]);");
    let stores: String = (0..).zip(functions).map(|it: (u32, _)| store(it)).collect();
    format!(
        "enable wgpu_int16;
         @group(0) @binding(0) var<storage, read> src: array<{ty}>;
         @group(0) @binding(1) var<storage, read_write> out: array<{ty}>;
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let i = id.x;
             if i < arrayLength(&src) {{ {stores} }}
         }}"
    )
}

#[test]
fn bit_functions_of_every_width_agree() {
    // Zero, all ones, a single bit, and a bit in the high or the low half only.
    let mut numbers = vec![0u64, u64::MAX, 1, 1 << 63, 1 << 32, u64::from(u32::MAX), !1, 0x8000];
    numbers.extend((0..56).map(|n| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(n) >> n));
    let words: Vec<u32> = numbers.iter().flat_map(|n| [*n as u32, (*n >> 32) as u32]).collect();
    for (ty, bytes) in [("i16", 2), ("u16", 2), ("i32", 4), ("u32", 4), ("i64", 8), ("u64", 8)] {
        let buffers = [words.clone(), vec![0; words.len() * 6]];
        let count = words.len() * 4 / bytes;
        check(ty, &bit_functions(ty), &buffers, || Launch::invocations(count));
    }
}
