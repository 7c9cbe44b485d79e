//! Speed of device memory: saxpy, and copies in the same run as the roof.

use anyhow::Result;

use super::{Bench, timed_run};
use crate::peer::{BufferId, Peer, PlanId, Span, Step};
use crate::report::{Goal, Rule, Subject};
use scry_bench::data;
use scry_bench::kernels::{COPY_VEC4, SAXPY, SAXPY_VEC4, WORKGROUP};

/// Minimum total size in bytes of the buffers of a case: more than the caches hold.
const COLD: usize = 256 << 20;
/// Minimum bytes moved by a measurement: enough to hide the launch overhead.
const WORK: usize = 96 << 30;
/// The same on software devices.
const QUICK_WORK: usize = 48 << 20;
/// Workgroups along x: fewer than every device's limit.
const ROW: usize = 32768;
const A: f32 = 1.0;
const GOAL: f64 = 0.97;

/// The pairs of buffers of one peer.
struct Pairs {
    pairs: Vec<[BufferId; 2]>,
    saxpy: Option<PlanId>,
    copy: Option<PlanId>,
    copy_kernel: Option<PlanId>,
    /// Times that saxpy ran over each pair.
    runs: usize,
}

pub fn run(bench: &mut Bench) -> Result<()> {
    let shifts: &[usize] = if bench.quick { &[16, 18, 20] } else { &[20, 24, 27] };
    for shift in shifts {
        size(bench, &format!("2^{shift}"), 1 << shift)?;
    }
    let last = shifts[shifts.len() - 1];
    size(bench, &format!("2^{last}+3"), (1 << last) + 3)
}

fn size(bench: &mut Bench, name: &str, n: usize) -> Result<()> {
    let (cold, work) = if bench.quick { (0, QUICK_WORK) } else { (COLD, WORK) };
    let (x, y) = (data::random(5, n), data::random(6, n));
    let count = cold.div_ceil(8 * n).max(1);
    let rounds = work.div_ceil(12 * n * count).clamp(1, 64);
    let mut all = bench.each(|peer| prepare(peer, [&x, &y], count, rounds))?;
    let saxpy =
        Subject { bench: "saxpy", size: name, bytes: Some(12.0 * n as f64), rule: Rule::NotSlower };
    let ours = bench.compare(saxpy, rounds * count, |index, peer| {
        let own = &mut all[index];
        own.runs += rounds;
        timed_run(peer, own.saxpy)
    })?[0];
    check(bench, &all, [&x, &y])?;
    let command = Subject { bench: "copy", ..saxpy };
    let command = copies(bench, &all, command, rounds, &x, |own| own.copy)?;
    let kernel = Subject { bench: "copy kernel", ..saxpy };
    let kernel = copies(bench, &all, kernel, rounds, &x[..n / 4 * 4], |own| own.copy_kernel)?;
    let roof = command.into_iter().chain(kernel).reduce(f64::max);
    if let (Some(ours), Some(roof)) = (ours, roof) {
        let share = 12.0 * n as f64 / ours.median / roof;
        let what = format!("saxpy {name}: speed / best copy's");
        match n == 1 << 27 {
            true => bench.report.demand_of_gpus(&what, share, Goal::AtLeast(GOAL))?,
            false => println!("    {what} = {share:.3}"),
        }
    }
    bench.clear();
    Ok(())
}

/// Measures copies of `x`; the speed of the fastest, bytes a second, read and written.
fn copies(
    bench: &mut Bench,
    all: &[Pairs],
    subject: Subject<'_>,
    rounds: usize,
    x: &[f32],
    plan: fn(&Pairs) -> Option<PlanId>,
) -> Result<Option<f64>> {
    // The result of an earlier copy must not be mistaken for that of this one.
    for (peer, saxpy) in bench.peers.iter_mut().zip(all.iter().map(|own| own.saxpy)) {
        saxpy.map_or(Ok(()), |saxpy| peer.run(saxpy))?;
    }
    let bytes = 8.0 * x.len() as f64;
    let count = rounds * all[0].pairs.len();
    let times =
        bench.compare(Subject { bytes: Some(bytes), ..subject }, count, |index, peer| {
            timed_run(peer, plan(&all[index]))
        })?;
    for (peer, own) in bench.peers.iter_mut().zip(all).filter(|(_, own)| plan(own).is_some()) {
        for [_, copy] in &own.pairs {
            data::check(peer.name(), &peer.read(*copy)?[..x.len()], |i| x[i])?;
        }
    }
    Ok(times.iter().flatten().map(|time| bytes / time.median).reduce(f64::max))
}

fn prepare(peer: &mut dyn Peer, [x, y]: [&[f32]; 2], count: usize, rounds: usize) -> Result<Pairs> {
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push([peer.upload(x)?, peer.upload(y)?]);
    }
    let (vec4, tail) = (peer.compile(SAXPY_VEC4)?, peer.compile(SAXPY)?);
    let copy = peer.compile(COPY_VEC4)?;
    let (mut launches, mut copies, mut copy_launches) = (Vec::new(), Vec::new(), Vec::new());
    for pair in pairs.iter().cycle().take(count * rounds) {
        let part = |start: usize, len: usize| pair.map(|buffer| Span { buffer, start, len });
        let launch = |kernel, bindings: [Span; 2], groups: [usize; 2], a| Step::Launch {
            kernel,
            bindings: bindings.to_vec(),
            groups: groups.map(|count| count as u32),
            immediate: a,
        };
        let whole = x.len() / 4 * 4;
        let groups = (whole / 4).div_ceil(WORKGROUP);
        let grid = [groups.min(ROW), groups.div_ceil(ROW)];
        launches.push(launch(vec4, part(0, whole), grid, Some(A)));
        copy_launches.push(launch(copy, part(0, whole), grid, None));
        if whole < x.len() {
            launches.push(launch(tail, part(whole, x.len() - whole), [1, 1], Some(A)));
        }
        let [from, to] = part(0, x.len());
        copies.push(Step::Copy { from, to });
    }
    let (saxpy, copy) = (peer.plan(&launches, true)?, peer.plan(&copies, true)?);
    let copy_kernel = peer.plan(&copy_launches, true)?;
    Ok(Pairs { pairs, saxpy, copy, copy_kernel, runs: 0 })
}

fn check(bench: &mut Bench, all: &[Pairs], [x, y]: [&[f32]; 2]) -> Result<()> {
    for (peer, own) in bench.peers.iter_mut().zip(all) {
        let runs = if own.saxpy.is_some() { own.runs as f32 } else { 0.0 };
        for [_, buffer] in &own.pairs {
            data::check(peer.name(), &peer.read(*buffer)?, |i| y[i] + runs * A * x[i])?;
        }
    }
    Ok(())
}
