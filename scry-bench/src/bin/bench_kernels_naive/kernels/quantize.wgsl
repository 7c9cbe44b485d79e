// Quantisation to Q8_0: two blocks for each invocation, which share a word.

struct Sizes { blocks: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> weights: array<f32>;
@group(0) @binding(1) var<storage, read_write> blocks: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x * 2u >= sizes.blocks {
        return;
    }
    var words: array<u32, 17>;
    for (var block = 0u; block < 2u; block++) {
        let start = (id.x * 2u + block) * 32u;
        var largest = 0.0;
        for (var i = 0u; i < 32u; i++) {
            largest = max(largest, abs(weights[start + i]));
        }
        let d = pack2x16float(vec2<f32>(largest / 127.0, 0.0));
        words[block * 34u / 4u] |= d << (16u * block);
        let scale = unpack2x16float(d).x;
        let inverse = select(0.0, 1.0 / scale, scale != 0.0);
        for (var i = 0u; i < 32u; i++) {
            let q = u32(i32(round(weights[start + i] * inverse))) & 255u;
            let at = block * 34u + 2u + i;
            words[at / 4u] |= q << (at % 4u * 8u);
        }
    }
    for (var i = 0u; i < 17u; i++) {
        blocks[id.x * 17u + i] = words[i];
    }
}
