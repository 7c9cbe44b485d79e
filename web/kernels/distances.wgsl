// Squared distances of one image from each of a set of images of 64 pixels.

@group(0) @binding(0) var<storage, read> images: array<vec4f>;
@group(0) @binding(1) var<storage, read> query: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> distances: array<f32>;

@compute @workgroup_size(64)
fn distance_to_all(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&distances) {
        return;
    }
    var sum = 0.0;
    for (var part = 0u; part < 16u; part++) {
        let difference = images[id.x * 16u + part] - query[part];
        sum += dot(difference, difference);
    }
    distances[id.x] = sum;
}
