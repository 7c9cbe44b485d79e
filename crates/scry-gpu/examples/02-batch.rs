//! Many launches in one submission: heat spreading along a rod.
//!
//! Each step reads the output of the previous one. The batch detects these hazards and inserts the
//! barriers. The recording contains 100 steps and is replayed without encoding them again.
//!
//!     cargo run --release -p scry-gpu --example 02-batch

use scry_gpu::{Device, Result};

/// Each point moves towards the mean of its neighbours; the ends keep their temperature.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read> now: array<f32>;
    @group(0) @binding(1) var<storage, read_write> next: array<f32>;
    var<immediate> rate: f32;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.x;
        let last = arrayLength(&now) - 1u;
        if i > last { return; }
        if i == 0u || i == last {
            next[i] = now[i];
        } else {
            next[i] = now[i] + rate * (now[i - 1u] - 2.0 * now[i] + now[i + 1u]);
        }
    }
";
const POINTS: usize = 33;
const RATE: f32 = 0.45;

fn main() -> Result<()> {
    let gpu = Device::auto()?;
    let step = gpu.compile(STEP)?;

    // Hot at one end, cold elsewhere.
    let mut start = vec![0.0f32; POINTS];
    start[0] = 100.0;
    let even = gpu.upload(&start)?;
    let odd = gpu.alloc::<f32>(POINTS)?;

    let mut batch = gpu.batch();
    for _ in 0..50 {
        batch.run_with_immediates(&step, &[&even, &odd], POINTS, &RATE)?;
        batch.run_with_immediates(&step, &[&odd, &even], POINTS, &RATE)?;
    }
    let hundred_steps = batch.record()?;
    for round in 1..=30 {
        hundred_steps.replay()?.wait()?;
        if [1, 3, 10, 30].contains(&round) {
            let middle = even.slice(POINTS / 2..=POINTS / 2)?.download()?[0];
            println!("after {:4} steps the middle is at {middle:6.3} degrees", 100 * round);
        }
    }

    // In the steady state the temperature falls linearly from end to end.
    for (i, temperature) in even.download()?.into_iter().enumerate() {
        let steady = 100.0 * (1.0 - i as f32 / (POINTS - 1) as f32);
        assert!((temperature - steady).abs() < 0.1, "point {i}: {temperature}, not {steady}");
    }
    Ok(())
}
