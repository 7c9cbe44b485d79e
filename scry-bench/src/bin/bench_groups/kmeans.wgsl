// One iteration of k-means for points of 16 coordinates between 0 and 1, and 64 clusters. Sums are
// in units of 2^-16, and exact: below 2^31 in a workgroup.

const CLUSTERS = 64u;
const WORDS = 17u;
const PER_WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> points: array<array<vec4f, 4>>;
@group(0) @binding(1) var<storage, read> centroids: array<array<vec4f, 4>>;
@group(0) @binding(2) var<storage, read_write> partial: array<u32>;

var<workgroup> nearby: array<array<vec4f, 4>, 64>;
var<workgroup> sums: array<atomic<u32>, 1088>;

@compute @workgroup_size(256)
fn assign(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) index: u32,
) {
    for (var i = index; i < CLUSTERS * WORDS; i += 256u) { atomicStore(&sums[i], 0u); }
    if index < CLUSTERS { nearby[index] = centroids[index]; }
    workgroupBarrier();
    let first = group.x * 256u * PER_WORKGROUP;
    for (var step = 0u; step < PER_WORKGROUP; step++) {
        let at = first + step * 256u + index;
        if at >= arrayLength(&points) { break; }
        let point = points[at];
        var nearest = 0u;
        var least = 1e30;
        for (var cluster = 0u; cluster < CLUSTERS; cluster++) {
            let a = point[0] - nearby[cluster][0];
            let b = point[1] - nearby[cluster][1];
            let c = point[2] - nearby[cluster][2];
            let d = point[3] - nearby[cluster][3];
            let distance = dot(a, a) + dot(b, b) + dot(c, c) + dot(d, d);
            if distance < least {
                least = distance;
                nearest = cluster;
            }
        }
        let base = nearest * WORDS;
        for (var part = 0u; part < 4u; part++) {
            let units = vec4u(point[part] * 65536.0);
            atomicAdd(&sums[base + 4u * part], units.x);
            atomicAdd(&sums[base + 4u * part + 1u], units.y);
            atomicAdd(&sums[base + 4u * part + 2u], units.z);
            atomicAdd(&sums[base + 4u * part + 3u], units.w);
        }
        atomicAdd(&sums[base + 16u], 65536u);
    }
    workgroupBarrier();
    for (var i = index; i < CLUSTERS * WORDS; i += 256u) {
        partial[group.x * CLUSTERS * WORDS + i] = atomicLoad(&sums[i]);
    }
}
