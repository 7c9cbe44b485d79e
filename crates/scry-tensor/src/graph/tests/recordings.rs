//! Which kernels of a plan are recorded.

use crate::{DType, Device, Graph, Plan, Tensor};

/// Returns the numbers of recordings and of kernels in them, after two runs with ones.
fn recorded(plan: &Plan, shape: &[usize]) -> (usize, usize) {
    let x = Tensor::ones(shape, DType::F32, plan.device()).unwrap();
    let x = x.add(0.0).unwrap();
    let specialised = plan.specialised(&Vec::new()).unwrap();
    plan.run(&[("x", &x)]).unwrap();
    assert_eq!(specialised.recordings(), (0, 0));
    plan.run(&[("x", &x)]).unwrap();
    specialised.recordings()
}

/// Returns a plan of layers of three kernels, and its number of kernels.
fn layers(gpu: &Device, count: usize, shape: &[usize], all: bool) -> (Plan, usize) {
    let g = Graph::new(gpu).unwrap();
    let mut h = g.input("x", shape.to_vec()).unwrap();
    let mut outputs = Vec::new();
    for _ in 0..count {
        h = h.cumsum(-1).unwrap();
        h = h.cumsum(0).unwrap().neg().unwrap();
        outputs.push(h.clone());
    }
    let outputs = if all { &outputs[..] } else { &outputs[count - 1..] };
    let plan = g.compile(outputs).unwrap();
    let kernels = plan.explain().unwrap().kernels.len();
    (plan, kernels)
}

#[test]
fn small_plans_are_one_recording() {
    let gpu = Device::open("cpu").unwrap();
    for all in [false, true] {
        let (plan, kernels) = layers(&gpu, 4, &[4, 4], all);
        assert_eq!(recorded(&plan, &[4, 4]), (1, kernels));
    }
}

#[test]
fn large_inputs_and_outputs_are_not_copied() {
    let gpu = Device::open("cpu").unwrap();
    let shape = [64, 64];
    let (plan, kernels) = layers(&gpu, 4, &shape, false);
    // The first kernel reads the input, and the last one writes the output.
    assert_eq!(recorded(&plan, &shape), (1, kernels - 2));
    // Each output separates two sequences that are too short.
    let (plan, _) = layers(&gpu, 4, &shape, true);
    assert_eq!(recorded(&plan, &shape), (0, 0));
}

#[test]
fn short_plans_are_not_recorded() {
    let gpu = Device::open("cpu").unwrap();
    for (count, wanted) in [(3, (0, 0)), (4, (1, 4))] {
        let g = Graph::new(&gpu).unwrap();
        let mut h = g.input("x", [9]).unwrap();
        for _ in 0..count {
            h = h.cumsum(0).unwrap();
        }
        assert_eq!(recorded(&g.compile(&[h]).unwrap(), &[9]), wanted);
    }
}
