//! Runs each operation of the kernel library once: the variant that was chosen, the time on the
//! device, and the rate at which operands and results move. Every result is compared with a
//! reference on the host.
//!
//!     cargo run --release -p scry-kernels --example tour [-- DEVICE [SCALE]]
//!
//! DEVICE is a selector such as `vulkan`; without it, `SCRY_DEVICE` or the best device counts.
//! SCALE multiplies the sizes: at 1 they suit a debug build on the CPU, and GPUs only show their
//! latency.

mod stops;

use std::error::Error;

use scry_gpu::Device;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let gpu = match arguments.next() {
        Some(selector) => Device::open(&selector)?,
        None => Device::auto()?,
    };
    let scale = arguments.next().map_or(Ok(1), |scale| scale.parse())?;
    stops::run(&gpu, scale)
}
