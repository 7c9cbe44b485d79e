// Angles of rotary position embedding. Preceded by mul_high.wgsl, turns.wgsl, and by
//
//     const INTERLEAVED: bool; const SIGNED: bool, whether positions are.

struct Shape {
    rows: u32,
    heads: u32,
    // Pairs of a head.
    half: u32,
}

var<immediate> shape: Shape;

@group(0) @binding(0) var<storage, read> positions: array<u32>;
// The angle of each pair at position 1, in units of 2^-64 turns: the upper and the lower half.
@group(0) @binding(1) var<storage, read> frequencies: array<vec2<u32>>;

// Returns the cosine and the sine of the angle of a pair. Products with the position are exact, and
// whole turns are dropped, so that the accuracy does not depend on the position.
fn rotation_of(position: u32, pair: u32) -> vec2<f32> {
    let frequency = frequencies[pair];
    let is_negative = SIGNED && bitcast<i32>(position) < 0;
    let distance = select(position, 0u - position, is_negative);
    let turn = distance * frequency.x + mul_high(distance, frequency.y);
    let result = cos_sin(turn);
    return vec2<f32>(result.x, select(result.y, -result.y, is_negative));
}

