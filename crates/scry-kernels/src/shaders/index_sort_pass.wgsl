// What the kernels of a pass of the radix sort of pairs (row, number) by 4 bits of the row have in
// common: tiles of 2048 pairs, 8 per invocation.

struct Pass {
    // Pairs.
    count: u32,
    // The position of the digit's lowest bit.
    shift: u32,
    tiles: u32,
}

var<immediate> sort: Pass;

const TILE: u32 = 2048u;
const ITEMS: u32 = 8u;

fn digit_of(row: u32) -> u32 {
    return (row >> sort.shift) & 15u;
}

