//! Runs after the first one, which replay recordings, and bound plans.

use scry_gpu::testing::{self, Fault, FaultPlan};
use scry_tensor::{DType, Device, ErrorKind, Graph, Plan, Tensor};
use scry_test_support::on_each_device;

use super::random::input;
use crate::support::{cpu, ok};

/// Compiles `layers` layers with a state, which all read, and an input that all read.
fn network(gpu: &Device, layers: usize) -> Plan {
    let g = ok(Graph::new(gpu));
    let (x, bias) = (ok(g.input("x", [4, 8])), ok(g.input("bias", [8])));
    let total = ok(g.state("total", [8]));
    let mut h = x;
    for n in 0..layers {
        let w = input(&[8, 8], n as u64, gpu);
        let product = ok(ok(h.matmul(&w)).mul(0.125));
        h = ok(ok(product.add(&bias)).tanh());
        ok(total.write(.., &ok(total.read().add(ok(h.sum(0))))));
    }
    ok(g.compile(&[h, total.read()]))
}

/// Runs a plan with inputs of a seed.
fn run(plan: &Plan, seed: u64, gpu: &Device) -> Vec<Tensor> {
    let (x, bias) = (input(&[8, 4], seed, gpu), input(&[8], seed + 1, gpu));
    // A strided view: copied by the run.
    ok(plan.run(&[("x", &ok(x.t())), ("bias", &bias)]))
}

fn values(out: &[Tensor]) -> Vec<Vec<f32>> {
    out.iter().map(|it| ok(it.to_vec())).collect()
}

#[test]
fn replays_compute_bits_of_first_runs() {
    on_each_device(|gpu| {
        let replayed = network(gpu, 5);
        let outputs: Vec<_> = (0..6).map(|seed| run(&replayed, seed, gpu)).collect();
        let mut total = ok(Tensor::zeros([8], DType::F32, gpu));
        for (seed, out) in (0..).zip(&outputs) {
            // Each first run of a plan adds its kernels one by one; its state begins at zero.
            let wanted = run(&network(gpu, 5), seed, gpu);
            assert_eq!(ok(out[0].to_vec::<f32>()), ok(wanted[0].to_vec::<f32>()), "seed {seed}");
            total = ok(total.add(&wanted[1]));
            let (found, wanted) = (ok(out[1].to_vec::<f32>()), ok(total.to_vec::<f32>()));
            let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
            assert!(found.iter().zip(&wanted).all(is_near), "{found:?} {wanted:?}");
        }
    });
}

/// Returns the driver calls of each of several runs, of a chain of `sums` reductions and maps.
fn driver_calls(sums: usize) -> Vec<u64> {
    let faults = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let g = ok(Graph::new(&gpu));
    let mut y = ok(g.input("x", [8, 8]));
    for _ in 0..sums {
        let sum = ok(y.sum_keepdim(0));
        y = ok(y.sub(&sum));
    }
    let plan = ok(g.compile(&[y]));
    assert!(ok(plan.explain()).kernels.len() >= 2 * sums);
    let data = ok(Tensor::from_slice(&[1.0f32; 64], [8, 8], &gpu));
    let calls = (0..5).map(|_| {
        let before = faults.calls();
        let _out = ok(plan.run(&[("x", &data)]));
        faults.calls() - before
    });
    calls.collect()
}

#[test]
fn run_is_one_submission() {
    // Each needs memory for the output, and submits; more submissions would be more calls. The
    // second run also records, and allocates a copy of the input and of the output.
    assert_eq!(driver_calls(1), [2, 2, 2, 2, 2]);
    assert_eq!(driver_calls(7), [2, 5, 2, 2, 2]);
}

#[test]
fn bound_run_is_one_call() {
    let faults = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let plan = network(&gpu, 3);
    let (x, bias) = (input(&[4, 8], 1, &gpu), input(&[8], 2, &gpu));
    let bound = ok(plan.bind(&[("x", &x), ("bias", &bias)]));
    ok(bound.run());
    let before = faults.calls();
    (0..10).for_each(|_| ok(bound.run()));
    assert_eq!(faults.calls() - before, 10);
}

#[test]
fn runs_add_no_memory() {
    count_memory(500);
}

#[test]
#[ignore = "takes seconds"]
fn ten_thousand_runs_add_no_memory() {
    count_memory(10_000);
}

/// Checks that runs allocate no memory that they keep.
fn count_memory(runs: usize) {
    let gpu = cpu();
    let plan = network(&gpu, 3);
    let (x, bias) = (input(&[4, 8], 1, &gpu), input(&[8], 2, &gpu));
    let given = [("x", &x), ("bias", &bias)];
    let bound = ok(plan.bind(&given));
    let usage = || {
        ok(plan.state("total"));
        gpu.wait().expect("the work is done");
        let usage = gpu.memory_usage();
        (usage.allocations, usage.bytes)
    };
    // Memory of outputs is used again once the queue has released it.
    (0..200).for_each(|_| drop(ok(plan.run(&given))));
    let before = usage();
    for _ in 0..runs {
        drop(ok(plan.run(&given)));
        ok(bound.run());
    }
    assert_eq!(usage(), before);
}

#[test]
fn lost_device_fails_replays() {
    let faults = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let plan = network(&gpu, 4);
    let (x, bias) = (input(&[4, 8], 1, &gpu), input(&[8], 2, &gpu));
    let given = [("x", &x), ("bias", &bias)];
    let bound = ok(plan.bind(&given));
    (0..3).for_each(|_| drop(ok(plan.run(&given))));
    // The allocations of both outputs succeed, the submission does not.
    faults.fail_after(2);
    let error = plan.run(&given).unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::Gpu, "Plan::run"));
    assert!(error.to_string().contains("is lost"), "{error}");
    let error = bound.run().unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::Gpu, "BoundPlan::run"));
    assert!(error.location().file().ends_with("replays.rs"), "{error}");
}

#[test]
fn plans_run_without_memory_for_recordings() {
    let faults = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let plan = network(&gpu, 4);
    let (x, bias) = (input(&[4, 8], 1, &gpu), input(&[8], 2, &gpu));
    let given = [("x", &x), ("bias", &bias)];
    let first = values(&ok(plan.run(&given)));
    // A plan runs without recordings if there is no memory for them.
    faults.fail_after(1);
    for _ in 0..3 {
        ok(plan.reset_states());
        assert_eq!(values(&ok(plan.run(&given))), first);
    }
    assert!(faults.has_failed());
}

#[test]
fn plans_are_dropped_with_runs_in_flight() {
    on_each_device(|gpu| {
        let plan = network(gpu, 5);
        let (x, bias) = (input(&[4, 8], 1, gpu), input(&[8], 2, gpu));
        let given = [("x", &x), ("bias", &bias)];
        let bound = ok(plan.bind(&given));
        let mut out = Vec::new();
        for _ in 0..20 {
            out = ok(plan.run(&given));
        }
        let first = values(&out);
        ok(bound.run());
        drop((plan, x, bias));
        ok(bound.run());
        let last = bound.outputs().to_vec();
        drop(bound);
        assert_eq!(values(&last)[0], first[0]);
        let growth = |n: usize| (values(&last)[1][n] - first[1][n]) / first[1][n];
        assert!((0..8).all(|n| (growth(n) - 0.1).abs() < 1e-3), "{first:?}");
        assert_eq!(values(&out), first);
    });
}

#[test]
fn threads_replay_one_plan() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let mut y = ok(g.input("x", [64]));
        for _ in 0..12 {
            let sum = ok(ok(ok(y.cumsum(0)).i(63..64)).expand([64]));
            y = ok(ok(sum.mul(1.0 / 64.0)).add(1.0));
        }
        let plan = &ok(g.compile(&[y]));
        // Enough kernels to be recorded on every device.
        assert!(ok(plan.explain()).kernels.len() >= 12);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let data = ok(Tensor::zeros([64], DType::F32, gpu));
                for _ in 0..10 {
                    let bound = ok(plan.bind(&[("x", &data)]));
                    ok(bound.run_times(3));
                    assert_eq!(ok(bound.outputs()[0].to_vec::<f32>()), [12.0; 64]);
                }
            });
            for thread in 0..4 {
                scope.spawn(move || {
                    for n in 0..15 {
                        let value = (thread * 15 + n) as f32;
                        let data = ok(Tensor::from_slice(&[value; 64], [64], gpu));
                        let out = ok(plan.run(&[("x", &data)]));
                        assert_eq!(ok(out[0].to_vec::<f32>()), [value + 12.0; 64]);
                    }
                });
            }
        });
    });
}

/// Inputs and outputs that are too large to be copied, between kernels that are recorded.
#[test]
fn large_inputs_are_read_in_place() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let large = ok(g.input("large", [300, 256]));
        let small = ok(g.input("small", [256]));
        let mut h = small;
        for _ in 0..5 {
            h = ok(ok(h.softmax(0)).cumsum(0));
        }
        let y = ok(large.add(&h));
        let mut z = ok(y.sum(0));
        for _ in 0..5 {
            z = ok(ok(z.softmax(0)).cumsum(0));
        }
        let plan = ok(g.compile(&[y, z]));
        let (a, b) = (input(&[300, 256], 1, gpu), input(&[256], 2, gpu));
        let given = [("large", &a), ("small", &b)];
        let first = values(&ok(plan.run(&given)));
        for _ in 0..3 {
            assert!(values(&ok(plan.run(&given))) == first);
        }
        let bound = ok(plan.bind(&given));
        for _ in 0..2 {
            ok(bound.run());
            assert!(values(bound.outputs()) == first);
        }
    });
}

#[test]
fn bound_inputs_are_checked() {
    let gpu = cpu();
    let plan = network(&gpu, 1);
    let x = input(&[4, 8], 1, &gpu);
    let error = plan.bind(&[("x", &x)]).unwrap_err();
    assert_eq!((error.kind(), error.function()), (ErrorKind::Graph, "Plan::bind"));
    assert!(error.to_string().contains("input `bias` is missing"), "{error}");
}

#[test]
fn bound_plan_without_kernels_runs() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let x = ok(g.input("x", [2]));
    let plan = ok(g.compile(&[x]));
    let data = ok(Tensor::new([1.0f32, 2.0], &gpu));
    let bound = ok(plan.bind(&[("x", &data)]));
    ok(bound.run());
    assert_eq!(values(bound.outputs()), [[1.0, 2.0]]);
}
