// A pass of a radix sort, by 8 bits of the keys.

struct Parameters {
    // Keys, and tiles of them.
    count: u32,
    tiles: u32,
    // The position of the digit in the key.
    shift: u32,
}

var<immediate> parameters: Parameters;

