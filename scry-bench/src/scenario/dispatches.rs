//! Many small launches in one submission: a chain, and launches that do not touch one another.

use anyhow::Result;

use super::{Bench, increment, timed_run};
use crate::data;
use crate::kernels::INCREMENT;
use crate::peer::{BufferId, Peer, PlanId, Step};
use crate::report::{Goal, Rule, Subject};

/// Launches of one submission.
const COUNT: usize = 1000;
/// Elements of one launch: 1 KiB, a multiple of every device's binding alignment.
const LEN: usize = 256;

const CHAIN_GOAL: f64 = 0.9;
const REPLAY_GOAL: f64 = 0.05;

/// Launches prepared by one peer, and how often they ran.
struct Case {
    buffer: BufferId,
    plan: Option<PlanId>,
    runs: usize,
}

/// Launches over the same elements, or each over its own.
fn prepare(bench: &mut Bench, input: &[f32], chained: bool) -> Result<Vec<Case>> {
    bench.each(|peer| {
        let (kernel, buffer) = (peer.compile(INCREMENT)?, peer.upload(input)?);
        let start = |i: usize| if chained { 0 } else { i * LEN };
        let steps: Vec<Step> = (0..COUNT)
            .map(|i| increment(kernel, buffer, start(i), LEN))
            .collect();
        Ok(Case {
            buffer,
            plan: peer.plan(&steps, chained)?,
            runs: 0,
        })
    })
}

/// Checks that each run added `step` to each element.
fn check(bench: &mut Bench, cases: &[Case], input: &[f32], step: usize) -> Result<()> {
    for (peer, case) in bench.peers.iter_mut().zip(cases) {
        let (output, added) = (peer.read(case.buffer)?, (case.runs * step) as f32);
        data::check(peer.name(), &output, |i| input[i] + added)?;
    }
    bench.clear();
    Ok(())
}

pub fn run(bench: &mut Bench) -> Result<()> {
    chain(bench)?;
    disjoint(bench)
}

fn chain(bench: &mut Bench) -> Result<()> {
    let input = data::random(2, LEN);
    let mut cases = prepare(bench, &input, true)?;
    let subject = Subject {
        bench: "dependent",
        size: "1000x256",
        bytes: None,
        rule: Rule::AtMost(CHAIN_GOAL),
    };
    bench.compare(subject, COUNT, |index, peer| {
        cases[index].runs += 1;
        timed_run(peer, cases[index].plan)
    })?;
    check(bench, &cases, &input, COUNT)
}

fn disjoint(bench: &mut Bench) -> Result<()> {
    let input = data::random(3, COUNT * LEN);
    let mut cases = prepare(bench, &input, false)?;
    let subject = Subject {
        bench: "independent",
        size: "1000x256",
        bytes: None,
        rule: Rule::NotSlower,
    };
    bench.compare(subject, COUNT, |index, peer| {
        cases[index].runs += usize::from(cases[index].plan.is_some());
        timed_run(peer, cases[index].plan)
    })?;
    check(bench, &cases, &input, 1)
}

/// Host time to record, to record and submit, and to replay.
pub fn host(bench: &mut Bench) -> Result<()> {
    let input = data::random(4, LEN);
    let mut cases = prepare(bench, &input, true)?;
    let submit = Subject {
        bench: "record and submit",
        size: "1000",
        bytes: None,
        rule: Rule::NotSlower,
    };
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
    let replays = bench.compare(
        Subject {
            bench: "replay",
            size: "1000",
            ..submit
        },
        1,
        |index, peer| replay(&mut cases[index], peer),
    )?;
    let records: Vec<_> = records.into_iter().map(crate::stats::Summary::of).collect();
    let wgpu = Subject {
        bench: "record alone",
        size: "1000",
        ..submit
    };
    if let (Some(ours), Some(theirs)) = (replays[0], records[1]) {
        let name = bench.peers[1].name();
        bench.report.row("record alone 1000", wgpu, name, theirs)?;
        let ratio = ours.median / theirs.median;
        let what = "replay 1000: time / wgpu's to record";
        bench
            .report
            .demand_of_gpus(what, ratio, Goal::AtMost(REPLAY_GOAL))?;
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
