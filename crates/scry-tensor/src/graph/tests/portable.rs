//! Row kernels within WebGPU's default limits, as WGSL that browsers accept.

use scry_gpu::Device;

use super::super::Graph;
use super::super::grouped::Work;
use crate::error::Result;
use crate::lower::{Conversions, Exchange, RowKey, build_rows};
use crate::tensor::Tensor;

fn layer_norm(x: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let centred = (x - x.mean_keepdim(-1)?)?;
    let variance = centred.square()?.mean_keepdim(-1)?;
    let normal = centred.mul((variance + 1e-5)?.rsqrt()?)?;
    normal.mul(scale)?.sub(x.max_keepdim(-1)?)
}

#[test]
fn row_kernels_are_portable() {
    let gpu = Device::open("cpu").unwrap();
    for columns in [3, 40, 300] {
        let g = Graph::new(&gpu).unwrap();
        let (x, scale) = (g.input("x", [9, columns]).unwrap(), g.input("s", [columns]).unwrap());
        let plan = g.compile(&[layer_norm(&x, &scale).unwrap()]).unwrap();
        let (_, grouped) = plan.shared().group(&Vec::new()).unwrap();
        let [kernel] = &grouped.kernels[..] else { panic!("{} kernels", grouped.kernels.len()) };
        let Work::Rows(work) = &kernel.work else { panic!("not a row kernel") };
        for in_buffer in [false, true] {
            let key = RowKey { program: work.program.clone(), in_buffer };
            let kir = build_rows(&key, 32, Conversions::Integers, Exchange::WorkgroupMemory);
            let wgsl = kir.to_wgsl(gpu.compile_ir(&kir).unwrap().interface()).unwrap();
            // Also checks that all invocations of a workgroup reach each barrier.
            let compiled = gpu.compile(&wgsl).unwrap_or_else(|error| panic!("{error}\n{wgsl}"));
            let interface = compiled.interface();
            assert!(interface.bindings.len() <= 8, "{wgsl}");
            assert!(interface.workgroup_memory <= 16 << 10, "{wgsl}");
            assert!(interface.workgroup_size.iter().product::<u32>() <= 256, "{wgsl}");
        }
    }
}
