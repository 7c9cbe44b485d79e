enable f16;
@group(0) @binding(0) var<storage, read_write> words: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> halves: array<vec4<f16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let four = bitcast<vec4<f16>>(words[id.x]);
    halves[id.x].x = f16(four.x);
}
