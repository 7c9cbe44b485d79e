//! Custom kernels as nodes.

use scry_tensor::{DType, ErrorKind, Graph, Tensor};
use scry_test_support::on_each_device;

use crate::support::{cpu, ok};

/// Writes the even positions of its first output, and the sums of neighbours to its second.
const SPLIT: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> evens: array<f32>;
    @group(0) @binding(2) var<storage, read_write> sums: array<u32>;
    @compute @workgroup_size(32) fn split(@builtin(global_invocation_id) id: vec3u) {
        let i = id.x;
        if i >= arrayLength(&x) { return; }
        if i % 2 == 0 { evens[i] = x[i]; }
        if i < arrayLength(&sums) { sums[i] = u32(x[i] + x[i + 1]); }
    }";

#[test]
fn kernel_is_node_between_others() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let n = g.dim("n", 4..=40);
        let x = ok(g.input("x", (&n,)));
        let outputs = [((&n,).into(), DType::F32), ([3].into(), DType::U32)];
        let parts = ok(g.kernel(SPLIT, &[&ok(x.mul(2.0))], &outputs));
        let plan = ok(g.compile(&[ok(parts[0].add(1.0)), parts[1].clone()]));
        let inputs = ok(Tensor::arange(5, DType::F32, gpu));
        for _ in 0..3 {
            let out = ok(plan.run(&[("x", &inputs)]));
            assert_eq!(ok(out[0].to_vec::<f32>()), [1.0, 1.0, 5.0, 1.0, 9.0]);
            assert_eq!(ok(out[1].to_vec::<u32>()), [2, 6, 10]);
        }
        assert_eq!(ok(plan.check(&[("x", &inputs)])), 4);
    });
}

#[test]
fn reused_memory_is_never_visible() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [64]));
    // Fills the arenas with numbers, which later custom kernels do not overwrite.
    let mut y = ok(x.add(7.0));
    for _ in 0..4 {
        let outputs = [([64].into(), DType::F32), ([8].into(), DType::U32)];
        let parts = ok(g.kernel(SPLIT, &[&y], &outputs));
        y = ok(ok(parts[0].add(ok(parts[0].sum_keepdim(0)))).mul(0.5));
        y = ok(ok(y.sub(&y)).add(&parts[0]));
    }
    let plan = ok(g.compile(&[y]));
    let data = ok(Tensor::ones([64], DType::F32, &gpu));
    let out = ok(ok(plan.run(&[("x", &data)]))[0].to_vec::<f32>());
    let wanted: Vec<f32> = (0..64).map(|n| if n % 2 == 0 { 8.0 } else { 0.0 }).collect();
    assert_eq!(out, wanted);
}

#[test]
fn empty_arguments_run_nothing() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let n = g.dim("n", 0..=4);
    let x = ok(g.input("x", (&n,)));
    let outputs = [((&n,).into(), DType::F32), ([2].into(), DType::U32)];
    let parts = ok(g.kernel(SPLIT, &[&x], &outputs));
    let plan = ok(g.compile(&parts));
    let out = ok(plan.run(&[("x", &ok(Tensor::zeros([0], DType::F32, &gpu)))]));
    assert_eq!(ok(out[0].to_vec::<f32>()), []);
    assert_eq!(ok(out[1].to_vec::<u32>()), [0, 0]);
}

#[test]
fn bad_kernels_are_errors() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [4]));
    let outputs = [([4].into(), DType::F32), ([2].into(), DType::U32)];
    let kind = |wgsl: &str, inputs: &[&Tensor], n: usize| {
        g.kernel(wgsl, inputs, &outputs[..n]).unwrap_err().kind()
    };
    assert_eq!(kind(SPLIT, &[&x], 1), ErrorKind::Graph);
    assert_eq!(kind(SPLIT, &[&x, &x], 1), ErrorKind::Graph);
    assert_eq!(kind(SPLIT, &[&x], 0), ErrorKind::Graph);
    assert_eq!(kind("fn nothing() {}", &[&x], 1), ErrorKind::Gpu);
    let writes = SPLIT.replace("var<storage, read> x", "var<storage, read_write> x");
    let writes = writes.replace("let i = id.x;", "let i = id.x; x[0] = 1.0;");
    assert_eq!(kind(&writes, &[&x], 2), ErrorKind::Graph);
    let other = ok(Graph::new(&gpu));
    assert_eq!(kind(SPLIT, &[&ok(other.input("x", [4]))], 2), ErrorKind::Graph);
    // Types of bindings are checked when the plan is compiled.
    let integers = [([4].into(), DType::I32), ([2].into(), DType::U32)];
    let parts = ok(g.kernel(SPLIT, &[&x], &integers));
    let error = g.compile(&parts).unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::Gpu, "Graph::kernel"));
}
