//! Plans: submissions, kernels, memory, and what outputs may be.

use scry_gpu::testing;
use scry_tensor::{DType, Device, Graph, Tensor};
use scry_test_support::on_each_device;

use super::random::compare;
use crate::support::{cpu, ok};

#[test]
fn plans_agree_on_each_device() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", (g.dim("batch", 1..=8), 3)));
        let w = ok(Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]], gpu));
        let h = ok(ok(x.matmul(&w)).relu());
        let y = ok(&h - &ok(h.max_keepdim(-1)));
        let plan = ok(g.compile(&[y]));
        let data = ok(Tensor::new([[1.0f32, 0.0, 0.0], [0.0, -1.0, 0.0]], gpu));
        let out = ok(plan.run(&[("x", &data)]));
        assert_eq!(ok(out[0].to_vec::<f32>()), [-1.0, 0.0, 0.0, 0.0]);
    });
}

#[test]
fn chain_of_maps_is_one_kernel() {
    let (gpu, log) = testing::observed(testing::null_info());
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [16, 8]));
    let y = ok(g.input("y", [8]));
    let mut z = ok(x.add(&y));
    for _ in 0..8 {
        z = ok(ok(z.maximum(0.25)).mul(&y));
    }
    let plan = ok(g.compile(&[ok(z.t())]));
    let (a, b) = inputs(&gpu);
    let _ = log.take();
    let _out = ok(plan.run(&[("x", &a), ("y", &b)]));
    assert_eq!(log.take().dispatches, 1);
}

#[test]
fn kernel_has_at_most_seven_inputs() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let inputs: Vec<Tensor> = (0..20).map(|n| ok(g.input(&format!("x{n}"), [2, 3]))).collect();
    let sum = inputs[1..].iter().fold(inputs[0].clone(), |sum, x| ok(sum.add(x)));
    let plan = ok(g.compile(&[sum]));
    let kernels = ok(plan.explain()).kernels;
    assert!(kernels.iter().all(|kernel| kernel.inputs <= 7) && kernels.len() <= 4, "{kernels:?}");
    assert!(kernels[0].stored.contains("more than 7 inputs"), "{kernels:?}");
    let data = ok(Tensor::ones([2, 3], DType::F32, &gpu));
    let names: Vec<String> = plan.input_names().map(str::to_owned).collect();
    let given: Vec<(&str, &Tensor)> = names.iter().map(|it| (it.as_str(), &data)).collect();
    assert_eq!(ok(ok(plan.run(&given))[0].to_vec::<f32>()), [20.0; 6]);
}

#[test]
fn feed_forward_network_shares_memory() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let w = ok(Tensor::eye(64, DType::F32, &gpu));
    let up = ok(Tensor::ones([64, 64], DType::F32, &gpu));
    let mut x = ok(g.input("x", [32, 64]));
    for _ in 0..12 {
        let h = ok(ok(ok(x.matmul(&w)).silu()).mul(ok(x.matmul(&up))));
        x = ok(x.add(ok(h.matmul(&w))));
    }
    let report = ok(ok(g.compile(&[x])).explain());
    // A layer: three products, the gate, and the residual sum, which is part of the last product
    // unless it reads the input or is the output. The repeated element of `up` is stored as a
    // matrix once.
    let (constant, run): (Vec<_>, Vec<_>) = report.kernels.iter().partition(|it| it.is_constant);
    assert_eq!((constant.len(), run.len()), (1, 12 * 4 + 2), "{report}");
    let total: u64 = report.arenas.iter().sum();
    assert!(total as f64 <= 1.05 * report.peak as f64, "{:?} {}", report.arenas, report.peak);
}

#[test]
fn unfused_plan_has_kernel_for_each_operation() {
    let program = std::env::current_exe().expect("the path of this test");
    let run = |fuse: &str| {
        let mut command = std::process::Command::new(&program);
        command.env("SCRY_FUSE", fuse).env("SCRY_DEBUG", "graph,simplify,group,plan");
        let test = "graphs::plans::chain_for_child_process";
        let output = command.args([test, "--exact", "--ignored", "--nocapture"]).output();
        let output = output.expect("the test starts");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (fused, unfused) = (run("1"), run("0"));
    for stage in ["graph", "simplify", "group", "plan"] {
        assert!(fused.contains(&format!("scry: stage {stage}\n")), "{fused}");
    }
    assert!(fused.contains("kernel 0: ") && !fused.contains("kernel 1: "), "{fused}");
    assert!(unfused.contains("kernel 2: ") && !unfused.contains("kernel 3: "), "{unfused}");
    assert!(!fused.contains("unknown stage"), "{fused}");
}

#[test]
fn unfused_plans_compute_bits_of_operations() {
    let program = std::env::current_exe().expect("the path of this test");
    let mut command = std::process::Command::new(&program);
    command.env("SCRY_FUSE", "0").env("SCRY_FUZZ_SEEDS", "60").env("SCRY_FUZZ_FIRST", "20000");
    let test = "graphs::random::plans_compute_bits_of_operations";
    let output = command.args([test, "--exact"]).output().expect("the test starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn unknown_fusion_is_an_error() {
    let program = std::env::current_exe().expect("the path of this test");
    let mut command = std::process::Command::new(&program);
    let test = "graphs::plans::chain_for_child_process";
    command.env("SCRY_FUSE", "off").args([test, "--exact", "--ignored", "--nocapture"]);
    let output = command.output().expect("the test starts");
    let text = String::from_utf8_lossy(&output.stderr);
    let wanted = "the environment variable SCRY_FUSE is `off`, not 0, exact or 1; help: set it to";
    assert!(!output.status.success() && text.contains(wanted), "{text}");
}

#[test]
#[ignore = "run by another test"]
fn chain_for_child_process() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [3]));
    let plan = ok(g.compile(&[ok(ok(ok(x.exp()).mul(2.0)).add(1.0))]));
    let data = ok(Tensor::zeros([3], DType::F32, &gpu));
    assert_eq!(ok(ok(plan.run(&[("x", &data)]))[0].to_vec::<f32>()), [3.0; 3]);
}

fn inputs(gpu: &Device) -> (Tensor, Tensor) {
    let x = ok(Tensor::from_slice(&[1.0f32; 128], [16, 8], gpu));
    (x, ok(Tensor::from_slice(&[2.0f32; 8], [8], gpu)))
}

#[test]
fn outputs_may_be_anything() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2, 2]));
    let w = ok(Tensor::new([7.0f32, 8.0], &gpu));
    let p = ok(g.param("w", &w));
    let sum = ok(x.add(&p));
    let outputs = [
        x.clone(),
        ok(x.t()),
        p.clone(),
        ok(p.expand([2, 2])),
        sum.clone(),
        ok(sum.i(1)),
        sum.clone(),
        w.clone(),
        ok(g.full([2], 1.5, DType::F32)),
        ok(sum.i((0..0, 0..1))),
    ];
    let plan = ok(g.compile(&outputs));
    let data = ok(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu));
    let out = ok(plan.run(&[("x", &ok(data.t()))]));
    let values: Vec<Vec<f32>> = out.iter().map(|it| ok(it.to_vec())).collect();
    assert_eq!(values[0], [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(values[1], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values[2], [7.0, 8.0]);
    assert_eq!(values[3], [7.0, 8.0, 7.0, 8.0]);
    assert_eq!(values[4], [8.0, 11.0, 9.0, 12.0]);
    assert_eq!(values[5], [9.0, 12.0]);
    assert_eq!(values[6], values[4]);
    assert_eq!(values[7], [7.0, 8.0]);
    assert_eq!(values[8], [1.5, 1.5]);
    assert_eq!((values[9].len(), out[9].shape().to_vec()), (0, vec![0, 1]));
}

#[test]
fn functions_that_contract_agree_within_bounds() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", [4, 8]));
        let row = ok(x.i(0..1));
        let y = ok(ok(x.gelu()).add(ok(ok(row.erf()).mul(&row))));
        let z = ok(ok(y.exp2()).matmul(ok(y.t())));
        let plan = ok(g.compile(&[ok(ok(z.mul(0.25)).gelu()), y]));
        let data = ok(Tensor::linspace(-3.0, 3.0, 32, DType::F32, gpu));
        let data = ok(data.reshape([4, 8]));
        assert!(ok(plan.check(&[("x", &data)])) >= 3);
    });
}

#[test]
fn outputs_survive_later_runs() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [4]));
    let y = ok(ok(x.exp()).sum_keepdim(0));
    let plan = ok(g.compile(&[ok(y.add(1.0)), y]));
    let run = |value: f32| {
        let data = ok(Tensor::from_slice(&[value; 4], [4], &gpu));
        ok(plan.run(&[("x", &data)]))
    };
    let first = run(0.0);
    let second = run(1.0);
    drop(plan_values(&second));
    assert_eq!(plan_values(&first), [5.0, 4.0]);
}

fn plan_values(out: &[Tensor]) -> Vec<f32> {
    out.iter().map(|it| ok(it.item::<f32>())).collect()
}

#[test]
fn runs_may_overlap() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [64]));
    let h = ok(ok(ok(x.mul(2.0)).cumsum(0)).i(63..64));
    let plan = &ok(g.compile(&[ok(ok(&x + &h).cumsum(0))]));
    assert!(!ok(plan.explain()).arenas.is_empty());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let gpu = &gpu;
            scope.spawn(move || {
                for n in 0..20 {
                    let value = (thread * 20 + n) as f32;
                    let data = ok(Tensor::from_slice(&[value; 64], [64], gpu));
                    let out = ok(plan.run(&[("x", &data)]));
                    let expected: [f32; 64] =
                        std::array::from_fn(|n| value * 129.0 * (n + 1) as f32);
                    assert_eq!(ok(out[0].to_vec::<f32>()), expected);
                }
            });
        }
    });
}

#[test]
fn deep_chain_needs_no_stack() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2]));
    let mut y = x.clone();
    for n in 0..100_000 {
        y = ok(y.add(if n % 2 == 0 { 1.0 } else { -1.0 }));
    }
    let plan = ok(g.compile(&[y]));
    let data = ok(Tensor::new([1.0f32, 2.0], &gpu));
    let out = ok(plan.run(&[("x", &data)]));
    assert_eq!(ok(out[0].to_vec::<f32>()), [1.0, 2.0]);
}

#[test]
fn device_closes_with_last_plan() {
    let (gpu, log) = testing::observed(testing::null_info());
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [4]));
    let plan = ok(g.compile(&[ok(x.exp())]));
    drop((gpu, g, x));
    assert!(!log.is_device_dropped());
    drop(plan);
    assert!(log.is_device_dropped());
}

#[test]
fn random_plans_agree_on_gpus() {
    on_each_device(|gpu| (0..8).for_each(|seed| compare(seed, gpu)));
}
