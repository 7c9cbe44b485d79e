//! Builds one kernel in Rust for an expression that is only known at run time.
//!
//! The expression, such as `sqrt(x * x + y * y)`, is computed element by element: first with one
//! kernel per operation, as in an array library without fusion, then with one fused kernel, which
//! reads each input once and keeps intermediate results in registers.
//!
//!     cargo run --release -p scry-gpu --example 05-fusion -- ["EXPRESSION" [ELEMENTS]]

use std::env;
use std::error::Error;

use scry_gpu::{Buffer, Device, DeviceKind};

#[path = "shared/expression.rs"]
mod expression;
#[path = "shared/fusion.rs"]
mod fusion;
#[path = "shared/random.rs"]
mod random;
#[path = "shared/stats.rs"]
mod stats;

use stats::measure;

const EXPRESSION: &str = "sqrt(x * x + y * y) * exp(-z) + 0.5";
const SAMPLES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let text = arguments.next().unwrap_or_else(|| EXPRESSION.to_owned());
    let (expression, names) = expression::parse(&text)?;
    let gpu = Device::auto()?;
    let count = match arguments.next() {
        Some(count) => count.parse()?,
        None if gpu.info().kind == DeviceKind::Software => 1 << 20,
        None => 1 << 25,
    };
    println!("{text}, {count} elements on {}", gpu.name());

    // Inputs between 0 and 2, so that square roots and logarithms are not NaN.
    let inputs: Vec<Buffer<f32>> = (1..=names.len() as u32)
        .map(|seed| random::random_f32(seed, count).into_iter().map(|x| x + 1.0).collect())
        .map(|data: Vec<f32>| gpu.upload(&data))
        .collect::<Result<_, _>>()?;

    let operations = fusion::split_operations(&expression, inputs.len());
    let (separate, expected) = fusion::record_unfused(&gpu, &operations, &inputs, count)?;
    let time = measure(SAMPLES, || separate.replay()?.wait())?;
    println!("{:2} kernels       {}", operations.len(), time.times());

    let (fused, result) = fusion::record_fused(&gpu, &expression, &inputs, count)?;
    let fused_time = measure(SAMPLES, || fused.replay()?.wait())?;
    println!(
        " 1 fused kernel  {}, {:.1} times as fast",
        fused_time.times(),
        time.median / fused_time.median
    );

    let mut max_difference = 0.0f32;
    for (i, (a, b)) in result.download()?.into_iter().zip(expected.download()?).enumerate() {
        let is_close = a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-4 * (1.0 + b.abs());
        if !is_close {
            return Err(format!("element {i}: {a} with one kernel, {b} with several").into());
        }
        max_difference = max_difference.max((a - b).abs());
    }
    println!("largest difference {max_difference:e}");
    Ok(())
}
