// Philox4x32-10: four words of a counter for each invocation. Precedes `put`.

struct Parameters { count: u32, seed_low: u32, seed_high: u32 }
var<immediate> parameters: Parameters;

fn multiply(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x * 4u >= parameters.count {
        return;
    }
    var counter = vec4<u32>(id.x, 0u, 0u, 0u);
    var key = vec2<u32>(parameters.seed_low, parameters.seed_high);
    for (var round = 0u; round < 10u; round++) {
        let first = multiply(0xd2511f53u, counter.x);
        let second = multiply(0xcd9e8d57u, counter.z);
        counter = vec4<u32>(
            second.y ^ counter.y ^ key.x,
            second.x,
            first.y ^ counter.w ^ key.y,
            first.x,
        );
        key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    put(id.x * 4u, counter);
}
