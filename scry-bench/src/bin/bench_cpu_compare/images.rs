//! Images in two-dimensional workgroups: small ones beside large ones, and a heat equation beside
//! one thread of plain Rust. All of 512² pixels, many launches in a batch.

use std::mem;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use scry_gpu::{Binding, Device, Launch};

use scry_bench::data::{check, random};

/// A kernel with a limit on its time relative to another.
pub struct Image {
    /// For the command line.
    pub name: &'static str,
    /// The kernel or loop that it is compared with.
    pub reference: &'static str,
    /// Limit of the ratio of the times.
    pub goal: f64,
    make: fn(&Device) -> Result<[Timed<'_>; 2]>,
}

/// All of them.
pub const ALL: &[Image] = &[
    Image { name: "double-8x8", reference: "16×16", goal: 1.5, make: double },
    Image { name: "heat-8x8", reference: "1 thread", goal: 4.0, make: |ours| heat(ours, "8, 8") },
    Image {
        name: "heat-16x16",
        reference: "1 thread",
        goal: 4.0,
        make: |ours| heat(ours, "16, 16"),
    },
];

/// Pixels along each axis.
const SIDE: usize = 512;

/// Launches of a batch; an even number.
const STEPS: usize = 10;

/// Batches of each side for a sample of others: these are short.
const BATCHES: usize = 40;

/// Executes one batch or pass, and checks the result if the flag is set.
type Timed<'a> = Box<dyn FnMut(bool) -> Result<()> + 'a>;

impl Image {
    /// Least seconds of a launch of each, in alternation; the first round is not counted. Of a
    /// batch that takes a few milliseconds the median says what else the processors had to do.
    pub fn compare(&self, ours: &Device, samples: usize) -> Result<[f64; 2]> {
        let mut sides = (self.make)(ours).context(self.name)?;
        let mut least = [f64::INFINITY; 2];
        for round in 0..=BATCHES * samples {
            for (side, least) in sides.iter_mut().zip(&mut least) {
                let start = Instant::now();
                side(false).context(self.name)?;
                if round > 0 {
                    *least = least.min(start.elapsed().as_secs_f64() / STEPS as f64);
                }
            }
        }
        for side in &mut sides {
            side(true).context(self.name)?;
        }
        Ok(least)
    }
}

/// A batch of a kernel in workgroups of a shape, which reads an image and writes another. With
/// `swap` each launch reads what the one before wrote.
fn batch<'a>(
    ours: &'a Device,
    source: &str,
    shape: &str,
    image: &[f32],
    swap: bool,
    right: impl Fn(&[f32]) -> Result<()> + 'a,
) -> Result<Timed<'a>> {
    let kernel = ours.compile(&source.replace("SHAPE", shape))?;
    let (first, second) = (ours.upload(image)?, ours.upload(image)?);
    Ok(Box::new(move |checked| {
        let mut batch = ours.batch();
        let (mut from, mut to): (&dyn Binding, &dyn Binding) = (&first, &second);
        for _ in 0..STEPS {
            let launch = Launch::invocations([SIDE, SIDE]).immediates(&[SIDE as u32; 2]);
            batch.run(&kernel, &[from, to], launch)?;
            if swap {
                mem::swap(&mut from, &mut to);
            }
        }
        batch.submit()?;
        // After an even number of launches the first image is the newest.
        let result = if swap { &first } else { &second };
        if checked { right(&result.download()?) } else { Ok(()) }
    }))
}

fn double(ours: &Device) -> Result<[Timed<'_>; 2]> {
    let image = random(9, SIDE * SIDE);
    let source = include_str!("kernels/double.wgsl");
    let side = |shape| {
        let want = image.clone();
        let right = move |got: &[f32]| check("double", got, |i| 2.0 * want[i]);
        batch(ours, source, shape, &image, false, right)
    };
    Ok([side("8, 8")?, side("16, 16")?])
}

fn heat<'a>(ours: &'a Device, shape: &str) -> Result<[Timed<'a>; 2]> {
    let image = random(10, SIDE * SIDE);
    // Heat only spreads: no pixel ever differs by more than roundings do.
    let right = |got: &[f32]| {
        let inside = got.iter().all(|x| (-1.0..=1.0).contains(x));
        ensure!(inside, "a pixel became hotter or colder than all were at first");
        Ok(())
    };
    let source = include_str!("kernels/heat.wgsl");
    check_heat(ours, source, shape, &image)?;
    let ours = batch(ours, source, shape, &image, true, right)?;
    let (mut now, mut next) = (image.clone(), image);
    let host: Timed<'a> = Box::new(move |_| {
        for _ in 0..STEPS {
            heat_step(&now, &mut next);
            mem::swap(&mut now, &mut next);
        }
        Ok(())
    });
    Ok([ours, host])
}

/// Returns an error unless one batch gives the loop's results, except for rounding.
fn check_heat(ours: &Device, source: &str, shape: &str, image: &[f32]) -> Result<()> {
    let (mut now, mut next) = (image.to_vec(), image.to_vec());
    for _ in 0..STEPS {
        heat_step(&now, &mut next);
        mem::swap(&mut now, &mut next);
    }
    let right = move |got: &[f32]| {
        let far = got.iter().zip(&now).position(|(got, want)| (got - want).abs() > 1e-5);
        ensure!(far.is_none(), "pixel {far:?} is not what the loop computes");
        Ok(())
    };
    batch(ours, source, shape, image, true, right)?(true)
}

/// A step by one thread, in the order that vectorises.
fn heat_step(now: &[f32], next: &mut [f32]) {
    let last = SIDE * (SIDE - 1);
    next[..SIDE].copy_from_slice(&now[..SIDE]);
    next[last..].copy_from_slice(&now[last..]);
    for y in 1..SIDE - 1 {
        let row = |y: usize| &now[y * SIDE..(y + 1) * SIDE];
        let (above, here, below) = (row(y - 1), row(y), row(y + 1));
        let next = &mut next[y * SIDE..(y + 1) * SIDE];
        (next[0], next[SIDE - 1]) = (here[0], here[SIDE - 1]);
        for x in 1..SIDE - 1 {
            let around = here[x - 1] + here[x + 1] + above[x] + below[x];
            next[x] = here[x] + 0.1 * (around - 4.0 * here[x]);
        }
    }
}
