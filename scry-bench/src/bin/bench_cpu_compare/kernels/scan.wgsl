// Inclusive prefix sums of blocks of 256 elements (Hillis and Steele).

const WIDTH = 256u;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> shelf: array<array<u32, WIDTH>, 2>;

@compute @workgroup_size(WIDTH)
fn scan(
    @builtin(local_invocation_id) local: vec3u,
    @builtin(global_invocation_id) id: vec3u,
) {
    let i = local.x;
    var side = 0u;
    shelf[side][i] = select(0u, input[id.x], id.x < arrayLength(&input));
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
    if id.x < arrayLength(&sums) {
        sums[id.x] = shelf[side][i];
    }
}
