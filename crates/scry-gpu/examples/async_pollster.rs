//! Awaits a device without an async runtime: pollster blocks on one future.
//!
//!     cargo run --release -p scry-gpu --example async_pollster

use scry_gpu::{Device, Result};

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;

    @compute @workgroup_size(64)
    fn double(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&x) {
            x[id.x] *= 2.0;
        }
    }
";

fn main() -> Result<()> {
    pollster::block_on(run())
}

async fn run() -> Result<()> {
    let gpu = Device::auto_async().await?;
    let double = gpu.compile_async(DOUBLE).await?;
    let x = gpu.upload_async(&[1.0f32, 2.0, 3.0, 4.0]).await?;
    gpu.batch().run(&double, &[&x], 4)?.run(&double, &[&x], 4)?.submit_async()?.await?;
    let result = x.download_async().await?;

    println!("1, 2, 3, 4 doubled twice on {}: {result:?}", gpu.name());
    assert_eq!(result, [4.0, 8.0, 12.0, 16.0]);
    Ok(())
}
