// Maxima or averages of windows, one by each invocation. Preceded by the elements' definitions, and by
//
//     const MAXIMUM: bool; const COUNTS_PADDING: bool, whether averages do;
//     const KERNEL, STRIDE: vec2<u32>, as (x, y); const HAS_PADDING: bool.

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

@compute @workgroup_size(16, 16)
fn pool_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.out_size.x || id.y >= shape.out_size.y {
        return;
    }
    let start = id.xy * STRIDE - shape.padding;
    let plane = id.z * shape.size.y;
    var result = select(0.0, bitcast<f32>(0xff800000u), MAXIMUM);
    var count = 0u;
    for (var row = 0u; row < KERNEL.y; row++) {
        for (var column = 0u; column < KERNEL.x; column++) {
            let at = start + vec2<u32>(column, row);
            if !HAS_PADDING || (at.x < shape.size.x && at.y < shape.size.y) {
                let value = widen(x[(plane + at.y) * shape.size.x + at.x]);
                if MAXIMUM {
                    if value > result || is_nan(value) {
                        result = value;
                    }
                } else {
                    result += value;
                    count += 1u;
                }
            }
        }
    }
    if !MAXIMUM {
        result /= f32(select(count, KERNEL.x * KERNEL.y, COUNTS_PADDING));
    }
    y[(id.z * shape.out_size.y + id.y) * shape.out_size.x + id.x] = narrow(result);
}
