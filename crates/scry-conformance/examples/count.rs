//! Prints the number of cases on the CPU device: `cargo xtask wasm` expects as many.

use scry_gpu::Device;

fn main() -> scry_gpu::Result<()> {
    let gpu = Device::open("cpu")?;
    let cases = scry_conformance::tests().into_iter().map(|test| (test.cases)(gpu.info()).count());
    println!("{}", cases.sum::<usize>());
    Ok(())
}
