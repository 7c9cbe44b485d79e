// Quantises weights: an invocation fits the scale of a group of weights and converts them to
// integers; then a workgroup stores its blocks. Preceded by the constants
//
//     BLOCK_LEN, the weights of a block; BLOCK_BYTES; GROUP, the weights of an invocation;
//     UNIT_BYTES, those of `Unit`: u32 or u16,
//
// and followed by the functions of a format:
//
//     fn fit() -> vec2<f32>, which returns the scale and the offset of `weights`;
//     fn round_scales(local_index: u32) -> vec2<f32>, which stores those of the block in `headers`
//         and of the group in `codes`, and returns what `integer` needs;
//     fn integer(weight: f32, scales: vec2<f32>) -> u32, below 256;
//     fn block_byte(block: u32, at: u32) -> u32, a byte of a block of the workgroup.

struct Parameters {
    count: u32,
    // Units of all blocks.
    units: u32,
    zero: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> blocks: array<Unit>;

var<immediate> parameters: Parameters;

const THREADS: u32 = 64u;
// Invocations of a block.
const GROUPS: u32 = BLOCK_LEN / GROUP;
// Units of a workgroup. It has an even number of blocks, which are whole units.
const UNITS: u32 = THREADS / GROUPS * BLOCK_BYTES / UNIT_BYTES;

// The weights of an invocation; zeros beyond the last one.
var<private> weights: array<f32, GROUP>;
// Of each group the scale and the offset, and what is stored of them.
var<workgroup> fits: array<vec2<f32>, THREADS>;
var<workgroup> codes: array<vec2<u32>, THREADS>;
// Of each block two f16, at its first group.
var<workgroup> headers: array<u32, THREADS>;
// Four integers in a word.
var<workgroup> integers: array<u32, THREADS * GROUP / 4u>;

@compute @workgroup_size(THREADS)
fn quantize(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first = (group.x * THREADS + local_index) * GROUP;
    for (var nth = 0u; nth < GROUP; nth++) {
        weights[nth] = 0.0;
        if first < parameters.count {
            weights[nth] = x[first + nth];
        }
    }
    fits[local_index] = fit();
    workgroupBarrier();
    let scales = round_scales(local_index);
    for (var word = 0u; word < GROUP / 4u; word++) {
        var packed = 0u;
        for (var nth = 0u; nth < 4u; nth++) {
            packed |= integer(weights[4u * word + nth], scales) << (8u * nth);
        }
        integers[local_index * (GROUP / 4u) + word] = packed;
    }
    workgroupBarrier();
    for (var nth = local_index; nth < UNITS; nth += THREADS) {
        let unit = group.x * UNITS + nth;
        if unit < parameters.units {
            var bytes = 0u;
            for (var byte = 0u; byte < UNIT_BYTES; byte++) {
                let at = nth * UNIT_BYTES + byte;
                bytes |= block_byte(at / BLOCK_BYTES, at % BLOCK_BYTES) << (8u * byte);
            }
            blocks[unit] = Unit(bytes);
        }
    }
}

// Returns an integer of a block of the workgroup.
fn integer_at(block: u32, nth: u32) -> u32 {
    let at = block * BLOCK_LEN + nth;
    return (integers[at / 4u] >> (8u * (at % 4u))) & 255u;
}

fn header_byte(block: u32, at: u32) -> u32 {
    return (headers[block * GROUPS] >> (8u * at)) & 255u;
}

// Returns the weight with the largest magnitude, from `low` and `high`, the extremes of the weights
// and 0; of two equal ones, the positive one.
fn larger_magnitude(low: f32, high: f32) -> f32 {
    return select(high, low, -low > high);
}

// Returns the minimum and the maximum of the weights and 0.
fn extremes() -> vec2<f32> {
    var low = 0.0;
    var high = 0.0;
    for (var nth = 0u; nth < GROUP; nth++) {
        low = select(low, weights[nth], weights[nth] < low);
        high = select(high, weights[nth], weights[nth] > high);
    }
    return vec2<f32>(low, high);
}

