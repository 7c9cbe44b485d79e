// Four pairs at a time: their elements are quads. Preceded by the elements' and the quads'
// definitions, and by rope_angles.wgsl.

const PAIRS: u32 = 4u;

@group(0) @binding(2) var<storage, read> x: array<Quad>;
@group(0) @binding(3) var<storage, read_write> y: array<Quad>;

struct Pairs {
    first: vec4<f32>,
    second: vec4<f32>,
}

fn rotation(position: u32, pair: u32) -> Pairs {
    let a = rotation_of(position, pair);
    let b = rotation_of(position, pair + 1u);
    let c = rotation_of(position, pair + 2u);
    let d = rotation_of(position, pair + 3u);
    return Pairs(vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(a.y, b.y, c.y, d.y));
}

fn load(head: u32, pair: u32) -> Pairs {
    if INTERLEAVED {
        let at = (head * shape.half * 2u + pair * 2u) / 4u;
        let a = widen_quad(x[at]);
        let b = widen_quad(x[at + 1u]);
        return Pairs(vec4<f32>(a.xz, b.xz), vec4<f32>(a.yw, b.yw));
    }
    let at = (head * shape.half * 2u + pair) / 4u;
    return Pairs(widen_quad(x[at]), widen_quad(x[at + shape.half / 4u]));
}

fn store(head: u32, pair: u32, pairs: Pairs) {
    let a = pairs.first;
    let b = pairs.second;
    if INTERLEAVED {
        let at = (head * shape.half * 2u + pair * 2u) / 4u;
        y[at] = narrow_quad(vec4<f32>(a.x, b.x, a.y, b.y));
        y[at + 1u] = narrow_quad(vec4<f32>(a.z, b.z, a.w, b.w));
        return;
    }
    let at = (head * shape.half * 2u + pair) / 4u;
    y[at] = narrow_quad(a);
    y[at + shape.half / 4u] = narrow_quad(b);
}

