// One pair at a time, for heads of any even size. Preceded by the elements' definitions and by
// rope_angles.wgsl.

const PAIRS: u32 = 1u;

@group(0) @binding(2) var<storage, read> x: array<Stored>;
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;

struct Pairs {
    first: f32,
    second: f32,
}

fn rotation(position: u32, pair: u32) -> Pairs {
    let result = rotation_of(position, pair);
    return Pairs(result.x, result.y);
}

// Returns the positions of the elements of a pair.
fn places(head: u32, pair: u32) -> vec2<u32> {
    let start = head * shape.half * 2u;
    if INTERLEAVED {
        return vec2<u32>(start + pair * 2u, start + pair * 2u + 1u);
    }
    return vec2<u32>(start + pair, start + pair + shape.half);
}

fn load(head: u32, pair: u32) -> Pairs {
    let at = places(head, pair);
    return Pairs(widen(x[at.x]), widen(x[at.y]));
}

fn store(head: u32, pair: u32, pairs: Pairs) {
    let at = places(head, pair);
    y[at.x] = narrow(pairs.first);
    y[at.y] = narrow(pairs.second);
}

