//! Tests of the sizes that runs choose.

use scry_tensor::{DType, ErrorKind, Graph, Metric, Tensor};

use crate::support::{cpu, ok};

/// A dimension's third size, for which shapes are checked, once equalled its smallest.
const NAMES: [&str; 6] = ["seq", "n", "length", "x", "B", "batch"];

#[test]
fn runs_check_shapes_again() {
    let gpu = cpu();
    for name in NAMES {
        for largest in 2usize..=16 {
            let g = ok(Graph::new(&gpu));
            let x = ok(g.input("x", (g.dim(name, 1..=largest), 4)));
            let positions = ok(ok(Tensor::ones([largest, 4], DType::F32, &gpu)).add(0.0));
            let Ok(sum) = x.add(&positions) else { continue };
            let plan = ok(g.compile(&[sum]));
            for rows in 2..largest {
                let data = ok(ok(Tensor::ones([rows, 4], DType::F32, &gpu)).add(0.0));
                let error = plan.run(&[("x", &data)]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Shape, "{name} = {rows} of {largest}");
            }
        }
    }
}

#[test]
fn slices_have_the_shape_of_their_run() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", (g.dim("n", 0..=64),)));
    let Ok(y) = ok(x.i(-3..3)).add(1.0) else { return };
    let plan = ok(g.compile(&[y]));
    let data = ok(Tensor::new([1.0f32, 2.0, 3.0, 4.0], &gpu));
    let out = ok(plan.run(&[("x", &data)])).remove(0);
    assert_eq!(ok(out.to_vec::<f32>()), [3.0, 4.0]);
}

#[test]
fn kernels_of_programs_see_only_their_input() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", (g.dim("n", 0..=8),)));
    let sum = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn sum() {
            for (var i = 0u; i < arrayLength(&x); i++) { y[0] += x[i]; }
        }";
    let y = ok(g.kernel(sum, &[&x], &[([1].into(), DType::F32)])).remove(0);
    let plan = ok(g.compile(&[y]));
    let data = ok(Tensor::new([1.0f32, 2.0, 4.0, 8.0], &gpu));
    for (count, wanted) in [(4usize, 15.0f32), (2, 3.0), (1, 1.0), (0, 0.0)] {
        let out = ok(plan.run(&[("x", &ok(data.i(0..count)))])).remove(0);
        assert_eq!(ok(out.to_vec::<f32>()), [wanted], "{count}");
    }
}

#[test]
fn written_rows_must_match_their_indices() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let cache = ok(g.state("cache", [8, 2]));
    let at = ok(g.input_with_dtype("at", (g.dim("m", 1..=4),), DType::U32));
    let rows = ok(g.input("rows", (g.dim("k", 1..=4), 2)));
    ok(cache.write_rows(&at, &rows));
    let plan = ok(g.compile(&[cache.read()]));
    let at = ok(Tensor::new([0u32, 1], &gpu));
    let rows = ok(ok(Tensor::ones([4, 2], DType::F32, &gpu)).add(0.0));
    let error = plan.run(&[("at", &at), ("rows", &rows)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("pass a row for each index"), "{error}");
    let rows = ok(rows.i(0..2));
    let out = ok(plan.run(&[("at", &at), ("rows", &rows)])).remove(0);
    assert_eq!(ok(out.to_vec::<f32>())[..6], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn states_are_indices_of_their_own_rows() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let state = ok(g.state_with_dtype("order", [4], DType::U32));
    ok(state.write((..,), &ok(Tensor::new([3u32, 2, 1, 0], &gpu))));
    ok(state.write_rows(&state.read(), &ok(Tensor::new([10u32, 11, 12, 13], &gpu))));
    let plan = ok(g.compile(&[state.read()]));
    let out = ok(plan.run(&[])).remove(0);
    assert_eq!(ok(out.to_vec::<u32>()), [13, 12, 11, 10]);
}

#[test]
fn dimensions_without_input_are_rejected() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let zeros = ok(g.full((g.dim("batch", 1..=64), 4), 0.0, DType::F32));
    let Err(error) = g.compile(&[zeros]) else { panic!("no input has the dimension") };
    assert_eq!(error.kind(), ErrorKind::Graph);
    assert!(error.to_string().contains("dimension `batch`"), "{error}");
}

#[test]
fn huge_results_are_too_large() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", ()));
    let huge = ok(ok(x.add(1.0)).expand([1usize << 31, 1 << 31]));
    assert!(g.compile(&[huge]).is_err());
}

/// Operations whose operands are not broadcast: sizes that are equal where the graph is recorded
/// may differ in a run.
#[test]
fn sizes_of_runs_are_not_broadcast() {
    let gpu = cpu();
    type Operation = fn(&Tensor, &Tensor) -> scry_tensor::Result<Tensor>;
    let cases: [(&str, DType, Operation); 13] = [
        ("dot", DType::I32, |a, b| a.i((.., 0))?.dot(&b.i((.., 0))?)),
        ("einsum", DType::I32, |a, b| a.einsum("ij,ij->ij", b)),
        ("cross_entropy", DType::F32, |a, b| a.cross_entropy(&b.i((.., 0))?.cast(DType::U32)?)),
        ("batch_norm", DType::F32, |a, b| {
            let (a, b) = (a.transpose(0, 1)?, b.i((.., 0))?);
            a.batch_norm(&b, &b, None, None, 1.0)
        }),
        ("layer_norm", DType::F32, |a, b| {
            a.transpose(0, 1)?.layer_norm(None, Some(&b.i((.., 0))?), 1.0)
        }),
        ("linear", DType::F32, |a, b| b.linear(a, Some(&b.i((.., 0))?))),
        ("einsum", DType::F32, |a, b| a.einsum("ij,ij->i", b)),
        ("einsum", DType::F32, |a, b| a.einsum("ij,ij->j", b)),
        ("matmul", DType::F32, |a, b| a.t()?.matmul(b)),
        ("rms_norm", DType::F32, |a, b| a.t()?.rms_norm(Some(&b.i((.., 0))?), 1.0)),
        ("stack", DType::I32, |a, b| Tensor::stack(&[a, b], 0)),
        ("pairwise_distances", DType::F32, |a, b| {
            a.t()?.pairwise_distances(&b.t()?, Metric::Manhattan)
        }),
        ("index_add", DType::F32, |a, b| a.index_add(0, &b.i((.., 0))?.cast(DType::U32)?, a)),
    ];
    for (name, dtype, operation) in cases {
        for (largest, others) in [(2, 2), (4, 4), (2, 1), (1, 2)] {
            let g = ok(Graph::new(&gpu));
            let a = ok(g.input_with_dtype("a", (g.dim("m", 1..=largest), 3), dtype));
            let b = ok(g.input_with_dtype("b", (g.dim("n", 1..=others), 3), dtype));
            // Most are rejected at once.
            let outcome = operation(&a, &b).and_then(|y| g.compile(&[y])).and_then(|plan| {
                let sized = |rows| Tensor::ones([rows, 3], dtype, &gpu);
                plan.run(&[("a", &sized(largest)?), ("b", &sized(1)?)]).map(drop)?;
                plan.run(&[("a", &sized(1)?), ("b", &sized(others)?)]).map(drop)
            });
            let error = outcome.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Shape, "{name}: {error}");
            assert!(error.to_string().contains(&format!("Tensor::{name} ")), "{error}");
        }
    }
}
