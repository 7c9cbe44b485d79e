//! Operations of named dimensions, whose sizes each run chooses.

use scry_gpu::Device;
use scry_tensor::{DType, Ellipsis, Graph, Result, Tensor};
use scry_test_support::on_each_device;

use crate::support::{Host, ok};

type Function = fn(&Tensor) -> Result<Tensor>;

/// Functions of a matrix with at least one row and four columns.
const FUNCTIONS: &[(&str, Function)] = &[
    ("softmax", |x| x.softmax(0)),
    ("cumsum", |x| x.cumsum(0)),
    ("sort", |x| Ok(x.sort(0)?.0)),
    ("topk", |x| x.topk(1, 0).map(|it| it.1)),
    ("roll", |x| x.roll(4, 0)),
    ("pad", |x| x.pad(&[[1, 2], [0, 1]], 0.5)),
    ("flip", |x| x.flip(0)?.exp()),
    ("concat", |x| Tensor::concat(&[x, &x.exp()?, &x.i((0..1, Ellipsis))?], 0)),
    ("stack", |x| Tensor::stack(&[x, x, x, x, x], 0)),
    ("split", |x| Ok(x.split(&[3, 1], 1)?.remove(1))),
    ("group_norm", |x| x.group_norm(2, None, None, 0.1)),
    ("einsum", |x| x.einsum("bi,bj->bij", x)),
    ("products", |x| x.einsum("bi,ci->bc", x)),
    ("var", |x| x.var(0, 0)),
    ("argmax", |x| x.argmax(0)),
    ("dot", |x| x.i((.., 0))?.dot(&x.i((.., 1))?)),
    ("conv1d", |x| {
        let weight = x.i((0..1, ..2))?.unsqueeze(0)?.expand([1, 1, 2])?;
        x.unsqueeze(1)?.conv1d(&weight, None, &Default::default())
    }),
    ("pool", |x| x.max_pool2d([1, 2], [1, 1], [0, 1])),
    ("distances", |x| x.pairwise_distances(x, scry_tensor::Metric::Manhattan)),
    ("gather", |x| x.gather(0, &x.argsort(0)?)),
    ("index_add", |x| x.index_add(0, &x.argsort(0)?.i((.., 0))?, x)),
    ("scatter_add", |x| x.scatter_add(0, &x.argsort(0)?, x)),
    ("dropout", |x| x.dropout(0.5, 3)),
    ("indexed", |x| x.i((&x.argsort(0)?.i((.., 0))?, &x.argsort(1)?.i((.., 1))?))),
    ("loss", |x| x.cross_entropy(&x.argmax(1)?)),
];

fn data(rows: usize, gpu: &Device) -> Tensor {
    let values: Vec<f32> = (0..rows * 4).map(|n| (n * 37 % 23) as f32 / 8.0 - 1.0).collect();
    ok(Tensor::from_slice(&values, [rows, 4], gpu))
}

#[test]
fn operations_follow_the_sizes_of_runs() {
    on_each_device(|gpu| {
        for (name, function) in FUNCTIONS {
            let g = ok(Graph::new(gpu));
            let x = ok(g.input("x", (g.dim("rows", 1..=7), 4)));
            let plan = function(&x).and_then(|y| g.compile(&[y]));
            let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
            for rows in [7, 1, 3] {
                let x = data(rows, gpu);
                let wanted = Host::download(&ok(function(&x)));
                let found = Host::download(&ok(plan.run(&[("x", &x)]))[0]);
                crate::support::assert_close(&found, &wanted, 1e-5, &format!("{name} of {rows}"));
                ok(plan.check(&[("x", &x)]));
            }
        }
    });
}

#[test]
fn split_rejects_other_sizes() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", (g.dim("rows", 3..=5), 4)));
        let error = x.split(&[2, 3], 0).unwrap_err();
        assert!(error.to_string().contains("axis 0 of [3, 4] have 5 elements"), "{error}");
        let fixed = ok(Tensor::zeros([5, 4], DType::F32, gpu));
        assert_eq!(*ok(fixed.split(&[2, 3], 0))[1].shape(), [3, 4]);
    });
}

/// Results of which an invocation computes several words.
#[test]
fn large_results_are_complete() {
    on_each_device(|gpu| {
        for (rows, columns) in [(1 << 10, 1 << 10), (1031, 1021), (1025, 2049)] {
            let count = rows * columns;
            let expected = |n: usize| (n % 1024) as f32;
            let numbers: Vec<f32> = (0..count).map(expected).collect();
            let x = ok(Tensor::from_slice(&numbers, [count], gpu));
            let y = ok(ok(x.mul(2.0)).add(&x)).to_vec::<f32>();
            assert!(ok(y).iter().enumerate().all(|(n, y)| *y == 3.0 * expected(n)));
            let half = ok(ok(ok(x.cast(DType::F16)).add(1.0)).cast(DType::F32)).to_vec::<f32>();
            assert!(ok(half).iter().enumerate().all(|(n, y)| *y == 1.0 + expected(n)));
            let t = ok(ok(x.reshape([rows, columns])).t());
            let sum = ok(t.add(ok(x.reshape([columns, rows])))).to_vec::<f32>();
            let at = |n: usize| expected(n % rows * columns + n / rows) + expected(n);
            assert!(ok(sum).iter().enumerate().all(|(n, y)| *y == at(n)));
        }
    });
}

/// A map that replaces its operand, by invocations that write several words: those beyond the last
/// whole workgroup compute nothing, else they would apply the map to results.
#[test]
fn large_maps_in_place_are_applied_once() {
    on_each_device(|gpu| {
        for (rows, columns) in [(1031, 1021), (1369, 768)] {
            let g = ok(Graph::new(gpu));
            let x = ok(g.input("x", [rows, columns]));
            let y = ok(ok(ok(x.cumsum(1)).add(1.0)).cumsum(1));
            let plan = ok(g.compile(&[y]));
            assert!(ok(plan.explain()).kernels.iter().any(|kernel| kernel.is_in_place));
            let x = ok(Tensor::zeros([rows, columns], DType::F32, gpu));
            let out = ok(ok(plan.run(&[("x", &x)]))[0].to_vec::<f32>());
            let wrong = (0..rows * columns).find(|n| out[*n] != (n % columns + 1) as f32);
            assert_eq!(wrong, None, "[{rows}, {columns}] on {}", gpu.name());
        }
    });
}
