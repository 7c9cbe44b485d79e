//! Maps that are fused into the products before them.

use scry_gpu::testing;
use scry_kernels::{Gemm, Kernels, PtxType};
use scry_test_support::devices;

use crate::{DType, Device, Draw, Fusion, Graph, PlanReport, Result, Tensor};

/// Inputs of the graphs: matrices, a bias, and a residual that is computed.
struct Inputs {
    a: Tensor,
    b: Tensor,
    bias: Tensor,
    residual: Tensor,
}

/// Compiles a function of inputs with and without fusion, checks that both agree and returns the
/// report of the fused plan.
fn check(gpu: &Device, dtype: DType, function: impl Fn(&Inputs) -> Result<Tensor>) -> PlanReport {
    let data = |shape: &[usize], seed: u64| {
        Tensor::randn(shape, seed, DType::F32, gpu).unwrap().cast(dtype).unwrap()
    };
    let given = [
        ("a", data(&[12, 20], 1)),
        ("b", data(&[20, 16], 2)),
        ("bias", data(&[16], 3)),
        ("c", data(&[12, 16], 4)),
    ];
    let compile = |fusion| {
        let g = Graph::new(gpu).unwrap();
        g.set_fusion(fusion);
        let input = |(name, data): &(&str, Tensor)| {
            g.input_with_dtype(name, data.shape().to_vec(), dtype).unwrap()
        };
        let [a, b, bias, c] = given.each_ref().map(input);
        // A result in an arena.
        let residual = c.cumsum(-1).unwrap();
        let inputs = Inputs { a, b, bias, residual };
        // A result in an arena too: it is read by the last kernel.
        g.compile(&[function(&inputs).unwrap().cumsum(-1).unwrap()]).unwrap()
    };
    let [fused, single] = [Fusion::Full, Fusion::None].map(compile);
    let names: Vec<&str> = fused.input_names().collect();
    let given: Vec<(&str, &Tensor)> = given
        .iter()
        .filter(|(name, _)| names.contains(name))
        .map(|(name, data)| (*name, data))
        .collect();
    fused.check(&given).unwrap();
    for _ in 0..3 {
        let values = [&fused, &single].map(|plan| {
            let out = plan.run(&given).unwrap();
            out[0].cast(DType::F32).unwrap().to_vec::<f32>().unwrap()
        });
        let tolerance = if dtype == DType::F32 { 1e-4 } else { 0.3 };
        for (found, wanted) in values[0].iter().zip(&values[1]) {
            assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{values:?}");
        }
    }
    fused.explain().unwrap()
}

/// Returns the operations of the kernel with the product.
fn product(report: &PlanReport) -> Vec<&'static str> {
    let kernels = report.kernels.iter();
    let found = kernels.map(|it| it.ops.clone()).find(|ops| ops.contains(&"Tensor::matmul"));
    found.unwrap()
}

#[test]
fn sums_and_activations_are_fused() {
    let gpu = Device::open("cpu").unwrap();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let report = check(&gpu, dtype, |it| it.a.matmul(&it.b)?.add(&it.bias)?.relu());
        assert_eq!(product(&report), ["Tensor::matmul", "Tensor::add", "Tensor::relu"]);
        let report = check(&gpu, dtype, |it| it.bias.add(it.a.matmul(&it.b)?.mul(0.5)?));
        assert_eq!(product(&report), ["Tensor::matmul", "Tensor::mul", "Tensor::add"]);
        let report = check(&gpu, dtype, |it| it.residual.add(it.a.matmul(&it.b)?));
        assert_eq!(product(&report), ["Tensor::matmul", "Tensor::add"]);
        let kernels = report.kernels.iter().filter(|it| it.ops.contains(&"Tensor::matmul"));
        assert!(kernels.into_iter().all(|it| it.is_in_place), "{report}");
        let report = check(&gpu, dtype, |it| {
            it.residual.add(it.a.matmul(&it.b)?.mul(-2.0)?.add(&it.bias)?)?.relu()
        });
        let all = ["Tensor::matmul", "Tensor::mul", "Tensor::add", "Tensor::add", "Tensor::relu"];
        assert_eq!(product(&report), all);
    }
}

#[test]
fn contractions_are_fused() {
    let gpu = Device::open("cpu").unwrap();
    let report = check(&gpu, DType::F32, |it| it.a.einsum("ik,kj->ij", &it.b)?.add(&it.bias));
    let kernels: Vec<_> = report.kernels.iter().map(|it| it.ops.clone()).collect();
    assert!(kernels.contains(&vec!["Tensor::einsum", "Tensor::add"]), "{report}");
}

#[test]
fn fused_relu_keeps_nan() {
    let gpu = Device::open("cpu").unwrap();
    let g = Graph::new(&gpu).unwrap();
    let (a, b) = (g.input("a", [2, 2]).unwrap(), g.input("b", [2, 2]).unwrap());
    let plan = g.compile(&[a.matmul(&b).unwrap().relu().unwrap()]).unwrap();
    assert_eq!(plan.explain().unwrap().kernels.len(), 1);
    let a = Tensor::new([[f32::NAN, 1.0], [1.0, -2.0]], &gpu).unwrap();
    let b = Tensor::new([[1.0f32, 1.0], [1.0, 0.0]], &gpu).unwrap();
    let out = plan.run(&[("a", &a), ("b", &b)]).unwrap()[0].to_vec::<f32>().unwrap();
    assert!(out[0].is_nan() && out[1].is_nan(), "{out:?}");
    assert_eq!(out[2..], [0.0, 1.0]);
}

/// Kernels for packed matrices have no epilogues.
#[test]
fn faster_variants_are_not_given_up() {
    let (gpu, _) = testing::observed(testing::null_info());
    let report = |function: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        let g = Graph::new(&gpu).unwrap();
        let (x, w) = (g.input("x", [64, 32]).unwrap(), g.input("w", [32, 32]).unwrap());
        g.compile(&[function(&x, &w).unwrap().relu().unwrap()]).unwrap().explain().unwrap()
    };
    let found = report(|x, w| x.matmul(w));
    assert_eq!((found.kernels.len(), &*found.kernels[0].variant), (2, "wgsl-packed"), "{found}");
    let reason = "the kernel library has a faster variant for the product alone";
    assert!(found.kernels[0].stored.ends_with(reason), "{found}");
    let found = report(|x, w| x.linear(w, None));
    assert_eq!((found.kernels.len(), &*found.kernels[0].variant), (1, "wgsl"), "{found}");
}

/// A batch of one, or of matrices that are all multiplied by one, once had other variants.
#[test]
fn products_have_variants_of_direct_calls() {
    let (null, _) = testing::observed(testing::null_info());
    for gpu in devices().into_iter().chain([null]) {
        let kernels = Kernels::new(&gpu).unwrap();
        let mut random = Draw(7);
        for rank in (2..=4).cycle().take(12) {
            let sizes: Vec<usize> = (0..rank).map(|_| random.from_to(1, 40)).collect();
            let (k, n) = (sizes[rank - 1], random.from_to(1, 200));
            let g = Graph::new(&gpu).unwrap();
            let (x, w) = (g.input("x", sizes.clone()).unwrap(), g.input("w", [k, n]).unwrap());
            let plan = g.compile(&[x.matmul(&w).unwrap()]).unwrap();
            let m: usize = sizes[..rank - 1].iter().product();
            let [m, n, k] = [m, n, k].map(|size| size as u64);
            let wanted = kernels.explain_gemm(&Gemm::new(m, n, k, PtxType::F32)).unwrap();
            let report = plan.explain().unwrap();
            assert_eq!(report.kernels[0].variant, wanted.variant(), "{sizes:?} {report}");
        }
    }
}

/// Returns why the product is not fused.
fn why(report: &PlanReport) -> String {
    let kernels = report.kernels.iter();
    let mut product =
        kernels.filter(|it| it.ops[0] == "Tensor::matmul").map(|it| it.stored.clone());
    product.next_back().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn other_maps_are_kernels_of_their_own() {
    let gpu = Device::open("cpu").unwrap();
    let check = |function: fn(&Inputs) -> Result<Tensor>| why(&check(&gpu, DType::F32, function));
    let prefix = "computed by the kernel library";
    let because = |why: &str| format!("{prefix}, without what follows: {why}");
    assert_eq!(check(|it| it.a.matmul(&it.b)?.exp()), because("no epilogue computes it"));
    let found = check(|it| it.a.matmul(&it.b)?.mul(&it.residual));
    assert_eq!(found, because("no epilogue computes it"));
    // A bias of the rows.
    let found = check(|it| it.a.matmul(&it.b)?.add(it.residual.i((.., ..1))?));
    assert_eq!(
        found,
        because("an operand is neither a bias nor a residual that nothing else needs")
    );
    // The residual is needed later.
    let found = check(|it| {
        let sum = it.a.matmul(&it.b)?.add(&it.residual)?;
        sum.cumsum(-1)?.add(&it.residual)
    });
    assert_eq!(
        found,
        because("an operand is neither a bias nor a residual that nothing else needs")
    );
    // Several kernels read the product.
    let found = check(|it| {
        let product = it.a.matmul(&it.b)?;
        product.relu()?.add(product.cumsum(-1)?)
    });
    assert_eq!(found, prefix);
}

#[test]
fn states_are_read_before_they_are_written() {
    let gpu = Device::open("cpu").unwrap();
    let g = Graph::new(&gpu).unwrap();
    let state = g.state("state", [2, 2]).unwrap();
    let x = g.input("x", [2, 2]).unwrap();
    let product = x.matmul(state.read()).unwrap();
    state.write(.., &x).unwrap();
    let after = state.read().sum(0).unwrap();
    // Recorded after the write, with the product of the state before it.
    let y = product.add(&after).unwrap();
    let plan = g.compile(&[y]).unwrap();
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu).unwrap();
    for wanted in [[4.0f32, 6.0, 4.0, 6.0], [11.0, 16.0, 19.0, 28.0]] {
        let out = plan.run(&[("x", &x)]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), wanted);
    }
}

/// Conversions to a narrower type and back round, also after a product.
#[test]
fn conversions_of_programs_are_kept() {
    let gpu = Device::open("cpu").unwrap();
    let run = |dtype, function: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>| {
        let g = Graph::new(&gpu).unwrap();
        let a = g.input_with_dtype("a", [2, 1], dtype).unwrap();
        let b = g.input_with_dtype("b", [1, 1], dtype).unwrap();
        let plan = g.compile(&[function(&a, &b).unwrap()]).unwrap();
        let [a, b] = [vec![2049.0f32, 70000.0], vec![1.0]].map(|data| {
            let data = Tensor::from_slice(&data, [data.len(), 1], &gpu).unwrap();
            data.cast(dtype).unwrap()
        });
        let given = [("a", &a), ("b", &b)];
        plan.check(&given).unwrap();
        plan.run(&given).unwrap()[0].cast(DType::F32).unwrap().to_vec::<f32>().unwrap()
    };
    let rounded = |x: &Tensor| x.cast(DType::F16)?.cast(DType::F32);
    let found = run(DType::F32, &|a, b| rounded(&a.matmul(b)?));
    assert_eq!(found, [2048.0, f32::INFINITY]);
    let found = run(DType::F32, &|a, b| rounded(&a.matmul(b)?)?.relu());
    assert_eq!(found, [2048.0, f32::INFINITY]);
    let found = run(DType::F32, &|a, b| a.matmul(b)?.add(rounded(&a.cumsum(1)?)?));
    assert_eq!(found, [4097.0, f32::INFINITY]);
    let found = run(DType::F32, &|a, b| a.matmul(b)?.cast(DType::BF16)?.cast(DType::F32));
    assert_eq!(found, [2048.0, 70144.0]);
}

/// The residual is replaced by the result; a bias that is a part of it must keep its elements.
#[test]
fn bias_within_the_residual_is_not_fused() {
    let gpu = Device::open("cpu").unwrap();
    for orders in 0..3 {
        let report = check(&gpu, DType::F32, |it| {
            let (product, r) = (it.a.matmul(&it.b)?, &it.residual);
            let row = r.i(0)?;
            match orders {
                0 => product.add(r)?.add(&row),
                1 => product.add(&row)?.add(r),
                _ => row.add(r)?.add(&product),
            }
        });
        assert_eq!(product(&report), ["Tensor::matmul"], "{report}");
    }
}
