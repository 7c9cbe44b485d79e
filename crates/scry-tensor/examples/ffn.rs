//! The feed-forward network of a transformer layer (SwiGLU), as a function of tensors: computed
//! eagerly, and compiled to a plan for any batch size.
//!
//!     cargo run --release -p scry-tensor --example ffn

use scry_tensor::{DType, Device, Graph, Result, Tensor};

/// The weights of a layer.
struct Layer {
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

impl Layer {
    /// Returns weights that are small numbers.
    fn new(width: usize, hidden: usize, gpu: &Device) -> Result<Self> {
        let weights = |rows: usize, columns: usize| {
            let numbers = Tensor::linspace(-1.0, 1.0, rows * columns, DType::F32, gpu)?;
            ((numbers * 40.0)?.sin()? * (1.0 / rows as f64))?.reshape([rows, columns])
        };
        let (gate, up) = (weights(width, hidden)?, weights(width, hidden)?);
        Ok(Self { gate, up, down: weights(hidden, width)? })
    }

    /// Returns `x + (silu(x × gate) * (x × up)) × down`: tensors in memory are computed eagerly,
    /// nodes are recorded.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let gated = x.matmul(&self.gate)?.silu()?;
        let hidden = (gated * x.matmul(&self.up)?)?;
        x.add(hidden.matmul(&self.down)?)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    compare(&Device::auto()?)?;
    Ok(())
}

/// Compares a plan of four layers with the operations one by one, and returns the largest
/// magnitude of the outputs for each batch size.
pub(crate) fn compare(gpu: &Device) -> Result<Vec<f32>> {
    let layers = (0..4).map(|_| Layer::new(64, 192, gpu)).collect::<Result<Vec<_>>>()?;

    let g = Graph::new(gpu)?;
    let mut y = g.input("x", (g.dim("batch", 1..=32), 64))?;
    for (n, layer) in layers.iter().enumerate() {
        let _scope = g.scope(&format!("layer.{n}"));
        y = layer.forward(&y)?;
    }
    let plan = g.compile(&[y])?;
    println!("{}\n", plan.explain()?);

    let mut largest = Vec::new();
    for batch in [1, 5, 32] {
        let x = Tensor::linspace(-1.0, 1.0, batch * 64, DType::F32, gpu)?.reshape([batch, 64])?;
        let compiled = plan.run(&[("x", &x)])?.remove(0);
        let at_once = layers.iter().try_fold(x, |x, layer| layer.forward(&x))?;
        let difference = (&compiled - &at_once)?.abs()?.max(..)?.item::<f32>()?;
        println!("batch {batch}: the largest difference of plan and operations is {difference}");
        assert!(difference < 1e-5);
        largest.push(compiled.abs()?.max(..)?.item::<f32>()?);
    }
    println!("kernels compiled: {}", plan.compiled_kernels());
    Ok(largest)
}
