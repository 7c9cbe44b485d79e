//! A plan of tensors, for the tests in Node.js: compiled, run and checked without blocking.

use scry_gpu::Device;
use scry_tensor::{Graph, Tensor};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

/// Runs a plan with a state several times, and returns the elements of its output, as text.
///
/// # Errors
/// Those of the device, and of tensors.
#[wasm_bindgen]
pub async fn run_plan(selector: &str, runs: u32) -> Result<String, JsError> {
    let gpu = Device::open_async(selector).await?;
    let g = Graph::new(&gpu)?;
    let x = g.input("x", (g.dim("rows", 1..=8), 3))?;
    let count = g.state("count", [1])?;
    count.write(.., &count.read().add(1.0)?)?;
    let y = (x.exp()?.sum(-1)? * count.read())?;
    let plan = g.compile_async(&[y]).await?;
    let x = Tensor::new_async([[0.0f32; 3]; 2], &gpu).await?;
    plan.check_async(&[("x", &x)]).await?;
    let mut out = plan.run_checked_async(&[("x", &x)]).await?;
    for _ in 1..runs {
        out = plan.run_async(&[("x", &x)]).await?;
    }
    Ok(format!("{:?}", out[0].to_vec_async::<f32>().await?))
}
