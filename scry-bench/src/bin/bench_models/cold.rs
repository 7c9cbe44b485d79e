//! A new process until its first vector, with empty and with warm caches.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use scry_bench::table::Goal;
use scry_models::{DType, Device};

use crate::{Arguments, Bench, load};

/// Prints the seconds since the start of this process, once it has a vector.
pub fn child(start: Instant, arguments: &Arguments) -> Result<bool> {
    let folder = arguments.folder.as_deref().context("a child has --folder")?;
    let mut marks = Vec::new();
    let gpu = Device::open(&arguments.device)?;
    marks.push(("device", start.elapsed()));
    let encoder = load(folder, &gpu, DType::F16)?;
    marks.push(("loaded", start.elapsed()));
    // 16 tokens, with those that the model adds.
    let vectors = encoder.embed(&["text ".repeat(14)])?;
    ensure!(vectors[0].len() == 384, "a vector of 384 elements");
    eprintln!("    after {}: {marks:?}", start.elapsed().as_secs_f64());
    println!("{}", start.elapsed().as_secs_f64());
    Ok(true)
}

/// Compares new processes with PyTorch's.
pub fn run(bench: &mut Bench) -> Result<()> {
    let caches = tempfile::tempdir()?;
    let measure = || -> Result<f64> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--child").arg("--folder").arg(&bench.folder);
        command.arg("--device").arg(&bench.arguments.device);
        // The driver's cache of compiled PTX, too.
        let output = command
            .env("SCRY_CACHE_DIR", caches.path().join("scry"))
            .env("CUDA_CACHE_PATH", caches.path().join("cuda"))
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "the child failed: {error}");
        eprint!("{error}");
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let cold = measure()?;
    let warm = (0..3).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    let warm = crate::median(warm);
    println!("goals: 2 s with empty caches, 0.4 s with warm ones");
    let quick = bench.arguments.quick;
    let mut torch = |is_compiled: usize| match &mut bench.torch {
        Some(torch) if is_compiled == 0 || !quick => torch.measure("cold", &[1, is_compiled]),
        _ => Ok(f64::NAN),
    };
    let (eager, compiled, again) = (torch(0)?, torch(1)?, torch(1)?);
    let goal = |limit: f64, time: f64| {
        // A ratio that is out of reach marks a missed goal.
        Goal::AtLeast(if time <= limit { 0.0 } else { f64::INFINITY })
    };
    let name = "first vector, empty caches";
    bench.row(name, String::new(), cold, "max-autotune", compiled, goal(2.0, cold));
    let name = "first vector, warm caches";
    bench.row(name, String::new(), warm, "max-autotune", again, goal(0.4, warm));
    bench.row(name, String::new(), warm, "eager", eager, Goal::None);
    Ok(())
}
