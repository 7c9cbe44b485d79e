//! States: ordered writes, and reads before and after them.

use scry_tensor::{DType, ErrorKind, Graph, NewAxis, Tensor, step};
use scry_test_support::on_each_device;

use super::random::Random;
use crate::support::{cpu, ok};

#[test]
fn reads_keep_their_version() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let state = ok(g.state("state", [4]));
        let before = state.read();
        let plus = ok(before.add(10.0));
        let head = ok(before.i(0..2));
        ok(state.write(1..3, &ok(g.input("x", [2]))));
        let after = state.read();
        // Recorded after the write, but of the version before it.
        let late = ok(before.mul(2.0));
        ok(state.write(0, &ok(after.i(1))));
        let plan = ok(g.compile(&[before, plus, head, after, late, state.read()]));
        let data = ok(Tensor::new([1.0f32, 2.0], gpu));
        let run = || {
            let out = ok(plan.run(&[("x", &data)]));
            out.iter().map(|it| ok(it.to_vec::<f32>())).collect::<Vec<_>>()
        };
        let first = run();
        assert_eq!(first[0], [0.0; 4]);
        assert_eq!(first[3], [0.0, 1.0, 2.0, 0.0]);
        assert_eq!(first[5], [1.0, 1.0, 2.0, 0.0]);
        let second = run();
        assert_eq!(second[0], [1.0, 1.0, 2.0, 0.0]);
        assert_eq!(second[1], [11.0, 11.0, 12.0, 10.0]);
        assert_eq!(second[2], [1.0, 1.0]);
        assert_eq!(second[4], [2.0, 2.0, 4.0, 0.0]);
    });
}

#[test]
fn outputs_are_copies_of_states() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let count = ok(g.state_with_dtype("count", [1], DType::I32));
    ok(count.write(.., &ok(count.read().add(1))));
    let plan = ok(g.compile(&[count.read()]));
    let outs: Vec<Tensor> = (0..4).map(|_| ok(plan.run(&[])).remove(0)).collect();
    let values: Vec<i32> = outs.iter().map(|it| ok(it.item())).collect();
    assert_eq!(values, [1, 2, 3, 4]);
    assert_eq!(ok(plan.check(&[])), 3);
    assert_eq!(ok(ok(plan.state("count")).item::<i32>()), 4);
    let other = ok(g.compile(&[count.read()]));
    assert_eq!(ok(ok(other.run(&[]))[0].item::<i32>()), 1);
    ok(plan.reset_states());
    assert_eq!(ok(ok(plan.run(&[]))[0].item::<i32>()), 1);
    assert_eq!(plan.state("other").unwrap_err().kind(), ErrorKind::Graph);
}

#[test]
fn writes_run_without_outputs() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let state = ok(g.state_with_dtype("flags", [3], DType::Bool));
    ok(state.write(step(.., -2), &ok(Tensor::new([true, false], &gpu))));
    let plan = ok(g.compile(&[ok(g.full([1], 1.0, DType::F32))]));
    ok(plan.run(&[]));
    assert_eq!(ok(ok(plan.state("flags")).to_vec::<bool>()), [false, false, true]);
}

#[test]
fn state_is_written_to_itself() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let state = ok(g.state("state", [2, 2]));
    ok(state.write((0, 0), &ok(Tensor::new(5.0f32, &gpu))));
    ok(state.write(.., &ok(state.read().t())));
    ok(state.write((.., 1), &ok(state.read().i((.., 0)))));
    ok(state.write(.., &state.read()));
    let plan = ok(g.compile(&[state.read()]));
    assert_eq!(ok(ok(plan.run(&[]))[0].to_vec::<f32>()), [5.0, 5.0, 0.0, 0.0]);
    assert!(ok(plan.check(&[])) > 3);
}

#[test]
fn bad_writes_are_errors() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let state = ok(g.state("state", [4, 2000]));
    let new = ok(Tensor::zeros([3], DType::F32, &gpu));
    let one = ok(Tensor::zeros((), DType::F32, &gpu));
    let integer = ok(Tensor::zeros((), DType::I32, &gpu));
    let indices = ok(Tensor::zeros([2], DType::U32, &gpu));
    assert_eq!(state.write(0, &new).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(state.write(4, &one).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(state.write((0, &indices), &one).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(state.write((0, NewAxis, 0), &integer).unwrap_err().kind(), ErrorKind::DType);
    let apart = state.write((.., step(.., 2)), &one).unwrap_err();
    assert_eq!(apart.kind(), ErrorKind::TooLarge);
    assert_eq!(state.write_rows(&indices, &new).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(g.state("state", [1]).unwrap_err().kind(), ErrorKind::Graph);
    let node = ok(ok(Graph::new(&gpu)).input("x", ()));
    assert_eq!(state.write(0, &node).unwrap_err().kind(), ErrorKind::Graph);
}

/// Random writes and reads of two states, replayed, against a model on the host.
#[test]
fn replays_agree_with_model() {
    let gpu = cpu();
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let g = ok(Graph::new(&gpu));
        let states = [ok(g.state("a", [6])), ok(g.state("b", [6]))];
        let x = ok(g.input("x", [6]));
        // Each value: a tensor, and how the model computes it from earlier values.
        let mut values = vec![x];
        let mut steps: Vec<(usize, usize, usize, usize)> = Vec::new();
        for _ in 0..3 + random.below(8) {
            let (of, by) = (random.below(values.len()), random.below(values.len()));
            let (state, at) = (random.below(2), random.below(3));
            match random.below(3) {
                0 => {
                    values.push(states[state].read());
                    steps.push((0, state, 0, 0));
                }
                1 => {
                    let half = ok(values[by].mul(0.5));
                    values.push(ok(values[of].add(&half)));
                    steps.push((1, of, by, 0));
                }
                _ => {
                    ok(states[state].write(at..at + 3, &ok(values[of].i(3..6))));
                    steps.push((2, state, at, of));
                }
            }
        }
        let plan =
            ok(g.compile(&values[1..].iter().chain(&values[..1]).cloned().collect::<Vec<_>>()));
        let mut model = [vec![0f32; 6], vec![0f32; 6]];
        for run in 0..4 {
            let input: Vec<f32> = (0..6).map(|n| (n + run * 7) as f32).collect();
            let mut wanted = vec![input.clone()];
            for step in &steps {
                match *step {
                    (0, state, ..) => wanted.push(model[state].clone()),
                    (1, of, by, _) => {
                        let sum = |(a, b): (&f32, &f32)| a + b * 0.5;
                        wanted.push(wanted[of].iter().zip(&wanted[by]).map(sum).collect());
                    }
                    (_, state, at, of) => {
                        model[state][at..at + 3].copy_from_slice(&wanted[of][3..6]);
                    }
                }
            }
            wanted.rotate_left(1);
            let data = ok(Tensor::from_slice(&input, [6], &gpu));
            let inputs = [("x", &data)];
            if run == 2 {
                ok(plan.check(&inputs));
            }
            let out = ok(plan.run(&inputs));
            let found: Vec<Vec<f32>> = out.iter().map(|it| ok(it.to_vec())).collect();
            assert_eq!(found, wanted, "seed {seed}, run {run}: {steps:?}");
        }
    }
}

#[test]
fn plans_share_states() {
    on_each_device(|gpu| {
        // A plan that appends rows, and one that reads a prefix of them.
        let rows = || {
            let g = ok(Graph::new(gpu));
            let rows = ok(g.state("rows", [8, 2]));
            let count = ok(g.state_with_dtype("count", [1], DType::U32));
            (g, rows, count)
        };
        let (g, table, count) = rows();
        ok(table.write_rows(&count.read(), &ok(g.input("row", [1, 2]))));
        ok(count.write(.., &ok(count.read().add(1))));
        let append = ok(g.compile(&[count.read()]));
        let (g, table, _) = rows();
        let _own = ok(g.state("own", [1]));
        let read = ok(g.compile_sharing(&[ok(table.read().i(..4))], &append));
        for n in 0..3 {
            let row = ok(Tensor::new([[n as f32, 1.0]], gpu));
            ok(append.run(&[("row", &row)]));
        }
        let out = ok(read.run(&[])).remove(0);
        assert_eq!(ok(out.to_vec::<f32>()), [0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 0.0, 0.0]);
        ok(append.set_state("count", &ok(Tensor::new([1u32], gpu))));
        ok(append.run(&[("row", &ok(Tensor::new([[7.0f32, 8.0]], gpu)))]));
        let out = ok(read.run(&[])).remove(0);
        assert_eq!(ok(out.to_vec::<f32>()), [0.0, 1.0, 7.0, 8.0, 2.0, 1.0, 0.0, 0.0]);
        let strided = ok(ok(Tensor::arange(16, DType::F32, gpu)).reshape([2, 8]));
        ok(append.set_state("rows", &ok(strided.t())));
        let out = ok(read.run(&[])).remove(0);
        assert_eq!(ok(out.to_vec::<f32>()), [0.0, 8.0, 1.0, 9.0, 2.0, 10.0, 3.0, 11.0]);
    });
}

#[test]
fn shared_states_have_one_type() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let first = ok(g.compile(&[ok(g.state("state", [4])).read()]));
    let shared = |shape: [usize; 1], dtype| {
        let g = ok(Graph::new(&gpu));
        let state = ok(g.state_with_dtype("state", shape, dtype));
        g.compile_sharing(&[state.read()], &first).map(drop).unwrap_err().kind()
    };
    assert_eq!(shared([5], DType::F32), ErrorKind::Shape);
    assert_eq!(shared([4], DType::I32), ErrorKind::DType);
    let set = |new: &Tensor| first.set_state("state", new).unwrap_err().kind();
    assert_eq!(set(&ok(Tensor::zeros([5], DType::F32, &gpu))), ErrorKind::Shape);
    assert_eq!(set(&ok(Tensor::zeros([4], DType::I32, &gpu))), ErrorKind::DType);
}

/// Keys and values are strided heads of the first rows of a state, and no kernel copies them.
#[test]
fn attention_reads_cache_in_place() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let cache = ok(g.state("cache", [64, 2, 2, 64]));
        let q = ok(g.input("q", [1, 4, 3, 64]));
        let rows = ok(cache.read().i(..32));
        let heads = |part: i64| {
            let heads = ok(ok(rows.i((.., part))).transpose(0, 1));
            ok(heads.unsqueeze(0))
        };
        let seen = ok(q.attention(&heads(0), &heads(1), &Default::default()));
        let plan = ok(g.compile(&[seen]));
        assert_eq!(ok(plan.explain()).kernels.len(), 1, "{}", ok(plan.explain()));
        let data = ok(Tensor::randn([64, 2, 2, 64], 3, DType::F32, gpu));
        ok(plan.set_state("cache", &data));
        let q = ok(Tensor::randn([1, 4, 3, 64], 4, DType::F32, gpu));
        let found = ok(ok(plan.run(&[("q", &q)]))[0].to_vec::<f32>());
        let packed = |part: i64| {
            let heads = ok(ok(ok(data.i((..32, part))).transpose(0, 1)).contiguous());
            ok(heads.unsqueeze(0))
        };
        let wanted = ok(q.attention(&packed(0), &packed(1), &Default::default()));
        let wanted = ok(wanted.to_vec::<f32>());
        let is_close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
        assert!(found.len() == wanted.len() && found.iter().zip(&wanted).all(is_close));
    });
}
