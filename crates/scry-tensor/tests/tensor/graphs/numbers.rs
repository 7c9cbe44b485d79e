//! The first NaN of a plan, and magnitudes near the largest `f16`.

use scry_tensor::{DType, ErrorKind, Graph, Tensor};
use scry_test_support::on_each_device;

use crate::support::{cpu, ok};

#[test]
fn first_nan_is_named() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", (g.dim("rows", 1..=4), 3)));
        let scope = g.scope("encoder.layer.3.attention");
        let shifted = ok(x.sub(ok(Tensor::new([1.0f32, 2.0, 3.0], gpu))));
        let line = line!() + 1;
        let quotient = ok(x.div(&shifted));
        let y = ok(quotient.exp());
        drop(scope);
        let plan = ok(g.compile(&[ok(y.sum(-1))]));
        let numbers = ok(Tensor::new([[2.0f32, 3.0, 4.0], [5.0, 5.0, 5.0]], gpu));
        let checked = ok(plan.run_checked(&[("x", &numbers)]));
        let wanted = ok(ok(plan.run(&[("x", &numbers)]))[0].to_vec::<f32>());
        assert_eq!(ok(checked[0].to_vec::<f32>()), wanted);

        let infinite = ok(Tensor::new([[2.0f32, 3.0, 4.0], [5.0, 5.0, f32::INFINITY]], gpu));
        let error = plan.run_checked(&[("x", &infinite)]).unwrap_err();
        assert_eq!((error.kind(), error.function()), (ErrorKind::NotANumber, "Tensor::div"));
        assert_eq!(error.scope(), "encoder.layer.3.attention");
        assert!(error.to_string().contains(&format!("numbers.rs:{line}:")), "{error}");
        assert_eq!(error.location().line(), line, "{error}");
        let text =
            "the result is NaN at index [1, 2] of [2, 3]; its operands there: inf, inf; help: ";
        assert!(error.to_string().contains(text), "{error}");
    });
}

#[test]
fn nan_of_inputs_and_products_is_named() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 2]));
    let w = ok(g.param("w", &ok(Tensor::new([[0.0f32, 1.0], [f32::INFINITY, 1.0]], &gpu))));
    let plan = ok(g.compile(&[ok(x.matmul(&w))]));
    let run = |data: [[f32; 2]; 2]| {
        let data = ok(Tensor::new(data, &gpu));
        plan.run_checked(&[("x", &data)]).unwrap_err().to_string()
    };
    let product = run([[1.0, 2.0], [3.0, 0.0]]);
    let text = "the result is NaN at index [1, 0] of [2, 2]; its operands: f32 [2, 2] from 0 to 3, \
                f32 [2, 2] from 0 to inf";
    assert!(product.contains(text), "{product}");
    let input = run([[1.0, 2.0], [3.0, f32::NAN]]);
    assert!(input.contains("input `x` contains NaN at index [1, 1] of [2, 2]; help"), "{input}");
}

#[test]
fn checked_run_changes_states_once() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let (state, x) = (ok(g.state("sum", [2])), ok(g.input("x", [2])));
    ok(state.write(.., &ok(state.read().add(ok(x.sqrt())))));
    let plan = ok(g.compile(&[state.read()]));
    let run = |value: f32| {
        let data = ok(Tensor::new([value, 4.0], &gpu));
        plan.run_checked(&[("x", &data)]).map(|out| ok(out[0].to_vec::<f32>()))
    };
    assert_eq!(ok(run(1.0)), [1.0, 2.0]);
    assert_eq!(run(-1.0).unwrap_err().function(), "Tensor::sqrt");
    assert_eq!(ok(run(1.0)), [2.0, 4.0]);
    assert_eq!(ok(plan.audit_f16(&[("x", &ok(Tensor::zeros([2], DType::F32, &gpu)))])), []);
    assert_eq!(ok(ok(plan.state("sum")).to_vec::<f32>()), [2.0, 4.0]);
}

#[test]
fn large_magnitudes_are_listed() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", [2]));
        let _scope = g.scope("head");
        let half = ok(x.cast(DType::F16));
        let outputs = [ok(half.mul(-100.0)), ok(x.mul(400.0)), ok(half.mul(400.0)), ok(x.floor())];
        let plan = ok(g.compile(&outputs));
        let data = ok(Tensor::new([1.5f32, 200.25], gpu));
        let found = ok(plan.audit_f16(&[("x", &data)]));
        let found: Vec<_> =
            found.iter().map(|it| (it.op, it.scope.as_str(), it.dtype, it.largest)).collect();
        assert_eq!(
            found,
            [
                ("Tensor::mul", "head", DType::F32, 80100.0),
                ("Tensor::mul", "head", DType::F16, f64::INFINITY),
            ]
        );
    });
}
