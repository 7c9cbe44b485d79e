//! Upload, run a kernel, download.
//!
//!     cargo run --release -p scry-gpu --example 01-hello

use scry_gpu::{Device, Result};

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read> input: array<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<f32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&input) {
            output[id.x] = 2.0 * input[id.x];
        }
    }
";

fn main() -> Result<()> {
    let gpu = Device::auto()?;
    let input = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    let output = gpu.alloc::<f32>(4)?;
    gpu.dispatch(DOUBLE, &[&input, &output], 4)?;
    let result: Vec<f32> = output.download()?;

    println!("1, 2, 3, 4 doubled on {}: {result:?}", gpu.name());
    assert_eq!(result, [2.0, 4.0, 6.0, 8.0]);
    Ok(())
}
