// Four elements of type f16.

alias Quad = vec4<f16>;

fn widen_quad(quad: Quad) -> vec4<f32> {
    return vec4<f32>(quad);
}

fn narrow_quad(values: vec4<f32>) -> Quad {
    return vec4<f16>(values);
}

