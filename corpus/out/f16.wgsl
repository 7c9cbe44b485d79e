enable f16;

@group(0) @binding(0) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;

@compute @workgroup_size(64)
fn f16_storage(
    @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let x4 = arrayLength(&a);
    let x6 = arrayLength(&b);
    let x10 = arrayLength(&packed);
    let x12 = workgroup_id.x * 64u;
    let x13 = x12 + local_invocation_id.x;
    let x14 = x4 - 1u;
    let x15 = min(x13, x14);
    let t0 = a[x15];
    let x20 = x6 - 1u;
    let x21 = min(x13, x20);
    let t1 = b[x21];
    let x26 = fma(t0.x, 2.0h, t1.x);
    let x27 = fma(t0.y, 2.0h, t1.y);
    let x28 = fma(t0.z, 2.0h, t1.z);
    let x29 = fma(t0.w, 2.0h, t1.w);
    let x30 = x13 & 3u;
    let x31 = x30 == 2u;
    let x32 = select(t0.w, t0.z, x31);
    let x33 = x30 == 1u;
    let x34 = select(x32, t0.y, x33);
    let x35 = x30 == 0u;
    let x36 = select(x34, t0.x, x35);
    let x37 = f32(x36);
    let x38 = f16(x37);
    let x39 = x26 + x38;
    let x40 = x27 + x38;
    let x41 = x28 + x38;
    let x42 = x29 + x38;
    b[x21] = vec4<f16>(x39, x40, x41, x42);
    let x43 = x10 - 1u;
    let x44 = min(x13, x43);
    let x45 = f32(x26);
    let x46 = f32(x27);
    let x47 = f16(x45);
    let x48 = pack2x16float(vec2<f32>(f32(x47), 0.0f));
    let x50 = f16(x46);
    let x51 = pack2x16float(vec2<f32>(f32(x50), 0.0f));
    let x53 = x51 << 16u;
    let x54 = x53 | x48;
    packed[x44] = x54;
}
