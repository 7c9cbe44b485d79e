//! Compile times: to PTX, with the driver's compiler, and from the disk cache.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use scry_gpu::{Device, shaders};
use scry_ir::{Program, kir::KirOptions};
use scry_ptx::{PtxOptions, Target, translate};

use crate::{Bench, median};
use scry_bench::table::{Goal, Row};

/// Processes for each number.
const PROCESSES: usize = 7;

/// How often a kernel is translated.
const EMISSIONS: usize = 101;

/// The kernel that is compiled: the 128×128 product.
const GEMM: &str = shaders::matmul::COARSE_8X8_VEC4;

/// Compares all of it.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (name, source) in [("gemm", GEMM), ("sum", shaders::reduce::SUM)] {
        emit(bench, name, source)?;
    }
    load(bench)
}

/// Time of generating PTX, and of building the kernel IR before it.
fn emit(bench: &mut Bench, name: &str, source: &str) -> Result<()> {
    let program = Program::parse(source)?;
    let (mut lowering, mut writing) = (Vec::new(), Vec::new());
    for _ in 0..EMISSIONS {
        let start = Instant::now();
        let written = program.with_kir(&KirOptions { checked: true }, |kir| {
            let lowered = start.elapsed();
            std::hint::black_box(translate(&kir, &PtxOptions::new(Target::SM_90)));
            (lowered, start.elapsed())
        })?;
        lowering.push(written.0.as_secs_f64());
        writing.push((written.1 - written.0).as_secs_f64());
    }
    for (what, times, goal) in
        [("lower", lowering, Goal::None), ("emit", writing, Goal::AtLeast(1.0))]
    {
        let (name, rate, ours) = (format!("{what} {name}"), String::new(), median(times));
        let (name, peer, theirs) = (name.as_str(), "a millisecond", 1e-3);
        bench.table.row(&Row { name, rate, ours, peer, theirs, goal });
    }
    Ok(())
}

/// Compares the first compilation of a kernel with later processes' ones.
fn load(bench: &mut Bench) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let warm = folder.path().to_str().context("the folder's name is text")?;
    // Fills the cache.
    process(bench, warm)?;
    let (mut cached, mut compiled) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        cached.push(process(bench, warm)?);
        compiled.push(process(bench, "off")?);
    }
    bench.table.row(&Row {
        name: "128x128 gemm from the disk cache",
        rate: String::new(),
        ours: median(cached),
        peer: "our JIT",
        theirs: median(compiled),
        // At most 0.1 of its time.
        goal: Goal::AtLeast(10.0),
    });
    Ok(())
}

/// Compile time in seconds of a separate process, with a folder for its cache.
fn process(bench: &Bench, cache: &str) -> Result<f64> {
    let device = format!("{}:{}", bench.ours.backend_kind(), bench.ours.info().index);
    let mut command = Command::new(std::env::current_exe()?);
    // The driver's own cache would hide the time of its compiler.
    command.env("SCRY_CACHE_DIR", cache).env("CUDA_CACHE_DISABLE", "1");
    let output = command.args(["--compile-child", "--device", &device]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a process that compiles failed: {said}");
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse();
    seconds.context("a process that compiles said no number")
}

/// Compiles, and prints the seconds.
pub fn child(device: &str) -> Result<()> {
    let device = Device::open(device)?;
    let start = Instant::now();
    device.compile(GEMM)?;
    println!("{}", start.elapsed().as_secs_f64());
    Ok(())
}
