// The Mandelbrot set: steps of z ← z² + c until z leaves the circle of radius 2, for each pixel.

const MAX_STEPS = 256u;

struct Size {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<storage, read_write> steps: array<u32>;
var<immediate> size: Size;

@compute @workgroup_size(16, 16)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= size.width || id.y >= size.height {
        return;
    }
    let c = vec2f(
        f32(id.x) * 3.0 / f32(size.width) - 2.25,
        f32(id.y) * 3.0 / f32(size.height) - 1.5,
    );
    var z = vec2f(0.0);
    var n = 0u;
    while n < MAX_STEPS && dot(z, z) <= 4.0 {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    steps[id.y * size.width + id.x] = n;
}
