//! Compares groups of CUDA devices with PyTorch's `torch.distributed`, both with NCCL, and with one
//! device. See README.md.

use std::process::ExitCode;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use half::bf16;
use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};
use scry_bench::torch::Torch;
use scry_gpu::{BackendKind, Device, DeviceGroup, GroupTransport, ReduceOp};
use scry_kernels::Kernels;

mod kmeans;

/// Compares groups of CUDA devices with PyTorch, and with one device. Exits with 1 if a goal is
/// missed, with 2 if a result is wrong or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Number of GPUs; all by default.
    #[arg(long)]
    gpus: Option<usize>,
    /// Only this part: all_reduce, matmul or kmeans; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: String,
}

/// The context of all parts.
pub struct Bench {
    gpus: Vec<Device>,
    torch: Torch,
    table: Table,
}

const PARTS: [runner::Part<Bench>; 3] =
    [("all_reduce", all_reduce), ("matmul", matmul), ("kmeans", kmeans::run)];

/// Calls inside a recording.
const RECORDED: usize = 10;

/// Measurements of each number; the fastest counts, ours and the peer's alternately.
const SAMPLES: usize = 3;

fn main() -> ExitCode {
    runner::exit_status("bench_groups", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_parts(&arguments.only, &PARTS)?;
    let found = Device::list().iter().filter(|info| info.backend == BackendKind::Cuda).count();
    let world = arguments.gpus.unwrap_or(found);
    ensure!(world >= 2 && world <= found, "{world} of {found} GPUs cannot form a group");
    let open = |index| Device::open(&format!("cuda:{index}"));
    let gpus = (0..world).map(open).collect::<scry_gpu::Result<Vec<_>>>()?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let program = format!(
        "import os\nos.environ['BENCH_WORLD'] = '{world}'\nos.environ['BENCH_PORT'] = \
         '{port}'\n{}",
        include_str!("torch.py")
    );
    let torch = Torch::start(&arguments.python, &program)?;
    let mut bench = Bench { gpus, torch, table: Table::default() };
    let reasons =
        on_each(&bench.gpus, |group| Ok((group.transport(), group.transport_reason().to_owned())))?;
    println!("ours:   {world} × {}: {}, {}", bench.gpus[0].name(), reasons[0].0, reasons[0].1);
    println!("peer:   {}", bench.torch.name);
    ensure!(reasons[0].0 == GroupTransport::Nccl, "the group does not use NCCL");
    bench.table.heading();
    runner::run_parts(&mut bench, &arguments.only, &PARTS)?;
    Ok(bench.table.finish())
}

/// Runs `program` for each rank of a group of these devices, and returns its results.
fn on_each<T: Send>(
    gpus: &[Device],
    program: impl Fn(&DeviceGroup) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = DeviceGroup::on_each(gpus, |group| Ok(program(group)))?;
    results.into_iter().collect()
}

impl Bench {
    /// Adds a row that compares all GPUs with one.
    fn scaling(&mut self, name: &str, all: f64, one: f64) {
        let min = match self.gpus.len() {
            2 => 1.8,
            4 if name.starts_with("k-means") => 3.5,
            4 => 3.4,
            _ => 0.0,
        };
        // A gather is not part of the goals.
        let goal = if name.contains("gathered") { Goal::None } else { Goal::AtLeast(min) };
        let rate = String::new();
        self.table.row(&Row { name, rate, ours: all, peer: "one GPU", theirs: one, goal });
    }

    /// Measures alternately with the peer, and returns the fastest of both.
    fn alternate(
        &mut self,
        peer: (&str, &[usize]),
        ours: impl Fn(&[Device]) -> Result<f64>,
    ) -> Result<(f64, f64)> {
        let mut fastest = (f64::INFINITY, f64::INFINITY);
        for _ in 0..SAMPLES {
            fastest.0 = fastest.0.min(ours(&self.gpus)?);
            fastest.1 = fastest.1.min(self.torch.measure(peer.0, peer.1)?);
        }
        Ok(fastest)
    }
}

/// Returns the seconds of one of `repeats` calls on the slowest rank. `prepare` returns the call of
/// a rank.
fn timed<C: FnMut() -> scry_gpu::Result<()>>(
    group: &DeviceGroup,
    barrier: &Barrier,
    repeats: usize,
    mut call: C,
) -> scry_gpu::Result<f64> {
    (0..3).try_for_each(|_| call())?;
    group.device().wait()?;
    barrier.wait();
    let start = Instant::now();
    (0..repeats).try_for_each(|_| call())?;
    group.device().wait()?;
    Ok(start.elapsed().as_secs_f64() / repeats as f64)
}

fn slowest(seconds: Vec<f64>) -> f64 {
    seconds.into_iter().fold(0.0, f64::max)
}

fn all_reduce(bench: &mut Bench) -> Result<()> {
    // The latency of the small one, the bandwidth of the large one.
    let sizes = [
        ("1 KiB", 256, 2000, Goal::AtLeast(1.0 / 1.1)),
        ("1 MiB", 1 << 18, 500, Goal::AtLeast(1.0 / 1.1)),
        ("256 MiB", 1 << 26, 20, Goal::AtLeast(0.95)),
    ];
    for (size, len, repeats, goal) in sizes {
        let world = bench.gpus.len();
        for kind in ["", " waited for", " recorded"] {
            let barrier = &Barrier::new(world);
            let measure = |gpus: &[Device]| {
                let seconds = on_each(gpus, |group| {
                    let x = group.device().alloc::<f32>(len)?;
                    let call = || group.all_reduce(&x, &x, ReduceOp::Sum);
                    Ok(match kind {
                        "" => timed(group, barrier, repeats, call)?,
                        " recorded" => {
                            let mut batch = group.device().batch();
                            for _ in 0..RECORDED {
                                batch.all_reduce(group, &x, &x, ReduceOp::Sum)?;
                            }
                            let recording = batch.record()?;
                            let replay = || recording.replay().map(drop);
                            timed(group, barrier, repeats / RECORDED, replay)? / RECORDED as f64
                        }
                        _ => {
                            let call = || call().and_then(|()| group.device().wait());
                            timed(group, barrier, repeats / 4, call)?
                        }
                    })
                })?;
                Ok(slowest(seconds))
            };
            let (peer, repeats) = match kind {
                "" => ("all_reduce", repeats),
                " recorded" => ("all_reduce_graph", repeats / RECORDED),
                _ => ("all_reduce_wait", repeats / 4),
            };
            let (ours, theirs) = bench.alternate((peer, &[len, repeats]), measure)?;
            let goal = if kind == " recorded" { Goal::AtLeast(1.0 / 1.05) } else { goal };
            // The bandwidth of the links: each rank sends and receives this much.
            let bytes = 4.0 * len as f64 * 2.0 * (world - 1) as f64 / world as f64;
            let rate = format!("{:.1} GB/s", bytes / ours / 1e9);
            let name = &format!("all_reduce {size}{kind}");
            bench.table.row(&Row { name, rate, ours, peer: "PyTorch", theirs, goal });
        }
    }
    Ok(())
}

fn matmul(bench: &mut Bench) -> Result<()> {
    const N: usize = 16384;
    const REPEATS: usize = 20;
    let world = bench.gpus.len();
    let one = multiply(&bench.gpus[..1], N, REPEATS, false)?;
    for gathers in [false, true] {
        let peer = if gathers { "matmul_gather" } else { "matmul" };
        let measure = |gpus: &[Device]| multiply(gpus, N, REPEATS, gathers);
        let (ours, theirs) = bench.alternate((peer, &[N, REPEATS]), measure)?;
        let what = if gathers { ", gathered" } else { "" };
        let name = &format!("bf16 16384³ on {world}{what}");
        let rate = format!("{:.0} TFLOP/s", 2.0 * (N as f64).powi(3) / ours / 1e12);
        let (peer, goal) = ("PyTorch", Goal::None);
        bench.table.row(&Row { name, rate, ours, peer, theirs, goal });
        bench.scaling(name, ours, one);
    }
    Ok(())
}

/// Returns the seconds of a product of which each rank computes some rows.
fn multiply(gpus: &[Device], n: usize, repeats: usize, gathers: bool) -> Result<f64> {
    let barrier = Barrier::new(gpus.len());
    let seconds = on_each(gpus, |group| {
        let gpu = group.device();
        let rows = n / group.world_size();
        let random = |seed: u32, len: usize| {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bf16::from_f32((state >> 8) as f32 / (1 << 24) as f32 - 0.5)
            };
            // Rows repeat after a megabyte of numbers.
            let some: Vec<bf16> = (0..len.min(1 << 20)).map(|_| next()).collect();
            gpu.upload(&some.into_iter().cycle().take(len).collect::<Vec<_>>())
        };
        let (a, b) = (random(1 + group.rank() as u32, rows * n)?, random(99, n * n)?);
        let c = gpu.alloc::<bf16>(rows * n)?;
        let all = gpu.alloc::<bf16>(if gathers { n * n } else { 0 })?;
        let product = Kernels::new(gpu)?.matmul(&a, &b, &c, rows, n, n)?;
        let call = || {
            product.run()?;
            if gathers { group.all_gather(&c, &all) } else { Ok(()) }
        };
        Ok(timed(group, &barrier, repeats, call)?)
    })?;
    Ok(slowest(seconds))
}
