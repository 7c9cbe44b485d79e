//! Serves many requests on few threads: each is a tokio task that awaits the device, with a
//! timeout of its own.
//!
//!     cargo run --release -p scry-gpu --example async_tokio

use std::error::Error;
use std::time::Duration;

use scry_gpu::{Device, Kernel};
use tokio::runtime::Builder;
use tokio::time::timeout;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const REQUESTS: u32 = 1000;
const TIMEOUT: Duration = Duration::from_secs(30);

const SQUARE: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;

    @compute @workgroup_size(64)
    fn square(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&x) {
            x[id.x] *= x[id.x];
        }
    }
";

/// Serves one request.
async fn serve(gpu: Device, square: Kernel, number: u32) -> Result<u32> {
    // At the timeout the computation is dropped; its work on the device continues.
    Ok(timeout(TIMEOUT, compute(&gpu, &square, number)).await??)
}

/// Computes the answer to one request. Other tasks run while it waits.
async fn compute(gpu: &Device, square: &Kernel, number: u32) -> scry_gpu::Result<u32> {
    let x = gpu.upload_async(&[number; 64]).await?;
    gpu.batch().run(square, &[&x], 64)?.submit_async()?.await?;
    Ok(x.download_async().await?[0])
}

async fn run() -> Result<u64> {
    let gpu = Device::auto_async().await?;
    let square = gpu.compile_async(SQUARE).await?;
    let requests: Vec<_> = (0..REQUESTS)
        .map(|number| tokio::spawn(serve(gpu.clone(), square.clone(), number)))
        .collect();
    let mut sum = 0;
    for request in requests {
        sum += u64::from(request.await??);
    }
    println!("{REQUESTS} requests served by {}: the squares add up to {sum}", gpu.name());
    Ok(sum)
}

fn main() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let sum = runtime.block_on(run())?;
    assert_eq!(sum, (0..u64::from(REQUESTS)).map(|number| number * number).sum());
    Ok(())
}
