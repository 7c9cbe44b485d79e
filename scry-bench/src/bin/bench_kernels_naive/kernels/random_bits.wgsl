@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn put(at: u32, words: vec4<u32>) {
    for (var i = 0u; i < 4u; i++) {
        if at + i < parameters.count {
            y[at + i] = words[i];
        }
    }
}
