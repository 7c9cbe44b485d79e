// Heat in a plate: one time step of the diffusion equation, and its picture.
//
// Each launch reads `src` and writes `dst`; the next one exchanges them. The border stays cold. The pen
// adds heat at a place that the page writes.

const WIDTH = 512u;
const HEIGHT = 320u;

struct Pen {
    at: vec2f,
    radius: f32,
    heat: f32,
}

@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
// Rows of RGBA, as canvases have them.
@group(0) @binding(2) var<storage, read_write> pixels: array<u32>;
@group(0) @binding(3) var<uniform> pen: Pen;

@compute @workgroup_size(16, 16)
fn heat(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= WIDTH || id.y >= HEIGHT {
        return;
    }
    let at = id.y * WIDTH + id.x;
    var next = 0.0;
    if id.x > 0u && id.y > 0u && id.x < WIDTH - 1u && id.y < HEIGHT - 1u {
        let around = src[at - 1u] + src[at + 1u] + src[at - WIDTH] + src[at + WIDTH];
        next = src[at] + 0.24 * (around - 4.0 * src[at]);
        let distance = vec2f(id.xy) - pen.at;
        if dot(distance, distance) < pen.radius * pen.radius {
            next = max(next, pen.heat);
        }
    }
    dst[at] = next;
    pixels[at] = colour(next);
}

// Black, red, yellow, white.
fn colour(heat: f32) -> u32 {
    let part = clamp(vec3f(3.0 * heat, 3.0 * heat - 1.0, 3.0 * heat - 2.0), vec3f(0.0), vec3f(1.0));
    let bytes = vec3u(part * 255.0);
    return bytes.x | bytes.y << 8u | bytes.z << 16u | 0xff000000u;
}
