//! A custom WGSL kernel as a node between other operations, with a state that the plan
//! keeps: a moving average of the Laplacian of images.
//!
//!     cargo run --release -p scry-tensor --example custom_kernel

use scry_tensor::{DType, Device, Graph, Result, Tensor};

/// The Laplacian of an image of 8 columns; 0 at its borders, which are not written.
const LAPLACIAN: &str = "
    @group(0) @binding(0) var<storage, read> image: array<f32>;
    @group(0) @binding(1) var<storage, read_write> result: array<f32>;

    @compute @workgroup_size(64)
    fn laplacian(@builtin(global_invocation_id) id: vec3<u32>) {
        let width = 8u;
        let i = id.x;
        let height = arrayLength(&image) / width;
        let x = i % width;
        let y = i / width;
        if x == 0u || y == 0u || x + 1u >= width || y + 1u >= height { return; }
        result[i] = image[i - 1u] + image[i + 1u] + image[i - width] + image[i + width]
            - 4.0 * image[i];
    }";

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    for (n, average) in averages(&Device::auto()?)?.iter().enumerate() {
        println!("after frame {}:\n{average}\n", n + 1);
    }
    Ok(())
}

/// Returns the moving average after each of three equal frames.
pub(crate) fn averages(gpu: &Device) -> Result<Vec<Tensor>> {
    let g = Graph::new(gpu)?;
    let image = g.input("image", [6, 8])?;
    let smooth = (&image * 0.25)?;
    let edges = g.kernel(LAPLACIAN, &[&smooth], &[([6, 8].into(), DType::F32)])?.remove(0);

    let average = g.state("average", [6, 8])?;
    let next = ((average.read() * 0.5)? + (edges.abs()? * 0.5)?)?;
    average.write(.., &next)?;
    let plan = g.compile(&[average.read()])?;

    let centre = Tensor::eye(8, DType::F32, gpu)?.i((0..6, ..))?.contiguous()?;
    let frames = (0..3).map(|_| Ok(plan.run(&[("image", &centre)])?.remove(0)));
    let averages = frames.collect::<Result<_>>()?;
    println!("{} results of kernels were checked", plan.check(&[("image", &centre)])?);
    Ok(averages)
}
