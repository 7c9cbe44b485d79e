//! Tensors above the limit of a binding: the same bits, computed by several launches, or a named
//! rejection.

use scry_gpu::Device;
use scry_gpu::testing::open_with_limits;
use scry_tensor::{DType, ErrorKind, Fusion, Graph, Plan, Tensor};

use crate::graphs::random::{Program, assert_same, node, program_of};
use crate::support::{cpu, ok};

/// The most bytes of a binding of random programs.
const LIMIT: u64 = 2048;

/// The most elements of a tensor of random programs.
const MAX_ELEMENTS: usize = 8000;

/// Opens a device that binds at most this many bytes, in buffers of at most 16 times as many.
fn limited(selector: &str, bytes: u64) -> Device {
    open_with_limits(selector, |limits| {
        limits.max_storage_binding_size = bytes;
        limits.max_buffer_size = 16 * bytes;
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

/// What became of a program on a device with limits.
#[derive(Default, Debug)]
struct Outcome {
    /// Kernels of several launches.
    split: usize,
    /// Programs that were rejected, of which parts were computed.
    rejected: usize,
    computed: usize,
}

fn compile(program: &Program, gpu: &Device, fusion: Fusion) -> scry_tensor::Result<Plan> {
    let g = ok(Graph::new(gpu));
    g.set_fusion(fusion);
    let inputs = program.inputs.iter().enumerate();
    let mut nodes: Vec<Tensor> =
        inputs.map(|(n, it)| ok(node(&g, n, it, it.shape.clone().into()))).collect();
    for action in &program.actions {
        nodes.push(ok(action.apply(&nodes)));
    }
    let outputs: Vec<Tensor> = program.outputs.iter().map(|n| nodes[*n].clone()).collect();
    g.compile(&outputs)
}

/// Checks that an error names what is rejected, and the limit.
fn assert_rejection(error: &scry_tensor::Error, seed: u64) {
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "seed {seed}: {text}");
    let limits = [format!("binds at most {LIMIT}"), format!("at most {}", 16 * LIMIT)];
    assert!(limits.iter().any(|limit| text.contains(limit)), "seed {seed}: {text}");
    assert!(text.contains(" bytes in memory") && !error.help().is_empty(), "seed {seed}: {text}");
}

/// Compares a program's plan on a device with limits with that on one without.
fn compare(seed: u64, gpu: &Device, whole: &Device, fusion: Fusion, outcome: &mut Outcome) {
    let (program, _) = program_of(seed, whole, [1, 8, 16, 32, 32, 50], MAX_ELEMENTS);
    // Larger ones are above the limit of a buffer, and smaller ones are not split.
    let counts = || program.inputs.iter().map(|it| it.shape.iter().product::<usize>());
    if counts().any(|it| it > MAX_ELEMENTS) || counts().all(|it| it as u64 * 4 <= LIMIT) {
        return;
    }
    let mut program = program;
    let found = loop {
        match compile(&program, gpu, fusion) {
            Ok(plan) => break plan,
            Err(error) => {
                assert_rejection(&error, seed);
                outcome.rejected += 1;
            }
        }
        // Without the last operation, which is the one that is rejected or uses it.
        if program.actions.pop().is_none() {
            return;
        }
        program.outputs = vec![program.inputs.len() + program.actions.len() - 1];
    };
    let what = format!("seed {seed}, {fusion:?}: {program:?}");
    let wanted = ok(compile(&program, whole, fusion));
    let report = ok(found.explain());
    outcome.split += report.kernels.iter().filter(|kernel| kernel.launches > 1).count();
    assert!(report.arenas.iter().all(|bytes| *bytes <= 16 * LIMIT), "{what}");
    let run = |plan: &Plan, gpu: &Device| {
        let names: Vec<String> = plan.input_names().map(str::to_owned).collect();
        let tensors: Vec<Tensor> = names
            .iter()
            .map(|name| program.inputs[name.parse::<usize>().expect("a number")].elements(whole))
            .map(|input| ok(input.to(gpu)))
            .collect();
        let inputs: Vec<(&str, &Tensor)> =
            names.iter().zip(&tensors).map(|(name, it)| (name.as_str(), it)).collect();
        // The second run records, the third one replays.
        (0..3).map(|_| ok(plan.run(&inputs))).next_back().unwrap_or_default()
    };
    for (found, wanted) in run(&found, gpu).iter().zip(run(&wanted, whole)) {
        assert_same(found, &wanted, &what);
    }
    outcome.computed += 1;
}

#[test]
fn split_plans_compute_the_same_bits() {
    let (gpu, whole) = (limited("cpu", LIMIT), cpu());
    for fusion in [Fusion::None, Fusion::Exact, Fusion::Full] {
        let mut outcome = Outcome::default();
        for seed in 0..100 {
            compare(seed, &gpu, &whole, fusion, &mut outcome);
        }
        eprintln!("{fusion:?}: {outcome:?}");
        assert!(outcome.split >= 10 && outcome.computed >= 10, "{fusion:?}: {outcome:?}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_split_plans_compute_the_same_bits() {
    let (gpu, whole) = (limited("cpu", LIMIT), cpu());
    for fusion in [Fusion::None, Fusion::Exact, Fusion::Full] {
        let mut outcome = Outcome::default();
        (100..1100).for_each(|seed| compare(seed, &gpu, &whole, fusion, &mut outcome));
        assert!(outcome.split >= 150 && outcome.computed >= 200, "{fusion:?}: {outcome:?}");
    }
}

#[test]
fn eager_operations_are_split() {
    let (gpu, whole) = (limited("cpu", 65536), cpu());
    let on = |gpu: &Device| {
        let x = ok(Tensor::arange(3 * 100 * 80, DType::F32, gpu));
        let x = ok(ok(x.reshape([3, 100, 80])).mul(1e-3));
        let weights = ok(Tensor::randn([80, 64], 3, DType::F32, gpu));
        vec![
            ok(x.exp()),
            ok(ok(x.permute([0, 2, 1])).add(1.0)),
            ok(x.softmax(-1)),
            ok(x.sum(-1)),
            ok(x.argmax(-1)),
            ok(x.matmul(&weights)),
            ok(x.cast(DType::F16)),
            ok(x.flip(..)),
            ok(x.dropout(0.5, 7)),
            ok(x.cumsum(-1)),
            ok(ok(x.gt(5.0)).contiguous()),
            ok(x.tril(1)),
        ]
    };
    for (n, (found, wanted)) in on(&gpu).iter().zip(on(&whole)).enumerate() {
        assert_same(found, &wanted, &format!("operation {n}"));
    }
}

#[test]
fn views_that_no_launch_copies_are_read() {
    let gpu = limited("cpu", 65536);
    let x = ok(ok(Tensor::arange(500 * 130, DType::I32, &gpu)).reshape([500, 130]));
    let view = ok(ok(x.flip(0)).t());
    let read = ok(view.to_vec::<i32>());
    let wanted = (0..130).flat_map(|column| (0..500).rev().map(move |row| row * 130 + column));
    assert!(read.into_iter().eq(wanted));
    let error = view.add(1).unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::TooLarge, "Tensor::add"));
}

#[test]
fn report_has_the_launches_of_a_kernel() {
    let gpu = limited("cpu", 65536);
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [512, 128]));
    let plan = ok(g.compile(&[ok(ok(x.exp()).softmax(-1)), ok(x.square())]));
    let report = ok(plan.explain());
    assert!(report.kernels.iter().all(|kernel| kernel.launches == 4), "{report}");
    let text = report.to_string();
    assert!(text.contains("in 4 launches of parts): Tensor::square"), "{text}");
}

/// Kernels that would bind more than the limit if they were merged: small maps of a part of a large
/// state, and writes of its rows.
#[test]
fn small_maps_of_large_states_are_computed() {
    let run = |gpu: &Device| {
        let g = ok(Graph::new(gpu));
        let state = ok(g.state("cache", [512, 128]));
        let x = ok(g.input("x", [1, 128]));
        ok(state.write(3..4, &ok(x.mul(2.0))));
        ok(state.write(500..501, &ok(x.add(1.0))));
        let rows = [3, 500].map(|row| ok(ok(state.read().i(row..row + 1)).sub(&x)));
        let plan = ok(g.compile(&rows));
        let x = ok(ok(Tensor::arange(128, DType::F32, gpu)).reshape([1, 128]));
        let out = ok(plan.run(&[("x", &x)]));
        out.iter().map(|it| ok(it.to_vec::<f32>())).collect::<Vec<_>>()
    };
    let found = run(&limited("cpu", 65536));
    assert_eq!(found, run(&cpu()));
    let wanted: Vec<f32> = (0..128).map(|n| n as f32).collect();
    assert_eq!(found, [wanted, vec![1.0; 128]]);
}

/// A row kernel with two results, each above the limit.
#[test]
fn row_kernels_with_several_results_are_split() {
    let run = |gpu: &Device| {
        let g = ok(Graph::new(gpu));
        let (x, y) = (ok(g.input("x", [512, 128])), ok(g.input("y", [512, 128])));
        let sum = ok(x.add(&y));
        let mean = ok(ok(sum.square()).mean_keepdim(1));
        let normed = ok(sum.mul(ok(ok(mean.add(1e-5)).rsqrt())));
        let plan = ok(g.compile(&[sum, normed]));
        let report = ok(plan.explain());
        let [x, y] = [1, 2].map(|seed| ok(Tensor::randn([512, 128], seed, DType::F32, gpu)));
        (ok(plan.run(&[("x", &x), ("y", &y)])), report)
    };
    let (gpu, whole) = (limited("cpu", 65536), cpu());
    let (found, report) = run(&gpu);
    assert_eq!((report.kernels.len(), report.kernels[0].launches), (1, 4), "{report}");
    for (found, wanted) in found.iter().zip(&run(&whole).0) {
        assert_same(found, wanted, "results");
    }
}

/// Products whose columns are split add the elements of the bias for these columns.
#[test]
fn products_with_biases_are_split() {
    let (gpu, whole) = (limited("cpu", 65536), cpu());
    for (dtype, residual) in [(DType::F32, false), (DType::F32, true), (DType::F16, true)] {
        let run = |gpu: &Device| {
            let g = ok(Graph::new(gpu));
            let x = ok(g.input_with_dtype("x", [2, 128], dtype));
            let w = ok(ok(Tensor::randn([1024, 128], 1, DType::F32, gpu)).cast(dtype));
            let b = ok(ok(Tensor::arange(1024, DType::F32, gpu)).mul(1.0 / 64.0));
            let b = ok(b.cast(dtype));
            let mut y = ok(ok(x.matmul(ok(w.t()))).add(&b));
            if residual {
                let r = ok(g.input_with_dtype("r", [2, 1024], dtype));
                y = ok(y.add(ok(r.cumsum(-1))));
            }
            let plan = ok(g.compile(&[ok(y.cumsum(-1))]));
            let report = ok(plan.explain());
            let r = ok(ok(Tensor::ones([2, 1024], DType::F32, gpu)).mul(1.0 / 64.0));
            let r = ok(r.cast(dtype));
            let x = ok(ok(Tensor::randn([2, 128], 2, DType::F32, gpu)).cast(dtype));
            let given = [("x", &x), ("r", &r)];
            let given = if residual { &given[..] } else { &given[..1] };
            let values = ok(ok(ok(plan.run(given))[0].cast(DType::F32)).to_vec::<f32>());
            let product = |it: &&scry_tensor::KernelReport| it.ops.contains(&"Tensor::matmul");
            let product = report.kernels.iter().find(product).expect("a product").clone();
            (values, product)
        };
        let ((found, product), (wanted, _)) = (run(&gpu), run(&whole));
        assert!(product.launches > 1 && product.ops.contains(&"Tensor::add"), "{product:?}");
        let tolerance = if dtype == DType::F32 { 1e-3 } else { 1e-2 };
        for (n, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let difference = (found - wanted).abs();
            assert!(difference <= tolerance * wanted.abs().max(1.0), "{n}: {found}, {wanted}");
        }
    }
}

#[test]
fn products_of_empty_matrices_above_the_limit_are_zero() {
    let gpu = limited("cpu", 65536);
    let a = ok(Tensor::from_slice::<f32>(&[], [256, 0], &gpu));
    let b = ok(Tensor::from_slice::<f32>(&[], [0, 256], &gpu));
    assert_eq!(ok(ok(a.matmul(&b)).to_vec::<f32>()), vec![0.0; 65536]);
}

/// The last word of a 16-bit result may be half used.
#[test]
fn rows_of_odd_16_bit_results_are_split() {
    let (gpu, whole) = (limited("cpu", 65536), cpu());
    let of = |gpu: &Device| {
        let x = ok(ok(Tensor::randn([1025, 129], 1, DType::F32, gpu)).cast(DType::F16));
        [ok(x.sum(-1)), ok(x.softmax(-1))]
    };
    for (found, wanted) in of(&gpu).iter().zip(of(&whole)) {
        assert_same(found, &wanted, "rows");
    }
}

/// A row kernel that cannot be split is not made of kernels that can.
#[test]
fn rows_with_repeated_operands_are_computed() {
    let run = |gpu: &Device| {
        let g = ok(Graph::new(gpu));
        let (x, mask) = (ok(g.input("x", [2, 1024, 256])), ok(g.input("mask", [1024, 256])));
        let sum = ok(x.add(&mask));
        let plan = ok(g.compile(&[ok(sum.sub(ok(sum.max_keepdim(-1))))]));
        let x = ok(Tensor::randn([2, 1024, 256], 1, DType::F32, gpu));
        let mask = ok(Tensor::randn([1024, 256], 2, DType::F32, gpu));
        ok(plan.run(&[("x", &x), ("mask", &mask)])).remove(0)
    };
    assert_same(&run(&limited("cpu", 256 << 10)), &run(&cpu()), "rows");
}

#[test]
fn operations_that_cannot_be_split_are_rejected() {
    let gpu = limited("cpu", 65536);
    let g = ok(Graph::new(&gpu));
    let (x, indices) =
        (ok(g.input("x", [512, 128])), ok(g.input_with_dtype("at", [4], DType::U32)));
    let _scope = g.scope("table");
    let error = g.compile(&[ok(x.index_select(0, &indices))]).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::TooLarge, "Tensor::index_select"));
    assert_eq!(error.scope(), "table");
    let text = error.to_string();
    assert!(text.contains("an operand has 262144 bytes in memory, but "), "{text}");
    assert!(text.contains("binds at most 65536; help: "), "{text}");
}

#[test]
fn arenas_are_not_above_the_largest_buffer() {
    let gpu = limited("cpu", 65536);
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [64, 1024]));
    // Each is 256 KiB, and all are needed at the end: more than the 1 MiB of a buffer.
    let parts: Vec<Tensor> = (1..8).map(|n| ok(ok(x.add(n)).cumsum(-1))).collect();
    let mut sum = parts[0].clone();
    for part in &parts[1..] {
        sum = ok(ok(sum.cumsum(-1)).add(part));
    }
    let plan = ok(g.compile(&[sum.clone()]));
    let report = ok(plan.explain());
    assert!(report.peak > 1 << 20, "{report}");
    assert!(report.arenas.iter().all(|bytes| *bytes <= 1 << 20), "{report}");
}
