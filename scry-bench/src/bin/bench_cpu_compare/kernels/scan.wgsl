// Inclusive prefix sums of blocks of 256 elements (Hillis and Steele).

const WIDTH = 256u;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> partial: array<array<u32, WIDTH>, 2>;

@compute @workgroup_size(WIDTH)
fn scan(
    @builtin(local_invocation_id) local: vec3u,
    @builtin(global_invocation_id) id: vec3u,
) {
    let i = local.x;
    var current = 0u;
    partial[current][i] = select(0u, input[id.x], id.x < arrayLength(&input));
    workgroupBarrier();
    for (var step = 1u; step < WIDTH; step <<= 1u) {
        var sum = partial[current][i];
        if i >= step {
            sum += partial[current][i - step];
        }
        current = 1u - current;
        partial[current][i] = sum;
        workgroupBarrier();
    }
    if id.x < arrayLength(&sums) {
        sums[id.x] = partial[current][i];
    }
}
