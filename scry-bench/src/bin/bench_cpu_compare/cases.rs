//! The kernels, their data and their performance goals.

use scry_gpu::Launch;

use crate::host::Host;
use crate::job::{Data, Job, Work};
use crate::oracle;
use scry_bench::data::random;

/// The goals of one measurement.
#[derive(Clone, Copy)]
pub struct Goals {
    /// Minimum speed relative to the peer.
    pub peer: f64,
    /// Minimum speed relative to the plain Rust loop.
    pub host: Option<f64>,
}

/// A kernel to be measured.
pub struct Case {
    /// For the command line.
    pub name: &'static str,
    /// The performance goals.
    pub goals: Goals,
    /// Builds the job; of small size if the argument is true.
    pub make: fn(bool) -> Job,
    /// The same as a plain Rust loop, if there is one.
    pub host: Option<fn(&Job) -> anyhow::Result<Host>>,
}

const fn case(name: &'static str, peer: f64, make: fn(bool) -> Job) -> Case {
    Case { name, goals: Goals { peer, host: None }, make, host: None }
}

/// All kernels.
pub const CASES: &[Case] = &[
    Case {
        name: "saxpy",
        goals: Goals { peer: 5.0, host: Some(0.8) },
        make: saxpy,
        host: Some(Host::saxpy),
    },
    case("blur", 2.0, blur),
    case("scan", 5.0, scan),
    case("matmul-tiled", 10.0, |quick| matmul(include_str!("kernels/matmul_tiled.wgsl"), quick)),
    case("matmul-naive", 5.0, |quick| matmul(include_str!("kernels/matmul_naive.wgsl"), quick)),
    case("mandelbrot", 0.8, mandelbrot),
    case("fma-loop", 1.5, |quick| chain(include_str!("kernels/fma_loop.wgsl"), quick)),
    case("fma-line", 1.5, |quick| chain(include_str!("kernels/fma_line.wgsl"), quick)),
];

/// The factor `a` of saxpy.
pub const FACTOR: f32 = 0.5;

fn immediate_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn saxpy(quick: bool) -> Job {
    let n = if quick { 1 << 22 } else { 1 << 26 };
    let pieces = if quick { 1 } else { 2 };
    let (x, y) = (random(1, n), random(2, n));
    Job {
        source: include_str!("../../kernels/saxpy.wgsl"),
        data: vec![Data::F32(x.clone()), Data::F32(y.clone())],
        launch: Launch::invocations(n / pieces).immediates(&FACTOR),
        pieces,
        work: Work::Bytes(12.0 * n as f64),
        check: oracle::saxpy(x, y),
    }
}

fn blur(quick: bool) -> Job {
    let side = if quick { 1024 } else { 4096 };
    let image = random(3, side * side);
    Job {
        source: include_str!("kernels/blur.wgsl"),
        data: vec![Data::F32(image.clone()), Data::F32(vec![f32::NAN; side * side])],
        launch: Launch::invocations([side, side])
            .immediate_bytes(immediate_bytes(&[side as u32, side as u32])),
        pieces: 1,
        work: Work::Bytes(8.0 * (side * side) as f64),
        check: oracle::blur(image, side),
    }
}

fn scan(quick: bool) -> Job {
    let n = if quick { 1 << 20 } else { 1 << 24 };
    let input: Vec<u32> = random(4, n).into_iter().map(f32::to_bits).collect();
    Job {
        source: include_str!("kernels/scan.wgsl"),
        data: vec![Data::U32(input.clone()), Data::U32(vec![u32::MAX; n])],
        launch: Launch::invocations(n),
        pieces: 1,
        work: Work::Bytes(8.0 * n as f64),
        check: oracle::scan(input, 256),
    }
}

/// Returns random, non-zero multiples of 1/16 between -1 and 1: sums of hundreds of products are
/// exact.
pub fn coarse(seed: u32, n: usize) -> Vec<f32> {
    let round = |x: f32| if x.abs() < 1.0 / 16.0 { x.signum() } else { (x * 16.0).trunc() / 16.0 };
    random(seed, n).into_iter().map(round).collect()
}

fn matmul(source: &'static str, quick: bool) -> Job {
    let n = if quick { 128 } else { 512 };
    let (a, b) = (coarse(5, n * n), coarse(6, n * n));
    let poison = vec![f32::NAN; n * n];
    Job {
        source,
        data: vec![Data::F32(a.clone()), Data::F32(b.clone()), Data::F32(poison)],
        launch: Launch::invocations([n, n]).immediate_bytes(immediate_bytes(&[n as u32; 3])),
        pieces: 1,
        work: Work::Flops(2.0 * (n * n * n) as f64),
        check: oracle::matmul(a, b, n),
    }
}

fn mandelbrot(quick: bool) -> Job {
    let side = if quick { 512 } else { 2048 };
    Job {
        source: include_str!("kernels/mandelbrot.wgsl"),
        data: vec![Data::U32(vec![u32::MAX; side * side])],
        launch: Launch::invocations([side, side])
            .immediate_bytes(immediate_bytes(&[side as u32, side as u32])),
        pieces: 1,
        work: Work::Elements((side * side) as f64),
        check: oracle::mandelbrot(side),
    }
}

fn chain(source: &'static str, quick: bool) -> Job {
    let n = if quick { 1 << 20 } else { 1 << 22 };
    let input = random(7, n);
    let factors = [0.9375f32, 0.0625];
    Job {
        source,
        data: vec![Data::F32(input.clone()), Data::F32(vec![f32::NAN; n])],
        launch: Launch::invocations(n).immediate_bytes(immediate_bytes(&factors.map(f32::to_bits))),
        pieces: 1,
        work: Work::Flops(64.0 * n as f64),
        check: oracle::chain(input, factors),
    }
}
