//! Vectors of texts: speed for two sizes, and kernels for many.

use std::collections::HashSet;

use anyhow::{Context as _, Result, ensure};
use scry_bench::table::Goal;
use scry_models::DType;
use scry_tensor::{Tensor, compiled_library_kernels};

use crate::Bench;

/// Returns the tokens that the peers use, too.
pub fn tokens(batch: usize, length: usize) -> Vec<Vec<u32>> {
    let token = |at: usize| ((at * 7919 + 13) % 30522) as u32;
    (0..batch).map(|row| (0..length).map(|at| token(row * length + at)).collect()).collect()
}

/// Compares batches of 16-bit floats with PyTorch's: eager, and compiled with CUDA graphs.
pub fn run(bench: &mut Bench) -> Result<()> {
    let encoder = bench.encoder(DType::F16)?;
    let cases = [([64, 128], 20, [1.3, 1.0]), ([1, 16], 200, [10.0, 1.0 / 0.6])];
    for ([batch, length], calls, goals) in cases {
        let texts = tokens(batch, length);
        let sizes = [batch, length];
        let theirs: &[(&str, &[usize])] = match bench.arguments.quick {
            true => &[("encoder_eager", &sizes)],
            false => &[("encoder_eager", &sizes), ("encoder_compiled", &sizes)],
        };
        // PyTorch saves its vectors when it prepares the first function.
        if let Some(torch) = &mut bench.torch {
            torch.measure("encoder_eager", &[1, batch, length])?;
        }
        check(bench, [batch, length], &encoder.embed_tokens(&texts)?)?;
        let ours = || Ok(drop(encoder.embed_tokens(&texts)?));
        let medians = bench.medians(calls, ours, theirs)?;
        let rate = format!("{:.0} texts/s", batch as f64 / medians[0]);
        let name = format!("MiniLM {batch}x{length} f16");
        for ((time, peer), goal) in medians[1..].iter().zip(["eager", "max-autotune"]).zip(goals) {
            bench.row(&name, rate.clone(), medians[0], peer, *time, Goal::AtLeast(goal));
        }
    }
    bench.explain("run", &encoder.plan().explain()?);
    Ok(())
}

/// Compares the vectors with those that a peer has written.
pub fn check(bench: &Bench, [batch, length]: [usize; 2], vectors: &Tensor) -> Result<()> {
    let path = bench.folder.join(format!("vectors-{batch}-{length}.bin"));
    let bytes = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
    let wanted = bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    let found = vectors.to_vec::<f32>()?;
    ensure!(found.len() == wanted.len(), "{} and {} elements", found.len(), wanted.len());
    let differences = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    // A maximum would ignore NaN.
    let most = differences.fold(0f32, |most, it| if it <= most { most } else { it });
    println!("vectors of {batch}x{length} are at most {most:.1e} from the peer's");
    ensure!(most < 5e-3, "the vectors differ by {most}");
    Ok(())
}

/// Counts the kernels that 200 random sizes compile: those of the plan and of the kernel library.
pub fn shapes(bench: &mut Bench) -> Result<()> {
    let encoder = bench.encoder(DType::F16)?;
    let plan = encoder.plan();
    let report = plan.explain()?;
    let kinds: HashSet<_> = report.kernels.iter().map(|it| (&it.ops, &it.variant)).collect();
    let custom = kinds.iter().filter(|(_, variant)| variant.starts_with("kernel `")).count();
    let count = || plan.compiled_kernels() as usize + compiled_library_kernels(&bench.gpu) + custom;
    let (one, loaded) = (kinds.len(), count());
    let mut state = 1u32;
    let mut below = |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) % n) as usize
    };
    let mut counts = Vec::new();
    let start = std::time::Instant::now();
    for _ in 0..200 {
        let texts = tokens(1 + below(64), 1 + below(256));
        drop(encoder.embed_tokens(&texts)?);
        counts.push(count());
    }
    bench.gpu.wait()?;
    let each = start.elapsed().as_secs_f64() / 200.0;
    let (tenth, last) = (counts[9], counts[199]);
    println!(
        "200 random sizes: {one} kernels of one size, {loaded} when loaded, {tenth} after ten, \
         {last} after all; {:.2} ms each",
        each * 1e3
    );
    ensure!(tenth == last && last <= 2 * one, "too many kernels were compiled");
    Ok(())
}
