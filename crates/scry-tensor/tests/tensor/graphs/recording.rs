//! What is recorded: nodes, views, parameters, and the shapes of named dimensions.

use scry_tensor::{DType, Ellipsis, Graph, Tensor};

use crate::support::{cpu, ok};

#[test]
fn equal_operations_are_one_node() {
    let g = ok(Graph::new(&cpu()));
    let x = ok(g.input("x", [4]));
    let (a, b) = (ok(ok(x.exp()).add(1.0)), ok(ok(x.exp()).add(1.0)));
    ok(a.mul(&b));
    assert_eq!(g.node_count(), 4);
    ok(x.add(2.0));
    assert_eq!(g.node_count(), 5);
}

#[test]
fn tensor_in_memory_becomes_one_parameter() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 2]));
    let w = ok(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu));
    let y = ok(ok(x.add(&w)).mul(&w));
    assert_eq!(g.node_count(), 4);
    let plan = ok(g.compile(&[y]));
    let out = ok(plan.run(&[("x", &w)]));
    assert_eq!(ok(out[0].to_vec::<f32>()), [2.0, 8.0, 18.0, 32.0]);
}

#[test]
fn views_of_nodes_are_views() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 3]));
    let y = ok(ok(ok(x.t()).i((1..3, Ellipsis))).reshape([-1]));
    assert_eq!(*y.shape(), [4]);
    let plan = ok(g.compile(&[y]));
    let data = ok(ok(Tensor::arange(6, DType::F32, &gpu)).reshape([2, 3]));
    let out = ok(plan.run(&[("x", &data)]));
    assert_eq!(ok(out[0].to_vec::<f32>()), [1.0, 4.0, 2.0, 5.0]);
}

#[test]
fn named_dimensions_keep_kernels() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let batch = g.dim("batch", 0..=64);
    let x = ok(g.input("x", (&batch, 6)));
    let w = ok(Tensor::ones([3, 2], DType::F32, &gpu));
    let y = ok(ok(ok(x.reshape([-1, 3])).matmul(&w)).add(0.5));
    let y = ok(ok(y.gelu()).reshape([-1, 4]));
    assert_eq!(*y.shape(), [64, 4]);
    let plan = ok(g.compile(&[y]));
    let compiled = plan.compiled_kernels();
    for count in [64usize, 2, 7, 3, 64, 11, 7, 0, 1] {
        let data = ok(ok(Tensor::ones([count, 6], DType::F32, &gpu)).add(0.0));
        let out = ok(plan.run(&[("x", &data)])).remove(0);
        assert_eq!(*out.shape(), [count, 4]);
        let one = ok(ok(Tensor::full((), 3.5, DType::F32, &gpu)).gelu());
        let wanted = ok(one.item::<f32>());
        assert!(ok(out.to_vec::<f32>()).iter().all(|it| *it == wanted));
        if count > 1 {
            assert_eq!(plan.compiled_kernels(), compiled, "{count}");
        }
    }
}

#[test]
fn scopes_nest_and_end() {
    let g = ok(Graph::new(&cpu()));
    let (x, y) = (ok(g.input("x", [2])), ok(g.input("y", [3])));
    let outer = g.scope("encoder");
    {
        let _inner = g.scope("layer.3");
        let error = x.add(&y).unwrap_err();
        assert_eq!(error.scope(), "encoder.layer.3");
        assert!(error.to_string().contains(", in encoder.layer.3): "), "{error}");
        assert_eq!(x.logical_not().unwrap_err().scope(), "encoder.layer.3");
    }
    assert_eq!(x.add(&y).unwrap_err().scope(), "encoder");
    drop(outer);
    assert_eq!(x.add(&y).unwrap_err().scope(), "");
}

#[test]
fn errors_before_recording_have_scope() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 3]));
    let row = ok(x.i(0));
    let state = ok(g.state("state", [4, 4]));
    let quantised = ok(Tensor::zeros([2, 32], DType::F32, &gpu));
    let _scope = g.scope("encoder.layer.3.attention");
    let errors = [
        ("reshape", x.reshape([7]).unwrap_err()),
        ("permute", x.permute([0, 0]).unwrap_err()),
        ("transpose", x.transpose(0, 5).unwrap_err()),
        ("t", row.t().unwrap_err()),
        ("expand", x.expand([2, 4]).unwrap_err()),
        ("unsqueeze", x.unsqueeze(9).unwrap_err()),
        ("squeeze", x.squeeze(9).unwrap_err()),
        ("i", x.i((0, 0, 0)).unwrap_err()),
        ("broadcast_with", x.broadcast_with(&ok(g.input("z", [7]))).unwrap_err()),
        ("matmul", x.matmul(&x).unwrap_err()),
        ("add", x.add(&quantised).unwrap_err()),
        ("sum", x.sum(9).unwrap_err()),
        ("input", g.input("x", [1]).unwrap_err()),
        ("state", g.state("state", [1]).unwrap_err()),
        ("write", state.write(9, &row).unwrap_err()),
        ("write_rows", state.write_rows(&row, &row).unwrap_err()),
        ("kernel", g.kernel("", &[], &[]).unwrap_err()),
    ];
    for (method, error) in errors {
        assert!(error.function().ends_with(method), "{error}");
        assert_eq!(error.scope(), "encoder.layer.3.attention", "{error}");
    }
}
