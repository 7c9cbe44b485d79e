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

/// Translations of a kernel to PTX, for the median.
const TRANSLATIONS: usize = 101;

/// The kernel that is compiled: the product with tiles of 128x128.
const GEMM: &str = shaders::matmul::COARSE_8X8_VEC4;

/// Measures translation to PTX, and compares the disk cache with the driver's compiler.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (name, source) in [("gemm", GEMM), ("sum", shaders::reduce::SUM)] {
        translation(bench, name, source)?;
    }
    disk_cache(bench)
}

/// Measures lowering to the kernel IR, and its translation to PTX.
fn translation(bench: &mut Bench, name: &str, source: &str) -> Result<()> {
    let program = Program::parse(source)?;
    let (mut lower, mut emit) = (Vec::new(), Vec::new());
    for _ in 0..TRANSLATIONS {
        let start = Instant::now();
        let (lowered, emitted) = program.with_kir(&KirOptions { checked: true }, |kir| {
            let lowered = start.elapsed();
            std::hint::black_box(translate(&kir, &PtxOptions::new(Target::SM_90)));
            (lowered, start.elapsed())
        })?;
        lower.push(lowered.as_secs_f64());
        emit.push((emitted - lowered).as_secs_f64());
    }
    for (what, times, goal) in [("lower", lower, Goal::None), ("emit", emit, Goal::AtLeast(1.0))] {
        let (name, rate, ours) = (format!("{what} {name}"), String::new(), median(times));
        let (name, peer, theirs) = (name.as_str(), "a millisecond", 1e-3);
        bench.table.row(&Row { name, rate, ours, peer, theirs, goal });
    }
    Ok(())
}

/// Compares compilation from a warm disk cache with compilation without a cache, each in a new
/// process.
fn disk_cache(bench: &mut Bench) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let warm = folder.path().to_str().context("the folder's path is UTF-8")?;
    // Fills the cache.
    compile_in_child(bench, warm)?;
    let (mut cached, mut compiled) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        cached.push(compile_in_child(bench, warm)?);
        compiled.push(compile_in_child(bench, "off")?);
    }
    bench.table.row(&Row {
        name: "gemm 128x128 tiles, disk cache",
        rate: String::new(),
        ours: median(cached),
        peer: "our JIT",
        theirs: median(compiled),
        // At most 0.1 of its time.
        goal: Goal::AtLeast(10.0),
    });
    Ok(())
}

/// Returns the seconds that a separate process needs to compile, with this folder as its cache.
fn compile_in_child(bench: &Bench, cache: &str) -> Result<f64> {
    let device = format!("{}:{}", bench.ours.backend_kind(), bench.ours.info().index);
    let mut command = Command::new(std::env::current_exe()?);
    // The driver's own cache would hide the time of its compiler.
    command.env("SCRY_CACHE_DIR", cache).env("CUDA_CACHE_DISABLE", "1");
    let output = command.args(["--compile-child", "--device", &device]).output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a process that compiles failed: {messages}");
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse();
    seconds.context("a process that compiles printed no number")
}

/// Compiles in the child process, and prints the seconds.
pub fn child(device: &str) -> Result<()> {
    let device = Device::open(device)?;
    let start = Instant::now();
    device.compile(GEMM)?;
    println!("{}", start.elapsed().as_secs_f64());
    Ok(())
}
