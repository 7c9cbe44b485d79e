//! Kernels that a driver compiled wrongly from naga's SPIR-V.

use scry_gpu::{DType, DeviceInfo, Features, Launch, f16};

use crate::case::{Case, Data};
use crate::check::ensure;
use crate::ty::Ty;

/// NVIDIA's Vulkan driver 580 did not negate the third component.
pub(crate) fn negated_f16_vectors_of_a_uniform(_: &DeviceInfo) -> Case {
    let source = "enable f16;
        struct Vectors { two: vec2<f16>, three: vec3<f16>, four: vec4<f16> }
        @group(0) @binding(0) var<uniform> vectors: Vectors;
        @group(0) @binding(1) var<storage, read_write> out: array<f32>;

        @compute @workgroup_size(1)
        fn main() {
            let two = -vectors.two;
            let three = -vectors.three;
            let four = -vectors.four;
            for (var i = 0u; i < 2u; i++) { out[i] = f32(two[i]); }
            for (var i = 0u; i < 3u; i++) { out[2u + i] = f32(three[i]); }
            for (var i = 0u; i < 4u; i++) { out[5u + i] = f32(four[i]); }
            out[9] = f32((-vectors.three).z);
        }";
    // The offsets of the members are 0, 8 and 16 bytes.
    let vectors = [1.0, -2.0, 0.0, 0.0, 3.0, -4.0, 5.0, 0.0, -6.0, 7.0, -8.0, 9.0];
    let vectors: Vec<u64> = vectors.iter().map(|x| f16::from_f32(*x).to_bits().into()).collect();
    let expected = [-1.0f32, 2.0, -3.0, 4.0, -5.0, 6.0, -7.0, 8.0, -9.0, -5.0];
    let expected: Vec<u64> = expected.iter().map(|x| x.to_bits().into()).collect();
    Case::new("", source)
        .buffer(Data::values(Ty::F16, &vectors))
        .buffer(Data::zeros(DType::F32, expected.len()))
        .launch(Launch::invocations(1))
        .skipped_without(Features::F16)
        .expect_values(1, Ty::F32, &expected)
}

/// NVIDIA's Vulkan driver 580 computed wrong products for some elements.
pub(crate) fn scaled_matrices_with_subnormal_elements(_: &DeviceInfo) -> Case {
    const MATRICES: usize = 64;
    let source = "var<immediate> scale: f32;
        @group(0) @binding(0) var<storage, read_write> matrices: array<mat4x4<f32>>;

        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&matrices) { matrices[id.x] *= scale; }
        }";
    let scale = 3.0f32;
    // Every third element is subnormal, of either sign and any magnitude.
    let element = |i: usize| match i % 3 {
        0 => f32::from_bits((i as u32).wrapping_mul(0x9e37_79b9) & 0x807f_ffff),
        1 => i as f32 * 0.125,
        _ => -1.0 / (i as f32 + 1.0),
    };
    let elements: Vec<f32> = (0..MATRICES * 16).map(element).collect();
    Case::new("", source)
        .buffer(Data::floats(&elements))
        .launch(Launch::invocations(MATRICES as u32).immediates(&scale))
        .expect(move |out| {
            let results = out.floats(0, Ty::F32, MATRICES * 16);
            for (i, (result, element)) in results.into_iter().zip(&elements).enumerate() {
                let exact = f64::from(element * scale);
                let flushed = element.is_subnormal() && result == 0.0;
                ensure!(result == exact || flushed, "element {i}: {result:e}, not {exact:e}");
            }
            Ok(())
        })
}
