// Four elements of type f32.

alias Quad = vec4<f32>;

fn widen_quad(quad: Quad) -> vec4<f32> {
    return quad;
}

fn narrow_quad(values: vec4<f32>) -> Quad {
    return values;
}

