enable subgroups;
struct Params { scale: f32, @align(16) shift: vec3<f32>, count: u32 }
override TILE: u32 = 8;
const WEIGHTS = array<f32, 3>(0.25, 0.5, 0.25);
var<workgroup> tile: array<f32, TILE * 2>;
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(3) var<storage, read_write> dst: array<vec2<f32>>;
@group(1) @binding(0) var<storage, read_write> hits: atomic<u32>;

/* A /* nested */ comment. */
fn blur(i: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < 3u; k++) {
        if i + k < params.count { sum += src[i + k] * WEIGHTS[k]; }
        else if k == 2u { continue; }
        else { break; }
    }
    return sum;
}

@compute @workgroup_size(TILE, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    tile[l] = blur(id.x) + subgroupAdd(params.shift.y);
    workgroupBarrier();
    switch l % 3u {
        case 0u, 1u: { dst[id.x] = vec2<f32>(tile[l], -tile[l ^ 1u]).yx; }
        default: { _ = atomicAdd(&hits, u32(select(0, 1, any(vec2<bool>(true))))); }
    }
    loop {
        let x = bitcast<u32>(params.scale) << 1u;
        if x > 0x7f800000u { break; }
        continuing { break if l > 3u; }
    }
}
