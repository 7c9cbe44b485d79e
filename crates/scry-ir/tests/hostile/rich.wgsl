enable f16, subgroups;
requires packed_4x8_integer_dot_product;
alias Mat = mat3x2<f32>;
struct Inner { a: vec3<f16>, @size(64) b: array<Mat, 2> }
struct Outer { inner: array<Inner, 3>, @align(32) last: vec2<i64>, tail: array<vec4<u32>> }
struct Input { @builtin(num_workgroups) groups: vec3<u32>, @builtin(subgroup_size) lanes: u32 }
@id(12) override SCALE: f32 = 2.0 * f32(1 + 2);
override EXACT: bool = SCALE > 4;
const TABLE = array(vec2(1, 2), vec2(3, 4));
const_assert TABLE[1].y == 4;
var<private> seed = 7u;
var<workgroup> flags: array<atomic<i32>, 16>;
var<workgroup> total: u32;
@group(2) @binding(1) var<storage, read_write> all: Outer;
@group(2) @binding(0) var<uniform> small: mat4x4<f32>;
@group(0) @binding(5) var<storage, read_write> big: array<atomic<u64>>;
@group(0) @binding(6) var<storage, read_write> sums: atomic<f32>;
fn add(p: ptr<function, array<f32, 4>>, i: u32) -> vec2<f32> {
    (*p)[i] += 1.5; p[0] = fma(p[1], 2f, -0.5);
    return (small * vec4(p[0], p[1], p[2], p[3])).xw;
}
@must_use fn hash(x: u32) -> u32 { seed ^= (x << 3u) + (seed >> 5u); return ~seed; }
@compute @workgroup_size(16, 2)
fn main(in: Input, @builtin(local_invocation_id) l: vec3<u32>) {
    var local = array<f32, 4>();
    let r = add(&local, l.x % 4);
    let old = atomicCompareExchangeWeak(&flags[l.x], 0, 1);
    if old.exchanged && EXACT { atomicMax(&big[l.x], 3lu); }
    total = hash(in.lanes);
    let t = workgroupUniformLoad(&total);
    let h = all.inner[l.y].a * 2h + vec3<f16>(f16(r.x));
    all.inner[1].b[l.x & 1] = Mat(r, r.yx, vec2(f32(h.x), SCALE));
    all.tail[t].z = arrayLength(&all.tail) + pack2x16float(r) + dot4U8Packed(t, seed);
    all.last -= vec2(i64(t), -3li);
    atomicAdd(&sums, frexp(r.x).fract + modf(r.y).whole);
    let w = transpose(all.inner[0].b[0]) * r;
    storageBarrier();
    while t > 3 { if subgroupAny(w.x > 0.0) { return; } var i = 0; i++; i <<= 2u; _ = i; break; }
    all.tail[subgroupShuffleXor(l.x, 1u)] = select(unpack4xU8(t), countOneBits(vec4(t)), EXACT);
}
