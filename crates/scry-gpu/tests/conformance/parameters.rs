//! Tests of labels of sources, and of Rust structures as immediates.

use scry_gpu::{CompileOptions, Device, Element, Launch};
use scry_test_support::{on_each_device, succeed};

use crate::harness::{assert_contains, expect_error};

const OVERRIDES: &str = "
    override COUNT: u32 = 3u;
    @id(7) override SCALE: f32;
    @id(12) override FLAG: bool = true;
    override OFFSET: i32 = -2;
    override DOUBLED = COUNT * 2u;
    override WIDTH: u32 = 4u;
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, COUNT + 1>;

    @compute @workgroup_size(WIDTH, 2)
    fn main(@builtin(local_invocation_index) local: u32) {
        if local == 0u { words[COUNT] = 9u; }
        workgroupBarrier();
        if local == 0u {
            out[0] = COUNT;
            out[1] = u32(SCALE * 10.0);
            out[2] = u32(FLAG);
            out[3] = bitcast<u32>(OFFSET);
            out[4] = DOUBLED;
            out[5] = words[COUNT];
        }
        out[6u + local] = 1u;
    }";

/// Checks what [`OVERRIDES`] computes, and its workgroup size.
fn check_overrides(gpu: &Device, options: &CompileOptions, expected: [i32; 6], size: [u32; 3]) {
    let kernel = succeed(gpu.compile_with(OVERRIDES, options));
    assert_eq!(kernel.workgroup_size(), size);
    let out = succeed(gpu.alloc::<u32>(6 + 64));
    succeed(gpu.run(&kernel, &[&out], Launch::workgroups([1, 1, 1])));
    let out = succeed(out.download());
    assert_eq!(out[..6], expected.map(|word| word as u32));
    assert_eq!(out[6..].iter().sum::<u32>(), size.iter().product());
}

/// Kernels that differ only in the label are cached as one; each error has its own label.
#[test]
fn labels_name_the_source_in_errors() {
    let invalid = "@compute @workgroup_size(1)\nfn main() { let x = y; }";
    let labelled = |label: &str| CompileOptions::new().label(label);
    on_each_device(|gpu| {
        for label in ["blur.wgsl", "kernels/edges.wgsl", "a\nb"] {
            let text = expect_error(gpu.compile_with(invalid, &labelled(label)));
            let location = format!("┌─ {}:2:21\n", label.replace('\n', " "));
            assert_contains(&text, &[&location, "no definition in scope for identifier: `y`"]);
        }
        assert_contains(&expect_error(gpu.compile(invalid)), &["┌─ wgsl:2:21\n"]);
        let text =
            expect_error(gpu.compile_with(OVERRIDES, &labelled("blur.wgsl").set("MISSING", 1)));
        assert!(text.starts_with("blur.wgsl: no override `MISSING`: "), "{text}");
        let options = |label| labelled(label).set("SCALE", 1.0);
        succeed(gpu.compile_with(OVERRIDES, &options("a.wgsl")));
        check_overrides(gpu, &options("b.wgsl"), [3, 10, 1, -2, 6, 9], [4, 2, 1]);
    });
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Step {
    direction: [f32; 3],
    count: u32,
    bounds: [[i32; 2]; 2],
}

#[test]
fn immediate_structures_match_rust() {
    let source = "
        struct Step { direction: vec3<f32>, count: u32, bounds: array<vec2<i32>, 2> }
        var<immediate> step: Step;
        @group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(1)
        fn main() {
            out[0] = step.direction.z;
            out[1] = f32(step.count);
            for (var i = 0; i < 2; i++) {
                out[2 + i] = f32(step.bounds[i].x * 10 + step.bounds[i].y);
            }
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let out = succeed(gpu.alloc::<f32>(4));
        let step = Step { direction: [1.0, 2.0, 3.0], count: 4, bounds: [[5, -6], [-7, 8]] };
        succeed(gpu.run_with_immediates(&kernel, &[&out], 1, &step));
        assert_eq!(succeed(out.download()), [3.0, 4.0, 44.0, -62.0]);
    });
}
