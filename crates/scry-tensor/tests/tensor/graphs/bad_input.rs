//! Bad input to graphs and plans.

use scry_gpu::testing;
use scry_tensor::{DType, ErrorKind, Graph, Tensor};

use crate::support::{cpu, ok};

#[test]
fn nodes_have_no_elements() {
    let g = ok(Graph::new(&cpu()));
    let x = ok(g.input("x", [1]));
    let errors = [
        x.to_vec::<f32>().unwrap_err(),
        x.item::<f32>().unwrap_err(),
        x.to(&cpu()).unwrap_err(),
        g.param("x", &x).unwrap_err(),
    ];
    assert!(errors.iter().all(|it| it.kind() == ErrorKind::Graph), "{errors:?}");
    assert_eq!(x.to_string(), "[node of a graph: f32 of shape [1]]");
}

#[test]
fn other_graphs_and_devices_are_errors() {
    let (gpu, other) = (cpu(), cpu());
    let (g, h) = (ok(Graph::new(&gpu)), ok(Graph::new(&gpu)));
    let (x, y) = (ok(g.input("x", [1])), ok(h.input("y", [1])));
    let far = ok(Tensor::new([1.0f32], &other));
    assert_eq!(x.add(&y).unwrap_err().kind(), ErrorKind::Graph);
    assert_eq!(x.add(&far).unwrap_err().kind(), ErrorKind::Device);
    assert_eq!(far.add(&x).unwrap_err().kind(), ErrorKind::Device);
    assert_eq!(g.compile(std::slice::from_ref(&y)).unwrap_err().kind(), ErrorKind::Graph);
    assert_eq!(g.compile(std::slice::from_ref(&far)).unwrap_err().kind(), ErrorKind::Device);
    assert_eq!(g.compile(&[]).unwrap_err().kind(), ErrorKind::Graph);
    let plan = ok(g.compile(&[x]));
    assert_eq!(plan.run(&[("x", &far)]).unwrap_err().kind(), ErrorKind::Device);
}

#[test]
fn inputs_of_a_run_are_checked() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let batch = g.dim("batch", 1..=4);
    let (x, y) = (ok(g.input("x", (&batch, 2))), ok(g.input("y", (&batch,))));
    let unused = ok(g.input("z", [1]));
    let plan = ok(g.compile(&[ok(x.add(ok(y.unsqueeze(-1))))]));
    let tensor = |shape: &[usize]| ok(Tensor::zeros(shape, DType::F32, &gpu));
    let (a, b) = (tensor(&[3, 2]), tensor(&[3]));
    let kind = |inputs: &[(&str, &Tensor)]| plan.run(inputs).unwrap_err().kind();
    assert_eq!(kind(&[("x", &a)]), ErrorKind::Graph);
    assert_eq!(kind(&[("x", &a), ("y", &b), ("z", &b)]), ErrorKind::Graph);
    assert_eq!(kind(&[("x", &a), ("y", &b), ("y", &b)]), ErrorKind::Graph);
    assert_eq!(kind(&[("x", &a), ("y", &unused)]), ErrorKind::Graph);
    assert_eq!(kind(&[("x", &a), ("y", &tensor(&[2]))]), ErrorKind::Shape);
    assert_eq!(kind(&[("x", &tensor(&[5, 2])), ("y", &tensor(&[5]))]), ErrorKind::Shape);
    assert_eq!(kind(&[("x", &tensor(&[3, 3])), ("y", &b)]), ErrorKind::Shape);
    assert_eq!(kind(&[("x", &tensor(&[3])), ("y", &b)]), ErrorKind::Shape);
    let integers = ok(Tensor::zeros([3], DType::I32, &gpu));
    assert_eq!(kind(&[("x", &a), ("y", &integers)]), ErrorKind::DType);
    assert_eq!(*ok(plan.run(&[("y", &b), ("x", &a)]))[0].shape(), [3, 2]);
}

#[test]
fn lost_device_fails_the_run() {
    let plan = testing::FaultPlan::new(testing::Fault::DeviceLost, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &plan).expect("the CPU device");
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [4]));
    let compiled = ok(g.compile(&[ok(x.exp())]));
    let data = ok(Tensor::new([1.0f32; 4], &gpu));
    ok(compiled.run(&[("x", &data)]));
    plan.fail_after(0);
    let lost = compiled.run(&[("x", &data)]).and_then(|out| out[0].to_vec::<f32>());
    assert_eq!(lost.unwrap_err().kind(), ErrorKind::Gpu);
    let again = compiled.run(&[("x", &data)]).and_then(|out| out[0].to_vec::<f32>());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Gpu);
}

#[test]
fn errors_name_the_scope() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 3]));
    let whole = ok(g.input_with_dtype("whole", [2, 3], DType::I32));
    let stored = ok(Tensor::ones([4, 4], DType::F32, &gpu));
    let _scope = g.scope("layer.7");
    let calls = [
        ("cast", x.cast(DType::Q4_0)),
        ("index_select", x.index_select(0, &whole)),
        ("index_select of a tensor", stored.index_select(0, &whole)),
        ("index_select along", x.index_select(5, &whole)),
        ("gather", x.gather(0, &x)),
        ("embedding", x.embedding(&x)),
        ("index_add", x.index_add(0, &whole, &x)),
        ("scatter_add", x.scatter_add(0, &x, &x)),
        ("dot", x.dot(&x)),
        ("einsum", x.einsum("ab,bc", &stored)),
        ("pairwise_distances", whole.pairwise_distances(&whole, scry_tensor::Metric::Cosine)),
        ("mse_loss", whole.mse_loss(&whole)),
        ("cross_entropy", x.cross_entropy(&x)),
        ("rand_like", whole.rand_like(1)),
        ("randn_like", whole.randn_like(1)),
        ("dropout", x.dropout(2.0, 1)),
        ("matmul", x.matmul(&x)),
        ("linear", whole.linear(&x, None)),
    ];
    for (name, result) in calls {
        let error = result.expect_err(name);
        assert_eq!(error.scope(), "layer.7", "{name}: {error}");
    }
}
