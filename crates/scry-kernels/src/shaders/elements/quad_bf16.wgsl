// Four elements of type bf16, two in each word: the first one is the lower half.

alias Quad = vec2<u32>;

fn widen_quad(quad: Quad) -> vec4<f32> {
    return vec4<f32>(
        bitcast<f32>(quad.x << 16u),
        bitcast<f32>(quad.x & 0xffff0000u),
        bitcast<f32>(quad.y << 16u),
        bitcast<f32>(quad.y & 0xffff0000u),
    );
}

fn narrow_quad(values: vec4<f32>) -> Quad {
    let first = u32(narrow(values.x)) | (u32(narrow(values.y)) << 16u);
    let second = u32(narrow(values.z)) | (u32(narrow(values.w)) << 16u);
    return vec2<u32>(first, second);
}

