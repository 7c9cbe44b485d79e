//! Small maps and writes of states that are one kernel, and row kernels with several results:
//! against plans with a kernel for each operation.

use scry_gpu::{Device, Features};
use scry_tensor::{DType, Fusion, Graph, Plan, Result, Tensor};
use scry_test_support::on_each_device;

use super::memory::check_memory;
use super::random::Random;
use crate::support::{cpu, ok};

/// Returns plans of the same graph, with fusion and without.
fn plans(gpu: &Device, graph: impl Fn(&Graph) -> Result<Vec<Tensor>>) -> [Plan; 2] {
    [Fusion::Exact, Fusion::None].map(|fusion| {
        let g = ok(Graph::new(gpu));
        g.set_fusion(fusion);
        let outputs = ok(graph(&g));
        ok(g.compile(&outputs))
    })
}

fn bits(out: &[Tensor]) -> Vec<Vec<u32>> {
    let bits = |x: &Tensor| ok(ok(x.cast(DType::F32)).to_vec::<f32>());
    out.iter().map(|x| bits(x).into_iter().map(f32::to_bits).collect()).collect()
}

fn kernels(plan: &Plan) -> usize {
    ok(plan.explain()).kernels.len()
}

#[test]
fn row_is_written_by_the_map_before_it() {
    on_each_device(|gpu| {
        for (dtype, columns) in [(DType::F32, 5), (DType::BF16, 6), (DType::I32, 1)] {
            let g = ok(Graph::new(gpu));
            let state = ok(g.state_with_dtype("state", [4, columns], dtype));
            let x = ok(g.input_with_dtype("x", [1, columns], dtype));
            let at = ok(g.input_with_dtype("at", [1], DType::U32));
            ok(state.write_rows(&at, &ok(ok(x.add(1)).mul(2))));
            let plan = ok(g.compile(&[ok(state.read().i(..0))]));
            // The output has no elements.
            let report = ok(plan.explain());
            assert_eq!(report.kernels[0].ops, ["Tensor::add", "Tensor::mul", "State::write_rows"]);
            let data = ok(ok(Tensor::ones([1, columns], DType::F32, gpu)).cast(dtype));
            let mut wanted = vec![0.0f32; 4 * columns];
            for (run, at) in [2u32, 0, 4, u32::MAX, 3].into_iter().enumerate() {
                let at = ok(Tensor::new([at], gpu));
                let inputs = [("x", &data), ("at", &at)];
                if run == 1 {
                    ok(plan.check(&inputs));
                }
                ok(plan.run(&inputs));
            }
            for row in [2, 0, 3] {
                wanted[row * columns..(row + 1) * columns].fill(4.0);
            }
            let found = ok(ok(plan.state("state")).cast(DType::F32));
            assert_eq!(ok(found.to_vec::<f32>()), wanted, "{dtype}");
        }
    });
}

#[test]
fn rows_at_several_or_negative_indices_are_ordered() {
    let gpu = cpu();
    let [fused, plain] = plans(&gpu, |g| {
        let state = g.state("state", [3, 2])?;
        let x = g.input("x", [2, 2])?;
        let at = g.input_with_dtype("at", [2], DType::I32)?;
        // The last of equal indices wins.
        state.write_rows(&at, &x.mul(3.0)?)?;
        state.write_rows(&at.i(..1)?, &x.i(1..)?.add(1.0)?)?;
        Ok(vec![state.read()])
    });
    let x = ok(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu));
    for at in [[0, 0], [1, 0], [-1, 1], [5, 2]] {
        let at = ok(Tensor::new(at, &gpu));
        let inputs = [("x", &x), ("at", &at)];
        assert_eq!(bits(&ok(fused.run(&inputs))), bits(&ok(plain.run(&inputs))));
        ok(fused.check(&inputs));
    }
}

/// Buffers without elements cannot be bound.
#[test]
fn states_without_rows_are_written_beside_other_maps() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let state = ok(g.state("state", [0, 4]));
        let x = ok(g.input("x", [1, 4]));
        let at = ok(g.input_with_dtype("at", [1], DType::U32));
        ok(state.write_rows(&at, &ok(x.add(1.0))));
        let plan = ok(g.compile(&[ok(x.neg())]));
        let (x, at) = (ok(Tensor::ones([1, 4], DType::F32, gpu)), ok(Tensor::new([0u32], gpu)));
        let out = ok(plan.run(&[("x", &x), ("at", &at)]));
        assert_eq!(ok(out[0].to_vec::<f32>()), [-1.0; 4]);
    });
}

#[test]
fn bytes_of_partial_words_are_kept() {
    let gpu = cpu();
    let [fused, plain] = plans(&gpu, |g| {
        let state = g.state_with_dtype("state", [3, 3], DType::F16)?;
        let x = g.input("x", [1, 3])?.cast(DType::F16)?;
        let at = g.input_with_dtype("at", [1], DType::U32)?;
        state.write_rows(&at, &x.add(1.0)?)?;
        state.write(1, &x.mul(5.0)?.i(0)?)?;
        state.write((0, 1..2), &x.neg()?.i((0, ..1))?)?;
        Ok(vec![state.read()])
    });
    let x = ok(Tensor::new([[1.0f32, 2.0, 3.0]], &gpu));
    for at in 0..4u32 {
        let at = ok(Tensor::new([at], &gpu));
        let inputs = [("x", &x), ("at", &at)];
        assert_eq!(bits(&ok(fused.run(&inputs))), bits(&ok(plain.run(&inputs))));
    }
}

/// Random maps, reductions, reads and writes of states.
fn random_graph(seed: u64, g: &Graph) -> Result<Vec<Tensor>> {
    let mut random = Random::new(seed);
    let dtype = [DType::F32, DType::F32, DType::F16][random.below(3)];
    let states = [("a", [4, 6]), ("b", [4, 6]), ("c", [1, 6])];
    let states = states.map(|(name, shape)| ok(g.state_with_dtype(name, shape, dtype)));
    let at = g.input_with_dtype("at", [2], DType::U32)?;
    let x = g.input("x", [4, 6])?.cast(dtype)?;
    let mut values = vec![x.clone(), x.flip(-1)?];
    for _ in 0..6 + random.below(14) {
        let [one, other] = [0, 0].map(|_| values[random.below(values.len())].clone());
        let state = &states[random.below(2)];
        let row = |n: usize| one.i(n as i64..n as i64 + 1);
        let new = match random.below(9) {
            0 => state.read(),
            1 => one.mul(0.5)?.add(&other)?,
            2 => one.sub(one.max_keepdim(-1)?)?.add(&other.min_keepdim(-1)?)?,
            3 => one.flip(0)?.minimum(states[2].read())?,
            4 => {
                state.write_rows(&at.i(random.below(2) as i64)?.unsqueeze(0)?, &row(1)?.neg()?)?;
                continue;
            }
            5 => {
                state.write_rows(&at, &one.i(..2)?.mul(2.0)?)?;
                continue;
            }
            6 => {
                let first = random.below(3) as i64;
                state.write(first..first + 2, &other.i(1..3)?.add(1.0)?)?;
                continue;
            }
            7 => {
                states[2].write(.., &row(random.below(4))?.add(states[2].read())?)?;
                continue;
            }
            _ => one.maximum(&other)?.tanh()?,
        };
        values.push(new);
    }
    let kept = values.len().saturating_sub(1 + random.below(5));
    let states = states.map(|state| state.read());
    // Plans have the inputs that an output depends on.
    let others = [at.add(1)?, x.add(1.0)?];
    Ok(values.split_off(kept).into_iter().chain(states).chain(others).collect())
}

fn compare_random(gpu: &Device, seed: u64) {
    let [fused, plain] = plans(gpu, |g| random_graph(seed, g));
    for plan in [&fused, &plain] {
        check_memory(plan, &format!("seed {seed} on {}", gpu.name()));
    }
    for run in 0..4u32 {
        let x = ok(Tensor::randn([4, 6], seed * 7 + u64::from(run), DType::F32, gpu));
        let at = ok(Tensor::new([run, 3 * (seed as u32 % 2) + run % 3], gpu));
        let inputs = [("x", &x), ("at", &at)];
        if run == 2 {
            ok(fused.check(&inputs));
        }
        let [found, wanted] = [&fused, &plain].map(|plan| bits(&ok(plan.run(&inputs))));
        let report = || ok(fused.explain());
        assert_eq!(found, wanted, "seed {seed}, run {run} on {}\n{}", gpu.name(), report());
    }
}

#[test]
fn random_states_have_the_bits_of_single_operations() {
    let gpu = cpu();
    (0..10).for_each(|seed| compare_random(&gpu, seed));
    on_each_device(|gpu| (100..102).for_each(|seed| compare_random(gpu, seed)));
}

#[test]
#[ignore = "takes minutes"]
fn thousand_random_states_have_the_bits_of_single_operations() {
    let gpu = cpu();
    (1000..2000).for_each(|seed| compare_random(&gpu, seed));
}

#[test]
fn small_maps_are_one_kernel() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let (x, y) = (ok(g.input("x", [5])), ok(g.input("y", [3, 7])));
        let outputs = [ok(x.exp()), ok(y.neg()), ok(y.t()).gt(0.5).expect("a comparison")];
        let plan = ok(g.compile(&outputs));
        assert_eq!(kernels(&plan), 1, "{}", ok(plan.explain()));
        let [x, y] = [ok(Tensor::randn([5], 1, DType::F32, gpu)), {
            ok(Tensor::randn([3, 7], 2, DType::F32, gpu))
        }];
        let inputs = [("x", &x), ("y", &y)];
        assert_eq!(ok(plan.check(&inputs)), 3);
        let found = ok(plan.run(&inputs));
        let wanted = [ok(x.exp()), ok(y.neg()), ok(ok(y.t()).gt(0.5))];
        assert_eq!(bits(&found), bits(&wanted));
        // Large ones fill a device alone.
        let g = ok(Graph::new(gpu));
        let x = ok(g.input("x", [1 << 16]));
        assert_eq!(kernels(&ok(g.compile(&[ok(x.exp()), ok(x.neg())]))), 2);
    });
}

#[test]
fn residual_is_stored_by_the_kernel_of_the_norm() {
    on_each_device(|gpu| {
        for (dtype, columns) in [(DType::F32, 33), (DType::F16, 40), (DType::F32, 576)] {
            let g = ok(Graph::new(gpu));
            let x = ok(g.input_with_dtype("x", [3, columns], dtype));
            let w = ok(ok(Tensor::randn([columns, columns], 5, DType::F32, gpu)).cast(dtype));
            let sum = ok(x.add(ok(ok(x.matmul(&w)).mul(0.1))));
            let mean = ok(ok(sum.square()).mean_keepdim(-1));
            let normed = ok(sum.mul(ok(ok(mean.add(1e-5)).rsqrt())));
            let next = ok(sum.add(ok(ok(normed.matmul(&w)).mul(0.1))));
            let plan = ok(g.compile(&[next]));
            let report = ok(plan.explain());
            // Two products; the sum with the norm; the last sum. Without `f16`, the first product
            // has a kernel that converts its operand, too.
            let has_f16 = gpu.info().features.contains(Features::F16);
            let converted = usize::from(dtype == DType::F16 && !has_f16);
            assert_eq!(report.kernels.len(), 4 + converted, "{dtype}: {report}");
            let data = ok(ok(Tensor::randn([3, columns], 6, DType::F32, gpu)).cast(dtype));
            ok(plan.check(&[("x", &data)]));
        }
    });
}
