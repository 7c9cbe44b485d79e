// Stores elements one by one. Preceded by `Stored`, `narrow` and `distributed`.

@group(0) @binding(0) var<storage, read_write> y: array<Stored>;

fn store(block: u32, words: vec4<u32>) {
    let values = distributed(words);
    let first = block * 4u;
    y[first] = narrow(values.x);
    if shape.len - first > 1u {
        y[first + 1u] = narrow(values.y);
    }
    if shape.len - first > 2u {
        y[first + 2u] = narrow(values.z);
    }
    if shape.len - first > 3u {
        y[first + 3u] = narrow(values.w);
    }
}

