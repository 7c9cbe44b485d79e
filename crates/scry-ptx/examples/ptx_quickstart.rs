//! Translates WGSL to PTX, without a GPU:
//! `cargo run --example ptx_quickstart [FILE.wgsl [TARGET]]`.

use std::error::Error;

use scry_ir::{Program, kir::KirOptions};
use scry_ptx::{PtxOptions, Target, translate};

const SAXPY: &str = "
    @group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
    var<immediate> a: f32;

    @compute @workgroup_size(256)
    fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.x;
        if i < arrayLength(&y) { y[i] = a * x[i] + y[i]; }
    }";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let source = arguments.next().map_or(Ok(SAXPY.to_owned()), std::fs::read_to_string)?;
    let target = arguments.next().map_or(Ok(Target::SM_90), |name| name.parse())?;

    let kir = Program::parse(&source)?.to_kir(&KirOptions { checked: true })?;
    let ptx = translate(&kir, &PtxOptions { limit_registers: true, ..PtxOptions::new(target) });
    println!("// kernel {}, launched with {:?}", ptx.entry, ptx.params);
    print!("{}", ptx.text);
    Ok(())
}
