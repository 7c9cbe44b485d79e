// f16 arithmetic and storage, and its packed form in f32 code.
enable f16;

@group(0) @binding(0) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;

@compute @workgroup_size(64)
fn f16_storage(@builtin(global_invocation_id) id: vec3u) {
    let x = a[id.x];
    let y = fma(x, vec4h(2.0), b[id.x]);
    b[id.x] = y + f16(f32(x[id.x & 3u]));
    packed[id.x] = pack2x16float(vec2f(y.xy));
}
