//! The texts of `Plan::explain` and `Plan::to_dot`. `SCRY_BLESS=1` rewrites them.

use std::path::Path;

use scry_gpu::Device;
use scry_tensor::{DType, Fusion, Graph, Plan, Tensor};
use scry_test_support::golden;

use crate::support::{cpu, ok};

/// Writes twice its input.
const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(32) fn double(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = 2.0 * x[id.x]; }
    }";

fn weights(gpu: &Device) -> Tensor {
    ok(ok(Tensor::arange(30, DType::F32, gpu)).reshape([6, 5]))
}

/// Compiles a graph of an input `x` of 4 x 6 elements, within a scope.
fn plan(gpu: &Device, scope: &str, outputs: impl FnOnce(&Graph, &Tensor) -> Vec<Tensor>) -> Plan {
    let g = ok(Graph::new(gpu));
    let x = ok(g.input("x", [4, 6]));
    let scope = g.scope(scope);
    let outputs = outputs(&g, &x);
    drop(scope);
    ok(g.compile(&outputs))
}

/// Returns plans that show one reason to store a value each, with the text of the reason.
fn plans(gpu: &Device) -> Vec<(&'static str, Plan)> {
    let weights = &weights(gpu);
    let indices = &ok(Tensor::new([3u32, 0, 3], gpu));
    let large = |value| ok(Tensor::full([4, 64], value, DType::F32, gpu));
    let plan = |scope, outputs: &dyn Fn(&Graph, &Tensor) -> Vec<Tensor>| plan(gpu, scope, outputs);
    let plus = |x: &Tensor| ok(x.add(1.0));
    vec![
        ("an output", plan("output", &|_, x| vec![ok(plus(x).mul(x))])),
        (
            "2 uses, and loading costs less than computing",
            plan("shared", &|_, x| {
                let row = ok(ok(ok(x.i(..)).exp()).tanh());
                vec![ok(ok(row.i((..2, ..))).add(ok(row.i((2.., ..)))))]
            }),
        ),
        ("an operand of matmul", plan("operand", &|_, x| vec![ok(plus(x).matmul(weights))])),
        (
            "more than 7 inputs",
            plan("inputs", &|g, x| {
                let others = (0..8).map(|n| ok(g.input(&format!("x{n}"), [4, 6])));
                vec![others.fold(x.clone(), |sum, other| ok(sum.add(other)))]
            }),
        ),
        (
            "more than 256 steps",
            plan("steps", &|_, x| {
                vec![(0..60).fold(x.clone(), |y, _| ok(ok(y.mul(0.5)).maximum(0.25)))]
            }),
        ),
        (
            "no strides describe the view of its operands",
            plan("view", &|_, x| {
                let flat = ok(ok(plus(x).t()).reshape([-1]));
                vec![plus(&flat)]
            }),
        ),
        (
            "it depends on coordinates, which a view changes",
            plan("coordinates", &|_, x| vec![plus(&ok(ok(x.tril(0)).t()))]),
        ),
        (
            "elements are selected from it, or twice in one kernel",
            plan("gather", &|_, x| vec![ok(plus(x).index_select(0, indices))]),
        ),
        (
            "it would be computed for each repetition",
            plan("broadcast", &|g, _| {
                let column = ok(g.input("column", [4, 1]));
                vec![ok(ok(column.exp()).mul(ok(g.param("w", &large(0.5)))))]
            }),
        ),
        (
            "without what follows: no epilogue computes it",
            plan("product", &|_, x| vec![ok(ok(x.matmul(weights)).mul(ok(x.i((.., ..5)))))]),
        ),
        (
            "computed by a custom kernel",
            plan("custom", &|g, x| {
                ok(g.kernel(DOUBLE, &[&plus(x)], &[([4, 6].into(), DType::F32)]))
            }),
        ),
        (
            "a state, or read from one before a write",
            plan("state", &|g, x| {
                let state = ok(g.state("sum", [4, 6]));
                ok(state.write(.., &ok(state.read().add(x))));
                vec![plus(&state.read())]
            }),
        ),
        (
            "fusion is disabled",
            plan("disabled", &|g, x| {
                g.set_fusion(Fusion::None);
                vec![ok(plus(x).exp())]
            }),
        ),
    ]
}

/// Returns a text without the paths and the lines of this file.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(file!());
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(':').trim_start_matches(|it: char| it.is_ascii_digit());
        text + "reports.rs:LINE" + rest
    })
}

fn compare(file: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor/graphs");
    golden::compare_file(&folder.join(file), text);
}

#[test]
fn reports_are_the_blessed_ones() {
    let mut text = String::new();
    for (reason, plan) in plans(&cpu()) {
        let report = ok(plan.explain());
        let shown = report.kernels.iter().any(|kernel| kernel.stored.contains(reason));
        assert!(shown, "`{reason}` is the reason of no kernel:\n{report}");
        text += &format!("{}\n\n", without_lines(&report.to_string()));
    }
    compare("explain.txt", &text);
}

#[test]
fn graphs_are_the_blessed_ones() {
    let texts: Vec<String> = plans(&cpu()).iter().map(|(_, plan)| ok(plan.to_dot())).collect();
    compare("dot.txt", &texts.join("\n"));
}

#[test]
fn dot_has_the_edges_of_the_plan() {
    let gpu = cpu();
    let weights = &weights(&gpu);
    let plan = plan(&gpu, "product", |_, x| vec![ok(ok(x.add(1.0)).matmul(weights))]);
    let dot = ok(plan.to_dot());
    let count = |text: &str| dot.lines().filter(|line| line.contains(text)).count();
    // The sum of the input, in an arena, is multiplied by the parameter.
    assert_eq!(count(" -> "), 5, "{dot}");
    assert_eq!((count("input 0, 96 bytes"), count("param 0")), (1, 1), "{dot}");
    assert_eq!((count("arena 0 at 0, 96 bytes"), count("output, 80 bytes")), (1, 1), "{dot}");
    assert_eq!((count("Tensor::add"), count("Tensor::matmul")), (1, 1), "{dot}");
}

#[test]
fn report_counts_bytes_and_operations() {
    let gpu = cpu();
    let weights = &weights(&gpu);
    let line = line!() + 1;
    let product = |_: &Graph, x: &Tensor| vec![ok(ok(ok(x.add(1.0)).exp()).matmul(weights))];
    let report = ok(plan(&gpu, "layer", product).explain());
    let [map, product] = &report.kernels[..] else { panic!("two kernels: {report}") };
    // A sum and a function of each of 24 elements, which are read and written.
    assert_eq!((map.inputs, map.bytes, map.flops), (1, 2 * 96, 2 * 24));
    // A multiplication and an addition of each of 4 x 6 x 5 elements.
    assert_eq!((product.inputs, product.bytes, product.flops), (2, 96 + 120 + 80, 2 * 120));
    for kernel in &report.kernels {
        assert_eq!(kernel.scope, "layer");
        assert_eq!(kernel.line, format!("{}:{line}", file!()));
        assert!(!kernel.is_in_place && !kernel.is_constant && kernel.launches == 1, "{report}");
    }
}
