// A stable sort: each invocation counts the keys before its own, which is quadratic.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted: array<u32>;
@group(0) @binding(2) var<storage, read_write> positions: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.count {
        return;
    }
    let key = keys[id.x];
    var rank = 0u;
    for (var i = 0u; i < sizes.count; i++) {
        let other = keys[i];
        rank += u32(other < key || (other == key && i < id.x));
    }
    sorted[rank] = key;
    positions[rank] = id.x;
}
