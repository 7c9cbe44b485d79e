//! Checks that all peers compute the same results from the same kernels.

use anyhow::{Result, ensure};

use super::Bench;
use crate::peer::{Span, Step};
use scry_bench::data;
use scry_bench::kernels::{ALL, INCREMENT, WORKGROUP};

/// Not a multiple of the workgroup size.
const LEN: usize = 4 * 1000;

/// Runs each kernel once on each peer. All results must equal the first peer's exactly, and more
/// than half of their elements must differ from the input.
pub fn run(bench: &mut Bench) -> Result<()> {
    let inputs = [data::random(11, LEN), data::random(12, LEN)];
    for (name, wgsl) in ALL {
        let outputs = bench.for_each_peer(|peer| {
            let (x, y) = (peer.upload(&inputs[0])?, peer.upload(&inputs[1])?);
            let span = |buffer| Span { buffer, start: 0, len: LEN };
            let immediate = wgsl.contains("parameters").then_some(0.75);
            let step = Step::Launch {
                kernel: peer.compile(wgsl)?,
                bindings: match wgsl {
                    INCREMENT => vec![span(y)],
                    _ => vec![span(x), span(y)],
                },
                groups: [LEN.div_ceil(WORKGROUP) as u32, 1],
                immediate,
            };
            if let Some(plan) = peer.plan(&[step], true)? {
                peer.run(plan)?;
            }
            peer.read(y)
        })?;
        let first = &outputs[0];
        let changed = first.iter().zip(&inputs[1]).filter(|(new, old)| new != old);
        ensure!(changed.count() > LEN / 2, "{name} did nothing");
        for (peer, output) in bench.peers.iter().zip(&outputs) {
            data::check(&format!("{name} by {}", peer.name()), output, |i| first[i])?;
        }
        bench.clear();
    }
    let names: Vec<&str> = bench.peers.iter().map(|peer| peer.name()).collect();
    println!("{} kernels give the same results on {}", ALL.len(), names.join(", "));
    Ok(())
}
