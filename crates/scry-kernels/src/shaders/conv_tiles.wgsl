// Convolution: a workgroup computes a tile of OUT_COLUMNS × OUT_ROWS positions of CHANNELS output
// channels. The input that the tile depends on is copied to workgroup memory, DEPTH input channels at
// a time, with the weights. Each invocation has POINTS_X × POINTS_Y positions in registers. Preceded
// by the elements' definitions, the bindings of `x`, `weights` and `y`, the function `bias` of a
// channel, and by the constants below, which ops/conv/tiling.rs generates with the functions
//
//     fn accumulate(tile: u32, weights: u32), which adds the products of an input channel;
//     fn store_sums(image: u32, group: u32, first: vec3<u32>), which stores the sums; `first` is the
//     channel in the group, the row and the column of the first one.
//
//     const KERNEL, STRIDE, DILATION: vec2<u32>, as (x, y);
//     const LANES: vec2<u32>, invocations along x and y, 256 in total;
//     const POINTS: vec2<u32>, positions of an invocation: those along x are LANES.x apart;
//     const CHANNELS: u32; const DEPTH: u32;
//     const TILE: vec2<u32>, columns and rows of the input of a tile;
//     const QUADS: u32, quads of weights in a column of a kernel: by row, then by output channel.

struct Shape {
    // Channels of a group.
    in_channels: u32,
    out_channels: u32,
    groups: u32,
    // Blocks of output channels of a group.
    blocks: u32,
    size: vec2<u32>,
    out_size: vec2<u32>,
    padding: vec2<u32>,
}

var<immediate> shape: Shape;

const TILE_LEN: u32 = TILE.x * TILE.y;
const KERNEL_LEN: u32 = KERNEL.x * KERNEL.y;
const WEIGHTS_LEN: u32 = KERNEL_LEN * CHANNELS;

var<workgroup> tile: array<f32, TILE_LEN * DEPTH>;
var<workgroup> tile_weights: array<vec4<f32>, QUADS * KERNEL.x * DEPTH>;

// Loads of an invocation that are in flight together.
const BATCH: u32 = min((TILE_LEN + 255u) / 256u, 4u);

// Loads an element of the input of a tile; `start` is its first column and row, without the padding.
fn load(plane: u32, start: vec2<u32>, element: u32) -> f32 {
    let at = start + vec2<u32>(element % TILE.x, element / TILE.x);
    // Unconditional, so that several loads are in flight together.
    let value = widen(x[(plane * shape.size.y + at.y) * shape.size.x + at.x]);
    return select(0.0, value, at.x < shape.size.x && at.y < shape.size.y);
}

// Copies the input of a tile from a channel. Positions outside of the image are 0.
fn load_tile(local_index: u32, plane: u32, tile_at: u32, start: vec2<u32>) {
    for (var first = local_index; first < TILE_LEN; first += 256u * BATCH) {
        var values: array<f32, BATCH>;
        for (var nth = 0u; nth < BATCH; nth++) {
            values[nth] = load(plane, start, first + nth * 256u);
        }
        for (var nth = 0u; nth < BATCH; nth++) {
            let element = first + nth * 256u;
            if element < TILE_LEN {
                tile[tile_at + element] = values[nth];
            }
        }
    }
}

// Copies the weights of CHANNELS output channels, in the order in which they are used.
fn load_weights(local_index: u32, out_channel: u32, in_channel: u32) {
    for (var nth = local_index; nth < WEIGHTS_LEN * DEPTH; nth += 256u) {
        let depth = nth / WEIGHTS_LEN;
        let channel = nth % WEIGHTS_LEN / KERNEL_LEN;
        let row = nth % KERNEL_LEN / KERNEL.x;
        let column = nth % KERNEL.x;
        let kernel = (out_channel + channel) * shape.in_channels + in_channel + depth;
        let at = row * CHANNELS + channel;
        tile_weights[(depth * KERNEL.x + column) * QUADS + at / 4u][at % 4u] =
            widen(weights[kernel * KERNEL_LEN + nth % KERNEL_LEN]);
    }
}

@compute @workgroup_size(256)
fn conv_tiles(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let block = workgroup.z % shape.blocks;
    let group = workgroup.z / shape.blocks % shape.groups;
    let image = workgroup.z / shape.blocks / shape.groups;
    let lane = vec2<u32>(local_index % LANES.x, local_index / LANES.x);
    let first_out = workgroup.xy * LANES * POINTS;
    let out_channel = group * shape.out_channels + block * CHANNELS;
    let in_channel = (image * shape.groups + group) * shape.in_channels;
    let first_in = first_out * STRIDE - shape.padding;
    let in_tile = lane.y * POINTS.y * STRIDE.y * TILE.x + lane.x * STRIDE.x;
    for (var channel = 0u; channel < shape.in_channels; channel += DEPTH) {
        workgroupBarrier();
        let channels = shape.in_channels - channel;
        for (var depth = 0u; depth < DEPTH; depth++) {
            if depth < channels {
                let plane = in_channel + channel + depth;
                load_tile(local_index, plane, depth * TILE_LEN, first_in);
            }
        }
        load_weights(local_index, out_channel, channel);
        workgroupBarrier();
        for (var depth = 0u; depth < DEPTH; depth++) {
            if depth < channels {
                accumulate(depth * TILE_LEN + in_tile, depth * KERNEL.x * QUADS);
            }
        }
    }
    let first = first_out + vec2<u32>(lane.x, lane.y * POINTS.y);
    store_sums(image, group, vec3<u32>(block * CHANNELS, first.y, first.x));
}

// Stores a sum at a position, given as channel in the group, row and column.
fn store(image: u32, group: u32, at: vec3<u32>, sum: f32) {
    if at.x < shape.out_channels && at.y < shape.out_size.y && at.z < shape.out_size.x {
        let channel = group * shape.out_channels + at.x;
        let plane = image * shape.groups * shape.out_channels + channel;
        y[(plane * shape.out_size.y + at.y) * shape.out_size.x + at.z] =
            narrow(sum + bias(channel));
    }
}
