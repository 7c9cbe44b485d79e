//! Tests of errors about arguments that are set by name.

use scry_gpu::{BoundKernel, GpuError, Launch};
use scry_test_support::{STEP, null};

use super::observed;

const AFFINE: &str = "
    struct Params { scale: f32, count: u32 }
    var<immediate> params: Params;
    @group(0) @binding(0) var<storage, read> src: array<f32>;
    @group(0) @binding(1) var<storage, read_write> dst: array<f32>;
    @compute @workgroup_size(64)
    fn affine(@builtin(global_invocation_id) id: vec3u) {
        if id.x < params.count { dst[id.x] = src[id.x] * params.scale; }
    }";

/// Returns the text of the argument error with which `bound` does not run.
fn argument_error(bound: &BoundKernel<'_>) -> String {
    match bound.run(4) {
        Err(error @ GpuError::Argument(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn argument_errors_name_the_argument() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(AFFINE).unwrap();
    let (a, b) = (gpu.upload(&[1.0f32; 4]).unwrap(), gpu.alloc::<f32>(4).unwrap());
    let _ = log.take();
    let full = || kernel.bind().set("src", &a).set("dst", &b).set("count", 4u32);
    let good = full().set("scale", 2.0f32);
    let cases = [
        (
            good.clone().set("scr", &a),
            "kernel `affine`, `scr`: the kernel has no argument of this name, but `src`, `dst`, \
             `scale`, `count`, `params`; help: did you mean `src`?",
        ),
        (
            good.clone().set("width", 1u32),
            "kernel `affine`, `width`: the kernel has no argument of this name, but `scale`, \
             `count`, `params`, `src`, `dst`; help: use a name of the kernel's source; variables \
             that it does not use are left out",
        ),
        (
            good.clone().set("dst", &a),
            "kernel `affine`, `dst`: it is set twice; help: set each name once",
        ),
        (
            good.clone().set("scale", 3.0f32),
            "kernel `affine`, `scale`: it is set twice; help: set each name once",
        ),
        (
            kernel.bind().set("src", &a).set("scale", 1.0f32).set("count", 4u32),
            "kernel `affine`, `dst`: it was not set (array<f32>, read_write); help: add \
             .set(\"dst\", …)",
        ),
        (
            full(),
            "kernel `affine`, `scale`: it was not set (f32, member of `params`); help: add \
             .set(\"scale\", …)",
        ),
        (
            full().set("scale", &a),
            "kernel `affine`, `scale`: a buffer was given for an immediate; help: give a number \
             or an array",
        ),
        (
            good.clone().set("src", 1.0f32),
            "kernel `affine`, `src`: a value was given for a binding; help: give a buffer or a \
             slice of one",
        ),
        (
            full().set("scale", 2.0),
            "kernel `affine`, `scale` (var<immediate>): the data is f64, but f32 is made of f32; \
             help: give data of type f32, or change the declaration",
        ),
        (
            good.clone().immediates(&[0u32; 2]),
            "kernel `affine`, `params`: it is set as a whole and also by member or again; help: \
             set its members or \
             the whole, once",
        ),
        (
            good.clone().set("var<immediate>", &a),
            "kernel `affine`, `var<immediate>`: the kernel has no argument of this name, but \
             `src`, `dst`, `scale`, `count`, `params`; help: use a name of the kernel's source; \
             variables that it does not use are left out",
        ),
    ];
    for (bound, text) in cases {
        assert_eq!(argument_error(&bound), text);
        assert!(gpu.batch().run_bound(&bound, 4).is_err());
    }
    let twice = good.run(Launch::invocations(4).immediates(&[0u32; 2])).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "kernel `affine`, immediates: they are set by name and by the Launch; help: set them in \
         one of the two"
    );
    assert_eq!(log.take(), Default::default(), "nothing has run");
    good.run(4).unwrap();
    assert_eq!(log.take().dispatches, 1);
}

#[test]
fn bound_kernels_run_launch_checks() {
    let (gpu, other) = (null(), null());
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(8).unwrap(), other.alloc::<u32>(8).unwrap());
    let error = kernel.bind().set("input", &a).set("output", &b).run(8).unwrap_err();
    assert!(matches!(error, GpuError::WrongDevice(_)), "{error}");
    let text = argument_error(&kernel.bind().set("input", &a).set("output", &a));
    assert!(text.contains("`output`"), "{text}");
    let text = argument_error(&gpu.compile(STEP).unwrap().bind());
    assert!(text.contains("`input`: it was not set"), "{text}");
    let nothing = gpu.compile("@compute @workgroup_size(1) fn nothing() {}").unwrap();
    nothing.bind().run(1).unwrap();
    let text = argument_error(&nothing.bind().set("x", 1u32));
    assert!(text.contains("`x`: the kernel has no arguments"), "{text}");
    let text = argument_error(&nothing.bind().immediates(&1u32));
    assert!(text.contains("the kernel has no arguments"), "{text}");
}
