//! Many small launches in one submission: a chain, and launches that do not touch one another.

use anyhow::Result;

use super::{Bench, increment, timed_run};
use crate::peer::{BufferId, Peer, PlanId, Span, Step};
use crate::report::{Goal, Rule, Subject};
use scry_bench::data;
use scry_bench::kernels::{INCREMENT, SUCCESSOR};

/// Launches of one submission.
const COUNT: usize = 1000;
/// Elements of one launch: 1 KiB, a multiple of every device's binding alignment.
const LEN: usize = 256;

const CHAIN_GOAL: f64 = 0.9;
const REPLAY_GOAL: f64 = 0.05;

/// Launches that one peer has prepared, and how often they were run.
struct Case {
    buffer: BufferId,
    plan: Option<PlanId>,
    runs: usize,
}

/// Dependencies between the launches.
#[derive(Clone, Copy)]
enum Shape {
    /// Each updates the output of the previous launch.
    InPlace,
    /// Each reads the output of the previous launch, and writes its input.
    PingPong,
    /// Each has elements of its own in one buffer.
    Disjoint,
}

fn prepare(bench: &mut Bench, input: &[f32], shape: Shape) -> Result<Vec<Case>> {
    bench.for_each_peer(|peer| {
        let buffer = peer.upload(input)?;
        let steps = match shape {
            Shape::PingPong => ping_pong(peer, buffer, input)?,
            _ => in_one_buffer(peer, buffer, shape)?,
        };
        let is_chain = !matches!(shape, Shape::Disjoint);
        let plan = peer.plan(&steps, is_chain)?;
        Ok(Case { buffer, plan, runs: 0 })
    })
}

fn in_one_buffer(peer: &mut dyn Peer, buffer: BufferId, shape: Shape) -> Result<Vec<Step>> {
    let kernel = peer.compile(INCREMENT)?;
    let launch = |i: usize| match shape {
        Shape::Disjoint => increment(kernel, buffer, i * LEN, LEN),
        _ => increment(kernel, buffer, 0, LEN),
    };
    Ok((0..COUNT).map(launch).collect())
}

/// Returns launches that alternate between two buffers. Their number is even, so the last one
/// writes `buffer`.
fn ping_pong(peer: &mut dyn Peer, buffer: BufferId, input: &[f32]) -> Result<Vec<Step>> {
    let (kernel, other) = (peer.compile(SUCCESSOR)?, peer.upload(input)?);
    let [ping, pong] = [buffer, other].map(|buffer| Span { buffer, start: 0, len: LEN });
    let launch = |from, to| Step::Launch {
        kernel,
        bindings: vec![from, to],
        groups: [1, 1],
        immediate: None,
    };
    let pairs = (0..COUNT / 2).flat_map(|_| [launch(ping, pong), launch(pong, ping)]);
    Ok(pairs.collect())
}

/// Checks that each run added `added_per_run` to each element, and frees the objects of all peers.
fn check(bench: &mut Bench, cases: &[Case], input: &[f32], added_per_run: usize) -> Result<()> {
    for (peer, case) in bench.peers.iter_mut().zip(cases) {
        let (output, added) = (peer.read(case.buffer)?, (case.runs * added_per_run) as f32);
        data::check(peer.name(), &output, |i| input[i] + added)?;
    }
    bench.clear();
    Ok(())
}

pub fn run(bench: &mut Bench) -> Result<()> {
    let goal = Rule::AtMost(CHAIN_GOAL);
    measure(bench, "dependent", Shape::InPlace, goal)?;
    measure(bench, "dependent, two buffers", Shape::PingPong, goal)?;
    measure(bench, "independent", Shape::Disjoint, Rule::NotSlower)
}

fn measure(bench: &mut Bench, name: &str, shape: Shape, rule: Rule) -> Result<()> {
    let (elements, added) = match shape {
        Shape::Disjoint => (COUNT * LEN, 1),
        _ => (LEN, COUNT),
    };
    let input = data::random(2, elements);
    let mut cases = prepare(bench, &input, shape)?;
    let subject = Subject { bench: name, size: "1000x256", bytes: None, rule };
    bench.compare(subject, COUNT, |index, peer| {
        cases[index].runs += usize::from(cases[index].plan.is_some());
        timed_run(peer, cases[index].plan)
    })?;
    check(bench, &cases, &input, added)
}

/// Compares the CPU time to record, to record and submit, and to replay.
pub fn host(bench: &mut Bench) -> Result<()> {
    let input = data::random(4, LEN);
    let mut cases = prepare(bench, &input, Shape::PingPong)?;
    let submit =
        Subject { bench: "record and submit", size: "1000", bytes: None, rule: Rule::Report };
    let mut records = vec![Vec::new(); cases.len()];
    bench.compare(submit, 1, |index, peer| {
        let Some(plan) = cases[index].plan else {
            return Ok(None);
        };
        cases[index].runs += 1;
        let time = peer.record(plan)?;
        records[index].push(time.record.as_secs_f64());
        Ok(Some(time.submit.as_secs_f64()))
    })?;
    let replays =
        bench.compare(Subject { bench: "replay", size: "1000", ..submit }, 1, |index, peer| {
            replay(&mut cases[index], peer)
        })?;
    let records: Vec<_> = records.into_iter().map(crate::stats::Summary::after_warm_up).collect();
    let wgpu = Subject { bench: "record alone", size: "1000", ..submit };
    if let (Some(ours), Some(Some(theirs))) = (replays[0], records.get(1).copied()) {
        let name = bench.peers[1].name();
        bench.report.row("record alone 1000", wgpu, name, theirs)?;
        let ratio = ours.median / theirs.median;
        let what = "replay 1000: time / wgpu's to record";
        bench.report.check_goal_on_gpus(what, ratio, Goal::AtMost(REPLAY_GOAL))?;
    }
    check(bench, &cases, &input, COUNT)
}

fn replay(case: &mut Case, peer: &mut dyn Peer) -> Result<Option<f64>> {
    let Some(plan) = case.plan else {
        return Ok(None);
    };
    let time = peer.replay(plan)?;
    case.runs += usize::from(time.is_some());
    Ok(time.map(|time| time.as_secs_f64()))
}
