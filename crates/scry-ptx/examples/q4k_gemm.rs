//! Prints the kernels of matrix products with quantised weights, and the PTX of one of them,
//! without a GPU: `cargo run -p scry-ptx --features kernels --example q4k_gemm [ROWS K COLUMNS]`.

use std::error::Error;

use scry_ptx::kernels::quant::{BlockFormat, MatMul, dequantize, quantize};
use scry_ptx::kernels::{BufferSlot, GpuSpec, Plan};
use scry_ptx::{PtxType, Target};

const H200: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<u64> =
        std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    let [rows, k, columns] = sizes[..].try_into().unwrap_or([4096, 14336, 1]);
    print_quantization_error()?;
    let format = BlockFormat::Q4K;
    let (activations, output) = (PtxType::F16, PtxType::F32);
    let plan = MatMul { format, rows, k, columns, activations, output }.plan(H200)?;
    print_plan(&plan);
    if let Some(last) = plan.steps.last() {
        print!("{}", last.kernel.emit_ptx_for(H200.target)?);
    }
    Ok(())
}

/// Quantises a block of weights, and prints the maximum error.
fn print_quantization_error() -> Result<(), Box<dyn Error>> {
    let weights: Vec<f32> = (0..256).map(|index| (index as f32 * 0.37).sin()).collect();
    let blocks = quantize(BlockFormat::Q4K, &weights)?;
    let restored = dequantize(BlockFormat::Q4K, &blocks)?;
    let error = weights.iter().zip(&restored).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("// 256 weights up to 1 in {} bytes, maximum error {error:.3}", blocks.len());
    Ok(())
}

fn print_plan(plan: &Plan) {
    for buffer in &plan.arguments {
        println!(
            "// {}: {} of {}, {:?}",
            buffer.name,
            buffer.len,
            buffer.element.name(),
            buffer.access
        );
    }
    for (index, bytes) in plan.scratch.iter().enumerate() {
        println!("// scratch {index}: {bytes} bytes");
    }
    for step in &plan.steps {
        let launch = step.kernel.launch();
        let buffers = step.buffers.iter().map(|place| match place {
            BufferSlot::Argument(index) => plan.arguments[*index].name.to_owned(),
            BufferSlot::Scratch(index) => format!("scratch {index}"),
        });
        let buffers: Vec<_> = buffers.collect();
        println!("// {}: {launch:?}, buffers {}", step.kernel.name(), buffers.join(", "));
    }
}
