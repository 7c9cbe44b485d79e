struct Params {
    weights: array<vec4<f32>, 16>,
    bias: f32,
}

var<immediate> params: Params;
@group(0) @binding(0) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(1)
fn main() {
    out[0] = params.weights[15].w + params.bias;
}
