@group(0) @binding(0) var<storage, read_write> y: array<f32>;

fn put(at: u32, words: vec4<u32>) {
    for (var i = 0u; i < 4u; i += 2u) {
        let radius = sqrt(-2.0 * log((f32(words[i]) + 0.5) / 4294967296.0));
        let angle = 6.2831855 * (f32(words[i + 1u]) / 4294967296.0);
        if at + i < parameters.count {
            y[at + i] = radius * cos(angle);
        }
        if at + i + 1u < parameters.count {
            y[at + i + 1u] = radius * sin(angle);
        }
    }
}
