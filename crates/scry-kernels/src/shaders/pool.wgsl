// Maxima or averages of windows, one per invocation. Preceded by the elements' definitions, and by
//
//     const MAXIMUM: bool; const COUNTS_PADDING: bool, whether averages do;
//     const KERNEL, STRIDE: vec2<u32>, as (x, y);
//     const LANES: vec3<u32>, invocations along x and y, and planes of a workgroup.

struct Shape {
    planes: u32,
    unused: u32,
    size: vec2<u32>,
    out_size: vec2<u32>,
    padding: vec2<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

var<immediate> shape: Shape;

fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

@compute @workgroup_size(256)
fn pool(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let out_x = workgroup.x * LANES.x + local_index % LANES.x;
    let out_y = workgroup.y * LANES.y + local_index / LANES.x % LANES.y;
    let plane = workgroup.z * LANES.z + local_index / LANES.x / LANES.y;
    if out_x >= shape.out_size.x || out_y >= shape.out_size.y || plane >= shape.planes {
        return;
    }
    let start = vec2<u32>(out_x, out_y) * STRIDE - shape.padding;
    var result = 0.0;
    var count = 0u;
    for (var row = 0u; row < KERNEL.y; row++) {
        for (var column = 0u; column < KERNEL.x; column++) {
            let at = start + vec2<u32>(column, row);
            // Loads are unconditional, so that several are in flight together.
            let value = widen(x[(plane * shape.size.y + at.y) * shape.size.x + at.x]);
            if at.x < shape.size.x && at.y < shape.size.y {
                count += 1u;
                if MAXIMUM {
                    if count == 1u || value > result || is_nan(value) {
                        result = value;
                    }
                } else {
                    result += value;
                }
            }
        }
    }
    if !MAXIMUM {
        result /= f32(select(count, KERNEL.x * KERNEL.y, COUNTS_PADDING));
    }
    y[(plane * shape.out_size.y + out_y) * shape.out_size.x + out_x] = narrow(result);
}
