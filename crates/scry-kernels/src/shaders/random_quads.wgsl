// Stores four elements at a time. Preceded by `Quad`, `narrow_quad` and `distributed`.

@group(0) @binding(0) var<storage, read_write> y: array<Quad>;

fn store(block: u32, words: vec4<u32>) {
    y[block] = narrow_quad(distributed(words));
}

