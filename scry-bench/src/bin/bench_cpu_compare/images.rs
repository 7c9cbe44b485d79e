//! Images of 512² pixels in two-dimensional workgroups, many launches in a batch: workgroups of 8×8
//! compared with 16×16, and a heat equation compared with one thread of plain Rust.

use std::mem;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use scry_gpu::{Binding, Device, Launch};

use scry_bench::data::{check, random};

/// A kernel on an image, with a limit on its time relative to a reference.
pub struct ImageCase {
    /// For the command line.
    pub name: &'static str,
    /// The kernel or loop that it is compared with.
    pub reference: &'static str,
    /// Maximum of its time divided by the reference's.
    pub goal: f64,
    make: fn(&Device) -> Result<[Execute<'_>; 2]>,
}

/// All cases.
pub const ALL: &[ImageCase] = &[
    ImageCase { name: "double-8x8", reference: "16×16", goal: 1.5, make: double },
    ImageCase {
        name: "heat-8x8",
        reference: "1 thread",
        goal: 4.0,
        make: |ours| heat(ours, "8, 8"),
    },
    ImageCase {
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

/// Batches of each variant for each sample that was asked for: a batch is short.
const BATCHES: usize = 40;

/// Executes one batch on the device, and checks the result if the argument is true; or executes the
/// same steps on the host.
type Execute<'a> = Box<dyn FnMut(bool) -> Result<()> + 'a>;

impl ImageCase {
    /// Returns the minimum seconds of a launch of both variants, which alternate; the first round
    /// is not counted. The minimum, because the median of batches of a few milliseconds depends on
    /// what else the processors execute.
    pub fn compare(&self, ours: &Device, samples: usize) -> Result<[f64; 2]> {
        let mut variants = (self.make)(ours).context(self.name)?;
        let mut fastest = [f64::INFINITY; 2];
        for round in 0..=BATCHES * samples {
            for (variant, fastest) in variants.iter_mut().zip(&mut fastest) {
                let start = Instant::now();
                variant(false).context(self.name)?;
                if round > 0 {
                    *fastest = fastest.min(start.elapsed().as_secs_f64() / STEPS as f64);
                }
            }
        }
        for variant in &mut variants {
            variant(true).context(self.name)?;
        }
        Ok(fastest)
    }
}

/// Prepares a batch of launches in workgroups of `shape`, which read one image and write another.
/// With `swap`, each launch reads the output of the previous one.
fn device_batch<'a>(
    ours: &'a Device,
    source: &str,
    shape: &str,
    image: &[f32],
    swap: bool,
    check_image: impl Fn(&[f32]) -> Result<()> + 'a,
) -> Result<Execute<'a>> {
    let kernel = ours.compile(&source.replace("SHAPE", shape))?;
    let (first, second) = (ours.upload(image)?, ours.upload(image)?);
    Ok(Box::new(move |is_checked| {
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
        if is_checked { check_image(&result.download()?) } else { Ok(()) }
    }))
}

/// Prepares `y = 2·x` in workgroups of 8×8 and of 16×16.
fn double(ours: &Device) -> Result<[Execute<'_>; 2]> {
    let image = random(9, SIDE * SIDE);
    let source = include_str!("kernels/double.wgsl");
    let variant = |shape| {
        let expected = image.clone();
        let check_image = move |got: &[f32]| check("double", got, |i| 2.0 * expected[i]);
        device_batch(ours, source, shape, &image, false, check_image)
    };
    Ok([variant("8, 8")?, variant("16, 16")?])
}

/// Prepares the heat equation on the device and on the host.
fn heat<'a>(ours: &'a Device, shape: &str) -> Result<[Execute<'a>; 2]> {
    let image = random(10, SIDE * SIDE);
    // A step computes weighted means of neighbours, so pixels stay within the initial range.
    let check_image = |got: &[f32]| {
        let inside = got.iter().all(|x| (-1.0..=1.0).contains(x));
        ensure!(inside, "a pixel left the range of the initial image");
        Ok(())
    };
    let source = include_str!("kernels/heat.wgsl");
    check_heat(ours, source, shape, &image)?;
    let ours = device_batch(ours, source, shape, &image, true, check_image)?;
    let (mut now, mut next) = (image.clone(), image);
    let host: Execute<'a> = Box::new(move |_| {
        for _ in 0..STEPS {
            heat_step(&now, &mut next);
            mem::swap(&mut now, &mut next);
        }
        Ok(())
    });
    Ok([ours, host])
}

/// Compares the results of one batch with those of the loop, except for rounding.
fn check_heat(ours: &Device, source: &str, shape: &str, image: &[f32]) -> Result<()> {
    let (mut now, mut next) = (image.to_vec(), image.to_vec());
    for _ in 0..STEPS {
        heat_step(&now, &mut next);
        mem::swap(&mut now, &mut next);
    }
    let check_image = move |got: &[f32]| {
        let far = got.iter().zip(&now).position(|(got, expected)| (got - expected).abs() > 1e-5);
        match far {
            Some(pixel) => bail!("pixel {pixel} is not what the loop computes"),
            None => Ok(()),
        }
    };
    device_batch(ours, source, shape, image, true, check_image)?(true)
}

/// Computes a step on one thread, with an inner loop that the compiler vectorises.
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
