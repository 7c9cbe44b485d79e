//! Tests of Rust structures and arrays as uniforms.

use scry_gpu::Element;
use scry_test_support::{on_each_device, succeed};

const ADD_UNIFORM: &str = "
    struct Params { factor: vec4<f32>, offset: vec3<f32>, count: u32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> data: array<f32>;

    @compute @workgroup_size(8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < params.count {
            data[id.x] = data[id.x] * params.factor.w + params.offset.z;
        }
    }";

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Params {
    factor: [f32; 4],
    offset: [f32; 3],
    count: u32,
}

#[test]
fn uniform_structures_match_rust() {
    on_each_device(|gpu| {
        let params = Params { factor: [1.0, 2.0, 3.0, 4.0], offset: [5.0, 6.0, 7.0], count: 10 };
        let params = succeed(gpu.upload(&[params]));
        let data = succeed(gpu.upload(&[1.0f32; 16]));
        succeed(gpu.dispatch(ADD_UNIFORM, &[&params, &data], 16));
        let mut expected = [11.0; 16];
        expected[10..].fill(1.0);
        assert_eq!(succeed(data.download()), expected);
    });
}

#[test]
fn uniform_arrays_and_matrices_match_rust() {
    let source = "
        @group(0) @binding(0) var<uniform> n: u32;
        @group(0) @binding(1) var<uniform> table: array<vec4<u32>, 3>;
        @group(0) @binding(2) var<uniform> m: mat3x3<f32>;
        @group(0) @binding(3) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 3u; i++) {
                out[i] = n + table[i][i];
                out[3u + i] = u32(m[i].y);
            }
        }";
    on_each_device(|gpu| {
        let n = succeed(gpu.upload(&[1000u32]));
        let table = succeed(gpu.upload(&(0..12).collect::<Vec<u32>>()));
        let columns = [[1.0f32, 2.0, 3.0, 0.0], [4.0, 5.0, 6.0, 0.0], [7.0, 8.0, 9.0, 0.0]];
        let m = succeed(gpu.upload(&columns));
        let out = succeed(gpu.alloc::<u32>(6));
        succeed(gpu.dispatch(source, &[&n, &table, &m, &out], 1));
        assert_eq!(succeed(out.download()), [1000, 1005, 1010, 2, 5, 8]);
    });
}
