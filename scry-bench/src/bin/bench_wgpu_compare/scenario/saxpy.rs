//! Memory bandwidth of saxpy, with copies in the same run as the upper bound.

use anyhow::Result;

use super::{Bench, timed_run};
use crate::peer::{BufferId, Peer, PlanId, Span, Step};
use crate::report::{Goal, Rule, Subject};
use scry_bench::data;
use scry_bench::kernels::{COPY_VEC4, SAXPY, SAXPY_VEC4, WORKGROUP};

/// Minimum total size in bytes of the buffers of a case: more than the caches hold.
const MIN_BUFFER_BYTES: usize = 256 << 20;
/// Minimum bytes moved by a measurement, but in at most 64 rounds: enough to hide the launch
/// overhead.
const MIN_WORK_BYTES: usize = 96 << 30;
/// The same for small sizes.
const QUICK_WORK_BYTES: usize = 48 << 20;
/// Maximum workgroups along x, within every device's limit.
const MAX_GROUPS_X: usize = 32768;
/// The factor `a` of saxpy.
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
        measure_size(bench, &format!("2^{shift}"), 1 << shift)?;
    }
    let last = shifts[shifts.len() - 1];
    measure_size(bench, &format!("2^{last}+3"), (1 << last) + 3)
}

fn measure_size(bench: &mut Bench, name: &str, n: usize) -> Result<()> {
    let (min_bytes, work) =
        if bench.quick { (0, QUICK_WORK_BYTES) } else { (MIN_BUFFER_BYTES, MIN_WORK_BYTES) };
    let (x, y) = (data::random(5, n), data::random(6, n));
    let count = min_bytes.div_ceil(8 * n).max(1);
    let rounds = work.div_ceil(12 * n * count).clamp(1, 64);
    let mut peers_pairs = bench.for_each_peer(|peer| prepare(peer, [&x, &y], count, rounds))?;
    let saxpy =
        Subject { bench: "saxpy", size: name, bytes: Some(12.0 * n as f64), rule: Rule::NotSlower };
    let ours = bench.compare(saxpy, rounds * count, |index, peer| {
        let own = &mut peers_pairs[index];
        own.runs += rounds;
        timed_run(peer, own.saxpy)
    })?[0];
    check(bench, &peers_pairs, [&x, &y])?;
    let command = Subject { bench: "copy", ..saxpy };
    let command = copies(bench, &peers_pairs, command, rounds, &x, |own| own.copy)?;
    let kernel = Subject { bench: "copy kernel", ..saxpy };
    let kernel =
        copies(bench, &peers_pairs, kernel, rounds, &x[..n / 4 * 4], |own| own.copy_kernel)?;
    let best_copy = command.into_iter().chain(kernel).reduce(f64::max);
    if let (Some(ours), Some(best_copy)) = (ours, best_copy) {
        let ratio = 12.0 * n as f64 / ours.median / best_copy;
        let what = format!("saxpy {name}: speed / best copy's");
        match n == 1 << 27 {
            true => bench.report.check_goal_on_gpus(&what, ratio, Goal::AtLeast(GOAL))?,
            false => println!("    {what} = {ratio:.3}"),
        }
    }
    bench.clear();
    Ok(())
}

/// Measures copies of `x`; returns the bytes per second, read and written, of the fastest peer.
fn copies(
    bench: &mut Bench,
    peers_pairs: &[Pairs],
    subject: Subject<'_>,
    rounds: usize,
    x: &[f32],
    plan: fn(&Pairs) -> Option<PlanId>,
) -> Result<Option<f64>> {
    // Saxpy overwrites the result of an earlier copy, which could hide that this one does nothing.
    for (peer, saxpy) in bench.peers.iter_mut().zip(peers_pairs.iter().map(|own| own.saxpy)) {
        saxpy.map_or(Ok(()), |saxpy| peer.run(saxpy))?;
    }
    let bytes = 8.0 * x.len() as f64;
    let count = rounds * peers_pairs[0].pairs.len();
    let times =
        bench.compare(Subject { bytes: Some(bytes), ..subject }, count, |index, peer| {
            timed_run(peer, plan(&peers_pairs[index]))
        })?;
    for (peer, own) in
        bench.peers.iter_mut().zip(peers_pairs).filter(|(_, own)| plan(own).is_some())
    {
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
        let vector_len = x.len() / 4 * 4;
        let groups = (vector_len / 4).div_ceil(WORKGROUP);
        let grid = [groups.min(MAX_GROUPS_X), groups.div_ceil(MAX_GROUPS_X)];
        launches.push(launch(vec4, part(0, vector_len), grid, Some(A)));
        copy_launches.push(launch(copy, part(0, vector_len), grid, None));
        if vector_len < x.len() {
            launches.push(launch(tail, part(vector_len, x.len() - vector_len), [1, 1], Some(A)));
        }
        let [from, to] = part(0, x.len());
        copies.push(Step::Copy { from, to });
    }
    let (saxpy, copy) = (peer.plan(&launches, true)?, peer.plan(&copies, true)?);
    let copy_kernel = peer.plan(&copy_launches, true)?;
    Ok(Pairs { pairs, saxpy, copy, copy_kernel, runs: 0 })
}

fn check(bench: &mut Bench, peers_pairs: &[Pairs], [x, y]: [&[f32]; 2]) -> Result<()> {
    for (peer, own) in bench.peers.iter_mut().zip(peers_pairs) {
        let runs = if own.saxpy.is_some() { own.runs as f32 } else { 0.0 };
        for [_, buffer] in &own.pairs {
            data::check(peer.name(), &peer.read(*buffer)?, |i| y[i] + runs * A * x[i])?;
        }
    }
    Ok(())
}
