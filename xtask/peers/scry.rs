//! Doubles four numbers with scry-gpu.

use scry_gpu::{Device, Result};

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&input) {
        output[id.x] = input[id.x] * 2.0;
    }
}
";

fn main() -> Result<()> {
    let gpu = Device::auto()?;
    let input = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    let output = gpu.alloc::<f32>(4)?;
    gpu.dispatch(SHADER, &[&input, &output], 4)?;
    assert_eq!(output.download()?, [2.0, 4.0, 6.0, 8.0]);
    Ok(())
}
