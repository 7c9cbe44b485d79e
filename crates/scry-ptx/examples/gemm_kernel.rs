//! Prints the kernels that compute a matrix product on one H200, with their tiles and launches. No
//! GPU is needed.
//!
//! ```text
//! cargo run -p scry-ptx --features kernels --example gemm_kernel -- 4096 4096 4096 [f16|bf16|tf32]
//! ```
//!
//! The type is `bf16` by default. With `--ptx` at the end, it also prints their PTX.

use std::process::ExitCode;

use scry_ptx::kernels::gemm::{Gemm, Precision};
use scry_ptx::kernels::{GpuSpec, Parameter, Plan, PlanError, PtxKernel};
use scry_ptx::{PtxType, Target};

const H200: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<u64> = arguments.iter().map_while(|argument| argument.parse().ok()).collect();
    let [m, n, k] = sizes.try_into().unwrap_or([4096, 4096, 4096]);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match product(m, n, k, &has).plan(H200) {
        Ok(plan) => print_plan(&plan, has("--ptx")),
        Err(error) => return print_error(&error),
    }
    ExitCode::SUCCESS
}

fn product(m: u64, n: u64, k: u64, has: &impl Fn(&str) -> bool) -> Gemm {
    if has("tf32") {
        let product = Gemm::new(m, n, k, PtxType::F32);
        return Gemm { precision: Precision::Tf32, ..product };
    }
    Gemm::new(m, n, k, if has("f16") { PtxType::F16 } else { PtxType::Bf16 })
}

fn print_error(error: &PlanError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn print_plan(plan: &Plan, with_text: bool) {
    println!(
        "{} launches, {} bytes of scratch",
        plan.steps.len(),
        plan.scratch.iter().sum::<u64>()
    );
    for step in &plan.steps {
        let text = step.kernel.emit_ptx();
        print_kernel(&*step.kernel, &text);
        if with_text {
            println!("{text}");
        }
    }
}

fn print_kernel(kernel: &dyn PtxKernel, text: &str) {
    let launch = kernel.launch();
    println!("\n{} for {}", kernel.name(), kernel.default_target());
    let threads: u32 = launch.block.iter().product();
    println!("  {:?} blocks of {threads} threads", launch.grid);
    println!("  {} bytes of shared memory in a block", launch.dynamic_shared);
    for buffer in kernel.interface().buffers {
        println!(
            "  {:?} `{}`: {} × {}",
            buffer.access,
            buffer.name,
            buffer.len,
            buffer.element.name()
        );
    }
    for parameter in kernel.interface().parameters {
        if let Parameter::TensorMap(buffer, map) = parameter {
            println!(
                "  buffer {buffer} is copied in tiles of {:?} out of {:?}",
                map.tile, map.dims
            );
        }
    }
    println!("  {} lines of PTX, of which", text.lines().count());
    let parts = [
        ("wgmma.mma_async", "multiply on tensor cores"),
        ("cp.async.bulk.tensor", "copy tiles"),
        ("mbarrier.try_wait", "wait for tiles"),
        ("stmatrix", "arrange results"),
    ];
    for (instruction, what) in parts {
        println!("    {:4} {what} ({instruction})", text.matches(instruction).count());
    }
}
