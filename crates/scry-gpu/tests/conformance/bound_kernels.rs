//! Tests of kernels whose arguments are set by name.

use scry_gpu::Launch;
use scry_test_support::{on_each_device, succeed};

#[derive(Clone, Copy, scry_gpu::Element)]
#[repr(C)]
struct Params {
    shift: [f32; 3],
    scale: f32,
    count: u32,
    unused: [u32; 3],
}

const MOVE: &str = "
    struct Params { shift: vec3f, scale: f32, count: u32 }
    var<immediate> params: Params;
    @group(1) @binding(0) var<storage, read_write> dst: array<vec4f>;
    @group(0) @binding(3) var<storage, read> src: array<vec4f>;
    @compute @workgroup_size(8)
    fn shift(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= params.count { return; }
        dst[id.x] = vec4f(src[id.x].xyz * params.scale + params.shift, 1.0);
    }";

#[test]
fn arguments_are_set_by_name() {
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(MOVE));
        let src = succeed(gpu.upload(&[[1.0f32, 2.0, 3.0, 4.0]; 20]));
        let dst = succeed(gpu.alloc::<[f32; 4]>(20));
        // The order does not matter, nor for members of the immediates.
        let bound = kernel.bind().set("count", 10u32).set("dst", &dst).set("scale", 2.0f32);
        let bound = bound.set("src", &src).set("shift", [10.0f32, 20.0, 30.0]);
        succeed(bound.run(20));
        let moved = [12.0, 24.0, 36.0, 1.0];
        let result = succeed(dst.download());
        assert_eq!((result[0], result[9], result[10]), (moved, moved, [0.0; 4]));
        // A launch by workgroups, with a slice and with all immediates at once.
        let alignment = gpu.info().binding_alignment as usize;
        let start = alignment.div_ceil(16);
        let params = Params { shift: [0.5; 3], scale: 0.0, count: 4, unused: [0; 3] };
        if start < 16 {
            let part = succeed(dst.slice(start..));
            let bound = kernel.bind().immediates(&params).set("src", &src).set("dst", part);
            succeed(succeed(gpu.batch().run_bound(&bound, Launch::workgroups([1, 1, 1]))).submit());
            let result = succeed(dst.download());
            assert_eq!(
                (result[start], result[start + 3]),
                ([0.5, 0.5, 0.5, 1.0], [0.5, 0.5, 0.5, 1.0])
            );
        }
        // Immediates of the launch.
        let bound = kernel.bind().set("src", &src).set("dst", &dst);
        succeed(bound.run(Launch::invocations(1).immediates(&params)));
        assert_eq!(succeed(dst.download())[0], [0.5, 0.5, 0.5, 1.0]);
    });
}

#[test]
fn scalar_immediate_uses_its_variable_name() {
    let source = "
        var<immediate> factor: u32;
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3u) { data[id.x] *= factor; }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let data = succeed(gpu.upload(&[1u32, 2, 3, 4]));
        let mut batch = gpu.batch();
        for factor in [2u32, 5] {
            succeed(batch.run_bound(&kernel.bind().set("data", &data).set("factor", factor), 4));
        }
        succeed(succeed(batch.record()).replay().and_then(|ticket| ticket.wait()));
        assert_eq!(succeed(data.download()), [10, 20, 30, 40]);
        let counts = succeed(gpu.upload(&[1u32, 1, 1]));
        let bound = kernel.bind().set("data", &data).set("factor", 0u32);
        succeed(bound.run(Launch::indirect(&counts)));
        assert_eq!(succeed(data.download()), [0; 4]);
    });
}

#[test]
fn prepared_launches_run_and_replay() {
    on_each_device(|gpu| {
        let source = "
            var<immediate> step: u32;
            @group(0) @binding(0) var<storage, read> src: array<u32>;
            @group(0) @binding(1) var<storage, read_write> dst: array<u32>;
            @compute @workgroup_size(64)
            fn add(@builtin(global_invocation_id) id: vec3u) {
                if id.x < arrayLength(&dst) { dst[id.x] = src[id.x] + step; }
            }";
        let kernel = succeed(gpu.compile(source));
        let (a, b) = (succeed(gpu.upload(&[0u32; 100])), succeed(gpu.alloc::<u32>(100)));
        let counts = succeed(gpu.upload(&[2u32, 1, 1]));
        let bound =
            |src, dst, step| kernel.bind().set("src", src).set("dst", dst).set("step", step);
        let a_to_b = succeed(bound(&a, &b, 1u32).prepare(100));
        let b_to_a = succeed(bound(&b, &a, 2u32).prepare(Launch::indirect(&counts)));
        drop((kernel, b, counts));
        let mut batch = gpu.batch();
        for _ in 0..500 {
            succeed(succeed(batch.run_prepared(&a_to_b)).run_prepared(&b_to_a));
        }
        let recording = succeed(batch.record());
        for _ in 0..2 {
            succeed(succeed(recording.replay()).wait());
        }
        succeed(a_to_b.run());
        succeed(b_to_a.run());
        assert_eq!(succeed(a.download()), [3003; 100]);
    });
}
