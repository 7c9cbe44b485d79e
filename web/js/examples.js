// Kernels to start from: name, source, and for the playground its launch and buffers.
const GUARD = "@builtin(global_invocation_id) id: vec3u";

export const EXAMPLES = [
  {
    name: "Double",
    invocations: [1024, 1, 1],
    buffers: [{ fill: "index", count: 1024 }],
    show: "plot",
    wgsl: `@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn double(${GUARD}) {
    if id.x < arrayLength(&data) {
        data[id.x] *= 2.0;
    }
}
`,
  },
  {
    name: "Waves",
    invocations: [2000, 1, 1],
    buffers: [{ fill: "index", count: 2000 }, { fill: "zeros", count: 2000 }],
    show: "plot",
    wgsl: `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn waves(${GUARD}) {
    if id.x >= arrayLength(&y) { return; }
    let t = x[id.x] * 0.01;
    var sum = 0.0;
    for (var k = 1u; k < 12u; k += 2u) {
        sum += sin(f32(k) * t) / f32(k);
    }
    y[id.x] = sum;
}
`,
  },
  {
    name: "Mandelbrot",
    invocations: [480, 320, 1],
    buffers: [{ fill: "zeros", count: 153600 }],
    show: "picture",
    width: 480,
    wgsl: `const WIDTH = 480u;
const HEIGHT = 320u;

@group(0) @binding(0) var<storage, read_write> shade: array<f32>;

@compute @workgroup_size(16, 16)
fn mandelbrot(${GUARD}) {
    if id.x >= WIDTH || id.y >= HEIGHT { return; }
    let c = vec2f(f32(id.x) / 160.0 - 2.1, f32(id.y) / 160.0 - 1.0);
    var z = vec2f(0.0);
    var steps = 0u;
    while steps < 96u && dot(z, z) < 4.0 {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        steps++;
    }
    shade[id.y * WIDTH + id.x] = f32(steps) / 96.0;
}
`,
  },
  {
    name: "Sum of a workgroup",
    invocations: [4096, 1, 1],
    buffers: [{ fill: "index", count: 4096 }, { fill: "zeros", count: 16 }],
    show: "table",
    wgsl: `@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(256)
fn sum(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    partial[lane] = data[id.x];
    for (var stride = 128u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            partial[lane] += partial[lane + stride];
        }
    }
    if lane == 0u {
        sums[group.x] = partial[0];
    }
}
`,
  },
  {
    name: "Histogram",
    invocations: [65536, 1, 1],
    buffers: [{ fill: "random", count: 65536 }, { fill: "zeros", count: 64 }],
    show: "plot",
    wgsl: `@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;

@compute @workgroup_size(64)
fn histogram(${GUARD}) {
    if id.x < arrayLength(&data) {
        let bin = u32(data[id.x] * data[id.x] * f32(arrayLength(&bins)));
        atomicAdd(&bins[bin], 1u);
    }
}
`,
  },
  {
    name: "Ripples",
    invocations: [480, 320, 1],
    buffers: [{ fill: "zeros", count: 153600 }],
    show: "picture",
    width: 480,
    wgsl: `const WIDTH = 480u;
const HEIGHT = 320u;

@group(0) @binding(0) var<storage, read_write> shade: array<f32>;

// The height of a wave around a stone in the water.
fn ripple(at: vec2f, stone: vec2f, wave: f32) -> f32 {
    let d = distance(at, stone);
    return cos(d / wave) / (1.0 + d / 80.0);
}

@compute @workgroup_size(16, 16)
fn ripples(${GUARD}) {
    if id.x >= WIDTH || id.y >= HEIGHT { return; }
    let at = vec2f(id.xy);
    var height = ripple(at, vec2f(130.0, 110.0), 6.0);
    height += ripple(at, vec2f(350.0, 200.0), 7.0);
    height += ripple(at, vec2f(240.0, 420.0), 9.0);
    shade[id.y * WIDTH + id.x] = 0.5 + 0.2 * height;
}
`,
  },
];
