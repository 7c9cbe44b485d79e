// An inclusive prefix sum of one workgroup, in place.

const WIDTH = 64u;

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<workgroup> shelf: array<array<u32, WIDTH>, 2>;

@compute @workgroup_size(WIDTH)
fn scan(@builtin(local_invocation_id) local: vec3u) {
    let i = local.x;
    var side = 0u;
    shelf[side][i] = data[i];
    workgroupBarrier();
    for (var step = 1u; step < WIDTH; step <<= 1u) {
        var sum = shelf[side][i];
        if i >= step {
            sum += shelf[side][i - step];
        }
        side = 1u - side;
        shelf[side][i] = sum;
        workgroupBarrier();
    }
    data[i] = shelf[side][i];
}
