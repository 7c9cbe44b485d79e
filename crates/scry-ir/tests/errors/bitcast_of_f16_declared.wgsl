enable f16;
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> halves: array<vec2<f16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let word: u32 = bitcast<u32>(halves[id.x]);
    words[id.x] = word;
}
